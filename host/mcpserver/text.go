package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"meanwhile/host/jsonrpc"
	"meanwhile/shared/event/value"
)

// Statuses of an ask.
const (
	statusAnswered = "answered"
	statusPending  = "pending"
)

// questionShown is how much of a question's text stands beside its answer: the
// agent knows the rest, and a result has little room.
const questionShown = 200

// toolError is a refusal that the model can act on.
type toolError struct{ code, field, message string }

func (e *toolError) Error() string {
	if e.field == "" {
		return e.code + ": " + e.message
	}
	return e.code + ": " + e.field + ": " + e.message
}

// asToolError gives the host's words to the model, and a plain sentence where
// the host has none.
func asToolError(err error) *toolError {
	var known *toolError
	if errors.As(err, &known) {
		return known
	}
	var said *jsonrpc.Error
	if !errors.As(err, &said) {
		return &toolError{"NO_HOST", "", err.Error()}
	}
	var data struct{ Code, Field string }
	_ = json.Unmarshal(said.Data, &data) // without data the message stands alone
	if data.Code == "" {
		data.Code = "REFUSED"
	}
	return &toolError{data.Code, data.Field, said.Message}
}

// isLost reports an error that is not the host's word on the ask: the same call
// may be sent again.
func isLost(err error) bool {
	var said *jsonrpc.Error
	return err != nil && (!errors.As(err, &said) || said.Code != jsonrpc.CodeApplication || isStopping(said))
}

func isStopping(e *jsonrpc.Error) bool { return asToolError(e).code == "HOST_STOPPING" }

func refused(e *toolError) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: textOf(e.Error())}
}

func textOf(text string) []mcp.Content {
	if text == "" {
		return nil
	}
	return []mcp.Content{&mcp.TextContent{Text: text}}
}

// result is what the client gets: one text block and the same as data.
func result(out outcome, ms []message) (*mcp.CallToolResult, error) {
	text := out.text
	switch d := out.data.(type) {
	case *standingData:
		d.Messages = ms
	case *withdrawData:
		d.Messages = ms
	case *inboxData:
		if d.Messages = ms; ms == nil {
			d.Messages = []message{}
			text = "Nothing has come for you yet."
		}
	}
	if more := messagesText(ms); more != "" {
		text = strings.TrimPrefix(text+"\n\n"+more, "\n\n")
	}
	data, err := json.Marshal(out.data)
	if err != nil {
		return nil, fmt.Errorf("encode a result: %w", err)
	}
	return &mcp.CallToolResult{Content: textOf(text), StructuredContent: json.RawMessage(data)}, nil
}

// standingOutcome words where an ask stands. questions may be nil.
func standingOutcome(st standing, questions json.RawMessage) outcome {
	d := &standingData{Status: st.Status, CallID: st.CallID, Answers: st.Answers, MessageID: st.MessageID, Shown: st.Shown}
	out := outcome{data: d}
	again := fmt.Sprintf("await_answer with callId %q", st.CallID)
	switch {
	case st.Status == statusAnswered:
		out.text = fmt.Sprintf("The user answered (callId %s):\n%s", st.CallID, answersText(questions, st.Answers))
		if st.MessageID != "" {
			out.message = &message{ID: st.MessageID, Kind: kindReply, CallID: st.CallID, Questions: questions, Answers: st.Answers}
		}
	case st.Status == statusPending && st.RemainingMs > 0:
		d.RemainingMs = &st.RemainingMs
		out.text = fmt.Sprintf("Not answered yet (callId %s); the user has %s left. This is not an answer and not permission: choose "+
			"nothing for the user. To go on waiting, call %s. Do not ask the question again.", st.CallID, seconds(st.RemainingMs), again)
	case st.Status == statusPending:
		d.RemainingMs = &st.RemainingMs
		out.text = fmt.Sprintf("Nobody answered in time (callId %s). This is not a skipped question and not permission: choose nothing "+
			"for the user. Go on with work that does not depend on the answer, and leave what does undone. Do not ask again: the "+
			"question stays open, and the reply comes with the result of a later call of any tool of this server. "+
			"If nothing else can be done, call %s.", st.CallID, again)
	default:
		out.text = fmt.Sprintf("Not answered yet (callId %s). You asked to wait until the user answers: do not go on with what depends "+
			"on it. Call %s to go on waiting. Do not ask the question again.", st.CallID, again)
	}
	if st.Status != statusAnswered && st.Shown != nil && !*st.Shown {
		out.text += " So far the question was shown to nobody."
	}
	return out
}

// messagesText lists what came meanwhile: facts with their origin. Everything a
// person wrote stands in quotes, so that it cannot pass for a line of ours.
func messagesText(ms []message) string {
	var b strings.Builder
	for _, m := range ms {
		from := ""
		if m.By != "" {
			from = fmt.Sprintf(" from %q", m.By)
		}
		switch {
		case m.Answers != nil:
			fmt.Fprintf(&b, "The user's answer to your earlier question%s (callId %s, messageId %s):\n%s\n", from, m.CallID, m.ID, answersText(m.Questions, m.Answers))
		case m.Kind == kindMessage:
			fmt.Fprintf(&b, "A message of the user (messageId %s): %s\n", m.ID, quote(m.Text))
		default:
			fmt.Fprintf(&b, "The outcome of your earlier question%s (callId %s, messageId %s): %s\n", from, m.CallID, m.ID, quote(m.Text))
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// answersText lists answers by the question's id, its text beside it when known.
func answersText(questions, answers json.RawMessage) string {
	texts := map[string]string{}
	if v, err := value.Parse(questions); err == nil {
		for _, q := range v.Items() {
			texts[q.Get("id").Text()] = cut(q.Get("question").Text())
		}
	}
	v, err := value.Parse(answers)
	if err != nil {
		return string(answers)
	}
	var lines []string
	for _, a := range v.Items() {
		id := a.Get("id").Text()
		line := "- " + quote(id)
		if text := texts[id]; text != "" {
			line += " (" + quote(text) + ")"
		}
		custom, own := a.Get("custom").Str()
		selected := a.Get("selected")
		switch {
		case len(selected.Items()) == 0 && !own:
			line += ": skipped by the user"
		case len(selected.Items()) == 0:
			line += ": in the user's own words " + quote(custom)
		default:
			line += ": selected " + string(selected.Bytes())
			if own {
				line += " and in the user's own words " + quote(custom)
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func cut(text string) string {
	if r := []rune(text); len(r) > questionShown {
		return string(r[:questionShown]) + "…"
	}
	return text
}

// quote writes text as JSON, one line.
func quote(text string) string { return string(value.AppendString(nil, text)) }
