package outside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"meanwhile/host/agent"
	"meanwhile/host/question"
	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

const (
	questionsJSON = `[{"id":"db","question":"Which store?","options":[{"label":"Postgres"},{"label":"SQLite"}]}]`
	sqlite        = `{"answers":[{"id":"db","selected":["SQLite"]}]}`
)

var header = event.RequestHeader{Provider: "external", Model: "external", Tools: []event.ToolSpec{
	{Name: projection.ToolName, Description: "Ask.", Parameters: []byte(`{"properties":{"questions":{},"timeout":{}}}`)},
}}

// native checks without the module.
type native struct{}

func (native) CheckAsk(_ context.Context, questions []byte) (*projection.Problem, error) {
	v, err := value.Parse(questions)
	if err != nil {
		return nil, err
	}
	qs, p := projection.QuestionsOfWire(v)
	if p == nil {
		p = projection.CheckAsk(qs, false)
	}
	return p, nil
}

func (native) CheckAnswer(_ context.Context, questions, answer []byte) (*projection.Problem, error) {
	v, err := value.Parse(questions)
	if err != nil {
		return nil, err
	}
	qs, _ := projection.QuestionsOfWire(v)
	a, err := value.Parse(answer)
	if err != nil {
		return nil, err
	}
	_, p := projection.CheckAnswer(qs, a)
	return p, nil
}

// gate plays the gateway: the first settlement wins.
type gate struct {
	mu     sync.Mutex
	events []*sent
}

type sent struct {
	question.Event
	once sync.Once
}

func (g *gate) emit(e question.Event) question.Pending {
	s := &sent{Event: e}
	g.mu.Lock()
	g.events = append(g.events, s)
	g.mu.Unlock()
	return s
}

func (s *sent) settle(x question.Settlement) (won bool) {
	s.once.Do(func() { won = true; s.Settled(x) })
	return won
}
func (s *sent) Cancel(code string) bool {
	return s.settle(question.Settlement{Kind: question.Cancelled, Code: code})
}
func (s *sent) Reemit() bool { return false }
func (s *sent) answer(doc string) bool {
	return s.settle(question.Settlement{Kind: question.Result, Result: json.RawMessage(doc), ClientID: "c1", ClientName: "Phone"})
}

