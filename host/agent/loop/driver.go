package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"meanwhile/host/agent"
	"meanwhile/host/llm"
	"meanwhile/host/session"
	"meanwhile/host/tool"
	"meanwhile/shared/event"
)

// Limits of texts.
const (
	ReplyMax  = 2 << 20   // bytes of one reply of the model, calls and reasoning included
	recordMax = 7 << 19   // bytes of the same as recorded, below what one batch holds
	ResultMax = 512 << 10 // bytes of one tool result
)

// GraceDefault is how long cancelled tools have before their outcome is unknown.
const GraceDefault = 30 * time.Second

// ErrNoModel is what Options.Model returns when none is configured.
var ErrNoModel = errors.New("no model is configured")

// Model is what a request goes to. Two that differ make a new request/header.
type Model struct {
	Provider  llm.Provider
	Name      string
	System    string
	MaxTokens int // 0: the provider's default
}

// Options configure the driver of built-in agents.
type Options struct {
	// Model gives the model of an agent's next request. An error blocks the
	// agent and is shown as the reason. Required.
	Model func(a *agent.Agent) (Model, error)
	// Tools makes an agent's tools, once. Nil: it has none.
	Tools func(a *agent.Agent) []tool.Tool
	// Bounds of one turn.
	Bounds Bounds
	// Grace is how long cancelled tools have; 0 means GraceDefault.
	Grace time.Duration
	// Log gets what is not for the model; nil means slog.Default().
	Log *slog.Logger
}

// Driver is the agent.Driver of a built-in agent.
type Driver struct {
	agent   *agent.Agent
	log     *session.Log
	options Options
	tools   *tool.Registry
	slog    *slog.Logger

	ctx  context.Context // ends when the driver stops
	stop context.CancelCauseFunc
	work sync.WaitGroup

	mu    sync.Mutex
	state state

	// Of the goroutine that runs turns, one at a time.
	run run
}

// state is all that callers and the running turn share.
type state struct {
	running   bool
	stopped   bool
	more      bool          // Continue asked for a turn
	wakes     int           // counts Wake, Continue and Start
	woken     int64         // seq of the newest message that arrived
	after     int64         // messages from here on start a turn whatever the last one's end
	phase     Phase         // of the running turn
	blocked   string        // why no turn starts
	settled   chan struct{} // closed while no turn runs
	notes     []note
	notesMore chan struct{} // has room for one signal
}

// note is an input for the machine and what the shell needs beside it.
type note struct {
	in    Input
	reply llm.Message
	usage *llm.Usage
}

// New returns the driver of an agent. It runs nothing before Start or Wake.
func New(a *agent.Agent, o Options) (*Driver, error) {
	var tools []tool.Tool
	if o.Tools != nil {
		tools = o.Tools(a)
	}
	registry, err := tool.NewRegistry(tools...)
	if err != nil {
		return nil, fmt.Errorf("loop: %w", err)
	}
	if _, err := agent.Header("", "", "", registry.Specs()); err != nil {
		return nil, fmt.Errorf("loop: %w", err)
	}
	if o.Grace <= 0 {
		o.Grace = GraceDefault
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	ctx, stop := context.WithCancelCause(context.Background())
	settled := make(chan struct{})
	close(settled)
	return &Driver{
		agent: a, log: a.Log(), options: o, tools: registry, ctx: ctx, stop: stop,
		slog:  o.Log.With("session", a.ID()),
		state: state{woken: -1, settled: settled, notesMore: make(chan struct{}, 1)},
		run:   run{machine: NewMachine(o.Bounds), history: newHistory(), fresh: true},
	}, nil
}

// Start begins a turn if the log left messages that start one by themselves.
func (d *Driver) Start() { d.kick(func(*state) {}) }

// Wake says that a message recorded at seq waits; a seq below 0 names none and
// only tries again what was blocked.
func (d *Driver) Wake(seq int64) {
	d.kick(func(s *state) { s.woken = max(s.woken, seq) })
}

// Continue starts a turn although the last one did not complete. It returns
// agent.ErrNothing when there is nothing to go on from and the model's error
// when there is none.
func (d *Driver) Continue() error {
	d.mu.Lock()
	running := d.state.phase != Idle
	d.mu.Unlock()
	if running {
		return nil
	}
	nothing := false
	d.log.View(func(s *session.State) {
		nothing = s.Inbox.Len() == 0 && (s.Turn == 0 || s.Ended == event.TurnCompleted)
	})
	if nothing {
		return agent.ErrNothing
	}
	if _, err := d.options.Model(d.agent); err != nil {
		return err
	}
	d.kick(func(s *state) { s.more = true })
	return nil
}

// kick changes the state and sees to it that somebody looks at it.
func (d *Driver) kick(change func(*state)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.state)
	d.state.wakes++
	if d.state.running || d.state.stopped {
		return
	}
	d.state.running = true
	d.state.settled = make(chan struct{})
	d.work.Go(d.turns)
}

// Cancel ends the running turn as aborted. Messages queued before it wait from
// now on; one that arrives after it starts the next turn.
func (d *Driver) Cancel(reason string) bool {
	var next int64
	d.log.View(func(s *session.State) { next = s.Next })
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state.phase == Idle || d.state.stopped {
		return false
	}
	d.state.after = next
	d.state.more = false
	d.state.post(note{in: Cancel{Reason: reason}})
	return true
}

// post adds a note for the running turn.
func (s *state) post(n note) {
	s.notes = append(s.notes, n)
	select {
	case s.notesMore <- struct{}{}:
	default:
	}
}

// send is post for the goroutines of a turn.
func (d *Driver) send(n note) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.post(n)
}

// Status is the driver's part of a session row.
func (d *Driver) Status() agent.Status {
	d.mu.Lock()
	phase, running, blocked := d.state.phase, d.state.running, d.state.blocked
	d.mu.Unlock()
	switch {
	case phase == Working:
		return agent.Status{State: agent.Waiting}
	case running: // also between two turns
		return agent.Status{State: agent.Running}
	}
	var out agent.Status
	d.log.View(func(s *session.State) {
		switch {
		case s.Inbox.Len() == 0:
			out = agent.Status{State: agent.Idle}
		case blocked != "":
			out = agent.Status{State: agent.Blocked, Reason: blocked}
		default:
			out = agent.Status{State: agent.Queued, Reason: s.Ended}
		}
	})
	return out
}

// Settled waits until no turn runs and none is about to.
func (d *Driver) Settled(ctx context.Context) error {
	d.mu.Lock()
	settled := d.state.settled
	d.mu.Unlock()
	select {
	case <-settled:
		return nil
	default:
	}
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Stop ends everything without recording and waits until nothing runs. A tool
// that ignores its cancellation holds it up until ctx ends.
func (d *Driver) Stop(ctx context.Context) error {
	d.mu.Lock()
	d.state.stopped = true
	d.mu.Unlock()
	d.stop(agent.ErrStopping)
	done := make(chan struct{})
	go func() { d.work.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the agent of session %s: %w", d.log.ID(), context.Cause(ctx))
	}
}
