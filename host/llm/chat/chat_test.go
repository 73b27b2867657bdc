package chat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/llm"
	"meanwhile/host/llm/chat"
	. "meanwhile/host/llm/llmtest"
)

const key = "sk-very-secret-key"

// client returns a client of the server. Change may adjust its settings.
func client(t *testing.T, s *Server, change func(*chat.Config)) *chat.Client {
	t.Helper()
	cfg := chat.Config{Name: "test", BaseURL: s.URL + "/v1", APIKey: key, Model: "m", HTTP: s.Client(), Retries: -1}
	if change != nil {
		change(&cfg)
	}
	c, err := chat.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var hello = llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Content: []llm.Part{{Type: llm.PartText, Text: "hello"}}}}}

func parts(p ...llm.Part) []llm.Part { return p }

func text(s string) llm.Part      { return llm.Part{Type: llm.PartText, Text: s} }
func reasoning(s string) llm.Part { return llm.Part{Type: llm.PartReasoning, Text: s} }
func toolCall(id, name, args string) llm.Part {
	return llm.Part{Type: llm.PartToolCall, CallID: id, Name: name, Arguments: args}
}

var usage = &llm.Usage{InputTokens: 11, CachedTokens: 5, OutputTokens: 7, ReasoningTokens: 3}

