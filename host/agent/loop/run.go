package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"meanwhile/host/agent"
	"meanwhile/host/agent/inbox"
	"meanwhile/host/internal/id"
	"meanwhile/host/llm"
	"meanwhile/host/session"
	"meanwhile/shared/event"
)

// errOpenTurn: the log holds a turn that this driver did not open. Only repair,
// when the log is next opened, closes it.
var errOpenTurn = errors.New("the log has a turn that never ended")

// readMax is how many events are read at once to catch up with the log.
const readMax = 512

// run is what the goroutine of a turn owns.
type run struct {
	machine *Machine
	history *history
	fresh   bool // no request of this process is recorded yet
	more    bool // the turn starts even if no message waits
	tried   int  // state.wakes when no turn could start

	// Of the open step.
	model     Model
	reply     note
	stopModel context.CancelCauseFunc
	tools     context.Context
	stopTools context.CancelCauseFunc
	overdue   *time.Timer
}

// turns runs turns as long as one is called for.
func (d *Driver) turns() {
	for d.wanted() {
		if err := d.turn(); err != nil {
			d.fail(err)
		}
	}
}

// wanted decides whether the next turn starts. What it looks at lies under two
// locks; when something arrived between them it looks again.
func (d *Driver) wanted() bool {
	for {
		d.mu.Lock()
		seen, woken, after, more := d.state.wakes, d.state.woken, d.state.after, d.state.more
		blocked := d.state.blocked != "" && d.run.tried == seen
		d.mu.Unlock()
		want, waiting := more, false
		d.log.View(func(s *session.State) {
			waiting = s.Inbox.Len() > 0
			want = want || waiting && (agent.Resumes(s.Ended) || woken >= after)
		})
		d.mu.Lock()
		if d.state.wakes != seen && !d.state.stopped {
			d.mu.Unlock()
			continue
		}
		want = want && !blocked && !d.state.stopped
		if want {
			d.run.more, d.state.more = more, false
			d.run.tried = seen
			d.mu.Unlock()
			return true
		}
		d.state.running = false
		close(d.state.settled)
		if !waiting {
			d.state.blocked = ""
		}
		d.mu.Unlock()
		d.agent.Changed()
		return false
	}
}

// turn runs one turn to its end. An error means that the log took no more of it.
func (d *Driver) turn() error {
	defer d.release()
	effects := d.step(Start{})
	for {
		for len(effects) > 0 {
			if d.ctx.Err() != nil {
				return context.Cause(d.ctx)
			}
			in, err := d.do(effects[0])
			if err != nil {
				return err
			}
			effects = effects[1:]
			if in != nil {
				effects = append(effects, d.step(in)...)
			}
		}
		if d.run.machine.Phase() == Idle {
			return nil
		}
		n, err := d.next()
		if err != nil {
			return err
		}
		effects = d.step(d.accept(n))
	}
}

// step feeds the machine and publishes its phase.
func (d *Driver) step(in Input) []Effect {
	before := d.run.machine.Phase()
	effects := d.run.machine.Step(in)
	if phase := d.run.machine.Phase(); phase != before {
		d.publish(phase)
	}
	return effects
}

func (d *Driver) publish(p Phase) {
	d.mu.Lock()
	d.state.phase = p
	if p == Idle {
		d.state.notes = nil // a cancel that came too late must not end the next turn
	} else if p != Opening {
		d.state.blocked = ""
	}
	d.mu.Unlock()
	d.agent.Changed()
}

// next waits for the next note.
func (d *Driver) next() (note, error) {
	for {
		d.mu.Lock()
		if len(d.state.notes) > 0 {
			n := d.state.notes[0]
			d.state.notes = d.state.notes[1:]
			d.mu.Unlock()
			return n, nil
		}
		d.mu.Unlock()
		select {
		case <-d.state.notesMore:
		case <-d.ctx.Done():
			return note{}, context.Cause(d.ctx)
		}
	}
}

