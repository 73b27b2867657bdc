package question

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"meanwhile/host/agent"
	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// rig is a service over a real store and registry; the gateway and the module
// are played by hand.
type rig struct {
	t     testing.TB
	disk  *sessiontest.Mem
	store *session.Store
	reg   *agent.Registry
	gw    *fakeGateway
	mod   *fakeModule
	svc   *Service

	start time.Time
	slept atomic.Int64 // what a sleep added to the clocks
	wall  atomic.Int64 // a step of the wall clock alone
}

func newRig(t testing.TB, change ...func(*Options)) *rig {
	t.Helper()
	return newRigOn(t, sessiontest.NewMem(), change...)
}

func newRigOn(t testing.TB, disk *sessiontest.Mem, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, disk: disk, gw: &fakeGateway{}, mod: &fakeModule{}, start: time.Now()}
	r.store = sessiontest.OpenOn(t, r.disk)
	r.reg = agent.NewRegistry(agent.Options{
		Open:   r.store.Open,
		Attach: func(a *agent.Agent) (agent.Driver, error) { return agent.NewPassive(a), nil },
	})
	opt := Options{Emit: r.gw.emit, Validator: r.mod, Agents: r.reg, MaxHold: DefaultMaxHold, Clock: r.clock}
	for _, c := range change {
		c(&opt)
	}
	r.svc = New(opt)
	t.Cleanup(func() {
		r.svc.Close()
		if err := r.reg.Close(context.Background()); err != nil {
			t.Errorf("close registry: %v", err)
		}
	})
	return r
}

func (r *rig) clock() Instant {
	mono := time.Since(r.start) + time.Duration(r.slept.Load())
	return Instant{Wall: mono + time.Duration(r.wall.Load()), Mono: mono}
}

// agent makes a live agent of a new session.
func (r *rig) agent(owner *agent.Agent) *agent.Agent {
	r.t.Helper()
	a, err := r.reg.Add(context.Background(), sessiontest.Create(r.t, r.store), owner)
	if err != nil {
		r.t.Fatalf("add agent: %v", err)
	}
	return a
}

const storeArguments = `{"questions":[{"id":"store","question":"Which store?","options":[{"label":"Postgres"},{"label":"SQLite"}]}]}`

func storeQuestions(t testing.TB) []projection.Question {
	t.Helper()
	qs, p := projection.QuestionsOf(storeArguments)
	if p != nil {
		t.Fatalf("questions: %v", p)
	}
	return qs
}

func (r *rig) request(a *agent.Agent) Request {
	return Request{Agent: a, Questions: storeQuestions(r.t)}
}

var timedHeader = event.RequestHeader{Provider: "p", Model: "m", Tools: []event.ToolSpec{
	{Name: projection.ToolName, Description: "Ask.", Parameters: []byte(`{"type":"object","properties":{"questions":{},"timeout":{}}}`)},
}}

// call records a tool call under a timed header.
func (r *rig) call(a *agent.Agent, callID, name, arguments string) {
	r.t.Helper()
	err := a.Passive().BeginCall(context.Background(), func(*session.State) (agent.Begin, error) {
		return agent.Begin{CallID: callID, Name: name, Arguments: arguments, Header: timedHeader}, nil
	})
	if err != nil {
		r.t.Fatalf("record call %s: %v", callID, err)
	}
}

// result records a call's result.
func (r *rig) result(a *agent.Agent, callID, text string) {
	r.t.Helper()
	err := a.Passive().EndCall(context.Background(), func(*session.State) (agent.Ending, error) {
		return agent.Ending{Result: event.ToolResult{CallID: callID, Text: text}}, nil
	})
	if err != nil {
		r.t.Fatalf("record result of %s: %v", callID, err)
	}
}

// continued records an ask that returned pending.
func (r *rig) continued(a *agent.Agent, callID string) {
	r.t.Helper()
	r.call(a, callID, projection.ToolName, storeArguments)
	r.result(a, callID, `{"pending":true}`)
}