// TestResponses: every way servers are known to say the same thing, each also
// split at every few bytes.
func TestResponses(t *testing.T) {
	tests := []struct {
		name   string
		steps  []Step
		want   []llm.Part
		reason llm.FinishReason
		usage  *llm.Usage
	}{
		{
			name:   "text, usage on the finish chunk",
			steps:  []Step{Text("Grüße, "), Text("世界 🎈"), Finish("stop"), Done()},
			want:   parts(text("Grüße, 世界 🎈")),
			reason: llm.FinishStop, usage: usage,
		},
		{
			name:   "comments between",
			steps:  []Step{KeepAlive(), Text("a"), KeepAlive(), Text("b"), Finish("stop"), KeepAlive(), Done()},
			want:   parts(text("ab")),
			reason: llm.FinishStop, usage: usage,
		},
		{
			name:   "reasoning, then text, then a call in pieces",
			steps:  []Step{Reasoning("let me "), Reasoning("see"), Text("I look."), Call(0, "c1", "bash", `{"com`, `mand":"l`, `s"}`), Finish("tool_calls"), Done()},
			want:   parts(reasoning("let me see"), text("I look."), toolCall("c1", "bash", `{"command":"ls"}`)),
			reason: llm.FinishToolCalls, usage: usage,
		},
		{
			name:   "reasoning under its other name",
			steps:  []Step{Data(`{"choices":[{"delta":{"reasoning":"hm"}}]}`), Text("a"), Finish("stop"), Done()},
			want:   parts(reasoning("hm"), text("a")),
			reason: llm.FinishStop, usage: usage,
		},
		{
			name:   "reasoning under both names at once",
			steps:  []Step{Data(`{"choices":[{"delta":{"reasoning":"hm","reasoning_content":"hm"}}]}`), Text("a"), Finish("stop"), Done()},
			want:   parts(reasoning("hm"), text("a")),
			reason: llm.FinishStop, usage: usage,
		},
		{
			name:   "usage alone after the finish",
			steps:  []Step{Text("a"), FinishOnly("stop"), UsageOnly(11, 7), Done()},
			want:   parts(text("a")),
			reason: llm.FinishStop, usage: usage,
		},
		{
			name:   "usage twice, the second time empty",
			steps:  []Step{Text("a"), Finish("stop"), Data(`{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}`), Done()},
			want:   parts(text("a")),
			reason: llm.FinishStop, usage: usage,
		},
		{
			name:   "usage twice",
			steps:  []Step{Text("a"), FinishUsage("stop", 1, 1), UsageOnly(11, 7), Done()},
			want:   parts(text("a")),
			reason: llm.FinishStop, usage: usage,
		},
		{
			name:   "no usage",
			steps:  []Step{Text("a"), FinishOnly("stop"), Done()},
			want:   parts(text("a")),
			reason: llm.FinishStop,
		},
		{
			name:   "cached tokens under their other name",
			steps:  []Step{Text("a"), FinishOnly("stop"), Data(`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}`), Done()},
			want:   parts(text("a")),
			reason: llm.FinishStop, usage: &llm.Usage{InputTokens: 9, CachedTokens: 4, OutputTokens: 2},
		},
		{
			name:   "two finish chunks",
			steps:  []Step{Call(0, "c1", "bash", `{}`), FinishOnly("tool_calls"), Finish("stop"), Done()},
			want:   parts(toolCall("c1", "bash", `{}`)),
			reason: llm.FinishToolCalls, usage: usage,
		},
		{
			name:   "two finish chunks, the second says cut",
			steps:  []Step{Text("a"), FinishOnly("stop"), Finish("length"), Done()},
			want:   parts(text("a")),
			reason: llm.FinishMaxTokens, usage: usage,
		},
		{
			name:   "stop for a response with calls",
			steps:  []Step{Call(0, "c1", "bash", `{}`), Finish("stop"), Done()},
			want:   parts(toolCall("c1", "bash", `{}`)),
			reason: llm.FinishToolCalls, usage: usage,
		},
		{
			name:   "no end mark",
			steps:  []Step{Text("a"), Finish("stop")},
			want:   parts(text("a")),
			reason: llm.FinishStop, usage: usage,
		},
		{
			name:   "connection broken after the finish",
			steps:  []Step{Text("a"), Finish("stop"), Cut()},
			want:   parts(text("a")),
			reason: llm.FinishStop, usage: usage,
		},
		{
			name:   "two calls, interleaved",
			steps:  []Step{ToolDelta(`{"index":0,"id":"c1","function":{"name":"a","arguments":"{\"x\""}}`), ToolDelta(`{"index":1,"id":"c2","function":{"name":"b","arguments":"{\"y\""}}`), ToolDelta(`{"index":0,"function":{"arguments":":1}"}}`), ToolDelta(`{"index":1,"function":{"arguments":":2}"}}`), Finish("tool_calls"), Done()},
			want:   parts(toolCall("c1", "a", `{"x":1}`), toolCall("c2", "b", `{"y":2}`)),
			reason: llm.FinishToolCalls, usage: usage,
		},
		{
			name:   "calls without index",
			steps:  []Step{ToolDelta(`{"id":"c1","function":{"name":"a","arguments":"{\"x\""}}`), ToolDelta(`{"function":{"arguments":":1}"}}`), ToolDelta(`{"id":"c2","function":{"name":"b","arguments":"{}"}}`), ToolDelta(`{"id":"c1","function":{"arguments":" "}}`), Finish("tool_calls"), Done()},
			want:   parts(toolCall("c1", "a", `{"x":1} `), toolCall("c2", "b", `{}`)),
			reason: llm.FinishToolCalls, usage: usage,
		},
		{
			name:   "calls without index and id",
			steps:  []Step{ToolDelta(`{"function":{"name":"a","arguments":"{}"}}`), ToolDelta(`{"function":{"name":"b","arguments":"{}"}}`), Finish("tool_calls"), Done()},
			want:   parts(toolCall("", "a", `{}`), toolCall("", "b", `{}`)),
			reason: llm.FinishToolCalls, usage: usage,
		},
		{
			name:   "two calls at index 0",
			steps:  []Step{Call(0, "c1", "a", `{"x"`, `:1}`), Call(0, "c2", "b", `{"y"`, `:2}`), Finish("tool_calls"), Done()},
			want:   parts(toolCall("c1", "a", `{"x":1}`), toolCall("c2", "b", `{"y":2}`)),
			reason: llm.FinishToolCalls, usage: usage,
		},
		{
			name:   "two calls at index 0 in one event",
			steps:  []Step{Data(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"a","arguments":"{}"}},{"index":0,"id":"c2","function":{"name":"a","arguments":"{}"}}]}}]}`), Finish("tool_calls"), Done()},
			want:   parts(toolCall("c1", "a", `{}`), toolCall("c2", "a", `{}`)),
			reason: llm.FinishToolCalls, usage: usage,
		},
		{
			name:   "id and name repeated on every delta",
			steps:  []Step{ToolDelta(`{"index":0,"id":"c1","function":{"name":"a","arguments":"{\"x\""}}`), ToolDelta(`{"index":0,"id":"c1","function":{"name":"a","arguments":":1}"}}`), Finish("tool_calls"), Done()},
			want:   parts(toolCall("c1", "a", `{"x":1}`)),
			reason: llm.FinishToolCalls, usage: usage,
		},
		{
			name:   "a fresh id on every delta",
			steps:  []Step{ToolDelta(`{"index":0,"id":"c1","function":{"name":"a","arguments":"{\"x\""}}`), ToolDelta(`{"index":0,"id":"c2","function":{"arguments":":1}"}}`), Finish("tool_calls"), Done()},
			want:   parts(toolCall("c1", "a", `{"x":1}`)),
			reason: llm.FinishToolCalls, usage: usage,
		},
		{
			name:   "arguments as an object",
			steps:  []Step{ToolDelta(`{"index":0,"id":"c1","function":{"name":"a","arguments":{"x":1}}}`), Finish("tool_calls"), Done()},
			want:   parts(toolCall("c1", "a", `{"x":1}`)),
			reason: llm.FinishToolCalls, usage: usage,
		},
		{
			name:   "no arguments at all",
			steps:  []Step{ToolDelta(`{"index":0,"id":"c1","function":{"name":"a"}}`), Finish("tool_calls"), Done()},
			want:   parts(toolCall("c1", "a", `{}`)),
			reason: llm.FinishToolCalls, usage: usage,
		},
		{
			name:   "stopped for length inside a call",
			steps:  []Step{Text("a"), Call(0, "c1", "a", `{}`), Call(1, "c2", "b", `{"x":`), Finish("length"), Done()},
			want:   parts(text("a"), toolCall("c1", "a", `{}`)),
			reason: llm.FinishMaxTokens, usage: usage,
		},
		{
			name:   "content filter",
			steps:  []Step{Text("a"), Finish("content_filter"), Done()},
			want:   parts(text("a")),
			reason: llm.FinishBlocked, usage: usage,
		},
		{
			name:   "another choice is not ours",
			steps:  []Step{Text("a"), Data(`{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"length"}]}`), Finish("stop"), Done()},
			want:   parts(text("a")),
			reason: llm.FinishStop, usage: usage,
		},
		{
			name:   "nulls everywhere",
			steps:  []Step{Data(`{"choices":[{"delta":{"role":"assistant","content":null,"reasoning_content":null,"tool_calls":null},"finish_reason":null}],"usage":null,"error":null}`), Text("a"), Finish("stop"), Done()},
			want:   parts(text("a")),
			reason: llm.FinishStop, usage: usage,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, split := range []int{0, 1, 7} {
				s := Pipe(t, Reply{Steps: tt.steps, SplitEvery: split})
				got, err := llm.Collect(client(t, s, nil).Stream(t.Context(), hello))
				if err != nil {
					t.Fatalf("split every %d: %v", split, err)
				}
				want := llm.Response{Message: llm.Message{Role: llm.RoleAssistant, Content: tt.want}, Reason: tt.reason, Usage: tt.usage}
				got.Dropped = 0
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("split every %d (-want +got)\n%s", split, diff)
				}
			}
		})
	}
}

// TestFailures: what ends without a finish reason is an error of the right
// kind, and nothing of it is a response.
func TestFailures(t *testing.T) {
	tests := []struct {
		name  string
		reply Reply
		want  llm.Kind
		began bool
		text  string
	}{
		{name: "end of body before the finish", reply: Stream(Text("a")), want: llm.KindCut, began: true},
		{name: "end of body before anything", reply: Stream(), want: llm.KindCut},
		{name: "connection broken", reply: Stream(Text("a"), Cut()), want: llm.KindCut, began: true},
		{name: "end mark without a finish", reply: Stream(Text("a"), Done()), want: llm.KindCut, began: true},
		{name: "cut inside a call", reply: Stream(Call(0, "c1", "a", `{"x":`), Cut()), want: llm.KindCut, began: true},
		{name: "cut after a call that looks whole", reply: Stream(Call(0, "c1", "a", `{"x":1}`)), want: llm.KindCut, began: true},
		{name: "finish in a torso of an event", reply: Stream(Text("a"), Raw(`data: {"choices":[{"finish_reason":"stop"}]}`+"\n")), want: llm.KindCut, began: true},
		{name: "hang up", reply: Reply{HangUp: true}, want: llm.KindConnect},
		{name: "401", reply: Error(401, "no such key: "+key), want: llm.KindAuth, text: "no such key: [key]"},
		{name: "402", reply: Error(402, "no credit"), want: llm.KindAuth, text: "no credit"},
		{name: "403", reply: Error(403, "no"), want: llm.KindAuth},
		{name: "400", reply: Error(400, "messages must not be empty"), want: llm.KindRequest, text: "messages must not be empty"},
		{name: "404", reply: Error(404, "no such model"), want: llm.KindRequest},
		{name: "408", reply: Error(408, "slow"), want: llm.KindServer},
		{name: "429", reply: Error(429, "slow down"), want: llm.KindRateLimit, text: "slow down"},
		{name: "500", reply: Error(500, "oh"), want: llm.KindServer},
		{name: "529", reply: Error(529, "overloaded"), want: llm.KindServer},
		{name: "redirect", reply: Reply{Status: 302, Header: http.Header{"Location": {"http://elsewhere.test/"}}}, want: llm.KindRequest},
		{name: "error body of another shape", reply: Reply{Status: 500, Body: `{"error":"boom"}`}, want: llm.KindServer, text: "boom"},
		{name: "error body with a message alone", reply: Reply{Status: 500, Body: `{"message":"boom"}`}, want: llm.KindServer, text: "boom"},
		{name: "error page", reply: Reply{Status: 502, Body: "<h1>Bad\x1b[31m\n\u202e Gateway</h1>"}, want: llm.KindServer, text: "<h1>Bad [31m Gateway</h1>"},
		{name: "error without end", reply: Reply{Status: 500, Body: strings.Repeat("x", 1<<20)}, want: llm.KindServer, text: strings.Repeat("x", 400) + "…"},
		{name: "json where a stream was asked for", reply: Reply{Body: `{"choices":[]}`, Header: http.Header{"Content-Type": {"application/json"}}}, want: llm.KindProtocol},
		{name: "error in the stream", reply: Stream(Text("a"), Data(`{"error":{"message":"the server died","code":500}}`)), want: llm.KindServer, began: true, text: "the server died"},
		{name: "rate limit in the stream", reply: Stream(Data(`{"error":{"message":"slow","type":"rate_limit_exceeded"}}`)), want: llm.KindRateLimit},
		{name: "rate limit in the stream by number", reply: Stream(Data(`{"error":{"message":"slow","code":429}}`)), want: llm.KindRateLimit},
		{name: "bad request in the stream", reply: Stream(Data(`{"error":{"message":"long","type":"invalid_request_error","code":"context_length_exceeded"}}`)), want: llm.KindRequest},
		{name: "error in the stream as a string", reply: Stream(Data(`{"error":"boom"}`)), want: llm.KindServer, text: "boom"},
		{name: "not json", reply: Stream(Text("a"), Data(`{"choices":[{"delta":{"content":"secret`)), want: llm.KindProtocol, began: true},
		{name: "an endless line", reply: Stream(Raw("data: " + strings.Repeat("x", 2<<20))), want: llm.KindProtocol},
		{name: "out of resources", reply: Stream(Text("a"), Finish("insufficient_system_resource"), Done()), want: llm.KindServer, began: true},
		{name: "a call without a name", reply: Stream(ToolDelta(`{"index":0,"id":"c1","function":{"arguments":"{}"}}`), Finish("tool_calls"), Done()), want: llm.KindProtocol, began: true},
		{name: "a call from nowhere", reply: Stream(ToolDelta(`{"function":{"arguments":"{}"}}`), Finish("tool_calls"), Done()), want: llm.KindProtocol},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Pipe(t, tt.reply)
			began := false
			var failure error
			for chunk, err := range client(t, s, nil).Stream(t.Context(), hello) {
				if err != nil {
					failure = err
				} else {
					began = true
				}
				if chunk.Kind == llm.Finish {
					t.Error("a finish chunk")
				}
			}
			e, ok := errors.AsType[*llm.Error](failure)
			if !ok || e.Kind != tt.want || began != tt.began {
				t.Fatalf("error %v (%T), began %v; want %v, began %v", failure, failure, began, tt.want, tt.began)
			}
			if tt.text != "" && e.Message != tt.text {
				t.Errorf("message %q, want %q", e.Message, tt.text)
			}
			if strings.Contains(fmt.Sprintf("%v %+v %s", e, *e, errors.Unwrap(e)), key) {
				t.Errorf("the key is in the error: %v", e)
			}
		})
	}
}

func TestAnArgumentsTorsoIsNeverComplete(t *testing.T) {
	for _, reason := range []string{"tool_calls", "stop"} {
		s := Pipe(t, Stream(Call(0, "c1", "a", `{"x":`), Finish(reason), Done()))
		r, err := llm.Collect(client(t, s, nil).Stream(t.Context(), hello))
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.KindCut {
			t.Errorf("finish %s: got %+v, %v; want %v", reason, r, err, llm.KindCut)
		}
	}
}

func TestRequest(t *testing.T) {
	s := Pipe(t, Stream(Text("a"), Finish("stop"), Done()))
	req := llm.Request{
		System:    "be brief",
		MaxTokens: 99,
		Tools:     []llm.ToolSpec{{Name: "bash", Description: "runs", Parameters: json.RawMessage(`{"type":"object"}`)}},
		Messages: []llm.Message{
			{Role: llm.RoleUser, Content: parts(text("hi"), text(" there"))},
			{Role: llm.RoleAssistant, Content: parts(reasoning("r1"), toolCall("c1", "bash", `{"command":"ls"}`))},
			{Role: llm.RoleTool, ToolCallID: "c1", Content: parts(text("out"))},
			{Role: llm.RoleAssistant, Content: parts(reasoning("r2"), text("done"))},
		},
	}
	if _, err := llm.Collect(client(t, s, nil).Stream(t.Context(), req)); err != nil {
		t.Fatal(err)
	}
	got := s.Requests()[0]
	if got.Path != "/v1/chat/completions" {
		t.Errorf("path %s", got.Path)
	}
	for name, want := range map[string]string{"Authorization": "Bearer " + key, "Content-Type": "application/json", "Accept": "text/event-stream"} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("header %s is %q, want %q", name, v, want)
		}
	}
	const want = `{"model":"m","messages":[` +
		`{"role":"system","content":"be brief"},` +
		`{"role":"user","content":"hi there"},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]},` +
		`{"role":"tool","content":"out","tool_call_id":"c1"},` +
		`{"role":"assistant","content":"done"}],` +
		`"tools":[{"type":"function","function":{"name":"bash","description":"runs","parameters":{"type":"object"}}}],` +
		`"stream":true,"stream_options":{"include_usage":true},"max_tokens":99}`
	if diff := cmp.Diff(want, string(got.Body)); diff != "" {
		t.Errorf("body (-want +got)\n%s", diff)
	}
}