type rig struct {
	t     *testing.T
	mem   *sessiontest.Mem
	store *session.Store
	reg   *agent.Registry
	gate  *gate
	q     *question.Service
	svc   *Service
	id    string
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, mem: sessiontest.NewMem()}
	r.start()
	id, err := r.svc.Open(context.Background(), me, Opening{Name: "ci", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	r.id = id
	return r
}

// me is the token that opened the session, as one named process.
var me = Party{TokenID: "tok", Holder: "h1"}

func (r *rig) start() {
	r.gate = &gate{}
	r.store = sessiontest.OpenOn(r.t, r.mem)
	if _, err := r.store.RepairAll(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	r.reg = agent.NewRegistry(agent.Options{
		Open:    r.store.Open,
		Attach:  func(a *agent.Agent) (agent.Driver, error) { return agent.NewPassive(a), nil },
		Changed: func(a *agent.Agent) { r.svc.Wake(a.ID()) },
	})
	start := time.Now()
	r.q = question.New(question.Options{Emit: r.gate.emit, Validator: native{}, Agents: r.reg, MaxHold: question.DefaultMaxHold,
		Clock: func() question.Instant { d := time.Since(start); return question.Instant{Wall: d, Mono: d} }})
	r.svc = New(Options{Questions: r.q, Agents: r.reg, Sessions: r.store, Header: header})
}

func (r *rig) stop() {
	r.q.Close()
	r.svc.Close()
	if err := r.reg.Close(context.Background()); err != nil {
		r.t.Error(err)
	}
}

// crash ends the process without a word and starts another on what was on disk.
func (r *rig) crash() {
	r.t.Helper()
	disk := r.mem.Crash()
	r.stop()
	r.mem = disk
	r.start()
}

func (r *rig) event() *sent {
	r.t.Helper()
	r.gate.mu.Lock()
	defer r.gate.mu.Unlock()
	if len(r.gate.events) == 0 {
		r.t.Fatal("no event went out")
	}
	return r.gate.events[len(r.gate.events)-1]
}

// ask asks with a timeout in seconds ("" for none) and holds.
func (r *rig) ask(ctx context.Context, p Party, requestID, timeout string, hold time.Duration) (Standing, error) {
	q := Asking{RequestID: requestID, Questions: json.RawMessage(questionsJSON)}
	if timeout != "" {
		q.Timeout = json.RawMessage(timeout)
	}
	return r.svc.Ask(ctx, p, r.id, q, hold)
}

func (r *rig) mustAsk(requestID, timeout string, hold time.Duration) Standing {
	r.t.Helper()
	st, err := r.ask(context.Background(), me, requestID, timeout, hold)
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}

func (r *rig) await(p Party, callID string, hold time.Duration) Standing {
	r.t.Helper()
	st, err := r.svc.Await(context.Background(), p, r.id, callID, hold)
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}

func (r *rig) live() *agent.Agent {
	r.t.Helper()
	a, err := r.reg.Resume(context.Background(), r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// late answers a continued ask as a person would.
func (r *rig) late(callID, submission string) {
	r.t.Helper()
	res, err := r.q.Answer(context.Background(), r.live(), callID, json.RawMessage(sqlite), submission, "Phone")
	if err != nil || !res.Accepted {
		r.t.Fatalf("late answer: %+v, %v", res, err)
	}
}

func (r *rig) types() string {
	r.t.Helper()
	l, err := r.store.Open(context.Background(), r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Join(sessiontest.Types(sessiontest.Events(r.t, l)), " ")
}

func (r *rig) admitted() (ids []string) {
	r.t.Helper()
	l, err := r.store.Open(context.Background(), r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range sessiontest.Events(r.t, l) {
		if e.Type == event.TypeUserMessage {
			m, _ := event.DecodeUserMessage(e.Data)
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// bubble runs f in virtual time with a rig of its own.
func bubble(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		f(t, r)
		r.stop()
	})
}

func wantStatus(t *testing.T, st Standing, want Status) {
	t.Helper()
	if st.Status != want {
		t.Fatalf("got %+v, want %s", st, want)
	}
}

func TestAnsweredWhileHeld(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		done := make(chan Standing, 1)
		go func() { done <- r.mustAsk("", "", 0) }()
		synctest.Wait()
		r.event().answer(sqlite)
		st := <-done
		wantStatus(t, st, Answered)
		if st.Answers[0].Selected[0] != "SQLite" || st.MessageID == "" {
			t.Errorf("got %+v", st)
		}
		if got, want := r.types(), "turn/start step/start request/header tool/call tool/result step/end turn/end"; got != want {
			t.Errorf("log = %s, want %s", got, want)
		}
		again := r.await(me, st.CallID, time.Second)
		wantStatus(t, again, Answered)
	})
}

func TestHoldEndsBeforeTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		st := r.mustAsk("", "120", 50*time.Second)
		wantStatus(t, st, Pending)
		if st.RemainingMs != 70_000 || st.Shown == nil || *st.Shown {
			t.Errorf("got %+v, want 70 s left, shown to nobody", st)
		}
		if got := r.types(); strings.Contains(got, "tool/result") {
			t.Errorf("the end of a hold was recorded: %s", got)
		}
		st = r.await(me, st.CallID, 69*time.Second)
		wantStatus(t, st, Pending)
		if st.RemainingMs != 1000 {
			t.Errorf("remaining %d, want 1000", st.RemainingMs)
		}
		st = r.await(me, st.CallID, time.Minute)
		wantStatus(t, st, Pending)
		if st.RemainingMs != 0 {
			t.Errorf("remaining %d after the window, want 0", st.RemainingMs)
		}
	})
}

func TestDefaultHoldIsShorterThanEveryClientsLimit(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		start := time.Now()
		wantStatus(t, r.mustAsk("", "-1", 0), Waiting)
		if got := time.Since(start); got != HoldDefault {
			t.Errorf("held %v, want %v", got, HoldDefault)
		}
	})
}

