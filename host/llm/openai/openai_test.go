package openai

import (
	"net/http"
	"strings"
	"testing"

	"meanwhile/host/llm"
	"meanwhile/host/llm/chat"
	"meanwhile/host/llm/llmtest"
)

func TestNew(t *testing.T) {
	if _, err := New(chat.Config{}); err == nil {
		t.Error("a configuration without a model was accepted")
	}
	c, err := New(chat.Config{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Name(); got != "openai" {
		t.Errorf("name %q", got)
	}
}

// A local server: no key, a base url with a path, and no reasoning sent back.
func TestCompatibleServer(t *testing.T) {
	s := llmtest.New(t, llmtest.Stream(llmtest.Text("a"), llmtest.FinishOnly("stop"), llmtest.UsageOnly(3, 4), llmtest.Done()))
	c, err := New(chat.Config{Model: "m", BaseURL: s.URL + "/v1/"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := llm.Collect(c.Stream(t.Context(), llm.Request{MaxTokens: 5, Messages: []llm.Message{
		{Role: llm.RoleAssistant, Content: []llm.Part{{Type: llm.PartReasoning, Text: "r"}, {Type: llm.PartToolCall, CallID: "c", Name: "f", Arguments: "{}"}}},
	}}))
	if err != nil || got.Message.Text() != "a" || got.Usage.OutputTokens != 4 {
		t.Fatalf("got %+v, %v", got, err)
	}
	req := s.Requests()[0]
	if req.Path != "/v1/chat/completions" || req.Header.Get("Authorization") != "" {
		t.Errorf("path %s, authorization %q", req.Path, req.Header.Get("Authorization"))
	}
	if body := string(req.Body); strings.Contains(body, "reasoning") || !strings.Contains(body, `"max_tokens":5`) {
		t.Errorf("body %s", body)
	}
}

// OpenAI's own models refuse max_tokens.
func TestOwnAddress(t *testing.T) {
	var body string
	hc := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if got := r.URL.String(); got != "https://api.openai.com/v1/chat/completions" {
			t.Errorf("address %s", got)
		}
		b := make([]byte, r.ContentLength)
		r.Body.Read(b)
		body = string(b)
		return nil, http.ErrServerClosed
	})}
	c, err := New(chat.Config{Model: "m", HTTP: hc, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := llm.Collect(c.Stream(t.Context(), llm.Request{MaxTokens: 5})); err == nil {
		t.Fatal("no error")
	}
	if !strings.Contains(body, `"max_completion_tokens":5`) {
		t.Errorf("body %s", body)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
