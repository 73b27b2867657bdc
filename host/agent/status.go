package agent

import "meanwhile/shared/event"

// State is what an agent does, in a word for a session row.
type State string

const (
	// Idle: no turn runs and none is called for.
	Idle State = "idle"
	// Running: a turn runs and the model is at work.
	Running State = "running"
	// Waiting: a turn runs and only its tools are at work; for an outside
	// agent, a call of its is open.
	Waiting State = "waiting"
	// Queued: messages wait, and no turn takes them by itself. Reason says why.
	Queued State = "queued"
	// Blocked: a turn is called for and cannot start. Reason says why.
	Blocked State = "blocked"
)

// OnAgent is the Reason of messages that an outside agent takes when it next calls.
const OnAgent = "agent"

// Status is an agent's part of a session row. Reason is set for two states: for
// Queued it is OnAgent or the kind of the turn's end after which messages wait
// (aborted, error, interrupted), for Blocked a text that says what is missing.
type Status struct {
	State  State
	Reason string
}

// Resumes reports whether queued messages start a turn by themselves after a
// turn that ended as kind ("" when there was none). After one that was cut short
// they wait: a person, or the next accepted reply, decides that it goes on.
func Resumes(kind string) bool {
	switch kind {
	case event.TurnAborted, event.TurnError, event.TurnInterrupted:
		return false
	}
	return true
}
