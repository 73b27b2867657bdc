package llm

import (
	"context"
	"encoding/json"
	"iter"
)

// Role says who speaks in a message.
type Role string

// The roles a request may hold. The system prompt is Request.System.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// PartType says what a part of a message is.
type PartType string

// The kinds of parts.
const (
	PartText      PartType = "text"
	PartReasoning PartType = "reasoning"
	PartToolCall  PartType = "tool-call"
)

// Part is one piece of a message. Text holds text or reasoning; the other
// fields belong to a tool call.
type Part struct {
	Type      PartType `json:"type"`
	Text      string   `json:"text,omitempty"`
	CallID    string   `json:"callId,omitempty"`
	Name      string   `json:"name,omitempty"`
	Arguments string   `json:"arguments,omitempty"` // raw JSON
}

// Message is one message of the conversation.
type Message struct {
	Role       Role
	Content    []Part
	ToolCallID string // for RoleTool: the call this answers
	IsError    bool   // for RoleTool: the call failed
	Source     string // for RoleUser: the kind of its source; never sent, a scripted model may look at it
}

// Text joins the text parts of a message.
func (m Message) Text() string {
	var s string
	for _, p := range m.Content {
		if p.Type == PartText {
			s += p.Text
		}
	}
	return s
}

// ToolCalls returns the tool calls of a message, in order.
func (m Message) ToolCalls() []Part {
	var calls []Part
	for _, p := range m.Content {
		if p.Type == PartToolCall {
			calls = append(calls, p)
		}
	}
	return calls
}

// ToolSpec is what the model is told about a tool. Its fields are those of
// tool.Spec, so one converts into the other.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// Request is one model call.
type Request struct {
	Model     string // empty: the provider's configured model
	System    string
	Messages  []Message
	Tools     []ToolSpec
	MaxTokens int // 0: the provider's default
}

// ChunkKind says what a chunk carries.
type ChunkKind uint8

// The kinds of chunks.
const (
	Text ChunkKind = iota + 1
	Reasoning
	ToolCallDelta
	Finish
)

// FinishReason says why the model stopped.
type FinishReason string

// The finish reasons, whatever a provider calls them.
const (
	FinishStop      FinishReason = "stop"
	FinishToolCalls FinishReason = "tool-calls"
	FinishMaxTokens FinishReason = "max-tokens"
	FinishBlocked   FinishReason = "blocked"
)

// Usage counts the tokens of one response. Zero means not reported.
type Usage struct {
	InputTokens     int64 `json:"inputTokens,omitempty"`
	CachedTokens    int64 `json:"cachedTokens,omitempty"` // of the input
	OutputTokens    int64 `json:"outputTokens,omitempty"`
	ReasoningTokens int64 `json:"reasoningTokens,omitempty"` // of the output
}

// Chunk is one piece of a streamed response.
type Chunk struct {
	Kind ChunkKind

	Text string // Text, Reasoning: the piece

	// ToolCallDelta: Index names the call within this response and is stable
	// over its deltas. CallID and Name come whole, with the first delta;
	// Arguments is a piece to append.
	Index     int
	CallID    string
	Name      string
	Arguments string

	// Finish: the last chunk of a complete response.
	Reason FinishReason
	Usage  *Usage // nil when the provider reported none
}

// Provider is one source of model responses.
//
// Stream makes the call when the sequence is ranged over, once. It yields
// chunks and ends after exactly one Finish chunk, or yields one error last
// (an *Error). Breaking out of the loop, or cancelling ctx, closes the
// response body.
type Provider interface {
	Name() string
	Stream(ctx context.Context, req Request) iter.Seq2[Chunk, error]
}