// accept makes a note an input; a reply's calls get ids that the log has not seen.
func (d *Driver) accept(n note) Input {
	r, ok := n.in.(Replied)
	if !ok {
		return n.in
	}
	d.log.View(func(s *session.State) { renumber(n.reply.Content, s.Used, id.New) })
	d.run.reply = n
	for _, p := range n.reply.ToolCalls() {
		r.Calls = append(r.Calls, Call{ID: p.CallID, Name: p.Name, Arguments: p.Arguments})
	}
	return r
}

// do carries one effect out. The effects that end a batch answer with an input.
func (d *Driver) do(e Effect) (Input, error) {
	switch e := e.(type) {
	case OpenTurn:
		return d.openTurn()
	case AskModel:
		d.ask(e)
	case StopModel:
		d.run.stopModel(agent.ErrCancelled)
	case RecordReply:
		return nil, d.recordReply(e)
	case RunCall:
		return nil, d.runCall(e.Call)
	case RecordResult:
		return nil, d.recordResult(e)
	case StopCalls:
		turn, step := d.run.machine.At()
		d.run.stopTools(agent.ErrCancelled)
		d.run.overdue = time.AfterFunc(d.options.Grace, func() { d.send(note{in: Overdue{turn, step}}) })
	case BoundStep:
		return d.boundStep(e)
	case EndTurn:
		return d.endTurn(e.Reason)
	}
	return nil, nil
}

// prepare gives the model of the next request and its header.
func (d *Driver) prepare() (Model, event.RequestHeader, error) {
	m, err := d.options.Model(d.agent)
	if err != nil {
		return m, event.RequestHeader{}, err
	}
	h, err := agent.Header(m.Provider.Name(), m.Name, m.System, d.tools.Specs())
	return m, h, err
}

// request is step/start and the header, if its request needs one.
func (d *Driver) request(s *session.State, turn, step int64, want event.RequestHeader) []event.Draft {
	out := []event.Draft{event.Step{Turn: turn, Step: step}.StartDraft()}
	if h, ok := agent.HeaderDraft(s, want, d.run.fresh); ok {
		out = append(out, h)
	}
	return out
}

func (d *Driver) openTurn() (Input, error) {
	model, header, err := d.prepare()
	if err != nil {
		d.mu.Lock()
		d.state.blocked = err.Error()
		d.mu.Unlock()
		return NotOpened{}, nil
	}
	var turn int64
	c, err := d.log.Update(func(s *session.State) ([]event.Draft, error) {
		if s.TurnOpen {
			return nil, errOpenTurn
		}
		admissions := inbox.AdmitTurn(s.Inbox, nil)
		if len(admissions) == 0 && !d.run.more {
			return nil, nil
		}
		turn = s.Turn + 1
		out := append([]event.Draft{event.TurnStart{Turn: turn}.Draft()}, admissions...)
		return append(out, d.request(s, turn, 1, header)...), nil
	})
	if err != nil {
		return nil, err
	}
	if turn == 0 {
		return NotOpened{}, nil
	}
	return d.opened(c, model, turn, 1)
}

// opened waits for the batch that opens a step and reads what the model missed.
func (d *Driver) opened(c *session.Commit, model Model, turn, step int64) (Input, error) {
	if err := c.Wait(d.ctx); err != nil {
		return nil, err
	}
	h := d.run.history
	for end := c.First + int64(len(c.Events)); h.next < end; {
		events, err := d.log.Read(h.next-1, readMax)
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			return nil, fmt.Errorf("event %d is on disk but not read", h.next)
		}
		for _, e := range events {
			if err := h.apply(e); err != nil {
				return nil, err
			}
		}
	}
	d.run.model, d.run.fresh = model, false
	d.run.tools, d.run.stopTools = context.WithCancelCause(d.ctx)
	return Opened{turn, step}, nil
}

