package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"meanwhile/host/session"
)

// Defaults of Options.
const (
	LiveMax   = 100_000
	IdleMax   = 256
	IdleAfter = 5 * time.Minute
)

// Errors of the registry.
var (
	ErrClosed  = errors.New("the agent registry is closed")
	ErrTooMany = errors.New("too many live agents: close some or wait")
	ErrLive    = errors.New("the session has a live agent already")
)

// Options configure a Registry.
type Options struct {
	// Open opens the log of a cold session. Required.
	Open func(ctx context.Context, sessionID string) (*session.Log, error)
	// Attach makes the driver of an agent, built-in or passive, and starts
	// nothing: Driver.Start does. Required.
	Attach func(a *Agent) (Driver, error)
	// Changed, if set, is told when an agent's Status may differ. It must not
	// block, and may run while the agent is not listed yet or no longer.
	Changed func(a *Agent)

	LiveMax   int           // 0: the default
	IdleMax   int           // 0: the default; negative: idle agents never close
	IdleAfter time.Duration // 0: the default
}

// Registry holds the live agents.
type Registry struct {
	options Options
	stop    context.CancelFunc
	ctx     context.Context // ends when Close gives up on agents that open
	work    sync.WaitGroup  // opening and closing

	mu      sync.Mutex
	closed  bool
	entries map[string]*entry
}

// entry is one session's place. Its agent is set when it is live.
type entry struct {
	agent  *Agent
	err    error
	opened chan struct{} // closed when agent or err is set
	gone   chan struct{} // not nil while closing; closed when the driver stopped
}

// NewRegistry returns an empty registry.
func NewRegistry(o Options) *Registry {
	if o.LiveMax == 0 {
		o.LiveMax = LiveMax
	}
	if o.IdleMax == 0 {
		o.IdleMax = IdleMax
	}
	if o.IdleAfter == 0 {
		o.IdleAfter = IdleAfter
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Registry{options: o, ctx: ctx, stop: stop, entries: map[string]*entry{}}
}

// Get returns the live agent of a session.
func (r *Registry) Get(sessionID string) (*Agent, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[sessionID]
	if e == nil || e.agent == nil || e.gone != nil {
		return nil, false
	}
	e.agent.used = time.Now()
	return e.agent, true
}

// IsLive reports whether a is the live agent of its session, this very instance.
func (r *Registry) IsLive(a *Agent) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live(a)
}

func (r *Registry) live(a *Agent) bool {
	if a == nil || a.registry != r {
		return false
	}
	e := r.entries[a.ID()]
	return e != nil && e.agent == a && e.gone == nil
}

// Live returns every live agent, in no order.
func (r *Registry) Live() []*Agent {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*Agent
	for _, e := range r.entries {
		if e.agent != nil && e.gone == nil {
			out = append(out, e.agent)
		}
	}
	return out
}

// Wake lets every live agent try again what was blocked, when the settings
// changed.
func (r *Registry) Wake() {
	for _, a := range r.Live() {
		a.driver.Wake(-1)
	}
}

// Resume returns the live agent of a session, opening a cold one as a root.
// However many ask, it is opened once; one that leaves does not end it for the
// others.
func (r *Registry) Resume(ctx context.Context, sessionID string) (*Agent, error) {
	a, _, err := r.launch(ctx, sessionID, nil, func(ctx context.Context) (*session.Log, error) {
		return r.options.Open(ctx, sessionID)
	})
	return a, err
}

// Add makes a live agent for a session just created: a root, or owner's child.
// ErrLive when the session has an agent.
func (r *Registry) Add(ctx context.Context, log *session.Log, owner *Agent) (*Agent, error) {
	return r.Launch(ctx, log.ID(), owner, func(context.Context) (*session.Log, error) { return log, nil })
}

// Launch is Add of a session that create makes. The id is taken before create
// runs, so that nobody who sees the new session first can resume it as a root.
func (r *Registry) Launch(ctx context.Context, sessionID string, owner *Agent, create func(context.Context) (*session.Log, error)) (*Agent, error) {
	a, fresh, err := r.launch(ctx, sessionID, owner, create)
	if err == nil && !fresh {
		return nil, fmt.Errorf("session %s: %w", sessionID, ErrLive)
	}
	return a, err
}

// launch returns the agent of a session, made by open if there is none; fresh
// says that this call made it.
func (r *Registry) launch(ctx context.Context, sessionID string, owner *Agent, open func(context.Context) (*session.Log, error)) (a *Agent, fresh bool, err error) {
	for {
		r.mu.Lock()
		e := r.entries[sessionID]
		switch {
		case r.closed:
			r.mu.Unlock()
			return nil, false, ErrClosed
		case e != nil && e.gone != nil:
			gone := e.gone
			r.mu.Unlock()
			if err := wait(ctx, gone); err != nil {
				return nil, false, err
			}
			continue
		case e == nil && owner != nil && !r.live(owner):
			r.mu.Unlock()
			return nil, false, fmt.Errorf("owner of session %s: %w", sessionID, ErrNotLive)
		case e == nil && len(r.entries) >= r.options.LiveMax:
			r.mu.Unlock()
			return nil, false, ErrTooMany
		case e == nil:
			fresh = true
			e = &entry{opened: make(chan struct{})}
			r.entries[sessionID] = e
			r.work.Go(func() { r.open(sessionID, owner, e, open) })
		case e.agent != nil:
			e.agent.used = time.Now()
		}
		r.mu.Unlock()
		if err := wait(ctx, e.opened); err != nil {
			return nil, false, err
		}
		return e.agent, fresh, e.err
	}
}

