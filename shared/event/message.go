package event

import "meanwhile/shared/event/value"

// The source kinds this program writes; any other is kept and shown as a user's.
const (
	SourceUser  = "user"
	SourceReply = "user-question-reply"
)

// OutcomeAnswered is the only outcome of a reply.
const OutcomeAnswered = "answered"

// Message is a user message, queued or admitted. Raw, when set, is the message
// as it was recorded and is what Bytes gives, so that unknown fields travel.
type Message struct {
	ID     string
	Source Source
	Text   string // the text blocks, joined by newlines
	Raw    []byte
}

// Source says where a message comes from. CallID, Outcome and By belong to a
// reply; By is the label of the token that answered.
type Source struct{ Kind, CallID, Outcome, By string }

// Bytes encodes the message; it is also the data of user/message.
func (m Message) Bytes() []byte {
	if m.Raw != nil {
		return m.Raw
	}
	return object(func(w *value.Writer) {
		w.StrField("id", m.ID)
		w.Name("source")
		w.Begin()
		w.StrField("kind", m.Source.Kind)
		w.OptField("callId", m.Source.CallID)
		w.OptField("outcome", m.Source.Outcome)
		w.OptField("by", m.Source.By)
		w.End()
		textContent(w, m.Text)
	})
}

// Draft encodes it as an admitted user/message.
func (m Message) Draft() Draft { return Draft{TypeUserMessage, m.Bytes()} }

// MessageOf reads a user message. It needs an id; a source or content it
// cannot read leaves those fields empty, for a message is shown, not lost.
func MessageOf(v value.Value) (Message, error) {
	f := fields{v: v, what: "message"}
	m := Message{ID: f.str("id", true), Text: TextOf(v.Get("content")), Raw: v.Bytes()}
	s := v.Get("source")
	m.Source = Source{Kind: s.Get("kind").Text(), CallID: s.Get("callId").Text(),
		Outcome: s.Get("outcome").Text(), By: s.Get("by").Text()}
	if f.err == nil && m.ID == "" {
		f.err = &FieldError{"message", "id", "is empty"}
	}
	return m, f.err
}

// TextOf joins the text blocks of a content array by newlines.
func TextOf(content value.Value) string {
	text, first := "", true
	for _, b := range content.Items() {
		if s, ok := b.Get("text").Str(); ok && b.Get("type").Text() == "text" {
			if !first {
				text += "\n"
			}
			text, first = text+s, false
		}
	}
	return text
}

// FirstText is the first text block of a content array, and whether there is one.
func FirstText(content value.Value) (string, bool) {
	for _, b := range content.Items() {
		if b.Get("type").Text() == "text" {
			return b.Get("text").Str()
		}
	}
	return "", false
}

// The block types of an assistant message.
const (
	BlockText      = "text"
	BlockReasoning = "reasoning"
	BlockToolCall  = "tool-call"
)

// Block is one block of an assistant message: Text for text and reasoning,
// the other three for a tool call (Arguments is the raw JSON text).
type Block struct {
	Type      string
	Text      string
	CallID    string
	Name      string
	Arguments string
}

// Assistant is the data of assistant/message. Interrupted marks what was left
// of a message when its turn was cancelled.
type Assistant struct {
	Turn, Step  int64
	ID          string
	Blocks      []Block
	Usage       []byte // one JSON document, or nil
	Interrupted bool
}

// Draft encodes it.
func (d Assistant) Draft() Draft {
	return Draft{TypeAssistant, object(func(w *value.Writer) {
		w.IntField("turn", d.Turn)
		w.IntField("step", d.Step)
		w.Name("message")
		w.Begin()
		w.StrField("id", d.ID)
		w.Name("content")
		w.BeginArray()
		for _, b := range d.Blocks {
			w.Begin()
			w.StrField("type", b.Type)
			if b.Type == BlockToolCall {
				w.StrField("callId", b.CallID)
				w.StrField("name", b.Name)
				w.StrField("arguments", b.Arguments)
			} else {
				w.StrField("text", b.Text)
			}
			w.End()
		}
		w.EndArray()
		w.End()
		if d.Usage != nil {
			w.Name("usage")
			w.Raw(d.Usage)
		}
		if d.Interrupted {
			w.BoolField("interrupted", true)
		}
	})}
}
