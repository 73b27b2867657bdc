package tool

import (
	"context"
	"encoding/json"
)

// Spec is what the model is told about a tool.
type Spec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // a JSON Schema object
}

// Call is one request of the model to run a tool.
type Call struct {
	SessionID string
	CallID    string
	Name      string
	Arguments string // the raw JSON the model produced, not yet checked
	Turn      int64
	Step      int64
}

// Result is what the model is told, and what is recorded beside it.
type Result struct {
	Text string
	Meta json.RawMessage // for views only, never shown to the model; nil for none
}

// Tool is one thing an agent can do. Run may be called concurrently, ends soon
// after its context does, and returns an *Error for whatever the model can act
// on.
type Tool interface {
	Spec() Spec
	Run(ctx context.Context, c Call) (Result, error)
}

// Error is a failure written for the model: what was wrong and what to send
// instead. It becomes an error tool/result.
type Error struct {
	Name    string // the error's family, such as "BashError"
	Code    string // what callers branch on, such as "BASH_TIMEOUT"
	Message string
}

func (e *Error) Error() string {
	if e.Code == "" {
		return e.Message
	}
	return e.Code + ": " + e.Message
}
