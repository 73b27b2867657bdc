package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"meanwhile/host/internal/id"
	"meanwhile/host/jsonrpc"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// standing is where an ask stands, as the host says.
type standing struct {
	Status      string          `json:"status"`
	CallID      string          `json:"callId"`
	Answers     json.RawMessage `json:"answers"`
	MessageID   string          `json:"messageId"`
	RemainingMs int64           `json:"remainingMs"`
	Shown       *bool           `json:"shown"`
}

// ask puts the native tool's questions to people and writes what the tool is
// to make of it.
func (r *runner) ask(ctx context.Context, qs []question) error {
	if err := r.open(ctx, true); err != nil {
		return err
	}
	questions := hashOf(qs)
	before := ""
	err := r.noted(func(n *note) error {
		before = n.pendingAsk(questions)
		return r.acknowledge(ctx, n)
	})
	if err != nil {
		return err
	}
	st, again, err := r.resume(ctx, before)
	if !again {
		if err := r.forget(before); err != nil {
			return err
		}
		st, err = r.askAnew(ctx, qs)
	}
	code, field, message := refusal(err)
	switch {
	case err == nil:
	case tellable(code):
		return r.write(r.d.refuse(r.p, endedReason(code, field, message)))
	default:
		return err // ours: the agent's own dialog opens
	}
	if st.Status != "answered" {
		reason := pendingReason(st.CallID, r.o.Window, st.Shown)
		if again {
			reason = againReason(st.CallID)
		}
		if err := r.write(r.d.refuse(r.p, reason)); err != nil {
			return err
		}
		return r.noted(func(n *note) error { n.keepPending(questions, st.CallID); return nil })
	}
	doc, err := value.Parse(st.Answers)
	if err != nil {
		return fmt.Errorf("the answers of the host: %w", err)
	}
	answers, ok := projection.AnswersOf(doc)
	if !ok {
		return errors.New("the answers of the host are not readable")
	}
	if err := r.write(r.answered(st.CallID, qs, answers)); err != nil {
		return err
	}
	return r.noted(func(n *note) error {
		n.dropPending(st.CallID)
		if st.MessageID != "" {
			n.Given = append(n.Given, st.MessageID)
		}
		return nil
	})
}

// noted changes the note.
func (r *runner) noted(f func(*note) error) error {
	n, err := waitNote(r.o.Notes, r.key, noteWithin)
	if err != nil {
		return err
	}
	defer n.close()
	err = f(n)
	return errors.Join(err, n.save())
}

func (r *runner) forget(callID string) error {
	if callID == "" {
		return nil
	}
	return r.noted(func(n *note) error { n.dropPending(callID); return nil })
}

// resume looks at an ask of before with the same questions. again is false when
// it does not stand any more.
func (r *runner) resume(ctx context.Context, callID string) (st standing, again bool, err error) {
	if callID == "" {
		return st, false, nil
	}
	err = r.host.Call(ctx, "userQuestions/await", map[string]any{
		"sessionId": r.session, "callId": callID, "holdMs": 1, "holder": id.New(),
	}, &st)
	switch {
	case err == nil && st.Status == "answered" && st.MessageID == "":
		return st, false, nil // read long ago: the agent wants to know it anew
	case err == nil && st.Status == "pending" && st.RemainingMs > 0:
		st, err = r.follow(ctx, st)
	}
	if code, _, _ := refusal(err); code != "" {
		return st, false, nil // withdrawn, or cancelled
	}
	return st, true, err
}

func (r *runner) askAnew(ctx context.Context, qs []question) (standing, error) {
	request := r.p.CallID
	if request == "" || utf8.RuneCountInString(request) > nameMax {
		request = id.New()
	}
	var st standing
	err := r.host.Call(ctx, "userQuestions/ask", map[string]any{
		"sessionId": r.session, "requestId": request, "questions": qs, "timeout": int64(r.o.Window / time.Second),
		"holdMs": r.holdMs(), "holder": id.New(),
	}, &st)
	if err != nil {
		return st, err
	}
	return r.follow(ctx, st)
}

// follow waits on while the window runs.
func (r *runner) follow(ctx context.Context, st standing) (standing, error) {
	for st.Status == "pending" && st.RemainingMs > 0 {
		callID := st.CallID
		st = standing{}
		if err := r.host.Call(ctx, "userQuestions/await", map[string]any{
			"sessionId": r.session, "callId": callID, "holdMs": r.holdMs(), "holder": id.New(),
		}, &st); err != nil {
			return st, err
		}
	}
	return st, nil
}

// holdMs is a little more than the window, so that its end is seen in one call.
func (r *runner) holdMs() int64 {
	return min(r.o.Window+askMargin/3, holdMax).Milliseconds()
}

// answered is an answer in the shape of the tool, or in a refusal's reason.
func (r *runner) answered(callID string, qs []question, answers []projection.Answer) any {
	if r.d.fills {
		if input, err := fill(r.p.Input, qs, answers); err == nil {
			return specific(r.p.Event, object{"permissionDecision": "allow", "updatedInput": json.RawMessage(input)})
		}
	}
	reason := answeredReason(callID, qs, answers)
	if n := r.size(reason); n > contextMax {
		reason = r.longReason(callID, n)
	}
	return r.d.refuse(r.p, reason)
}

// refusal reads a business error of the host; code is "" for any other.
func refusal(err error) (code, field, message string) {
	var e *jsonrpc.Error
	if !errors.As(err, &e) {
		return "", "", ""
	}
	var data struct {
		Code  string `json:"code"`
		Field string `json:"field"`
	}
	_ = json.Unmarshal(e.Data, &data) // without data there is no code
	return data.Code, data.Field, e.Message
}

// tellable are the codes that the agent can do something about, or that are how
// its question ended. The others are faults of the host, and its dialog opens.
func tellable(code string) bool {
	switch code {
	case "EMPTY_QUESTIONS", "BAD_QUESTIONS", "BAD_INTENT", "BAD_TIMEOUT", "REQUEST_CONFLICT", "EVENT_TOO_LARGE",
		"ASK_CANCELLED", "ASK_ABORTED", "ASK_WITHDRAWN", "NO_PROVIDER", "TOOL_OUTCOME_UNKNOWN":
		return true
	}
	return false
}