// boundStep ends the step and, as the log's state says, goes on or ends the turn.
func (d *Driver) boundStep(e BoundStep) (Input, error) {
	d.release()
	turn, step := d.run.machine.At()
	model, header, blocked := d.prepare()
	next := false
	c, err := d.log.Update(func(s *session.State) ([]event.Draft, error) {
		out := []event.Draft{event.Step{Turn: turn, Step: step}.EndDraft()}
		end := event.TurnEnd{Turn: turn, Kind: event.TurnCompleted}
		var admissions []event.Draft
		if !e.Last {
			admissions = inbox.AdmitStep(s.Inbox, nil)
		}
		switch {
		case !e.More && len(admissions) == 0:
		case blocked != nil:
			end.Kind, end.Message = event.TurnBlocked, blocked.Error()
		default:
			next = true
			out = append(out, admissions...)
			return append(out, d.request(s, turn, step+1, header)...), nil
		}
		return append(out, end.Draft()), nil
	})
	if err != nil {
		return nil, err
	}
	if next {
		return d.opened(c, model, turn, step+1)
	}
	return Ended{}, c.Wait(d.ctx)
}

// endTurn ends step and turn. After a failure, messages that wait already wait on.
func (d *Driver) endTurn(r Reason) (Input, error) {
	d.release()
	turn, step := d.run.machine.At()
	c, err := d.log.Update(func(*session.State) ([]event.Draft, error) {
		return []event.Draft{event.Step{Turn: turn, Step: step}.EndDraft(),
			event.TurnEnd{Turn: turn, Kind: r.Kind, Message: clean(r.Message, reasonMax)}.Draft()}, nil
	})
	if err != nil {
		return nil, err
	}
	if r.Kind == event.TurnError {
		d.mu.Lock()
		d.state.after = c.First
		d.mu.Unlock()
	}
	return Ended{}, c.Wait(d.ctx)
}

// reasonMax bounds what turn/end says beside its kind.
const reasonMax = 2000

// release lets go of what the open step held.
func (d *Driver) release() {
	if d.run.stopModel != nil {
		d.run.stopModel(nil)
	}
	if d.run.stopTools != nil {
		d.run.stopTools(nil)
	}
	if d.run.overdue != nil {
		d.run.overdue.Stop()
	}
	d.run.reply, d.run.tools, d.run.stopTools, d.run.stopModel, d.run.overdue = note{}, nil, nil, nil, nil
}

// fail gives the turn up where it is; repair closes it when the log is next
// opened. A driver that is stopping fails on purpose.
func (d *Driver) fail(err error) {
	if d.ctx.Err() == nil {
		d.slog.Error("turn given up", "err", err)
	}
	d.run.machine = NewMachine(d.options.Bounds)
	d.run.history = newHistory()
	d.mu.Lock()
	d.state.blocked = "the session log takes no more: " + err.Error()
	d.state.phase = Idle
	d.state.notes = nil
	d.mu.Unlock()
	d.agent.Changed()
}

func (d *Driver) recordReply(e RecordReply) error {
	turn, step := d.run.machine.At()
	reply := d.run.reply.reply
	if !e.Whole {
		reply.Content = slices.DeleteFunc(slices.Clone(reply.Content), func(p llm.Part) bool { return p.Type == llm.PartToolCall })
	}
	m := event.Assistant{Turn: turn, Step: step, ID: id.New(), Blocks: blocks(reply), Interrupted: e.Interrupted}
	if len(m.Blocks) == 0 {
		return nil // a model that had nothing to say
	}
	if u := d.run.reply.usage; u != nil {
		m.Usage, _ = json.Marshal(u) // a struct of numbers
	}
	return d.record(m.Draft())
}

// blocks is a reply in the form that it is recorded in.
func blocks(m llm.Message) []event.Block {
	out := make([]event.Block, len(m.Content))
	for i, p := range m.Content {
		out[i] = event.Block{Type: string(p.Type), Text: p.Text, CallID: p.CallID, Name: p.Name, Arguments: p.Arguments}
	}
	return out
}

// record appends one event of the open step; the batch that ends the step waits
// for it.
func (d *Driver) record(draft event.Draft) error {
	_, err := d.log.Update(func(*session.State) ([]event.Draft, error) { return []event.Draft{draft}, nil })
	return err
}