// spliced is the ids of the messages queued so far, on disk.
func (r *rig) spliced(a *agent.Agent) []string {
	r.t.Helper()
	var ids []string
	for _, e := range sessiontest.Events(r.t, a.Log()) {
		if e.Type != event.TypeSpliced {
			continue
		}
		d, err := event.DecodeSpliced(e.Data)
		if err != nil {
			r.t.Fatalf("event %d: %v", e.Seq, err)
		}
		for _, m := range d.Inserted {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// recorder takes outcomes.
type recorder struct {
	mu  sync.Mutex
	got []Outcome
}

func (r *recorder) done(o Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, o)
}

func (r *recorder) outcomes() []Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// code is "" for success, the code of an *Error, else the error's text.
func code(err error) string {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	}
	return err.Error()
}

// fakeGateway keeps the rules of the real one that matter here: the first
// settlement wins, Cancel ends an event that is pending or dormant and reports
// before it returns, Reemit wakes a dormant one.
type fakeGateway struct {
	mu     sync.Mutex
	events []*fakeEvent
	refuse string // code with which Emit refuses
	drop   bool   // keep no list, for the benchmark
}

type eventPhase uint8

const (
	eventPending eventPhase = iota
	eventDormant
	eventEnded
)

type fakeEvent struct {
	Event
	g         *fakeGateway
	phase     eventPhase
	emissions int
	cancelled string
}

func (g *fakeGateway) emit(e Event) Pending {
	p := &fakeEvent{Event: e, g: g, emissions: 1}
	g.mu.Lock()
	refuse := g.refuse
	if refuse == "" && !g.drop {
		g.events = append(g.events, p)
	}
	g.mu.Unlock()
	if refuse != "" {
		p.settle(Settlement{Kind: Cancelled, Code: refuse})
	}
	return p
}

// last is the newest event.
func (g *fakeGateway) last(t testing.TB) *fakeEvent {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.events) == 0 {
		t.Fatal("no event went out")
	}
	return g.events[len(g.events)-1]
}

func (g *fakeGateway) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.events)
}

func (p *fakeEvent) settle(s Settlement) bool {
	p.g.mu.Lock()
	if p.phase == eventEnded || p.phase == eventDormant && s.Kind != Cancelled {
		p.g.mu.Unlock()
		return false
	}
	p.phase = eventEnded
	if s.Kind == Unhandled {
		p.phase = eventDormant
	}
	if s.Kind == Cancelled {
		p.cancelled = s.Code
	}
	p.g.mu.Unlock()
	p.Settled(s)
	return true
}

// answer is a client's result; the refusal, if it was refused.
func (p *fakeEvent) answer(client, name, result string) (*Refusal, bool) {
	if r := p.Check(json.RawMessage(result)); r != nil {
		return r, false
	}
	return nil, p.settle(Settlement{Kind: Result, Result: json.RawMessage(result), ClientID: client, ClientName: name})
}

// reject is a client's error.
func (p *fakeEvent) reject(client, code string) bool {
	if !slices.Contains(p.Codes, code) {
		p.Left(client)
		return false
	}
	return p.settle(Settlement{Kind: Rejected, Code: code, ClientID: client})
}

// delegate is the last client's NEXT.
func (p *fakeEvent) delegate(client string) bool {
	p.Left(client)
	return p.settle(Settlement{Kind: Unhandled})
}

func (p *fakeEvent) Cancel(code string) bool {
	return p.settle(Settlement{Kind: Cancelled, Code: code})
}

func (p *fakeEvent) Reemit() bool {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	if p.phase != eventDormant {
		return false
	}
	p.phase = eventPending
	p.emissions++
	return true
}

func (p *fakeEvent) state() (phase eventPhase, emissions int, cancelled string) {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	return p.phase, p.emissions, p.cancelled
}

const good = `{"answers":[{"id":"store","selected":["SQLite"]}]}`

// fakeModule runs the checks natively, and fails when told to.
type fakeModule struct {
	fail          atomic.Bool
	asks, answers atomic.Int64
	during        atomic.Pointer[func()] // run inside the check of an answer
}

var errModule = errors.New("module ran out of bounds")

func (m *fakeModule) CheckAsk(_ context.Context, questions []byte) (*projection.Problem, error) {
	m.asks.Add(1)
	if m.fail.Load() {
		return nil, errModule
	}
	qs, err := wireQuestions(questions)
	if err != nil {
		return nil, err
	}
	return projection.CheckAsk(qs, false), nil
}

func (m *fakeModule) CheckAnswer(_ context.Context, questions, answer []byte) (*projection.Problem, error) {
	m.answers.Add(1)
	if f := m.during.Load(); f != nil {
		(*f)()
	}
	if m.fail.Load() {
		return nil, errModule
	}
	qs, err := wireQuestions(questions)
	if err != nil {
		return nil, err
	}
	v, err := value.Parse(answer)
	if err != nil {
		return &projection.Problem{Code: projection.CodeBadAnswer, Message: err.Error()}, nil
	}
	_, p := projection.CheckAnswer(qs, v)
	return p, nil
}

func wireQuestions(b []byte) ([]projection.Question, error) {
	v, err := value.Parse(b)
	if err != nil {
		return nil, err
	}
	qs, p := projection.QuestionsOfWire(v)
	if p != nil {
		return nil, p
	}
	return qs, nil
}
