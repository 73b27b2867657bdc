package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"meanwhile/host/jsonrpc"
)

// member is a client of the races: it keeps what it was asked and told.
type member struct {
	conn   *jsonrpc.Conn
	id     string
	mu     sync.Mutex
	had    map[string]int    // deliveries per event
	told   map[string]string // who settled it, by remote/settled
	twice  []string          // events it was told of more than once
	answer func(ctx context.Context, eventID string) (any, error)
}

func (m *member) Handle(ctx context.Context, r *jsonrpc.Request) (any, error) {
	var p struct {
		EventID string `json:"eventId"`
		Kind    string `json:"kind"`
		By      string `json:"by"`
	}
	if err := json.Unmarshal(r.Params, &p); err != nil {
		return nil, err
	}
	switch r.Method {
	case "ask":
		m.mu.Lock()
		m.had[p.EventID]++
		m.mu.Unlock()
		return m.answer(ctx, p.EventID)
	case methodSettled:
		m.mu.Lock()
		defer m.mu.Unlock()
		if _, again := m.told[p.EventID]; again {
			m.twice = append(m.twice, p.EventID)
		}
		m.told[p.EventID] = p.Kind + " " + p.By
	}
	return nil, nil
}

// join connects a member that answers as answer says.
func join(t *testing.T, g *Gateway, wg *sync.WaitGroup, answer func(ctx context.Context, m *member, eventID string) (any, error)) *member {
	ours, theirs := net.Pipe()
	wg.Go(func() { _ = g.Accept(context.Background(), jsonrpc.Lines(ours), Principal{}) })
	m := &member{had: map[string]int{}, told: map[string]string{}}
	m.answer = func(ctx context.Context, eventID string) (any, error) { return answer(ctx, m, eventID) }
	m.conn = jsonrpc.NewConn(jsonrpc.Lines(theirs), m, jsonrpc.Options{MaxCalls: 10_000})
	var in initParams
	in.Protocol, in.Token = Protocol, "answer"
	var out initResult
	if err := m.conn.Call(context.Background(), methodInit, in, &out); err != nil {
		t.Errorf("initialize: %v", err)
	}
	m.id = out.ClientID
	return m
}

func codeFault(code string) *jsonrpc.Fault {
	return &jsonrpc.Fault{Code: jsonrpc.CodeApplication, Message: code, Data: json.RawMessage(`{"code":"` + code + `"}`)}
}

