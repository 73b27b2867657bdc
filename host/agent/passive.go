package agent

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"meanwhile/host/agent/inbox"
	"meanwhile/host/internal/id"
	"meanwhile/host/session"
	"meanwhile/shared/event"
)

// OpenCallsMax is how many calls of one outside agent may be open at once.
const OpenCallsMax = 1000

// Errors of a passive agent's records.
var (
	ErrCallUsed  = errors.New("the call id was used in this session before")
	ErrCallEnded = errors.New("the call is not open: it has its result, or never began")
	ErrTooOften  = fmt.Errorf("%d calls of this session are open: wait for some, or withdraw them", OpenCallsMax)
)

// Passive is the driver of an outside agent's session. It starts no turn by
// itself: it records what the agent says it does. Calls that overlap share one
// turn and step, which the last result closes; an admission outside of any turn
// is a turn of its own. Each method records one batch and returns when it is on
// disk; its decide function runs under the log's lock, as SteerIf's does.
type Passive struct {
	agent *Agent
	asked atomic.Bool // a header of this process is recorded

	// The header wanted last and the recorded one that was the same; under the
	// log's lock. An agent asks often and always under the same one.
	wanted   event.RequestHeader
	recorded []byte
}

// NewPassive returns the driver of an outside agent.
func NewPassive(a *Agent) *Passive { return &Passive{agent: a} }

// Begin is a call that starts.
type Begin struct {
	CallID, Name, Arguments string
	RequestID               string // the agent's own name for the call, or empty
	Header                  event.RequestHeader
}

// BeginCall records the call that decide gives, in the open turn or in a new
// one, under its header if the last one differs.
func (p *Passive) BeginCall(ctx context.Context, decide func(*session.State) (Begin, error)) error {
	return p.record(ctx, func(s *session.State) ([]event.Draft, error) {
		b, err := decide(s)
		switch {
		case err != nil:
			return nil, err
		case s.Used(b.CallID):
			return nil, fmt.Errorf("call %s: %w", b.CallID, ErrCallUsed)
		case len(s.Calls) >= OpenCallsMax:
			return nil, ErrTooOften
		}
		var out []event.Draft
		turn, step := s.Turn, s.Step
		if !s.TurnOpen {
			turn, step = s.Turn+1, 0
			out = append(out, event.TurnStart{Turn: turn}.Draft())
		}
		if !s.TurnOpen || !s.StepOpen {
			step++
			out = append(out, event.Step{Turn: turn, Step: step}.StartDraft())
		}
		if h, ok := p.header(s, b.Header); ok {
			out = append(out, h)
		}
		return append(out, event.ToolCall{Turn: turn, Step: step, CallID: b.CallID, Name: b.Name,
			Arguments: b.Arguments, RequestID: b.RequestID}.Draft()), nil
	})
}

func (p *Passive) header(s *session.State, want event.RequestHeader) (event.Draft, bool) {
	if same(p.recorded, s.Request) && same(p.wanted.Tools, want.Tools) &&
		p.wanted.Provider == want.Provider && p.wanted.Model == want.Model && p.wanted.System == want.System {
		return event.Draft{}, false
	}
	d, differs := HeaderDraft(s, want, !p.asked.Swap(true))
	if p.wanted, p.recorded = want, nil; !differs {
		p.recorded = s.Request
	}
	return d, differs
}

// same reports whether two slices are the one, and not empty.
func same[T any](a, b []T) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

// Ending is what a call came to, and with it a message for the agent, if there
// is one: an answer that found nobody to take it is recorded as a pending result
// and a queued reply, and never as one without the other.
type Ending struct {
	Result event.ToolResult // CallID and what it says; the rest is filled in
	Reply  *event.Message
}

// EndCall records the end that decide gives. ErrCallEnded: that call is not
// open, or has its result.
func (p *Passive) EndCall(ctx context.Context, decide func(*session.State) (Ending, error)) error {
	return p.record(ctx, func(s *session.State) ([]event.Draft, error) {
		e, err := decide(s)
		if err != nil {
			return nil, err
		}
		i := openCall(s, e.Result.CallID)
		if i < 0 {
			return nil, fmt.Errorf("call %s: %w", e.Result.CallID, ErrCallEnded)
		}
		r := e.Result
		r.Turn, r.Step = s.Calls[i].Turn, s.Calls[i].Step
		if r.MessageID == "" {
			r.MessageID = id.New()
		}
		out := []event.Draft{r.Draft()}
		if len(s.Calls) == 1 {
			out = append(out, event.Step{Turn: s.Turn, Step: s.Step}.EndDraft(),
				event.TurnEnd{Turn: s.Turn, Kind: event.TurnCompleted}.Draft())
		}
		if e.Reply != nil {
			d, err := inbox.Insert(s.Inbox, event.NextStep, *e.Reply)
			if err != nil {
				return nil, err
			}
			out = append(out, d)
		}
		return out, nil
	})
}

