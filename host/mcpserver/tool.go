package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"meanwhile/host/tool/askuser"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

const instructions = "Ask the user with ask_user_question. A result with status pending is not an answer and not permission: " +
	"go on with what does not depend on it, and do not ask again. The reply comes with the result of a later call of any of " +
	"these tools; check_inbox fetches it when you have nothing else to call."

const askMore = " The reply to a pending question comes with the result of a later call of any tool of this server; " +
	"await_answer waits for it."

const awaitDescription = "Wait for the answer to a question that you asked with ask_user_question and that came back as pending or " +
	"waiting. Use it when you cannot go on without the answer. It returns when the user answers, or after a while with the same " +
	"status as before; then the question is still open, and you may call it again."

const inboxDescription = "Fetch the user's late answers and messages that wait for you. Call it when you finish a piece of work while " +
	"a question of yours is pending. An empty list means that nothing has come yet."

const withdrawDescription = "Take back a question of yours that is still unanswered, because it no longer matters. The user will not " +
	"be able to answer it any more. The result says whether it was taken back; it was not if an answer came first."

const requestIDSchema = `{"type":"string","description":"A name of your own for this call, at most 200 characters. Sending the same ` +
	`name with the same questions again continues the same question instead of asking twice."}`

// Schemas name one type each: some models refuse a list of types.
const (
	callSchema = `{"type":"object","properties":{"callId":{"type":"string","description":"The callId that the question's result gave you."}},"required":["callId"]}`

	inboxSchema = `{"type":"object","properties":{"acknowledge":{"type":"array","items":{"type":"string"},` +
		`"description":"The messageIds that you have read. They will not be delivered again."}}}`

	answersSchema = `{"type":"array","items":{"type":"object","properties":{` +
		`"id":{"type":"string","description":"The question's id."},` +
		`"selected":{"type":"array","items":{"type":"string"},"description":"The labels chosen. Nothing here and no custom: skipped."},` +
		`"custom":{"type":"string","description":"The user's own words."}},"required":["id","selected"]}}`

	messagesSchema = `{"type":"array","description":"Late answers and messages of the user that came meanwhile.","items":{"type":"object","properties":{` +
		`"messageId":{"type":"string"},` +
		`"kind":{"type":"string","enum":["reply","result","message"]},` +
		`"callId":{"type":"string","description":"The question that it answers."},` +
		`"by":{"type":"string","description":"The client that the answer came from."},` +
		`"questions":{"type":"array","items":{"type":"object"}},` +
		`"answers":` + answersSchema + `,` +
		`"text":{"type":"string"}},"required":["messageId","kind"]}}`

	standingSchema = `{"type":"object","properties":{` +
		`"status":{"type":"string","enum":["answered","pending","waiting"]},` +
		`"callId":{"type":"string"},` +
		`"answers":` + answersSchema + `,` +
		`"messageId":{"type":"string","description":"Names the answer, for check_inbox to acknowledge."},` +
		`"remainingMs":{"type":"integer","description":"Pending: how long the user can still answer in time; 0 when that is over and the reply will come late."},` +
		`"shown":{"type":"boolean","description":"Whether anybody was shown the question."},` +
		`"messages":` + messagesSchema + `},"required":["status","callId"]}`

	inboxResultSchema = `{"type":"object","properties":{"messages":` + messagesSchema +
		`,"acknowledged":{"type":"array","items":{"type":"string"}}},"required":["messages"]}`

	withdrawnSchema = `{"type":"object","properties":{"withdrawn":{"type":"boolean"},"messages":` + messagesSchema + `},"required":["withdrawn"]}`
)

// tool is one tool and what runs it.
type tool struct {
	spec *mcp.Tool
	run  run
}