// One tick either side of the deadline, held and not: exactly one of result and
// reply, and the answer arrives.
func TestAnswerAtTheDeadline(t *testing.T) {
	for _, held := range []bool{true, false} {
		for _, at := range []time.Duration{9999 * time.Millisecond, 10*time.Second - 1, 10 * time.Second, 10*time.Second + 1, 11 * time.Second} {
			t.Run(fmt.Sprint(held, at), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					hold := time.Minute
					if !held {
						hold = time.Second
					}
					first := make(chan Standing, 1)
					go func() { first <- r.mustAsk("q", "10", hold) }()
					time.Sleep(at)
					synctest.Wait()
					inTime := r.event().answer(sqlite)
					synctest.Wait()
					var callID string
					r.svc.mu.Lock()
					for _, k := range r.svc.rooms[r.id].d.asks {
						callID = k.callID
					}
					r.svc.mu.Unlock()
					if !inTime {
						r.late(callID, "s1")
					}
					// An await holds only for what has not come.
					st := r.await(Party{TokenID: "tok", Holder: "h2"}, callID, time.Minute)
					wantStatus(t, st, Answered)
					types := r.types()
					splices := strings.Count(types, "agent/inbox/spliced")
					if results := strings.Count(types, "tool/result"); results != 1 {
						t.Errorf("%d results: %s", results, types)
					}
					if wantSplice := !held || !inTime; (splices == 1) != wantSplice {
						t.Errorf("held %v, in time %v: %d replies queued: %s", held, inTime, splices, types)
					}
				})
			})
		}
	}
}

func TestAnswerInTheWindowWithoutAHoldIsOneBatch(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		st := r.mustAsk("", "120", time.Second)
		before := len(r.mem.Batches())
		r.event().answer(sqlite)
		synctest.Wait()
		if got := len(r.mem.Batches()) - before; got != 1 {
			t.Errorf("recorded in %d batches, want 1", got)
		}
		if got := r.types(); !strings.HasSuffix(got, "tool/result step/end turn/end agent/inbox/spliced") {
			t.Errorf("log = %s", got)
		}
		wantStatus(t, r.await(me, st.CallID, time.Second), Answered)
	})
}

func TestExpiryThenLateReply(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		start := time.Now()
		st := r.mustAsk("", "5", time.Minute)
		wantStatus(t, st, Pending)
		if st.RemainingMs != 0 || time.Since(start) != 5*time.Second {
			t.Errorf("got %+v", st)
		}
		got := make(chan Standing, 1)
		go func() { got <- r.await(me, st.CallID, time.Minute) }()
		synctest.Wait()
		r.late(st.CallID, "s1")
		late := <-got
		wantStatus(t, late, Answered)
		if late.MessageID != "s1" {
			t.Errorf("got %+v, want message s1", late)
		}
		if ids := r.admitted(); len(ids) != 0 {
			t.Errorf("admitted %v before it was acknowledged", ids)
		}
		if removed, err := r.live().RemoveQueued(context.Background(), "s1"); removed || err != nil {
			t.Errorf("a reply that was handed over could be cancelled: %v, %v", removed, err)
		}
		ids, err := r.svc.Admit(context.Background(), me, r.id, []string{"s1"})
		if err != nil || len(ids) != 1 {
			t.Fatalf("admit: %v, %v", ids, err)
		}
		again, err := r.svc.Admit(context.Background(), me, r.id, []string{"s1", "unknown"})
		if err != nil || len(again) != 1 {
			t.Errorf("admit again: %v, %v, want the one id", again, err)
		}
		if ids := r.admitted(); len(ids) != 1 {
			t.Errorf("admitted %v, want once", ids)
		}
		if types := r.types(); !strings.HasSuffix(types, "turn/start agent/inbox/spliced user/message turn/end") {
			t.Errorf("an admission is not a turn of its own: %s", types)
		}
		wantStatus(t, r.await(me, st.CallID, time.Second), Answered)
	})
}

