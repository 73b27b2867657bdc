package remotes

import (
	"context"
	"encoding/json"
	"time"

	"meanwhile/host/gateway"
	"meanwhile/host/jsonrpc"
	"meanwhile/host/outside"
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

type openParams struct {
	Title string `json:"title"`
	Agent struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
		CWD  string `json:"cwd"`
	} `json:"agent"`
	Key      string `json:"key"`
	Existing bool   `json:"existing"`
}

type openResult struct {
	SessionID string `json:"sessionId"`
}

type askParams struct {
	SessionID string          `json:"sessionId"`
	RequestID string          `json:"requestId"`
	Questions json.RawMessage `json:"questions"`
	Timeout   json.RawMessage `json:"timeout"`
	HoldMs    *int64          `json:"holdMs"`
	Holder    string          `json:"holder"`
}

type awaitParams struct {
	SessionID string `json:"sessionId"`
	CallID    string `json:"callId"`
	HoldMs    *int64 `json:"holdMs"`
	Holder    string `json:"holder"`
}

// standingResult answers ask and await: answered has answers, pending has
// remainingMs and shown, waiting has neither.
type standingResult struct {
	Status      outside.Status  `json:"status"`
	CallID      string          `json:"callId"`
	Answers     json.RawMessage `json:"answers,omitempty"`
	MessageID   string          `json:"messageId,omitempty"`
	RemainingMs *int64          `json:"remainingMs,omitempty"`
	Shown       *bool           `json:"shown,omitempty"`
}

type withdrawParams struct {
	SessionID string `json:"sessionId"`
	CallID    string `json:"callId"`
}

type withdrawResult struct {
	Withdrawn bool `json:"withdrawn"`
}

type claimParams struct {
	SessionID string `json:"sessionId"`
	Holder    string `json:"holder"`
	Max       int    `json:"max"`
}

type claimResult struct {
	Messages []json.RawMessage `json:"messages"`
	LeaseMs  int64             `json:"leaseMs"`
}

type admitParams struct {
	SessionID  string   `json:"sessionId"`
	MessageIDs []string `json:"messageIds"`
}

type admitResult struct {
	Admitted []string `json:"admitted"`
}

// bindOutside adds the calls of agents from other programs.
func bindOutside(g *gateway.Gateway, o Options) {
	unary(g, "session/open", ask, func(ctx context.Context, c *gateway.Caller, p openParams) (openResult, error) {
		if p.Agent.Kind != event.KindExternal {
			return openResult{}, jsonrpc.Faultf(jsonrpc.CodeInvalidParams, "invalid params: agent.kind must be %q", event.KindExternal)
		}
		id, err := o.Outside.Open(ctx, party(ctx, c, ""), outside.Opening{Title: p.Title, Name: p.Agent.Name, CWD: p.Agent.CWD, Key: p.Key, Existing: p.Existing})
		return openResult{id}, err
	})
	unary(g, "userQuestions/ask", ask, func(ctx context.Context, c *gateway.Caller, p askParams) (standingResult, error) {
		if err := need("sessionId", p.SessionID, "questions", string(p.Questions)); err != nil {
			return standingResult{}, err
		}
		hold, err := holdOf(p.HoldMs)
		if err != nil {
			return standingResult{}, err
		}
		s, err := o.Outside.Ask(ctx, party(ctx, c, p.Holder), p.SessionID, outside.Asking{RequestID: p.RequestID, Questions: p.Questions, Timeout: p.Timeout}, hold)
		if err != nil {
			return standingResult{}, err
		}
		return standing(s), nil
	})
	unary(g, "userQuestions/await", ask, func(ctx context.Context, c *gateway.Caller, p awaitParams) (standingResult, error) {
		if err := need("sessionId", p.SessionID, "callId", p.CallID); err != nil {
			return standingResult{}, err
		}
		hold, err := holdOf(p.HoldMs)
		if err != nil {
			return standingResult{}, err
		}
		s, err := o.Outside.Await(ctx, party(ctx, c, p.Holder), p.SessionID, p.CallID, hold)
		if err != nil {
			return standingResult{}, err
		}
		return standing(s), nil
	})
	unary(g, "userQuestions/withdraw", ask, func(ctx context.Context, c *gateway.Caller, p withdrawParams) (withdrawResult, error) {
		if err := need("sessionId", p.SessionID, "callId", p.CallID); err != nil {
			return withdrawResult{}, err
		}
		done, err := o.Outside.Withdraw(ctx, party(ctx, c, ""), p.SessionID, p.CallID)
		return withdrawResult{done}, err
	})
	unary(g, "inbox/claim", ask, func(ctx context.Context, c *gateway.Caller, p claimParams) (claimResult, error) {
		if err := need("sessionId", p.SessionID); err != nil {
			return claimResult{}, err
		}
		if p.Max < 0 {
			return claimResult{}, jsonrpc.Faultf(jsonrpc.CodeInvalidParams, "invalid params: max must not be negative")
		}
		messages, lease, err := o.Outside.Claim(ctx, party(ctx, c, p.Holder), p.SessionID, p.Max)
		out := claimResult{Messages: make([]json.RawMessage, len(messages)), LeaseMs: lease.Milliseconds()}
		for i, m := range messages {
			out.Messages[i] = m.Body
		}
		return out, err
	})
	unary(g, "inbox/admit", ask, func(ctx context.Context, c *gateway.Caller, p admitParams) (admitResult, error) {
		if err := need("sessionId", p.SessionID); err != nil {
			return admitResult{}, err
		}
		if p.MessageIDs == nil {
			return admitResult{}, missing("messageIds")
		}
		admitted, err := o.Outside.Admit(ctx, party(ctx, c, ""), p.SessionID, p.MessageIDs)
		if admitted == nil {
			admitted = []string{}
		}
		return admitResult{admitted}, err
	})
}

// party is the caller as the service knows it. A posted call has no line: its
// request ends with the response, and would take back what that carried.
func party(ctx context.Context, c *gateway.Caller, holder string) outside.Party {
	p := outside.Party{TokenID: c.TokenID, Holder: holder, Written: func(f func()) { gateway.OnWritten(ctx, f) }}
	if c.ClientID != "" {
		p.Line = c.Done
	}
	return p
}

// holdOf is 0 for a hold left out, which is the service's default; holdMs 0 asks
// for no hold at all.
func holdOf(ms *int64) (time.Duration, error) {
	switch {
	case ms == nil:
		return 0, nil
	case *ms < 0 || *ms > outside.HoldMax.Milliseconds():
		return 0, jsonrpc.Faultf(jsonrpc.CodeInvalidParams, "invalid params: holdMs must be a whole number from 0 to %d", outside.HoldMax.Milliseconds())
	case *ms == 0:
		return time.Nanosecond, nil // only a look
	}
	return time.Duration(*ms) * time.Millisecond, nil
}

func standing(s outside.Standing) standingResult {
	out := standingResult{Status: s.Status, CallID: s.CallID, MessageID: s.MessageID}
	switch s.Status {
	case outside.Answered:
		var w value.Writer
		projection.AppendAnswers(&w, s.Answers)
		out.Answers = w.Bytes()
	case outside.Pending:
		out.RemainingMs, out.Shown = &s.RemainingMs, s.Shown
	}
	return out
}