func tools() []tool {
	ask := askuser.New(nil, nil, askuser.Options{Mode: askuser.Timed}).Spec()
	no := false
	// Nothing here touches files or the network; a repeated call is not a second ask.
	hints := func(title string, readOnly, idempotent bool) *mcp.ToolAnnotations {
		return &mcp.ToolAnnotations{Title: title, ReadOnlyHint: readOnly, IdempotentHint: idempotent, DestructiveHint: &no, OpenWorldHint: &no}
	}
	spec := func(name, title, description, in, out string, readOnly, idempotent bool) *mcp.Tool {
		return &mcp.Tool{Name: name, Title: title, Description: description, Annotations: hints(title, readOnly, idempotent),
			InputSchema: json.RawMessage(in), OutputSchema: json.RawMessage(out)}
	}
	return []tool{
		{spec(projection.ToolName, "Ask the user", ask.Description+askMore, withRequestID(ask.Parameters), standingSchema, false, true), askTool},
		{spec("await_answer", "Wait for an answer", awaitDescription, callSchema, standingSchema, true, true), awaitTool},
		{spec("check_inbox", "Fetch late answers", inboxDescription, inboxSchema, inboxResultSchema, false, true), inboxTool},
		{spec(projection.WithdrawName, "Take a question back", withdrawDescription, callSchema, withdrawnSchema, false, true), withdrawTool},
	}
}

// withRequestID adds the one parameter that the host's own agents do not need.
func withRequestID(schema []byte) string {
	v, err := value.Parse(schema)
	if err != nil {
		panic("mcpserver: the tool's schema: " + err.Error()) // a constant of this program
	}
	id, err := value.ParseString(requestIDSchema)
	if err != nil {
		panic("mcpserver: the schema of request_id: " + err.Error())
	}
	return string(v.With("properties", v.Get("properties").With("request_id", id)).Bytes())
}

// standingData is the structured result of ask_user_question and await_answer.
type standingData struct {
	Status      string          `json:"status"`
	CallID      string          `json:"callId"`
	Answers     json.RawMessage `json:"answers,omitempty"`
	MessageID   string          `json:"messageId,omitempty"`
	RemainingMs *int64          `json:"remainingMs,omitempty"`
	Shown       *bool           `json:"shown,omitempty"`
	Messages    []message       `json:"messages,omitempty"`
}

type inboxData struct {
	Messages     []message `json:"messages"`
	Acknowledged []string  `json:"acknowledged,omitempty"`
}

type withdrawData struct {
	Withdrawn bool      `json:"withdrawn"`
	Messages  []message `json:"messages,omitempty"`
}