func TestHandOverAndAcknowledgement(t *testing.T) {
	for _, tc := range []struct {
		name     string
		holder   string
		written  bool
		line     bool
		between  func(r *rig, hangUp func())
		admitted bool // by the holder's next call
		again    bool // handed to another
	}{
		{"the holder calls again", "h1", true, false, nil, true, false},
		{"its response was not written", "h1", false, false, nil, false, false},
		{"without a holder", "", true, false, nil, false, false},
		{"its connection ended", "h1", true, true, func(_ *rig, hangUp func()) { hangUp() }, false, true},
		{"a tick before the lease ends", "h1", false, false, func(*rig, func()) { time.Sleep(LeaseFor - 1) }, false, false},
		{"the lease ended", "h1", true, false, func(*rig, func()) { time.Sleep(LeaseFor) }, false, true},
		{"the host was killed", "h1", true, false, func(r *rig, _ func()) { r.crash() }, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				st := r.mustAsk("", "1", time.Minute)
				r.late(st.CallID, "s1")
				line := make(chan struct{})
				hangUp := sync.OnceFunc(func() { close(line); synctest.Wait() })
				var after []func()
				p := Party{TokenID: "tok", Holder: tc.holder, Written: func(f func()) { after = append(after, f) }}
				if tc.line {
					p.Line = line
				}
				msgs, lease, err := r.svc.Claim(context.Background(), p, r.id, 0)
				if err != nil || len(msgs) != 1 || msgs[0].ID != "s1" || lease != LeaseFor {
					t.Fatalf("claim: %v, %v, %v", msgs, lease, err)
				}
				if tc.written {
					for _, f := range after {
						f()
					}
				}
				if tc.between != nil {
					tc.between(r, hangUp)
				}
				if _, err := r.svc.Await(context.Background(), Party{TokenID: "tok", Holder: tc.holder}, r.id, st.CallID, 0); err != nil {
					t.Fatal(err)
				}
				if got := len(r.admitted()) == 1; got != tc.admitted {
					t.Errorf("admitted by calling again: %v, want %v", got, tc.admitted)
				}
				if tc.admitted {
					return
				}
				if tc.again { // that await took it for its holder; look as another after the lease
					time.Sleep(LeaseFor)
				}
				msgs, _, err = r.svc.Claim(context.Background(), Party{TokenID: "tok", Holder: "other"}, r.id, 0)
				if err != nil || (len(msgs) == 1) != tc.again {
					t.Errorf("handed to another: %v, %v, want %v", msgs, err, tc.again)
				}
				hangUp()
			})
		})
	}
}

func TestUnacknowledgedResultsAreHandedOverAgain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		done := make(chan Standing, 1)
		go func() { done <- r.mustAsk("", "120", time.Minute) }()
		synctest.Wait()
		r.event().answer(sqlite)
		st := <-done
		other := Party{TokenID: "tok", Holder: "h2"}
		if msgs, _, _ := r.svc.Claim(context.Background(), other, r.id, 0); len(msgs) != 0 {
			t.Errorf("a leased result was handed to another: %v", msgs)
		}
		time.Sleep(LeaseFor)
		msgs, _, err := r.svc.Claim(context.Background(), other, r.id, 0)
		if err != nil || len(msgs) != 1 || msgs[0].ID != st.MessageID || !strings.Contains(string(msgs[0].Body), "SQLite") {
			t.Fatalf("claim: %s, %v", msgs, err)
		}
		r.crash()
		msgs, _, err = r.svc.Claim(context.Background(), me, r.id, 0)
		if err != nil || len(msgs) != 1 || msgs[0].ID != st.MessageID {
			t.Fatalf("claim after a restart: %s, %v", msgs, err)
		}
		before := r.types()
		if ids, err := r.svc.Admit(context.Background(), me, r.id, []string{st.MessageID}); err != nil || len(ids) != 1 {
			t.Fatalf("admit: %v, %v", ids, err)
		}
		if r.types() != before {
			t.Error("acknowledging a result wrote something")
		}
		if msgs, _, _ := r.svc.Claim(context.Background(), me, r.id, 0); len(msgs) != 0 {
			t.Errorf("handed over again after it was acknowledged: %v", msgs)
		}
	})
}

