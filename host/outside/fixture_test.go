package outside

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"meanwhile/host/agent"
	"meanwhile/host/question"
	"meanwhile/host/question/questiontest"
	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/shared/event"
	"meanwhile/shared/projection"
)

const (
	questionsJSON = `[{"id":"db","question":"Which store?","options":[{"label":"Postgres"},{"label":"SQLite"}]}]`
	sqlite        = `{"answers":[{"id":"db","selected":["SQLite"]}]}`
)

var header = event.RequestHeader{Provider: "external", Model: "external", Tools: []event.ToolSpec{
	{Name: projection.ToolName, Description: "Ask.", Parameters: []byte(`{"properties":{"questions":{},"timeout":{}}}`)},
}}

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
	r.q = question.New(question.Options{Emit: r.gate.emit, Validator: questiontest.Native{}, Agents: r.reg, MaxHold: question.DefaultMaxHold,
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
