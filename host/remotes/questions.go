package remotes

import (
	"context"
	"encoding/json"
	"errors"

	"meanwhile/host/agent"
	"meanwhile/host/gateway"
	"meanwhile/host/question"
)

type waitParams struct {
	SessionID string `json:"sessionId"`
	CallID    string `json:"callId"`
}

type waitItem struct {
	RemainingMs int64 `json:"remainingMs"`
}

type answerParams struct {
	SessionID    string          `json:"sessionId"`
	CallID       string          `json:"callId"`
	Answer       json.RawMessage `json:"answer"`
	SubmissionID string          `json:"submissionId"`
}

type answerResult struct {
	Accepted  bool   `json:"accepted"`
	MessageID string `json:"messageId,omitempty"`
	State     string `json:"state,omitempty"`
}

type removeParams struct {
	SessionID string `json:"sessionId"`
	MessageID string `json:"messageId"`
}

type removeResult struct {
	Removed bool `json:"removed"`
}

func bindQuestions(g *gateway.Gateway, o Options) {
	stream(g, "userQuestions/attachWait", answer, func(ctx context.Context, c *gateway.Caller, p waitParams, send func(any) error) error {
		if err := need("sessionId", p.SessionID, "callId", p.CallID); err != nil {
			return err
		}
		a, ok := o.Agents.Get(p.SessionID)
		if !ok {
			return nil // nothing waits in a session that nobody drives
		}
		return o.Questions.AttachWait(ctx, a, p.CallID, c.ClientID, func(remainingMs int64) error {
			return send(waitItem{remainingMs})
		})
	})
	unary(g, "userQuestions/answer", answer, func(ctx context.Context, c *gateway.Caller, p answerParams) (answerResult, error) {
		if err := need("sessionId", p.SessionID, "callId", p.CallID, "answer", string(p.Answer), "submissionId", p.SubmissionID); err != nil {
			return answerResult{}, err
		}
		a, err := o.Agents.Resume(ctx, p.SessionID)
		if err != nil {
			return answerResult{}, err
		}
		r, err := o.Questions.Answer(ctx, a, p.CallID, p.Answer, p.SubmissionID, c.Label)
		return answerResult{Accepted: r.Accepted, MessageID: r.MessageID, State: string(r.State)}, err
	})
	unary(g, "inbox/remove", answer, func(ctx context.Context, _ *gateway.Caller, p removeParams) (removeResult, error) {
		if err := need("sessionId", p.SessionID, "messageId", p.MessageID); err != nil {
			return removeResult{}, err
		}
		for {
			a, err := o.Agents.Resume(ctx, p.SessionID)
			if err != nil {
				return removeResult{}, err
			}
			removed, err := a.RemoveQueued(ctx, p.MessageID)
			if !errors.Is(err, agent.ErrNotLive) {
				return removeResult{removed}, err
			}
		}
	})
}

// Emit lets the question service send its events through a gateway.
func Emit(g *gateway.Gateway) question.EmitFunc {
	return func(ev question.Event) question.Pending {
		return g.Emit(gateway.Event{
			Name: ev.Name, Scope: ev.Scope, Params: ev.Params, Codes: ev.Codes, Left: ev.Left,
			Check: func(result json.RawMessage) *gateway.Refusal {
				if r := ev.Check(result); r != nil {
					return &gateway.Refusal{Code: r.Code, Field: r.Field, Message: r.Message}
				}
				return nil
			},
			Settled: func(o gateway.Outcome) {
				ev.Settled(question.Settlement{Kind: settlementOf(o.Kind), Result: o.Result, Code: o.Code, ClientID: o.Client, ClientName: o.ClientName})
			},
		})
	}
}

func settlementOf(k gateway.Kind) question.SettlementKind {
	switch k {
	case gateway.Result:
		return question.Result
	case gateway.Rejected:
		return question.Rejected
	case gateway.Unhandled:
		return question.Unhandled
	}
	return question.Cancelled
}
