package question

import (
	"context"
	"encoding/json"

	"meanwhile/host/agent"
	"meanwhile/shared/projection"
)

// Event names and scope of the waterfall that carries an ask to the clients.
const (
	EventName  = "user-questions/request"
	eventScope = "answer"
)

// EmitFunc sends one event to the clients that hold its scope, now and while it
// is pending. The first settlement wins. The gateway's Emit is one, its types
// copied field by field; its *Pending is a Pending.
type EmitFunc func(Event) Pending

// Event is a waterfall. All callbacks come without locks of the emitter's and
// may come before EmitFunc returns. They are always set.
type Event struct {
	Name, Scope string
	Params      json.RawMessage
	Codes       []string // error codes of a client that settle the event
	// Check refuses a client's result before it settles anything; nil takes it.
	Check func(result json.RawMessage) *Refusal
	// Left tells that a client's delivery ended without settling the event.
	Left func(clientID string)
	// Settled reports the outcome, once per emission.
	Settled func(Settlement)
}

// Refusal tells a client why its result was not taken.
type Refusal struct{ Code, Field, Message string }

// Settlement is how an event ended.
type Settlement struct {
	Kind       SettlementKind
	Result     json.RawMessage // for Result: as checked
	Code       string          // Rejected: the client's; Cancelled: ours, or the emitter's refusal
	ClientID   string          // who settled it, if a client did
	ClientName string          // the label of its token
}

// SettlementKind says what ended an event.
type SettlementKind uint8

// The kinds. Unhandled: every client that got the event delegated it.
const (
	Result SettlementKind = iota
	Rejected
	Unhandled
	Cancelled
)

// Pending is an event on its way.
type Pending interface {
	// Cancel ends the event with a code of ours and reports whether nothing had
	// ended it before. The outcome comes through Settled.
	Cancel(code string) bool
	// Reemit, after Unhandled, makes the event pending again under its id, for
	// the clients that connect from then on.
	Reemit() bool
}

// Agents is the registry of live agents.
type Agents interface {
	// IsLive reports whether this exact instance is its session's live agent.
	IsLive(*agent.Agent) bool
}

// Validator runs the checks in the module that the clients run, too. A Problem
// is the caller's fault; an error is the host's, and settles nothing. A check is
// bounded by itself: even a stopping host waits for it.
type Validator interface {
	CheckAsk(ctx context.Context, questionsJSON []byte) (*projection.Problem, error)
	CheckAnswer(ctx context.Context, questionsJSON, answerJSON []byte) (*projection.Problem, error)
}
