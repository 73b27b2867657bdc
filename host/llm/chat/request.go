package chat

import (
	"encoding/json"
	"strings"

	"meanwhile/host/llm"
)

// Reasoning says which assistant messages carry their reasoning back to the
// provider.
type Reasoning uint8

const (
	// NoReasoning sends none back.
	NoReasoning Reasoning = iota
	// ToolTurns sends it back for every assistant message of a stretch
	// between two user messages in which a tool was called, as DeepSeek
	// demands of all later requests; there the field is present even when
	// empty, because a missing one is refused.
	ToolTurns
)

type wireRequest struct {
	Model               string         `json:"model"`
	Messages            []wireMessage  `json:"messages"`
	Tools               []wireTool     `json:"tools,omitempty"`
	Stream              bool           `json:"stream"`
	StreamOptions       *streamOptions `json:"stream_options,omitempty"`
	MaxTokens           int            `json:"max_tokens,omitempty"`
	MaxCompletionTokens int            `json:"max_completion_tokens,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type wireMessage struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	Reasoning  *string    `json:"reasoning_content,omitempty"`
	ToolCalls  []wireCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type wireTool struct {
	Type     string       `json:"type"`
	Function llm.ToolSpec `json:"function"`
}

// encode builds the request body.
func (c *Client) encode(req llm.Request) ([]byte, error) {
	w := wireRequest{Model: req.Model, Stream: true}
	if w.Model == "" {
		w.Model = c.cfg.Model
	}
	if !c.cfg.Dialect.NoUsageOption {
		w.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if c.cfg.Dialect.MaxCompletionTokens {
		w.MaxCompletionTokens = req.MaxTokens
	} else {
		w.MaxTokens = req.MaxTokens
	}
	for _, t := range req.Tools {
		w.Tools = append(w.Tools, wireTool{Type: "function", Function: t})
	}
	if req.System != "" {
		w.Messages = append(w.Messages, wireMessage{Role: "system", Content: &req.System})
	}
	back := c.reasoningBack(req.Messages)
	for i, m := range req.Messages {
		w.Messages = append(w.Messages, encodeMessage(m, back[i]))
	}
	return json.Marshal(w)
}

// reasoningBack marks the messages whose reasoning goes back.
func (c *Client) reasoningBack(messages []llm.Message) []bool {
	back := make([]bool, len(messages))
	if c.cfg.Dialect.Reasoning == NoReasoning {
		return back
	}
	for start := 0; start < len(messages); {
		end := start + 1
		called := false
		for end < len(messages) && messages[end].Role != llm.RoleUser {
			end++
		}
		for _, m := range messages[start:end] {
			called = called || len(m.ToolCalls()) > 0
		}
		for i := start; called && i < end; i++ {
			back[i] = messages[i].Role == llm.RoleAssistant
		}
		start = end
	}
	return back
}

func encodeMessage(m llm.Message, reasoningBack bool) wireMessage {
	w := wireMessage{Role: string(m.Role)}
	if m.Role == llm.RoleTool {
		w.ToolCallID = m.ToolCallID
	}
	var text, reasoning strings.Builder
	for _, p := range m.Content {
		switch p.Type {
		case llm.PartText:
			text.WriteString(p.Text)
		case llm.PartReasoning:
			reasoning.WriteString(p.Text)
		case llm.PartToolCall:
			w.ToolCalls = append(w.ToolCalls, wireCall{
				ID: p.CallID, Type: "function",
				Function: wireFunction{Name: p.Name, Arguments: p.Arguments},
			})
		}
	}
	// A message of tool calls alone has null for its content; any other has a
	// string, because an absent text is refused by some servers.
	if text.Len() > 0 || len(w.ToolCalls) == 0 {
		s := text.String()
		w.Content = &s
	}
	if reasoningBack {
		s := reasoning.String()
		w.Reasoning = &s
	}
	return w
}
