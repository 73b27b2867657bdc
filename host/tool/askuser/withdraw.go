package askuser

import (
	"context"
	"encoding/json"

	"meanwhile/host/agent"
	"meanwhile/host/tool"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// CodeBadArguments: the arguments of a plan or a withdrawal are not of its shape.
const CodeBadArguments = "BAD_ARGUMENTS"

// Withdrawer is what the withdraw tool needs of the question service.
type Withdrawer interface {
	Withdraw(ctx context.Context, a *agent.Agent, callID string) (bool, error)
}

// Withdraw is withdraw_question for one agent.
type Withdraw struct {
	service Withdrawer
	agent   *agent.Agent
}

// NewWithdraw makes the tool for one agent.
func NewWithdraw(service Withdrawer, a *agent.Agent) *Withdraw {
	return &Withdraw{service, a}
}

// Spec is what the model is told.
func (t *Withdraw) Spec() tool.Spec {
	return tool.Spec{Name: projection.WithdrawName, Description: withdrawDescription, Parameters: json.RawMessage(withdrawSchema)}
}

// Run takes a question back.
func (t *Withdraw) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	v, err := value.ParseString(c.Arguments)
	if err != nil {
		return badArguments("", "send the arguments as one JSON object: "+err.Error())
	}
	target, ok := v.Get("callId").Str()
	if !ok || target == "" {
		return badArguments("callId", "send the callId of the question to take back, as a string")
	}
	done, err := t.service.Withdraw(ctx, t.agent, target)
	if err != nil {
		return tool.Result{}, toolError(ctx, err)
	}
	return tool.Result{Text: WithdrawnText(done)}, nil
}

// WithdrawnText is the result of a withdrawal, granted or not.
func WithdrawnText(done bool) string {
	var w value.Writer
	w.Begin()
	w.BoolField("withdrawn", done)
	if !done {
		w.StrField("message", "There is nothing to take back: the question is settled or unknown, or a reply to it is on its way to you.")
	}
	w.End()
	return string(w.Bytes())
}
