package chat

import (
	"testing"

	"meanwhile/host/llm"
)

// FuzzDecode: whatever a server sends as events, decoding ends in chunks the
// accumulator takes or in an error, and a finish chunk comes only after a
// finish reason.
func FuzzDecode(f *testing.F) {
	f.Add(`{"choices":[{"delta":{"content":"a"}}]}`, `{"choices":[{"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`)
	f.Add(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{"}}]}}]}`, `{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"}"}}]},"finish_reason":"length"}]}`)
	f.Add(`{"error":{"message":"x","code":429}}`, `{"error":"x"}`)
	f.Add(`{"choices":[{"delta":{"tool_calls":[{"index":-1,"function":{"name":"f","arguments":{}}}]}}]}`, `null`)
	c, err := New(Config{BaseURL: "http://x.test"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		s, err := newStream(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		var a llm.Accumulator
		for _, event := range []string{first, second} {
			chunks, failure := s.decode([]byte(event))
			if failure != nil {
				return
			}
			for _, chunk := range chunks {
				if chunk.Kind == llm.Finish {
					t.Fatal("decode yields a finish chunk")
				}
				if err := a.Add(chunk); err != nil {
					t.Fatalf("the accumulator refuses a chunk: %v", err)
				}
			}
		}
		if s.reason == "" {
			return
		}
		last, failure := s.finish()
		if failure != nil {
			return
		}
		if err := a.Add(last[0]); err != nil {
			t.Fatal(err)
		}
		if r, err := a.Response(); err == nil {
			for _, call := range r.Message.ToolCalls() {
				if call.Name == "" || call.Arguments == "" {
					t.Fatalf("a call without name or arguments: %+v", call)
				}
			}
		}
	})
}
