package chat

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"meanwhile/host/llm"
	"meanwhile/shared/deadline"
)

// stream is one response being read.
type stream struct {
	c        *Client
	caller   context.Context
	progress *deadline.Watchdog
	idle     *deadline.Watchdog
	body     io.ReadCloser
	events   *events

	calls  calls
	reason llm.FinishReason // set by the first finish reason
	usage  *llm.Usage
	tail   *time.Timer // ends the wait for what may follow a finish reason
}

func (s *stream) ctx() context.Context { return s.idle.Context() }

// wait runs f, which waits for the provider, under both watchdogs.
func (s *stream) wait(f func() error) error {
	return s.progress.Next(func(context.Context) error {
		return s.idle.Next(func(context.Context) error { return f() })
	})
}

// close ends the request and its connection.
func (s *stream) close() {
	if s.tail != nil {
		s.tail.Stop()
	}
	s.idle.Stop()
	s.progress.Stop()
	if s.body != nil {
		s.body.Close()
	}
}

// next returns the next chunks, at least one. The last is the finish chunk.
func (s *stream) next() (chunks []llm.Chunk, failure *llm.Error) {
	err := s.progress.Next(func(context.Context) error {
		for len(chunks) == 0 && failure == nil {
			var data []byte
			err := s.idle.Next(func(context.Context) (err error) {
				data, err = s.events.next()
				return err
			})
			if err != nil {
				return err
			}
			if string(data) == "[DONE]" {
				return io.EOF
			}
			chunks, failure = s.decode(data)
		}
		return nil
	})
	switch {
	case s.reason != "" && (err != nil || failure != nil):
		// The model was done; how the connection ended after that is no matter.
		return s.finish()
	case err != nil:
		return nil, s.c.broken(s.caller, s.ctx(), llm.KindCut, err)
	}
	return chunks, failure
}

func (s *stream) finish() ([]llm.Chunk, *llm.Error) {
	if err := s.calls.check(); err != nil {
		return nil, s.c.fail(llm.KindProtocol, err, err.Error())
	}
	reason := s.reason
	if reason == llm.FinishStop && len(s.calls.list) > 0 {
		reason = llm.FinishToolCalls // some servers say stop for both
	}
	return []llm.Chunk{{Kind: llm.Finish, Reason: reason, Usage: s.usage}}, nil
}

type wireChunk struct {
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Content          string      `json:"content"`
			ReasoningContent string      `json:"reasoning_content"`
			Reasoning        string      `json:"reasoning"`
			ToolCalls        []toolDelta `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *wireUsage      `json:"usage"`
	Error json.RawMessage `json:"error"`
}

type wireUsage struct {
	Prompt         int64 `json:"prompt_tokens"`
	Completion     int64 `json:"completion_tokens"`
	PromptCacheHit int64 `json:"prompt_cache_hit_tokens"` // DeepSeek
	PromptDetails  struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// decode turns one event into chunks; a finish reason and usage are kept for
// the end.
func (s *stream) decode(data []byte) ([]llm.Chunk, *llm.Error) {
	var w wireChunk
	if err := json.Unmarshal(data, &w); err != nil {
		// The error of encoding/json may quote the text; the kind is enough.
		return nil, s.c.fail(llm.KindProtocol, errors.New("unreadable event"), "an event that is not the JSON of a chunk")
	}
	if len(w.Error) > 0 && string(w.Error) != "null" {
		return nil, s.c.inBand(w.Error, data)
	}
	// Usage may come twice, the second time empty.
	if u := w.Usage; u != nil && *u != (wireUsage{}) {
		s.usage = &llm.Usage{
			InputTokens: u.Prompt, CachedTokens: max(u.PromptCacheHit, u.PromptDetails.Cached),
			OutputTokens: u.Completion, ReasoningTokens: u.CompletionDetails.Reasoning,
		}
	}
	var chunks []llm.Chunk
	for _, choice := range w.Choices {
		if choice.Index != 0 {
			continue // one choice was asked for
		}
		d := &choice.Delta
		if d.ReasoningContent == "" {
			d.ReasoningContent = d.Reasoning
		}
		if d.ReasoningContent != "" {
			chunks = append(chunks, llm.Chunk{Kind: llm.Reasoning, Text: d.ReasoningContent})
		}
		if d.Content != "" {
			chunks = append(chunks, llm.Chunk{Kind: llm.Text, Text: d.Content})
		}
		for i := range d.ToolCalls {
			chunk, err := s.calls.take(&d.ToolCalls[i])
			if err != nil {
				return nil, s.c.fail(llm.KindProtocol, err, err.Error())
			}
			chunks = append(chunks, chunk)
		}
		if choice.FinishReason != "" {
			if failure := s.finished(choice.FinishReason); failure != nil {
				return nil, failure
			}
		}
	}
	return chunks, nil
}

// finished takes a finish reason. Of two, one that says the model was cut off
// is believed; a second one otherwise changes nothing.
func (s *stream) finished(word string) *llm.Error {
	reason, failure := s.c.finishReason(word)
	if failure != nil {
		return failure
	}
	if s.reason == "" || reason == llm.FinishMaxTokens || reason == llm.FinishBlocked {
		s.reason = reason
	}
	if s.tail == nil {
		s.tail = time.AfterFunc(tailTime, s.idle.Stop)
	}
	return nil
}

func (c *Client) finishReason(word string) (llm.FinishReason, *llm.Error) {
	switch word {
	case "tool_calls", "function_call":
		return llm.FinishToolCalls, nil
	case "length", "max_tokens", "model_length":
		return llm.FinishMaxTokens, nil
	case "content_filter":
		return llm.FinishBlocked, nil
	case "insufficient_system_resource", "error":
		return "", c.fail(llm.KindServer, nil, "the provider stopped the model: "+word)
	}
	return llm.FinishStop, nil
}