func openCall(s *session.State, callID string) int {
	for i, c := range s.Calls {
		if c.CallID == callID {
			return i
		}
	}
	return -1
}

// Claim leases to holder up to max waiting messages for term and returns them;
// all of them are on disk. A named holder gets again what it holds. Whoever
// reads them must Admit them before the lease ends, or they are handed out again.
func (p *Passive) Claim(ctx context.Context, holder string, max int, term time.Duration) ([]event.Message, error) {
	a := p.agent
	if !a.registry.enter(a) {
		return nil, ErrNotLive
	}
	defer a.registry.leave(a)
	var out []event.Message
	c, err := a.log.Update(func(s *session.State) ([]event.Draft, error) {
		a.lease.Lock()
		defer a.lease.Unlock()
		now := time.Now()
		out = a.lease.Claim(s.Inbox, holder, max, now, now.Add(term))
		return nil, nil
	})
	if err != nil || len(out) == 0 {
		return nil, err
	}
	if err := c.Wait(ctx); err != nil {
		p.Release(messageIDs(out)...)
		return nil, err
	}
	return out, nil
}

// Take leases one waiting message to holder for term; false when it does not
// wait, or another holder has it.
func (p *Passive) Take(ctx context.Context, messageID, holder string, term time.Duration) (bool, error) {
	a := p.agent
	if !a.registry.enter(a) {
		return false, ErrNotLive
	}
	defer a.registry.leave(a)
	taken := false
	c, err := a.log.Update(func(s *session.State) ([]event.Draft, error) {
		a.lease.Lock()
		defer a.lease.Unlock()
		now := time.Now()
		taken = s.Inbox.Has(messageID) && a.lease.Take(messageID, holder, now, now.Add(term))
		return nil, nil
	})
	if err != nil || !taken {
		return false, err
	}
	return true, c.Wait(ctx)
}

func messageIDs(messages []event.Message) []string {
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = m.ID
	}
	return out
}

// Release ends the leases on these messages.
func (p *Passive) Release(messageIDs ...string) {
	p.agent.lease.Lock()
	defer p.agent.lease.Unlock()
	p.agent.lease.Release(messageIDs...)
}

// Leave ends every lease of a named holder, whose connection ended.
func (p *Passive) Leave(holder string) {
	p.agent.lease.Lock()
	defer p.agent.lease.Unlock()
	p.agent.lease.Leave(holder)
}

// Admit records that the agent has read these messages and returns the ids of
// those that waited; the others were admitted or removed before. Within an open
// turn they join it; else they make a turn of their own.
func (p *Passive) Admit(ctx context.Context, messageIDs []string) ([]string, error) {
	var admitted []string
	err := p.record(ctx, func(s *session.State) ([]event.Draft, error) {
		drafts, ids := inbox.Admit(s.Inbox, messageIDs)
		admitted = ids
		if len(ids) == 0 || s.TurnOpen {
			return drafts, nil
		}
		turn := s.Turn + 1
		out := append([]event.Draft{event.TurnStart{Turn: turn}.Draft()}, drafts...)
		return append(out, event.TurnEnd{Turn: turn, Kind: event.TurnCompleted}.Draft()), nil
	})
	if err != nil {
		return nil, err
	}
	p.Release(admitted...)
	return admitted, nil
}

// record runs one batch through the log and waits for it.
func (p *Passive) record(ctx context.Context, decide func(*session.State) ([]event.Draft, error)) error {
	a := p.agent
	if !a.registry.enter(a) {
		return ErrNotLive
	}
	defer a.registry.leave(a)
	c, err := a.log.Update(decide)
	if err != nil {
		return err
	}
	err = c.Wait(ctx)
	a.Changed()
	return err
}

// Start does nothing: the agent comes by itself.
func (p *Passive) Start() {}

// Wake tells the registry's observer that a message waits for the agent.
func (p *Passive) Wake(int64) { p.agent.Changed() }

// Cancel is false: nobody but the agent can end what it does.
func (p *Passive) Cancel(string) bool { return false }

// Continue is ErrOutside.
func (p *Passive) Continue() error { return ErrOutside }

// Status is Waiting while a call is open, and Queued while messages wait.
func (p *Passive) Status() Status {
	var out Status
	p.agent.log.View(func(s *session.State) {
		switch {
		case s.TurnOpen:
			out = Status{State: Waiting}
		case s.Inbox.Len() > 0:
			out = Status{State: Queued, Reason: OnAgent}
		default:
			out = Status{State: Idle}
		}
	})
	return out
}

// Settled returns at once: no turn of an outside agent runs here.
func (p *Passive) Settled(context.Context) error { return nil }

// Stop does nothing: there is nothing that runs.
func (p *Passive) Stop(context.Context) error { return nil }