// wait prefers what is ready over a context that has ended.
func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// open makes the agent of an entry, lists it and starts its driver.
func (r *Registry) open(sessionID string, owner *Agent, e *entry, open func(context.Context) (*session.Log, error)) {
	a, err := r.make(owner, open)
	r.mu.Lock()
	switch {
	case err == nil && r.closed:
		err = ErrClosed
	case err == nil && owner != nil && !r.live(owner):
		err = fmt.Errorf("owner of session %s: %w", sessionID, ErrNotLive)
	}
	if err != nil {
		e.err = err
		delete(r.entries, sessionID)
	} else {
		a.used = time.Now()
		e.agent = a
	}
	idle := r.overdue()
	r.mu.Unlock()
	if err == nil {
		a.driver.Start()
	}
	close(e.opened)
	for _, a := range idle {
		r.evict(a)
	}
}

func (r *Registry) make(owner *Agent, open func(context.Context) (*session.Log, error)) (*Agent, error) {
	log, err := open(r.ctx)
	if err != nil {
		return nil, err
	}
	if fault := log.Damage(); fault != nil {
		return nil, fault
	}
	// Someone may have held the log since a driver stopped in the middle of a
	// turn; then it was not read, and so not repaired, when it was opened.
	if err := log.Repair(); err != nil {
		return nil, err
	}
	a := &Agent{log: log, owner: owner, registry: r}
	if a.driver, err = r.options.Attach(a); err != nil {
		return nil, fmt.Errorf("session %s: attach its driver: %w", log.ID(), err)
	}
	return a, nil
}

// overdue returns the agents that may close for having been unused, oldest
// first. Called under the lock; whether they are idle is seen outside of it.
func (r *Registry) overdue() []*Agent {
	over := len(r.entries) - r.options.IdleMax
	if r.options.IdleMax < 0 || over <= 0 {
		return nil
	}
	now := time.Now()
	owners := map[*Agent]bool{}
	var out []*Agent
	for _, e := range r.entries {
		if e.agent == nil || e.gone != nil {
			continue
		}
		owners[e.agent.owner] = true
		if e.agent.owner == nil && e.agent.busy == 0 && now.Sub(e.agent.used) >= r.options.IdleAfter {
			out = append(out, e.agent)
		}
	}
	out = slices.DeleteFunc(out, func(a *Agent) bool { return owners[a] })
	slices.SortFunc(out, func(a, b *Agent) int { return a.used.Compare(b.used) })
	return out[:min(over, len(out))]
}

// evict closes an agent if it is idle and still unused.
func (r *Registry) evict(a *Agent) {
	a.lease.Lock()
	leased := a.lease.Sweep(time.Now())
	a.lease.Unlock()
	if s := a.Status(); s.State != Idle && s.State != Queued || leased > 0 {
		return
	}
	r.mu.Lock()
	unused := r.live(a) && a.busy == 0 && time.Since(a.used) >= r.options.IdleAfter
	if unused {
		r.close(a)
	}
	r.mu.Unlock()
}

// enter marks a call inside a live agent, so that it is not closed for being
// idle; leave ends the mark.
func (r *Registry) enter(a *Agent) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.live(a) {
		return false
	}
	a.busy++
	a.used = time.Now()
	return true
}

func (r *Registry) leave(a *Agent) {
	r.mu.Lock()
	a.busy--
	a.used = time.Now()
	r.mu.Unlock()
}

// Remove closes an agent and its children and waits until their drivers have
// stopped. Nothing is recorded: cancel first for a turn that ends as aborted.
// Of an agent that is not live it does nothing. When ctx ends first, the rest
// goes on, and nobody gets a new agent of the session before it is done.
func (r *Registry) Remove(ctx context.Context, a *Agent) error {
	r.mu.Lock()
	var gone []chan struct{}
	if r.live(a) {
		gone = r.close(a)
	}
	r.mu.Unlock()
	for _, c := range gone {
		if err := wait(ctx, c); err != nil {
			return fmt.Errorf("close agent of session %s: %w", a.ID(), err)
		}
	}
	return nil
}

// close unlists a live agent and all that it owns, and stops their drivers in
// the background. Called under the lock.
func (r *Registry) close(a *Agent) []chan struct{} {
	var gone []chan struct{}
	for _, e := range r.entries {
		if e.agent != nil && e.agent.owner == a && e.gone == nil {
			gone = append(gone, r.close(e.agent)...)
		}
	}
	id, e := a.ID(), r.entries[a.ID()]
	e.gone = make(chan struct{})
	r.work.Go(func() {
		// Without a bound: a second driver beside one that has not stopped
		// would write the same turn twice.
		_ = a.driver.Stop(context.Background())
		r.mu.Lock()
		delete(r.entries, id)
		r.mu.Unlock()
		close(e.gone)
	})
	return append(gone, e.gone)
}

// Close stops every agent, recording nothing, and waits for it. New ones are
// refused from now on. When ctx ends first it returns its cause; repair closes
// at the next start what was cut.
func (r *Registry) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	for _, e := range r.entries {
		if e.agent != nil && e.gone == nil {
			r.close(e.agent)
		}
	}
	r.mu.Unlock()
	r.stop()
	done := make(chan struct{})
	go func() { r.work.Wait(); close(done) }()
	return wait(ctx, done)
}