// TestSettleRace has clients answer, refuse, settle by another road, delegate,
// fail, come and go, and the owner cancel, all at once. Each event must settle
// exactly once, and everyone who had it must be told the same once.
func TestSettleRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, events = 8, 300
		g := sample(Config{})
		var wg sync.WaitGroup
		var turn atomic.Int64
		answer := func(ctx context.Context, m *member, eventID string) (any, error) {
			switch turn.Add(1) % 11 {
			case 0, 1:
				return nil, codeFault("NO")
			case 2:
				return map[string]string{"bad": "once more"}, nil
			case 3:
				return nil, codeFault(CodeNext)
			case 4:
				return nil, errors.New("a broken client")
			case 5:
				// The same outcome by both roads.
				if err := m.conn.Call(ctx, methodSettle, map[string]any{"eventId": eventID, "result": 1}, nil); err != nil && ctx.Err() == nil {
					t.Errorf("settle: %v", err)
				}
				return 1, nil
			case 6:
				<-ctx.Done() // undecided until it is cancelled
				return nil, ctx.Err()
			}
			return map[string]string{"by": m.id}, nil
		}
		var members []*member
		for range clients {
			members = append(members, join(t, g, &wg, answer))
		}
		var settled [events]atomic.Int32
		var outcomes [events]atomic.Value
		var pendings [events]*Pending
		for i := range events {
			pendings[i] = g.Emit(Event{
				Name: "ask", Scope: "answer", Params: json.RawMessage(`{}`), Codes: []string{"NO"},
				Check: func(result json.RawMessage) *Refusal {
					if strings.Contains(string(result), "bad") {
						return &Refusal{Code: "BAD", Message: "bad"}
					}
					return nil
				},
				Settled: func(o Outcome) {
					if o.Kind == Unhandled {
						o.Pending.Reemit() // nobody new comes: the owner cancels it below
						return
					}
					settled[i].Add(1)
					outcomes[i].Store(o)
				},
			})
			if i%7 == 0 {
				wg.Go(func() { pendings[i].Cancel("GONE") })
			}
			if i%50 == 25 {
				leaver := members[0]
				members = append(members[1:], join(t, g, &wg, answer))
				wg.Go(func() {
					leaver.conn.Close(jsonrpc.CloseNormal, "")
					leaver.conn.Wait()
				})
			}
		}
		synctest.Wait()
		for _, p := range pendings {
			p.Cancel("REST")
		}
		synctest.Wait()
		for i := range events {
			if n := settled[i].Load(); n != 1 {
				t.Errorf("event %d settled %d times", i, n)
			}
		}
		for _, m := range members {
			m.mu.Lock()
			for i, p := range pendings {
				o, _ := outcomes[i].Load().(Outcome)
				want := o.Kind.String() + " " + o.Client
				switch got, was := m.told[p.ID()]; {
				case m.had[p.ID()] > 0 && got != want:
					t.Errorf("%s had event %d and was told %q, want %q", m.id, i, got, want)
				case m.had[p.ID()] == 0 && was:
					t.Errorf("%s was told of event %d and never had it", m.id, i)
				}
			}
			if len(m.twice) > 0 {
				t.Errorf("%s was told twice of %d events", m.id, len(m.twice))
			}
			m.mu.Unlock()
		}
		if _, left := g.Counts(); left != 0 {
			t.Errorf("%d events still pending", left)
		}
		g.Close()
		for _, m := range members {
			m.conn.Wait()
		}
		wg.Wait()
	})
}

// crowd connects clients that read whatever comes and say nothing. It returns
// how many deliveries each got once it is synced.
func crowd(t testing.TB, g *Gateway, n int) (stop func()) {
	var ends []net.Conn
	var wg, synced sync.WaitGroup
	for range n {
		ours, theirs := net.Pipe()
		ends = append(ends, theirs)
		synced.Add(1)
		wg.Go(func() { _ = g.Accept(context.Background(), jsonrpc.Lines(ours), tokenOf("answer")) })
		l := jsonrpc.Lines(theirs)
		wg.Go(func() {
			first := true
			for {
				line, err := l.Read(context.Background())
				if err != nil {
					return
				}
				if first && strings.Contains(string(line), methodSynced) && !strings.Contains(string(line), `"more":true`) {
					first = false
					synced.Done()
				}
			}
		})
		frame := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocol":1,"client":{"name":"x","version":"1"}}}`
		if err := l.Write(context.Background(), []byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	synced.Wait()
	return func() {
		for _, e := range ends {
			_ = e.Close()
		}
		wg.Wait()
	}
}

func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// TestManyPendingEvents holds 100,000 pending events, delivered to clients that
// never answer, to a few hundred bytes each and no goroutine.
func TestManyPendingEvents(t *testing.T) {
	const events, clients, most = 100_000, 2, 600
	g := sample(Config{})
	params := json.RawMessage(`{"shared":true}`)
	before, routines := heap(), runtime.NumGoroutine()
	all := make([]*Pending, events)
	for i := range all {
		all[i] = g.Emit(Event{Name: "ask", Scope: "answer", Params: params, Settled: func(Outcome) {}})
	}
	alone := (heap() - before) / events
	if got := runtime.NumGoroutine(); got != routines {
		t.Errorf("%d goroutines for pending events", got-routines)
	}
	stop := crowd(t, g, clients)
	with := (heap() - before) / events
	t.Logf("%d B each, %d B with %d clients that have them all", alone, with, clients)
	if alone > most || with > most {
		t.Errorf("an event takes %d B alone and %d B with %d clients, want at most %d", alone, with, clients, most)
	}
	for i, p := range all {
		if !p.Cancel("GONE") {
			t.Fatalf("event %d was not pending", i)
		}
	}
	if _, left := g.Counts(); left != 0 {
		t.Errorf("%d events left", left)
	}
	stop()
	g.Close()
}

func TestClientTooFarBehindIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := sample(Config{MaxLag: 10})
		ours, theirs := net.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- g.Accept(t.Context(), jsonrpc.Lines(ours), tokenOf("answer")) }()
		l := jsonrpc.Lines(theirs)
		frame := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocol":1,"client":{"name":"x","version":"1"}}}`
		if err := l.Write(t.Context(), []byte(frame)); err != nil {
			t.Fatal(err)
		}
		var pendings []*Pending
		for range 12 {
			pendings = append(pendings, g.Emit(Event{Name: "ask", Scope: "answer", Params: json.RawMessage(`{}`)}))
		}
		for range 2 + len(pendings) { // the answer, the deliveries, synced
			if _, err := l.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		// It reads no more: one settlement is being written, ten wait.
		for i, p := range pendings {
			p.Cancel("GONE")
			synctest.Wait()
			select {
			case err := <-ended:
				var closed *jsonrpc.CloseError
				if i != 11 || !errors.As(err, &closed) || closed.Code != jsonrpc.CloseSlow {
					t.Errorf("after %d settlements: %v, want close code %d after 12", i+1, err, jsonrpc.CloseSlow)
				}
				_ = theirs.Close()
				return
			default:
			}
		}
		t.Error("a client that takes nothing was not closed")
		_ = theirs.Close()
		<-ended
	})
}

func TestCloseSettlesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := sample(Config{})
		p := g.Emit(Event{Name: "ask", Scope: "answer", Params: json.RawMessage(`{}`), Settled: func(o Outcome) {
			t.Errorf("settled: %s", o.Kind)
		}})
		stop := crowd(t, g, 2)
		g.Close()
		if clients, events := g.Counts(); clients != 0 || events != 1 {
			t.Errorf("%d clients and %d events after the close, want 0 and 1", clients, events)
		}
		ours, theirs := net.Pipe()
		go func() { _, _ = jsonrpc.Lines(theirs).Read(context.Background()) }()
		var closed *jsonrpc.CloseError
		if err := g.Accept(t.Context(), jsonrpc.Lines(ours), Principal{}); !errors.As(err, &closed) || closed.Code != jsonrpc.CloseGoingAway {
			t.Errorf("accept after the close: %v", err)
		}
		stop()
		if p.ID() == "" {
			t.Error("no id")
		}
	})
}

func TestLargeEventIsRefused(t *testing.T) {
	g := sample(Config{})
	var got Outcome
	g.Emit(Event{
		Name: "ask", Params: json.RawMessage(fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", MaxEventParams))),
		Settled: func(o Outcome) { got = o },
	})
	if got.Kind != Cancelled || got.Code != CodeTooLarge {
		t.Errorf("got %s %s, want cancelled %s", got.Kind, got.Code, CodeTooLarge)
	}
}

func TestRouteTwicePanics(t *testing.T) {
	g := sample(Config{})
	for _, method := range []string{"who", methodInit, methodPing, methodSettle} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a second route for %q was taken", method)
				}
			}()
			g.Handle(method, "", nil)
		}()
	}
}

func BenchmarkEmit(b *testing.B) {
	g := sample(Config{MaxEvents: 1 << 30})
	params := json.RawMessage(`{"shared":true}`)
	b.ReportAllocs()
	for b.Loop() {
		g.Emit(Event{Name: "ask", Scope: "answer", Params: params})
	}
}

func BenchmarkEmitDeliverCancel(b *testing.B) {
	g := sample(Config{})
	stop := crowd(b, g, 1)
	defer stop()
	params := json.RawMessage(`{"shared":true}`)
	b.ReportAllocs()
	for b.Loop() {
		g.Emit(Event{Name: "ask", Scope: "answer", Params: params}).Cancel("GONE")
	}
}
