package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"meanwhile/host/agent/inbox"
	"meanwhile/host/session"
	"meanwhile/shared/event"
)

// Errors of a call on one agent.
var (
	// ErrNotLive: this instance was closed, whatever lives under its id now.
	ErrNotLive = errors.New("the agent is not live")
	// ErrNothing: there is no message to continue from.
	ErrNothing = errors.New("there is nothing to continue")
	// ErrOutside: only an outside agent can move its own session on.
	ErrOutside = errors.New("the session belongs to an outside agent: it continues by itself")
)

// Cancellation causes that a driver gives the contexts of its tools.
var (
	// ErrCancelled: the turn was cancelled; a tool's result is still recorded.
	ErrCancelled = errors.New("the turn was cancelled")
	// ErrStopping: the host stops or the session goes; nothing is recorded any more.
	ErrStopping = errors.New("the agent is stopping")
)

// Driver moves one agent's session on. The agent calls it; it never calls the
// agent's Close. Its methods but Settled and Stop return at once.
type Driver interface {
	// Start is called once, when the agent is live: the driver may begin what
	// the log left queued.
	Start()
	// Wake says that a message on disk, recorded at seq, waits for it; below 0,
	// that something else changed which it depends on.
	Wake(seq int64)
	// Cancel ends the running turn as aborted; false when none runs.
	Cancel(reason string) bool
	// Continue starts a turn though the last one did not complete.
	Continue() error
	// Status is the driver's part of a session row.
	Status() Status
	// Settled waits until no turn runs.
	Settled(ctx context.Context) error
	// Stop ends everything without recording and waits for it. Called once.
	Stop(ctx context.Context) error
}

// Agent is the live thing that drives one session.
type Agent struct {
	log      *session.Log
	owner    *Agent
	registry *Registry
	driver   Driver // set before the agent is listed, then fixed

	lease struct {
		sync.Mutex
		inbox.Leases
	}

	changing sync.Mutex // one call of Options.Changed at a time

	// Under the registry's lock.
	busy int       // calls inside Steer and its like
	used time.Time // when it was last asked for or used
}

// ID returns the session's id.
func (a *Agent) ID() string { return a.log.ID() }

// Log returns the session's log.
func (a *Agent) Log() *session.Log { return a.log }

// Owner returns the agent that owns this one, nil for a root.
func (a *Agent) Owner() *Agent { return a.owner }

// Driver returns what moves the session on.
func (a *Agent) Driver() Driver { return a.driver }

// Passive returns the recorder of an outside agent, nil for a built-in one.
func (a *Agent) Passive() *Passive {
	p, _ := a.driver.(*Passive)
	return p
}

// Status returns the agent's part of a session row.
func (a *Agent) Status() Status { return a.driver.Status() }

// Changed tells the registry's observer that Status may differ. Drivers call it.
// One call at a time, so that the observer's last look is the newest.
func (a *Agent) Changed() {
	if f := a.registry.options.Changed; f != nil {
		a.changing.Lock()
		defer a.changing.Unlock()
		f(a)
	}
}

// Steer queues a message for the next step and returns when it is on disk. An
// idle built-in agent starts a turn with it.
func (a *Agent) Steer(ctx context.Context, m event.Message) error {
	return a.queue(ctx, event.NextStep, func(*session.State) (event.Message, error) { return m, nil })
}

// SteerIf is Steer of the message that decide gives; an error of decide queues
// nothing and is returned as it is. decide runs under the log's lock on all that
// was recorded before the message, so what it checks still holds where the
// message stands. It must not block or call the log.
func (a *Agent) SteerIf(ctx context.Context, decide func(*session.State) (event.Message, error)) error {
	return a.queue(ctx, event.NextStep, decide)
}

// Send queues a message for a turn of its own and returns when it is on disk.
func (a *Agent) Send(ctx context.Context, m event.Message) error {
	return a.queue(ctx, event.NextTurn, func(*session.State) (event.Message, error) { return m, nil })
}

func (a *Agent) queue(ctx context.Context, target string, decide func(*session.State) (event.Message, error)) error {
	if !a.registry.enter(a) {
		return ErrNotLive
	}
	defer a.registry.leave(a)
	c, err := a.log.Update(func(s *session.State) ([]event.Draft, error) {
		m, err := decide(s)
		if err != nil {
			return nil, err
		}
		d, err := inbox.Insert(s.Inbox, target, m)
		if err != nil {
			return nil, err
		}
		return []event.Draft{d}, nil
	})
	if err != nil {
		return err
	}
	err = c.Wait(ctx)
	if err == nil || ctx.Err() != nil {
		// Also for a caller that left: the message is in the log's order, and a
		// driver that reads it there waits for the disk itself.
		a.driver.Wake(c.First)
	}
	return err
}

// Cancel ends the running turn as aborted; false when none runs.
func (a *Agent) Cancel(reason string) bool { return a.driver.Cancel(reason) }

// Continue starts a turn, although the last one may not have completed. While
// one runs it does nothing.
func (a *Agent) Continue() error {
	if !a.registry.enter(a) {
		return ErrNotLive
	}
	defer a.registry.leave(a)
	return a.driver.Continue()
}

// RemoveQueued takes a waiting message back and returns when that is on disk.
// False: no such message waits, or an outside agent was just handed it.
func (a *Agent) RemoveQueued(ctx context.Context, messageID string) (bool, error) {
	if !a.registry.enter(a) {
		return false, ErrNotLive
	}
	defer a.registry.leave(a)
	removed := false
	c, err := a.log.Update(func(s *session.State) ([]event.Draft, error) {
		drafts, err := inbox.Remove(s.Inbox, messageID, a.free)
		removed = len(drafts) > 0
		return drafts, err
	})
	switch {
	case errors.Is(err, inbox.ErrLeased):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("remove message %s: %w", messageID, err)
	case !removed:
		return false, nil
	}
	defer a.driver.Wake(-1) // no message, but a row that may say less now
	return true, c.Wait(ctx)
}

// Free reports whether no outside agent holds a waiting message. It may be
// called inside the log's Update.
func (a *Agent) free(messageID string) bool {
	a.lease.Lock()
	defer a.lease.Unlock()
	return !a.lease.Held(messageID, time.Now())
}
