package deepseek

import (
	"testing"

	"meanwhile/host/llm"
	"meanwhile/host/llm/chat"
	"meanwhile/host/llm/llmtest"
)

func TestNew(t *testing.T) {
	if _, err := New(chat.Config{}); err == nil {
		t.Error("a configuration without a key was accepted")
	}
	c, err := New(chat.Config{APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Name(); got != "deepseek" {
		t.Errorf("name %q", got)
	}
}

// TestReasoningGoesBack: of turns with tool calls all reasoning, the final
// message's too; of others none; an empty one is still a field.
func TestReasoningGoesBack(t *testing.T) {
	r := func(s string) llm.Part { return llm.Part{Type: llm.PartReasoning, Text: s} }
	x := func(s string) llm.Part { return llm.Part{Type: llm.PartText, Text: s} }
	call := llm.Part{Type: llm.PartToolCall, CallID: "c", Name: "f", Arguments: "{}"}
	user := llm.Message{Role: llm.RoleUser, Content: []llm.Part{x("go")}}
	said := func(p ...llm.Part) llm.Message { return llm.Message{Role: llm.RoleAssistant, Content: p} }
	result := llm.Message{Role: llm.RoleTool, ToolCallID: "c", Content: []llm.Part{x("out")}}

	s := llmtest.New(t, llmtest.Stream(llmtest.Text("a"), llmtest.Finish("stop"), llmtest.Done()))
	c, err := New(chat.Config{APIKey: "k", BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, err = llm.Collect(c.Stream(t.Context(), llm.Request{Messages: []llm.Message{
		user, said(r("plain"), x("a")),
		user, said(r("first"), call), result, said(call), result, said(r("last"), x("b")),
		user, said(r("plain again"), x("c")),
		user,
	}}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range s.Requests()[0].Messages(t) {
		switch {
		case m.Role != "assistant":
			if m.ReasoningContent != nil {
				t.Errorf("reasoning on a message of role %s", m.Role)
			}
		case m.ReasoningContent == nil:
			got = append(got, "-")
		default:
			got = append(got, "="+*m.ReasoningContent)
		}
	}
	want := []string{"-", "=first", "=", "=last", "-"}
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("assistant message %d: got %q, want %q", i, got[i], want[i])
		}
	}
	if got := s.Requests()[0].Path; got != "/chat/completions" {
		t.Errorf("path %s", got)
	}
}
