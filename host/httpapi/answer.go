package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"meanwhile/host/internal/id"
	"meanwhile/shared/event/value"
)

// answered is the result of an answer that was taken. State is "settled" for an
// answer in time, else where the late reply is.
type answered struct {
	Accepted  bool   `json:"accepted"`
	State     string `json:"state"`
	MessageID string `json:"messageId,omitempty"`
}

// answer answers an ask where it stands.
func (v *visit) answer() error {
	body, err := v.body()
	if err != nil {
		return err
	}
	if len(body.Members()) != 1 || body.Get("answers").Kind() != value.Array {
		return newProblem(http.StatusUnprocessableEntity, "BAD_BODY", "answers", `send {"answers": […]} with one answer for each question, and nothing else`)
	}
	submission, err := v.idempotencyKey()
	if err != nil {
		return err
	}
	if submission == "" {
		submission = id.New()
	}
	ctx := v.r.Context()
	for n := 0; n < answerTries; n++ {
		out, open, err := v.settle(ctx, body)
		if err == nil && out == nil {
			out, err = v.late(ctx, body, submission)
		}
		switch {
		case err != nil:
			return err
		case out != nil:
			raw, err := json.Marshal(out)
			if err != nil {
				return err
			}
			v.send(raw)
			return nil
		case n >= settledAfter && !open:
			// Neither open nor continued, and nothing is being recorded so long.
			return newProblem(http.StatusConflict, "NOT_OPEN", "callId", "the answer was not taken: the question is answered, taken back or unknown")
		}
		select {
		case <-time.After(answerEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return newProblem(http.StatusServiceUnavailable, "BUSY", "callId", "the question is just changing: send the answer again")
}

// settle answers an open ask through its event; nil when it is not open.
func (v *visit) settle(ctx context.Context, body value.Value) (out *answered, open bool, err error) {
	eventID, open := v.o.EventOf(v.sessionID, v.callID)
	if eventID == "" {
		return nil, open, nil
	}
	var res struct {
		Taken   bool
		Refused *struct{ Code, Field, Message string }
	}
	params := map[string]any{"eventId": eventID, "result": json.RawMessage(body.Bytes())}
	if _, err := v.o.Call(ctx, v.token, "remote/settle", params, &res); err != nil {
		return nil, open, err
	}
	switch {
	case res.Refused != nil:
		return nil, open, newProblem(http.StatusUnprocessableEntity, res.Refused.Code, res.Refused.Field, res.Refused.Message)
	case res.Taken:
		return &answered{Accepted: true, State: "settled"}, open, nil
	}
	return nil, open, nil
}

// late answers a continued ask; nil when it is not continued.
func (v *visit) late(ctx context.Context, body value.Value, submission string) (*answered, error) {
	var out answered
	params := map[string]any{"sessionId": v.sessionID, "callId": v.callID, "answer": json.RawMessage(body.Bytes()), "submissionId": submission}
	if _, err := v.o.Call(ctx, v.token, "userQuestions/answer", params, &out); err != nil {
		return nil, err
	}
	if !out.Accepted {
		return nil, nil
	}
	return &out, nil
}