func TestSameRequestIsTheSameAsk(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		ids := make([]string, 8)
		for i := range ids {
			wg.Go(func() { ids[i] = r.mustAsk("r1", "120", time.Second).CallID })
		}
		wg.Wait()
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("one request id made %v", ids)
			}
		}
		if n := len(r.gate.events); n != 1 {
			t.Errorf("%d cards for one request", n)
		}
		_, err := r.svc.Ask(context.Background(), me, r.id, Asking{RequestID: "r1", Questions: json.RawMessage(`[{"id":"x","question":"Other?"}]`)}, 0)
		if !errors.Is(err, &question.Error{Code: question.CodeRequestConflict}) {
			t.Errorf("other questions under the same id: %v", err)
		}
		r.crash()
		st, err := r.ask(context.Background(), me, "r1", "120", time.Second)
		if err != nil || st.CallID != ids[0] || st.Status != Pending || st.RemainingMs != 0 || st.Shown != nil {
			t.Errorf("after a restart: %+v, %v, want the same ask, continued, shown unknown", st, err)
		}
		if n := len(r.gate.events); n != 0 {
			t.Errorf("a restart made %d cards", n)
		}
	})
}

func TestBlockingAskAfterAnUnknownOutcome(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		st := r.mustAsk("", "-1", time.Second)
		wantStatus(t, st, Waiting)
		r.crash()
		wantStatus(t, r.await(me, st.CallID, time.Second), Waiting)
		r.late(st.CallID, "s1")
		wantStatus(t, r.await(me, st.CallID, time.Second), Answered)
	})
}

func TestACutCallEndsNothingElse(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ctx, cut := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			_, err := r.ask(ctx, me, "r1", "120", time.Minute)
			done <- err
		}()
		synctest.Wait()
		cut()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("cut call: %v", err)
		}
		st := r.mustAsk("r1", "120", time.Second)
		wantStatus(t, st, Pending)
		if len(r.gate.events) != 1 || st.RemainingMs == 0 {
			t.Errorf("the ask did not live on: %+v, %d cards", st, len(r.gate.events))
		}
	})
}

// A call cut while its ask is being recorded leaves a whole ask, or none.
func TestCutWhileStarting(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.live()
		r.mem.Hold()
		ctx, cut := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			_, err := r.ask(ctx, me, "r1", "120", time.Minute)
			done <- err
		}()
		synctest.Wait()
		cut()
		<-done
		r.mem.Release()
		synctest.Wait()
		if n := len(r.gate.events); n != 1 {
			t.Fatalf("%d cards", n)
		}
		wantStatus(t, r.mustAsk("r1", "120", time.Second), Pending)
	})
}

func TestWithdrawAgainstAnswer(t *testing.T) {
	withdraw := func(r *rig, callID string) bool {
		r.t.Helper()
		done, err := r.svc.Withdraw(context.Background(), me, r.id, callID)
		if err != nil {
			r.t.Fatal(err)
		}
		return done
	}
	gone := func(t *testing.T, r *rig, callID string) {
		t.Helper()
		_, err := r.svc.Await(context.Background(), me, r.id, callID, time.Second)
		if !errors.Is(err, &question.Error{Code: question.CodeWithdrawn}) {
			t.Errorf("await of a withdrawn ask: %v", err)
		}
	}
	t.Run("open", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			st := r.mustAsk("", "120", time.Second)
			if !withdraw(r, st.CallID) || r.event().answer(sqlite) {
				t.Error("an answer won over the withdrawal before it")
			}
			synctest.Wait()
			gone(t, r, st.CallID)
			if withdraw(r, st.CallID) {
				t.Error("withdrawn twice")
			}
		})
	})
	t.Run("open, answered first", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			st := r.mustAsk("", "120", time.Second)
			r.event().answer(sqlite)
			if withdraw(r, st.CallID) {
				t.Error("withdrew an answered ask")
			}
			wantStatus(t, r.await(me, st.CallID, time.Second), Answered)
		})
	})
	t.Run("continued", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			st := r.mustAsk("", "1", time.Minute)
			if !withdraw(r, st.CallID) {
				t.Fatal("not withdrawn")
			}
			res, err := r.q.Answer(context.Background(), r.live(), st.CallID, json.RawMessage(sqlite), "s1", "Phone")
			if err != nil || res.Accepted {
				t.Errorf("answer after the withdrawal: %+v, %v", res, err)
			}
			gone(t, r, st.CallID)
			r.crash()
			gone(t, r, st.CallID)
		})
	})
	t.Run("continued, reply queued", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			st := r.mustAsk("", "1", time.Minute)
			r.late(st.CallID, "s1")
			if withdraw(r, st.CallID) {
				t.Error("withdrew an ask whose reply is queued")
			}
			wantStatus(t, r.await(me, st.CallID, time.Second), Answered)
		})
	})
	t.Run("both at once", func(t *testing.T) {
		for range 50 {
			bubble(t, func(t *testing.T, r *rig) {
				st := r.mustAsk("", "1", time.Minute)
				var withdrawn, accepted bool
				var wg sync.WaitGroup
				wg.Go(func() { withdrawn = withdraw(r, st.CallID) })
				wg.Go(func() {
					res, _ := r.q.Answer(context.Background(), r.live(), st.CallID, json.RawMessage(sqlite), "s1", "Phone")
					accepted = res.Accepted
				})
				wg.Wait()
				if withdrawn == accepted {
					t.Fatalf("withdrawn %v and accepted %v", withdrawn, accepted)
				}
			})
		}
	})
}

func TestAFullInboxStillDeliversTheAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		st := r.mustAsk("", "120", time.Second)
		a := r.live()
		for i := range 1000 {
			if err := a.Send(context.Background(), event.Message{ID: fmt.Sprint("m", i), Source: event.Source{Kind: event.SourceUser}, Text: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		r.event().answer(sqlite)
		synctest.Wait()
		wantStatus(t, r.await(me, st.CallID, time.Second), Answered)
	})
}

func TestAnotherTokensSessionIsNone(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		thief := Party{TokenID: "thief"}
		st := r.mustAsk("", "120", time.Second)
		ctx := context.Background()
		_, e1 := r.ask(ctx, thief, "", "", 0)
		_, e2 := r.svc.Await(ctx, thief, r.id, st.CallID, 0)
		_, e3 := r.svc.Withdraw(ctx, thief, r.id, st.CallID)
		_, _, e4 := r.svc.Claim(ctx, thief, r.id, 0)
		_, e5 := r.svc.Admit(ctx, thief, r.id, []string{"x"})
		for i, err := range []error{e1, e2, e3, e4, e5} {
			if !errors.Is(err, session.ErrNoSession) {
				t.Errorf("call %d: %v, want %v", i, err, session.ErrNoSession)
			}
		}
		id, err := r.svc.Open(ctx, thief, Opening{Name: "ci", Key: "k"})
		if err != nil || id == r.id {
			t.Errorf("another token's key opened %s, %v", id, err)
		}
		id, err = r.svc.Open(ctx, me, Opening{Name: "ci", Key: "k"})
		if err != nil || id != r.id {
			t.Errorf("the same key opened %s, %v, want %s", id, err, r.id)
		}
	})
}

func TestBadInput(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		ctx := context.Background()
		for name, tc := range map[string]struct {
			q     Asking
			field string
		}{
			"no questions":    {Asking{}, "questions"},
			"timeout as text": {Asking{Questions: json.RawMessage(questionsJSON), Timeout: json.RawMessage(`"120"`)}, "timeout"},
			"timeout 0":       {Asking{Questions: json.RawMessage(questionsJSON), Timeout: json.RawMessage(`0`)}, "timeout"},
			"empty":           {Asking{Questions: json.RawMessage(`[]`)}, "questions"},
			"smuggled member": {Asking{Questions: json.RawMessage(questionsJSON + `,"timeout":1`), Timeout: json.RawMessage(`2`)}, "questions"},
		} {
			_, err := r.svc.Ask(ctx, me, r.id, tc.q, 0)
			var qe *question.Error
			if !errors.As(err, &qe) || qe.Field != tc.field {
				t.Errorf("%s: %v, want an error naming %s", name, err, tc.field)
			}
		}
		if got := r.types(); got != "" {
			t.Errorf("refused asks were recorded: %s", got)
		}
		if _, err := r.svc.Await(ctx, me, r.id, "nope", 0); !strings.Contains(fmt.Sprint(err), CodeUnknownCall) {
			t.Errorf("await of nothing: %v", err)
		}
		if _, err := r.svc.Open(ctx, me, Opening{}); !strings.Contains(fmt.Sprint(err), "agent.name") {
			t.Errorf("open without a name: %v", err)
		}
	})
}
