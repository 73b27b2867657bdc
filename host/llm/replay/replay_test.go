package replay

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/llm"
)

func user(text string) llm.Message {
	return llm.Message{Role: llm.RoleUser, Content: []llm.Part{{Type: llm.PartText, Text: text}}}
}

func from(source, text string) llm.Message { m := user(text); m.Source = source; return m }

func said(text string, calls ...string) llm.Message {
	m := llm.Message{Role: llm.RoleAssistant, Content: []llm.Part{{Type: llm.PartText, Text: text}}}
	for _, name := range calls {
		m.Content = append(m.Content, llm.Part{Type: llm.PartToolCall, CallID: "id-" + name, Name: name, Arguments: "{}"})
	}
	return m
}

func result(tool, text string) llm.Message {
	return llm.Message{Role: llm.RoleTool, ToolCallID: "id-" + tool, Content: []llm.Part{{Type: llm.PartText, Text: text}}}
}

func failed(m llm.Message) llm.Message { m.IsError = true; return m }

const lateAnswer = `{"kind":"answer_to_pending_question","tool":"ask_user_question","callId":"c9","questions":[],"answers":[{"id":"store","selected":["SQLite"]},{"id":"why","selected":[],"custom":"because"},{"id":"when","selected":[]}]}`

func TestConditions(t *testing.T) {
	const pending = `{"pending":true,"callId":"c1","message":"later"}`
	asked := []llm.Message{user("Use a database"), said("", "ask_user_question")}
	tests := []struct {
		name     string
		when     string
		messages []llm.Message
		want     bool
	}{
		{name: "nothing asked", when: `{}`, messages: asked, want: true},
		{name: "nothing there", when: `{}`, want: true},
		{name: "last user", when: `{"last":"user"}`, messages: []llm.Message{user("x")}, want: true},
		{name: "last user, but tool", when: `{"last":"user"}`, messages: append(asked, result("ask_user_question", "x"))},
		{name: "contains, any case", when: `{"contains":"DATA"}`, messages: []llm.Message{user("a database")}, want: true},
		{name: "contains not", when: `{"contains":"data"}`, messages: []llm.Message{user("a store")}},
		{name: "contains only in the last", when: `{"contains":"data"}`, messages: []llm.Message{user("a database"), said("x"), user("y")}},
		{name: "earlier", when: `{"earlier":"data"}`, messages: []llm.Message{user("a database"), said("x"), user("y")}, want: true},
		{name: "earlier is not now", when: `{"earlier":"data"}`, messages: []llm.Message{user("a database")}},
		{name: "matches", when: `{"matches":"^a .*e$"}`, messages: []llm.Message{user("a database")}, want: true},
		{name: "matches not", when: `{"matches":"^b"}`, messages: []llm.Message{user("a database")}},
		{name: "source", when: `{"source":"user"}`, messages: []llm.Message{from("user", "x")}, want: true},
		{name: "source not", when: `{"source":"user"}`, messages: []llm.Message{from("other", "x")}},
		{name: "reply by source", when: `{"reply":true}`, messages: []llm.Message{from("user-question-reply", "unreadable")}, want: true},
		{name: "reply by text without a source", when: `{"reply":true}`, messages: []llm.Message{user(lateAnswer)}, want: true},
		{name: "pasted by the user", when: `{"reply":true}`, messages: []llm.Message{from("user", lateAnswer)}},
		{name: "no reply", when: `{"reply":false}`, messages: []llm.Message{user("x")}, want: true},
		{name: "tool", when: `{"tool":"bash"}`, messages: []llm.Message{user("x"), said("", "bash"), result("bash", "out")}, want: true},
		{name: "another tool", when: `{"tool":"bash"}`, messages: append(asked, result("ask_user_question", "x"))},
		{name: "pending", when: `{"pending":true}`, messages: append(asked, result("ask_user_question", pending)), want: true},
		{name: "not pending", when: `{"pending":false}`, messages: append(asked, result("ask_user_question", `{"answers":[]}`)), want: true},
		{name: "not pending needs a result", when: `{"pending":false}`, messages: []llm.Message{user("x")}},
		{name: "failed", when: `{"failed":true}`, messages: append(asked, failed(result("ask_user_question", "x"))), want: true},
		{name: "failed not", when: `{"failed":true}`, messages: append(asked, result("ask_user_question", "x"))},
		{name: "called since the prompt", when: `{"called":["ask_user_question"]}`, messages: append(asked, result("ask_user_question", "x")), want: true},
		{name: "called before the prompt", when: `{"called":["ask_user_question"]}`, messages: append(asked, result("ask_user_question", "x"), user("next"))},
		{name: "a reply is no prompt", when: `{"called":["ask_user_question"]}`, messages: append(asked, result("ask_user_question", "x"), user(lateAnswer)), want: true},
		{name: "uncalled", when: `{"uncalled":["bash"]}`, messages: asked, want: true},
		{name: "uncalled not", when: `{"uncalled":["ask_user_question"]}`, messages: asked},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := parse(t, `{"rules":[{"when":`+tt.when+`,"do":[{"text":"yes"}]},{"do":[{"text":"no"}]}]}`)
			r, err := llm.Collect(m.Stream(t.Context(), llm.Request{Messages: tt.messages}))
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Message.Text() == "yes"; got != tt.want {
				t.Errorf("holds %v, want %v", got, tt.want)
			}
		})
	}
}

