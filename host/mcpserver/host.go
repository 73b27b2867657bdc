package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
)

// nameMax is what the host takes as a name or a title.
const nameMax = 200

// Kinds of messages, as the agent sees them.
const (
	kindReply   = "reply"   // the answer to an ask that was pending
	kindResult  = "result"  // the outcome of an ask that no call brought
	kindMessage = "message" // anything else a person sent
)

// message is one thing handed over.
type message struct {
	ID        string          `json:"messageId"`
	Kind      string          `json:"kind"`
	CallID    string          `json:"callId,omitempty"`
	By        string          `json:"by,omitempty"`
	Questions json.RawMessage `json:"questions,omitempty"`
	Answers   json.RawMessage `json:"answers,omitempty"`
	Text      string          `json:"text,omitempty"`
}

// messageOf reads a message as the host hands it over. Only its source says
// what it is: text that looks like a reply is text.
func messageOf(body []byte) (message, error) {
	v, err := value.Parse(body)
	if err != nil {
		return message{}, err
	}
	m, err := event.MessageOf(v)
	if err != nil {
		return message{}, err
	}
	out := message{ID: m.ID, Kind: kindMessage, Text: m.Text}
	switch m.Source.Kind {
	case event.SourceReply:
		out.Kind = kindReply
	case "user-question-result":
		out.Kind = kindResult
	default:
		return out, nil
	}
	out.CallID, out.By = m.Source.CallID, m.Source.By
	payload, err := value.ParseString(m.Text)
	if err != nil || payload.Get("answers").Kind() != value.Array {
		return out, nil // a refusal, or unreadable: its text is all there is
	}
	out.Text, out.Answers = "", payload.Get("answers").Bytes()
	if q := payload.Get("questions"); q.Kind() == value.Array {
		out.Questions = q.Bytes()
	}
	return out, nil
}

// standing is where an ask stands, as the host says.
type standing struct {
	Status      string          `json:"status"`
	CallID      string          `json:"callId"`
	Answers     json.RawMessage `json:"answers"`
	MessageID   string          `json:"messageId"`
	RemainingMs int64           `json:"remainingMs"`
	Shown       *bool           `json:"shown"`
}

// open finds the session of the agent.
func (v *visit) open(ctx context.Context) error {
	name := clip(v.client)
	if name == "" {
		name = "mcp client"
	}
	key, title := v.key, name
	if key == "" {
		key = Key(name, v.cwd)
	}
	if v.cwd != "" {
		title = clip(name + " in " + filepath.Base(v.cwd))
	}
	agent := map[string]string{"kind": event.KindExternal, "name": name}
	if v.cwd != "" {
		agent["cwd"] = v.cwd
	}
	var out struct{ SessionID string }
	err := v.host.Call(ctx, "session/open", map[string]any{"title": title, "agent": agent, "key": key}, &out)
	v.sessionID = out.SessionID
	return err
}

// Key is the key of the session of a client in a directory, "" over HTTP.
func Key(client, cwd string) string {
	sum := sha256.Sum256([]byte(client + "\x00" + cwd))
	return "mcp:" + hex.EncodeToString(sum[:12])
}

func clip(name string) string {
	for utf8.RuneCountInString(name) > nameMax {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name
}

// admit tells the host that the agent has read these.
func (v *visit) admit(ctx context.Context, ids []string) (admitted []string, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var out struct{ Admitted []string }
	if err := v.host.Call(ctx, "inbox/admit", map[string]any{"sessionId": v.sessionID, "messageIds": ids}, &out); err != nil {
		return nil, err
	}
	v.desk.update(func(t *tray, m *memo) {
		for _, callID := range t.drop(ids) {
			m.settledCall(callID)
		}
	})
	return out.Admitted, nil
}

// claim takes what waits for the agent. A failure only leaves it waiting: the
// tool's own result is worth more.
func (v *visit) claim(ctx context.Context) (ms []message) {
	if v.sessionID == "" {
		return nil
	}
	var out struct{ Messages []json.RawMessage }
	if err := v.host.Call(ctx, "inbox/claim", map[string]any{"sessionId": v.sessionID}, &out); err != nil {
		return nil
	}
	for _, body := range out.Messages {
		if m, err := messageOf(body); err == nil {
			ms = append(ms, m)
		}
	}
	return ms
}

func without(ms []message, id string) []message {
	return slices.DeleteFunc(ms, func(m message) bool { return m.ID == id })
}