func TestDialect(t *testing.T) {
	s := Pipe(t, Stream(Finish("stop")))
	c := client(t, s, func(c *chat.Config) {
		c.Dialect = chat.Dialect{NoUsageOption: true, MaxCompletionTokens: true}
		c.APIKey = ""
	})
	req := hello
	req.Model, req.MaxTokens = "other", 5
	if _, err := llm.Collect(c.Stream(t.Context(), req)); err != nil {
		t.Fatal(err)
	}
	got := s.Requests()[0]
	if want := `{"model":"other","messages":[{"role":"user","content":"hello"}],"stream":true,"max_completion_tokens":5}`; string(got.Body) != want {
		t.Errorf("body %s, want %s", got.Body, want)
	}
	if _, sent := got.Header["Authorization"]; sent {
		t.Error("an Authorization header without a key")
	}
}

func TestConfig(t *testing.T) {
	for name, cfg := range map[string]chat.Config{
		"no address":       {},
		"not http":         {BaseURL: "ftp://x.test"},
		"no host":          {BaseURL: "http://"},
		"password":         {BaseURL: "http://u:p@x.test"},
		"key with newline": {BaseURL: "http://x.test", APIKey: "a\nb"},
	} {
		if _, err := chat.New(cfg); err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "u:p") || strings.Contains(err.Error(), "a\nb") {
			t.Errorf("%s: the secret is in %q", name, err)
		}
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "cfg", chat.Config{APIKey: key, Name: "n"})
	if strings.Contains(log.String(), key) {
		t.Errorf("the key is in the log: %s", &log)
	}
}

