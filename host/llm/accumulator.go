package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// Limits of one response.
const (
	MaxText      = 4 << 20
	MaxArguments = 2 << 20
	MaxCalls     = 64
)

// ErrIncomplete is returned for a response whose Finish chunk has not come.
var ErrIncomplete = errors.New("llm: response is not complete")

// Response is one complete response.
type Response struct {
	Message Message
	Reason  FinishReason
	Usage   *Usage
	Dropped int // tool calls left out because the response ended inside their arguments
}

// Accumulator builds one assistant message from chunks. The zero value is
// ready. Parts keep the order in which they began.
type Accumulator struct {
	parts     []*part
	calls     map[int]*part
	text      int
	arguments int
	reason    FinishReason
	usage     *Usage
}

type part struct {
	Part
	body strings.Builder
}

// Add takes the next chunk.
func (a *Accumulator) Add(c Chunk) error {
	if a.reason != "" {
		return errors.New("llm: a chunk after the finish chunk")
	}
	switch c.Kind {
	case Text:
		return a.add(PartText, c.Text)
	case Reasoning:
		return a.add(PartReasoning, c.Text)
	case ToolCallDelta:
		return a.addCall(c)
	case Finish:
		if c.Reason == "" {
			return errors.New("llm: a finish chunk without a reason")
		}
		a.reason, a.usage = c.Reason, c.Usage
		return nil
	}
	return fmt.Errorf("llm: unknown chunk kind %d", c.Kind)
}

func (a *Accumulator) add(t PartType, text string) error {
	if text == "" {
		return nil
	}
	if a.text += len(text); a.text > MaxText {
		return fmt.Errorf("llm: response text over %d bytes", MaxText)
	}
	if n := len(a.parts); n == 0 || a.parts[n-1].Type != t {
		a.parts = append(a.parts, &part{Part: Part{Type: t}})
	}
	a.parts[len(a.parts)-1].body.WriteString(text)
	return nil
}

func (a *Accumulator) addCall(c Chunk) error {
	p := a.calls[c.Index]
	if p == nil {
		if len(a.calls) == MaxCalls {
			return fmt.Errorf("llm: over %d tool calls in one response", MaxCalls)
		}
		p = &part{Part: Part{Type: PartToolCall}}
		if a.calls == nil {
			a.calls = map[int]*part{}
		}
		a.calls[c.Index] = p
		a.parts = append(a.parts, p)
	}
	if p.CallID == "" {
		p.CallID = c.CallID
	}
	if p.Name == "" {
		p.Name = c.Name
	}
	if a.arguments += len(c.Arguments); a.arguments > MaxArguments {
		return fmt.Errorf("llm: tool arguments over %d bytes", MaxArguments)
	}
	p.body.WriteString(c.Arguments)
	return nil
}

// Text is the text so far, for previews.
func (a *Accumulator) Text() string {
	var b strings.Builder
	for _, p := range a.parts {
		if p.Type == PartText {
			b.WriteString(p.body.String())
		}
	}
	return b.String()
}

// Partial is what an interrupted response leaves: text and reasoning, never a
// tool call, because nothing says that its arguments are whole.
func (a *Accumulator) Partial() Message {
	m := Message{Role: RoleAssistant}
	for _, p := range a.parts {
		if p.Type != PartToolCall {
			m.Content = append(m.Content, Part{Type: p.Type, Text: p.body.String()})
		}
	}
	return m
}

// Response is the complete response. Before the Finish chunk it is
// ErrIncomplete. Of a response that stopped for its length, the tool calls
// that end inside their arguments are left out; where the model claims to be
// done with such a call, the stream was cut and that is the error. A call
// without arguments gets an empty object. Arguments that are whole but not
// JSON are the model's mistake and stay: its tool will say so.
func (a *Accumulator) Response() (Response, error) {
	if a.reason == "" {
		return Response{}, ErrIncomplete
	}
	r := Response{Message: Message{Role: RoleAssistant}, Reason: a.reason, Usage: a.usage}
	for _, p := range a.parts {
		q := p.Part
		if p.Type != PartToolCall {
			q.Text = p.body.String()
			r.Message.Content = append(r.Message.Content, q)
			continue
		}
		q.Arguments = p.body.String()
		whole := json.Valid([]byte(q.Arguments))
		if a.cut() && !whole {
			r.Dropped++
			continue
		}
		if torso(q.Arguments) {
			return Response{}, &Error{Kind: KindCut, Message: "the arguments of the call of " + q.Name + " end in the middle"}
		}
		if strings.TrimSpace(q.Arguments) == "" {
			q.Arguments = "{}"
		}
		r.Message.Content = append(r.Message.Content, q)
	}
	return r, nil
}

// cut reports whether the model was stopped rather than done, so that its last
// tool call may be a torso.
func (a *Accumulator) cut() bool { return a.reason == FinishMaxTokens || a.reason == FinishBlocked }

// torso reports whether s is the beginning of a JSON value and no more.
func torso(s string) bool {
	var v json.RawMessage
	err := json.NewDecoder(strings.NewReader(s)).Decode(&v)
	return errors.Is(err, io.ErrUnexpectedEOF)
}

// Collect ranges over a stream to its end.
func Collect(stream iter.Seq2[Chunk, error]) (Response, error) {
	var a Accumulator
	for c, err := range stream {
		if err != nil {
			return Response{}, err
		}
		if err := a.Add(c); err != nil {
			return Response{}, err
		}
	}
	return a.Response()
}
