package llmtest

import (
	"encoding/json"
	"net/http"
	"time"
)

// Reply is what the server answers to one request.
type Reply struct {
	Status     int         // 0 is 200
	Header     http.Header // added to the usual ones
	Body       string      // for a Status other than 200, or a body that is no stream
	Steps      []Step      // the stream
	SplitEvery int         // write this many bytes at a time, through characters and JSON; 0 writes whole steps
	HangUp     bool        // close the connection before any response
}

// Step is one thing a stream does.
type Step struct {
	raw   string
	wait  time.Duration
	stall bool
	cut   bool
}

// Raw writes bytes as they are.
func Raw(s string) Step { return Step{raw: s} }

// Data writes one event.
func Data(json string) Step { return Raw("data: " + json + "\n\n") }

// KeepAlive writes the comment that queued requests get.
func KeepAlive() Step { return Raw(": keep-alive\n\n") }

// Done writes the end mark.
func Done() Step { return Raw("data: [DONE]\n\n") }

// Wait pauses the stream.
func Wait(d time.Duration) Step { return Step{wait: d} }

// Stall says nothing more until the client goes away.
func Stall() Step { return Step{stall: true} }

// Cut breaks the connection without ending the body.
func Cut() Step { return Step{cut: true} }

// Text writes a piece of text.
func Text(s string) Step { return delta(map[string]any{"content": s}) }

// Reasoning writes a piece of reasoning.
func Reasoning(s string) Step { return delta(map[string]any{"reasoning_content": s}) }

// Call writes a whole tool call the way most servers do: the id and name
// first, then the arguments in pieces.
func Call(index int, id, name string, arguments ...string) Step {
	s := toolDelta(map[string]any{"index": index, "id": id, "type": "function", "function": map[string]any{"name": name, "arguments": ""}})
	for _, piece := range arguments {
		s.raw += toolDelta(map[string]any{"index": index, "function": map[string]any{"arguments": piece}}).raw
	}
	return s
}

// ToolDelta writes one entry of delta.tool_calls, given as JSON.
func ToolDelta(entry string) Step { return toolDelta(json.RawMessage(entry)) }

// Finish writes the finish chunk with usage on it, as DeepSeek does.
func Finish(reason string) Step { return FinishUsage(reason, 11, 7) }

// FinishUsage writes the finish chunk with this usage.
func FinishUsage(reason string, in, out int) Step {
	return event(map[string]any{
		"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": reason}},
		"usage":   usage(in, out),
	})
}

// FinishOnly writes a finish chunk without usage.
func FinishOnly(reason string) Step {
	return event(map[string]any{
		"choices": []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": reason}},
		"usage":   nil,
	})
}

// UsageOnly writes usage alone, with no choices, as other servers do.
func UsageOnly(in, out int) Step {
	return event(map[string]any{"choices": []any{}, "usage": usage(in, out)})
}

// Stream is a whole well-formed reply around steps.
func Stream(steps ...Step) Reply { return Reply{Steps: steps} }

// Error is a reply with an error status and the usual body.
func Error(status int, message string) Reply {
	b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "error"}})
	return Reply{Status: status, Body: string(b), Header: http.Header{"Content-Type": {"application/json"}}}
}

func usage(in, out int) any {
	return map[string]any{
		"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out,
		"prompt_cache_hit_tokens":   in / 2,
		"completion_tokens_details": map[string]any{"reasoning_tokens": out / 2},
	}
}

func toolDelta(entry any) Step { return delta(map[string]any{"tool_calls": []any{entry}}) }

func delta(d any) Step {
	return event(map[string]any{
		"choices": []any{map[string]any{"index": 0, "delta": d, "finish_reason": nil}},
		"usage":   nil,
	})
}

func event(v map[string]any) Step {
	v["id"], v["object"], v["created"], v["model"] = "test", "chat.completion.chunk", 1, "test-model"
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own maps come here
	}
	return Data(string(b))
}

// play writes the reply and reports whether it came to its end with the client
// still there.
func (r Reply) play(w http.ResponseWriter, req *http.Request) bool {
	if r.HangUp {
		panic(http.ErrAbortHandler)
	}
	for k, v := range r.Header {
		w.Header()[k] = v
	}
	if r.Status != 0 && r.Status != http.StatusOK || r.Body != "" {
		status := r.Status
		if status == 0 {
			status = http.StatusOK
		}
		w.WriteHeader(status)
		w.Write([]byte(r.Body))
		return true
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	flush := http.NewResponseController(w).Flush
	w.WriteHeader(http.StatusOK)
	flush()
	gone := req.Context().Done()
	for _, s := range r.Steps {
		switch {
		case s.cut:
			panic(http.ErrAbortHandler)
		case s.stall:
			<-gone
			return false
		case s.wait > 0:
			select {
			case <-time.After(s.wait):
			case <-gone:
				return false
			}
		}
		for rest := s.raw; rest != ""; {
			n := len(rest)
			if r.SplitEvery > 0 {
				n = min(n, r.SplitEvery)
			}
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				return false
			}
			if flush() != nil {
				return false
			}
			rest = rest[n:]
		}
	}
	return true
}