// The rest runs in bubbles: time is synctest's, the network is in memory.

func TestRetries(t *testing.T) {
	good := Stream(Text("a"), Finish("stop"), Done())
	after := func(seconds string) Reply {
		return Reply{Status: 429, Header: http.Header{"Retry-After": {seconds}}}
	}
	tests := []struct {
		name     string
		replies  []Reply
		want     llm.Kind // "" is success
		requests int
		min, max time.Duration
	}{
		{name: "first time lucky", replies: []Reply{good}, requests: 1},
		{name: "500, 503, then good", replies: []Reply{Error(500, ""), Error(503, ""), good}, requests: 3, min: 750 * time.Millisecond, max: 1500 * time.Millisecond},
		{name: "429 with its time", replies: []Reply{after("7"), good}, requests: 2, min: 7 * time.Second, max: 7 * time.Second},
		{name: "429 with a date", replies: []Reply{after("Sat, 01 Jan 2000 00:00:30 GMT"), good}, requests: 2, min: 30 * time.Second, max: 30 * time.Second},
		{name: "429 with no use of its time", replies: []Reply{after("soon"), good}, requests: 2, min: 250 * time.Millisecond, max: 500 * time.Millisecond},
		{name: "429 with a past date", replies: []Reply{after("Fri, 31 Dec 1999 00:00:30 GMT"), good}, requests: 2, min: 250 * time.Millisecond, max: 500 * time.Millisecond},
		{name: "429 for longer than we wait", replies: []Reply{after("61")}, want: llm.KindRateLimit, requests: 1},
		{name: "no connection, then good", replies: []Reply{{HangUp: true}, good}, requests: 2, min: 250 * time.Millisecond, max: 500 * time.Millisecond},
		{name: "cut before anything came", replies: []Reply{Stream(KeepAlive(), Cut()), good}, requests: 2, min: 250 * time.Millisecond, max: 500 * time.Millisecond},
		{name: "error in the stream before anything came", replies: []Reply{Stream(Data(`{"error":{"code":503}}`)), good}, requests: 2, min: 250 * time.Millisecond, max: 500 * time.Millisecond},
		{name: "never after a chunk", replies: []Reply{Stream(Text("a"), Cut())}, want: llm.KindCut, requests: 1},
		{name: "never after a chunk of reasoning", replies: []Reply{Stream(Reasoning("a"), Data(`{"error":{"code":503}}`))}, want: llm.KindServer, requests: 1},
		{name: "not for a bad key", replies: []Reply{Error(401, "")}, want: llm.KindAuth, requests: 1},
		{name: "not for a bad request", replies: []Reply{Error(400, "")}, want: llm.KindRequest, requests: 1},
		{name: "not for ever", replies: []Reply{Error(500, ""), Error(500, ""), Error(500, ""), Error(500, "")}, want: llm.KindServer, requests: 4, min: 1750 * time.Millisecond, max: 3500 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := Pipe(t, tt.replies...)
				var log bytes.Buffer
				c := client(t, s, func(c *chat.Config) {
					c.Retries = 0
					c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				})
				begin := time.Now()
				_, err := llm.Collect(c.Stream(t.Context(), hello))
				took := time.Since(begin)
				if e, ok := errors.AsType[*llm.Error](err); (err == nil) != (tt.want == "") || ok && e.Kind != tt.want {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				if e, ok := errors.AsType[*llm.Error](err); ok && tt.want == llm.KindRateLimit && e.RetryAfter != 61*time.Second {
					t.Errorf("retry after %v, want 61s", e.RetryAfter)
				}
				if got := len(s.Requests()); got != tt.requests {
					t.Errorf("%d requests, want %d", got, tt.requests)
				}
				if took < tt.min || took > tt.max {
					t.Errorf("took %v, want %v to %v", took, tt.min, tt.max)
				}
				if strings.Contains(log.String(), key) {
					t.Errorf("the key is in the log: %s", &log)
				}
			})
		})
	}
}

// Over a real connection, and several at once.
func TestConcurrentStreams(t *testing.T) {
	const n = 8
	var replies []Reply
	for range n {
		replies = append(replies, Stream(KeepAlive(), Text("a"), Call(0, "c", "f", `{"x"`, `:1}`), Finish("tool_calls"), Done()))
	}
	s := New(t, replies...)
	c := client(t, s, nil)
	results := make(chan error, n)
	for range n {
		go func() {
			r, err := llm.Collect(c.Stream(t.Context(), hello))
			if err == nil && len(r.Message.ToolCalls()) != 1 {
				err = fmt.Errorf("got %+v", r)
			}
			results <- err
		}()
	}
	for range n {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

// Cancelling closes a real connection, so the provider stops computing.
func TestAbortClosesTheConnection(t *testing.T) {
	s := New(t, Stream(Text("a"), Stall()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var failure error
	for _, err := range client(t, s, nil).Stream(ctx, hello) {
		cancel()
		failure = err
	}
	if e, ok := errors.AsType[*llm.Error](failure); !ok || e.Kind != llm.KindAborted {
		t.Errorf("got %v, want %v", failure, llm.KindAborted)
	}
	<-s.Gone()
}
