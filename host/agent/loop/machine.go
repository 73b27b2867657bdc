package loop

import (
	"fmt"

	"meanwhile/shared/event"
)

// Phase is where a turn stands.
type Phase uint8

const (
	// Idle: no turn. Entered at the start, by NotOpened and by Ended; left by Start.
	Idle Phase = iota
	// Opening: the batch that opens a turn is being recorded. Entered by Start;
	// left by Opened or NotOpened.
	Opening
	// Asking: the model call of the step is out. Entered by Opened; left by Replied.
	Asking
	// Working: the step's tool calls are waiting, running or answered. Entered
	// by a Replied with calls; left when the last call has its result.
	Working
	// Bounding: the batch at the end of a step is being recorded. It opens the
	// next step or ends the turn, which only the log's state can tell. Left by
	// Opened or Ended.
	Bounding
	// Closing: an end of the turn that nothing can change any more is being
	// recorded. Left by Ended.
	Closing
)

func (p Phase) String() string {
	switch p {
	case Idle:
		return "idle"
	case Opening:
		return "opening"
	case Asking:
		return "asking"
	case Working:
		return "working"
	case Bounding:
		return "bounding"
	case Closing:
		return "closing"
	}
	return fmt.Sprintf("phase %d", uint8(p))
}

// Bounds limits one turn. Every zero value means its default.
type Bounds struct {
	Steps    int // model calls in one turn; default StepsMax
	Calls    int // tool calls run for one model reply; default CallsMax
	Parallel int // tool calls running at once; default ParallelMax
}

// Defaults of Bounds.
const (
	StepsMax    = 200
	CallsMax    = 64
	ParallelMax = 16
)

func (b Bounds) withDefaults() Bounds {
	if b.Steps <= 0 {
		b.Steps = StepsMax
	}
	if b.Calls <= 0 {
		b.Calls = CallsMax
	}
	if b.Parallel <= 0 {
		b.Parallel = ParallelMax
	}
	return b
}

// callState is how far one call of the step got.
type callState uint8

const (
	callWaiting  callState = iota // not recorded yet: a slot is missing
	callRunning                   // RunCall went out
	callAnswered                  // its result went out
)

// Machine is the state of one agent's turn. The zero value is not usable: see
// NewMachine. It knows no log, no clock and no tool.
type Machine struct {
	bounds     Bounds
	phase      Phase
	turn, step int64
	steps      int // of this turn
	calls      []Call
	states     []callState
	cancelled  bool
	reason     string
}

// NewMachine returns an idle machine.
func NewMachine(b Bounds) *Machine { return &Machine{bounds: b.withDefaults()} }

// Phase returns where the turn stands.
func (m *Machine) Phase() Phase { return m.phase }

// At returns the turn and step that are open; zeros when none is.
func (m *Machine) At() (turn, step int64) { return m.turn, m.step }

// Step applies one input and returns what to do, in order. An input that
// cannot come in this phase is a fault of the shell and panics.
func (m *Machine) Step(in Input) []Effect {
	switch in := in.(type) {
	case Start:
		m.must(in, Idle)
		m.enter(Opening)
		return []Effect{OpenTurn{}}
	case NotOpened:
		m.must(in, Opening)
		m.enter(Idle)
		return nil
	case Opened:
		m.must(in, Opening, Bounding)
		return m.opened(in)
	case Replied:
		m.must(in, Asking)
		return m.replied(in)
	case Done:
		return m.done(in)
	case Ended:
		m.must(in, Bounding, Closing)
		m.enter(Idle)
		return nil
	case Cancel:
		return m.cancel(in)
	case Overdue:
		return m.overdue(in)
	}
	panic(fmt.Sprintf("loop: unknown input %T", in))
}

func (m *Machine) must(in Input, phases ...Phase) {
	for _, p := range phases {
		if m.phase == p {
			return
		}
	}
	panic(fmt.Sprintf("loop: %T in phase %v of turn %d step %d", in, m.phase, m.turn, m.step))
}

// enter is the only place that sets the phase.
func (m *Machine) enter(p Phase) {
	m.phase = p
	if p == Idle {
		m.turn, m.step, m.steps = 0, 0, 0
		m.calls, m.states = nil, nil
		m.cancelled, m.reason = false, ""
	}
}

func (m *Machine) opened(in Opened) []Effect {
	m.turn, m.step = in.Turn, in.Step
	m.steps++
	m.calls, m.states = nil, nil
	if m.cancelled {
		return m.end(Reason{Kind: event.TurnAborted, Message: m.reason})
	}
	m.enter(Asking)
	return []Effect{AskModel(in)}
}