func parse(t *testing.T, s string) *Model {
	t.Helper()
	m, err := Parse([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestSteps(t *testing.T) {
	m := parse(t, `{"name":"n","rules":[{"do":[
		{"reasoning":"hm {{prompt}}"},{"text":"so {{answer \"store\"}}, {{answer \"why\"}}, {{answer \"when\"}}, {{answer \"none\"}}; {{answers}}; {{callId}}; {{output}}"},
		{"call":"bash","id":"k","arguments":{"command":"echo {{answer \"store\"}}","timeout":3,"list":["{{prompt}}",true,null]}},
		{"call":"ls"}]}]}`)
	if m.Name() != "n" {
		t.Errorf("name %q", m.Name())
	}
	r, err := llm.Collect(m.Stream(t.Context(), llm.Request{Messages: []llm.Message{
		user("go"), said("", "bash"), result("bash", "files"), user(lateAnswer),
	}}))
	if err != nil {
		t.Fatal(err)
	}
	got := r.Message.Content
	want := []llm.Part{
		{Type: llm.PartReasoning, Text: "hm go"},
		{Type: llm.PartText, Text: "so SQLite, because, (skipped), (no answer); store: SQLite; why: because; when: (skipped); c9; files"},
		{Type: llm.PartToolCall, CallID: "k", Name: "bash", Arguments: `{"command":"echo SQLite","list":["go",true,null],"timeout":3}`},
		{Type: llm.PartToolCall, Name: "ls", Arguments: `{}`},
	}
	if len(got) == 4 {
		if got[3].CallID == "" || got[3].CallID == "k" {
			t.Errorf("drawn id %q", got[3].CallID)
		}
		want[3].CallID = got[3].CallID
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("content (-want +got)\n%s", diff)
	}
	if r.Reason != llm.FinishToolCalls || r.Usage == nil || r.Usage.OutputTokens < 10 {
		t.Errorf("reason %v, usage %+v", r.Reason, r.Usage)
	}
}

func TestEnds(t *testing.T) {
	tests := []struct {
		name   string
		do     string
		reason llm.FinishReason
		err    llm.Kind
	}{
		{name: "by itself", do: `[{"text":"a"}]`, reason: llm.FinishStop},
		{name: "finish", do: `[{"text":"a"},{"finish":"max-tokens"}]`, reason: llm.FinishMaxTokens},
		{name: "error", do: `[{"text":"a"},{"error":"LLM_SERVER"}]`, err: llm.KindServer},
		{name: "template that fails", do: `[{"text":"{{index answers 99}}"}]`, err: llm.KindRequest},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := llm.Collect(parse(t, `{"rules":[{"do":`+tt.do+`}]}`).Stream(t.Context(), llm.Request{}))
			e, ok := errors.AsType[*llm.Error](err)
			if ok != (tt.err != "") || ok && e.Kind != tt.err || r.Reason != tt.reason {
				t.Errorf("got %v, %v", r.Reason, err)
			}
		})
	}
	_, err := llm.Collect(parse(t, `{"rules":[{"when":{"last":"tool"},"do":[{"text":"a"}]}]}`).Stream(t.Context(), llm.Request{Messages: []llm.Message{user("x")}}))
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.KindRequest || !strings.Contains(e.Message, "no rule") {
		t.Errorf("no rule fits: %v", err)
	}
}

func TestPaceAndAbort(t *testing.T) {
	const s = `{"rules":[{"do":[{"waitMs":1000,"text":"one two three","paceMs":100},{"waitMs":5000}]}]}`
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		for c, err := range parse(t, s).Stream(t.Context(), llm.Request{}) {
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, time.Since(begin))
			_ = c
		}
		ms := time.Millisecond
		if diff := cmp.Diff([]time.Duration{1000 * ms, 1100 * ms, 1200 * ms, 6200 * ms}, at); diff != "" {
			t.Errorf("chunks at (-want +got)\n%s", diff)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(1050*time.Millisecond, func() { cancel(why) })
		begin := time.Now()
		_, err := llm.Collect(parse(t, s).Stream(ctx, llm.Request{}))
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.KindAborted || !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		if got := time.Since(begin); got != 1050*time.Millisecond {
			t.Errorf("took %v", got)
		}
	})
	for c := range parse(t, s).Stream(t.Context(), llm.Request{}) {
		if c.Text == "one " {
			break // breaking off ends the sequence without a panic
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for name, s := range map[string]string{
		"not json":             `{`,
		"text after":           `{"rules":[{"do":[{"text":"a"}]}]} x`,
		"unknown field":        `{"rules":[{"do":[{"txet":"a"}]}]}`,
		"no rules":             `{"rules":[]}`,
		"no steps":             `{"rules":[{"do":[]}]}`,
		"empty step":           `{"rules":[{"do":[{}]}]}`,
		"two things":           `{"rules":[{"do":[{"text":"a","call":"b"}]}]}`,
		"arguments alone":      `{"rules":[{"do":[{"text":"a","arguments":{}}]}]}`,
		"role":                 `{"rules":[{"when":{"last":"assistant"},"do":[{"text":"a"}]}]}`,
		"expression":           `{"rules":[{"when":{"matches":"("},"do":[{"text":"a"}]}]}`,
		"template":             `{"rules":[{"do":[{"text":"{{"}]}]}`,
		"function":             `{"rules":[{"do":[{"text":"{{nothing}}"}]}]}`,
		"template in a call":   `{"rules":[{"do":[{"call":"a","arguments":{"x":["{{"]}}]}]}`,
		"finish":               `{"rules":[{"do":[{"finish":"done"}]}]}`,
		"finish in the middle": `{"rules":[{"do":[{"finish":"stop"},{"text":"a"}]}]}`,
		"error":                `{"rules":[{"do":[{"error":"oops"}]}]}`,
		"negative":             `{"rules":[{"do":[{"waitMs":-1}]}]}`,
		"large":                `{"rules":[{"do":[{"text":"` + strings.Repeat("x", maxScript) + `"}]}]}`,
	} {
		if _, err := Parse([]byte(s)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.json")
	if _, err := Load(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte(`{"rules":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the error does not name the file: %v", err)
	}
	if err := os.WriteFile(path, demo, 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := Load(path); err != nil || m.Name() != "demo" {
		t.Errorf("got %v, %v", m, err)
	}
}

// TestDemo plays the story of the demonstration, turn by turn.
func TestDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := Demo()
		if err != nil {
			t.Fatal(err)
		}
		var messages []llm.Message
		next := func(in ...llm.Message) llm.Response {
			t.Helper()
			messages = append(messages, in...)
			r, err := llm.Collect(m.Stream(t.Context(), llm.Request{Messages: messages}))
			if err != nil {
				t.Fatal(err)
			}
			messages = append(messages, r.Message)
			return r
		}
		answerTo := func(r llm.Response, text string) llm.Message {
			t.Helper()
			calls := r.Message.ToolCalls()
			if len(calls) != 1 {
				t.Fatalf("%d calls, want 1", len(calls))
			}
			return llm.Message{Role: llm.RoleTool, ToolCallID: calls[0].CallID, Content: []llm.Part{{Type: llm.PartText, Text: text}}}
		}
		r := next(user("Set up the sessions"))
		if c := r.Message.ToolCalls(); len(c) != 1 || c[0].Name != "ask_user_question" || !strings.Contains(c[0].Arguments, `"timeout":30`) {
			t.Fatalf("first response %+v", r.Message)
		}
		r = next(answerTo(r, `{"pending":true,"callId":"c","message":"m"}`))
		if c := r.Message.ToolCalls(); len(c) != 1 || c[0].Name != "bash" {
			t.Fatalf("after pending %+v", r.Message)
		}
		r = next(answerTo(r, "README.md"))
		if r.Reason != llm.FinishStop || !strings.Contains(r.Message.Text(), "waits for your answer") {
			t.Fatalf("after the work %+v", r)
		}
		r = next(from("user-question-reply", lateAnswer))
		if r.Reason != llm.FinishStop || !strings.Contains(r.Message.Text(), "store: SQLite") {
			t.Fatalf("after the late answer %+v", r)
		}
		r = next(user("Set up the sessions again"))
		r = next(answerTo(r, `{"answers":[{"id":"store","selected":["Postgres"]},{"id":"deploy","selected":[]}]}`))
		if got := r.Message.Text(); !strings.Contains(got, "store: Postgres; deploy: (skipped)") {
			t.Fatalf("after an answer in time %q", got)
		}
	})
}