func askTool(ctx context.Context, v *visit, raw json.RawMessage) (outcome, error) {
	var in struct {
		Questions json.RawMessage `json:"questions"`
		Timeout   json.RawMessage `json:"timeout"`
		RequestID json.RawMessage `json:"request_id"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return outcome{}, &toolError{"BAD_ARGUMENTS", "", "send an object with questions, and timeout and request_id if you like"}
	}
	if in.Questions == nil {
		return outcome{}, &toolError{"EMPTY_QUESTIONS", "questions", "send a list of 1 to 16 questions"}
	}
	params := map[string]any{"sessionId": v.sessionID, "questions": in.Questions, "holdMs": v.hold.Milliseconds()}
	if in.Timeout != nil {
		params["timeout"] = in.Timeout
	}
	var requestID string
	if in.RequestID != nil {
		if err := json.Unmarshal(in.RequestID, &requestID); err != nil || requestID == "" {
			return outcome{}, &toolError{"BAD_ARGUMENTS", "request_id", "send a string of 1 to 200 characters, or leave it out"}
		}
	}
	derived := requestID == ""
	if derived {
		v.desk.update(func(_ *tray, m *memo) { requestID = m.request(fingerprint(in.Questions), newID) })
	}
	params["requestId"] = requestID
	if v.offer != nil {
		v.offer(v.sessionID)
	}
	var st standing
	err := v.host.Call(ctx, "userQuestions/ask", params, &st)
	if derived {
		v.desk.update(func(_ *tray, m *memo) {
			switch {
			case err == nil:
				m.named(requestID, st.CallID)
				if v.hasAnswer(st) {
					m.settled(requestID)
				}
			case ctx.Err() == nil && !isLost(err):
				m.settled(requestID)
			}
		})
	}
	if err != nil {
		return outcome{}, err
	}
	return v.outcome(st, in.Questions), nil
}

func awaitTool(ctx context.Context, v *visit, raw json.RawMessage) (outcome, error) {
	callID, err := callOf(raw)
	if err != nil {
		return outcome{}, err
	}
	// The reply may have come on another result already.
	var had message
	var ok bool
	v.desk.update(func(t *tray, _ *memo) { had, ok = t.answerTo(callID) })
	if ok {
		return standingOutcome(standing{Status: statusAnswered, CallID: callID, Answers: had.Answers, MessageID: had.ID}, had.Questions), nil
	}
	var st standing
	err = v.host.Call(ctx, "userQuestions/await", map[string]any{"sessionId": v.sessionID, "callId": callID, "holdMs": v.hold.Milliseconds()}, &st)
	if err == nil && v.hasAnswer(st) || err != nil && ctx.Err() == nil && !isLost(err) {
		v.desk.update(func(_ *tray, m *memo) { m.settledCall(callID) })
	}
	if err != nil {
		return outcome{}, err
	}
	return v.outcome(st, nil), nil
}

// outcome words a standing. A form claims nothing, so where there may be one
// the host's word on who was shown the question is too little.
func (v *visit) outcome(st standing, questions json.RawMessage) outcome {
	if v.offer != nil {
		st.Shown = nil
	}
	return standingOutcome(st, questions)
}

// hasAnswer reports whether the client counts as having the answer now. Where
// one process calls that is when it acknowledges the answer, and until then the
// same questions are a call sent again; elsewhere nobody would tell.
func (v *visit) hasAnswer(st standing) bool {
	return st.Status == statusAnswered && (!v.returns || st.MessageID == "")
}

func inboxTool(ctx context.Context, v *visit, raw json.RawMessage) (outcome, error) {
	var in struct {
		Acknowledge []string `json:"acknowledge"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return outcome{}, &toolError{"BAD_ARGUMENTS", "acknowledge", "send a list of messageIds, or leave it out"}
	}
	admitted, err := v.admit(ctx, in.Acknowledge)
	if err != nil {
		return outcome{}, err
	}
	return outcome{data: &inboxData{Acknowledged: admitted}}, nil
}

func withdrawTool(ctx context.Context, v *visit, raw json.RawMessage) (outcome, error) {
	callID, err := callOf(raw)
	if err != nil {
		return outcome{}, err
	}
	var out withdrawData
	if err := v.host.Call(ctx, "userQuestions/withdraw", map[string]any{"sessionId": v.sessionID, "callId": callID}, &out); err != nil {
		return outcome{}, err
	}
	text := "The question was not taken back: it is settled, or an answer to it is on its way to you."
	if out.Withdrawn {
		text = "The question is taken back. No answer to it will come."
		v.desk.update(func(_ *tray, m *memo) { m.settledCall(callID) })
	}
	return outcome{text: text, data: &out}, nil
}

func callOf(raw json.RawMessage) (string, error) {
	var in struct {
		CallID string `json:"callId"`
	}
	if err := json.Unmarshal(raw, &in); err != nil || in.CallID == "" {
		return "", &toolError{"BAD_ARGUMENTS", "callId", "send the callId that the question's result gave you, as a string"}
	}
	return in.CallID, nil
}

// fingerprint is the same for the same questions, however they are written.
func fingerprint(questions json.RawMessage) string {
	if v, err := value.Parse(questions); err == nil {
		questions = v.Bytes()
	}
	sum := sha256.Sum256(questions)
	return string(sum[:])
}

// seconds is a duration for people.
func seconds(ms int64) string {
	return fmt.Sprintf("%d s", max(1, ms/1000))
}