func (m *Machine) replied(in Replied) []Effect {
	switch {
	case m.cancelled && in.End != EndStop, in.End == EndFailed:
		// What came is kept if a person could read it. A call in an unfinished
		// reply may be cut, so none is recorded or run.
		reason := in.Reason
		if m.cancelled {
			reason = Reason{Kind: event.TurnAborted, Message: m.reason}
		}
		return append(keep(in.Text, true), m.end(reason)...)
	case in.End == EndLength:
		return append(keep(in.Text, false), m.end(Reason{Kind: event.TurnMaxTokens})...)
	}
	out := []Effect{RecordReply{Whole: true}}
	if len(in.Calls) == 0 {
		if m.cancelled {
			return append(out, m.end(Reason{Kind: event.TurnAborted, Message: m.reason})...)
		}
		m.enter(Bounding)
		return append(out, BoundStep{Last: m.steps >= m.bounds.Steps})
	}
	m.calls, m.states = in.Calls, make([]callState, len(in.Calls))
	m.enter(Working)
	for i := m.bounds.Calls; i < len(m.calls); i++ {
		out = append(out, m.answer(i, Outcome{
			IsError: true, Name: errorName, Code: CodeCallLimit,
			Text: fmt.Sprintf("Not run: one reply may call at most %d tools. Call it again in the next one.", m.bounds.Calls),
		}))
	}
	if m.cancelled {
		return append(out, m.drop()...)
	}
	return append(out, m.advance()...)
}

// keep is the record of a reply that is not whole.
func keep(text, interrupted bool) []Effect {
	if !text {
		return nil
	}
	return []Effect{RecordReply{Interrupted: interrupted}}
}

// advance starts what may start and leaves the step when every call is answered.
func (m *Machine) advance() []Effect {
	running, open := 0, 0
	for _, s := range m.states {
		if s == callRunning {
			running++
		}
		if s != callAnswered {
			open++
		}
	}
	if open == 0 {
		return m.bound()
	}
	var out []Effect
	for i := range m.calls {
		if running >= m.bounds.Parallel {
			break
		}
		if m.states[i] == callWaiting {
			m.states[i] = callRunning
			running++
			out = append(out, RunCall{Call: m.calls[i]})
		}
	}
	return out
}

// bound leaves a step whose calls are all answered.
func (m *Machine) bound() []Effect {
	if m.cancelled {
		return m.end(Reason{Kind: event.TurnAborted, Message: m.reason})
	}
	if m.steps >= m.bounds.Steps {
		return m.end(Reason{Kind: event.TurnError,
			Message: fmt.Sprintf(CodeStepLimit+": the turn reached its limit of %d model calls", m.bounds.Steps)})
	}
	m.enter(Bounding)
	return []Effect{BoundStep{More: true}}
}

func (m *Machine) end(r Reason) []Effect {
	m.enter(Closing)
	return []Effect{EndTurn{Reason: r}}
}

// answer gives the call at i its result.
func (m *Machine) answer(i int, o Outcome) Effect {
	m.states[i] = callAnswered
	return RecordResult{Call: m.calls[i], Outcome: o}
}

func (m *Machine) done(in Done) []Effect {
	if m.phase != Working {
		return nil // a call given up as overdue came back after all
	}
	for i, c := range m.calls {
		if c.ID == in.ID && m.states[i] == callRunning {
			return append([]Effect{m.answer(i, in.Outcome)}, m.advance()...)
		}
	}
	return nil
}

func (m *Machine) cancel(in Cancel) []Effect {
	if m.phase == Idle || m.phase == Closing || m.cancelled {
		return nil
	}
	m.cancelled, m.reason = true, in.Reason
	switch m.phase {
	case Asking:
		return []Effect{StopModel{}}
	case Working:
		return m.drop()
	}
	return nil // Opening, Bounding: heeded when the batch is on disk
}

// drop answers what has not started and stops what runs.
func (m *Machine) drop() []Effect {
	var out []Effect
	running := false
	for i := range m.calls {
		switch m.states[i] {
		case callWaiting:
			out = append(out, m.answer(i, Outcome{
				IsError: true, Name: errorName, Code: event.CodeNotStarted,
				Text: "Not run: the turn was cancelled before this call started.",
			}))
		case callRunning:
			running = true
		}
	}
	if running {
		return append(out, StopCalls{Reason: m.reason})
	}
	return append(out, m.bound()...)
}

// overdue gives up calls that did not heed the cancellation. What they did or
// will still do is unknown, and their results say so.
func (m *Machine) overdue(in Overdue) []Effect {
	if m.phase != Working || !m.cancelled || in.Turn != m.turn || in.Step != m.step {
		return nil
	}
	var out []Effect
	for i := range m.calls {
		if m.states[i] == callRunning {
			out = append(out, m.answer(i, Outcome{
				IsError: true, Name: errorName, Code: event.CodeOutcomeUnknown,
				Text: "The turn was cancelled and this call did not stop in time. It may have taken effect: check before you run it again.",
			}))
		}
	}
	return append(out, m.bound()...)
}
