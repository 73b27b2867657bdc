package loop_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/agent"
	"meanwhile/host/agent/agenttest"
	"meanwhile/host/agent/loop"
	"meanwhile/host/llm"
	"meanwhile/host/session/sessiontest"
	"meanwhile/host/tool"
	"meanwhile/shared/event"
)

// golden compares with a file under testdata; -update (of the machine's tests,
// in the same binary) rewrites it.
func golden(t *testing.T, got string) {
	t.Helper()
	file := filepath.Join("testdata", "shell", strings.ReplaceAll(t.Name(), "/", "-")+".txt")
	if loop.Update() {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// tools is what one test's agents have.
func tools(list ...tool.Tool) func(*agent.Agent) []tool.Tool {
	return func(*agent.Agent) []tool.Tool { return list }
}

// asked is what a request showed to the model, one line a message.
func asked(r llm.Request) string {
	var out []string
	for _, m := range r.Messages {
		s := string(m.Role) + ":"
		for _, p := range m.Content {
			s += " " + p.Text + p.CallID
		}
		out = append(out, s)
	}
	return strings.Join(out, "\n")
}

func TestTurn(t *testing.T) {
	for _, tc := range []struct {
		name    string
		replies []agenttest.Reply
		last    string // what the last request showed
	}{
		{"reply", []agenttest.Reply{agenttest.Say("hello")}, "user: text of m1"},
		{"reasoning and usage", []agenttest.Reply{agenttest.Chunks(
			llm.Chunk{Kind: llm.Reasoning, Text: "hm"}, llm.Chunk{Kind: llm.Text, Text: "hello"},
			llm.Chunk{Kind: llm.Finish, Reason: llm.FinishStop, Usage: &llm.Usage{InputTokens: 3}})}, "user: text of m1"},
		{"a tool", []agenttest.Reply{agenttest.Use(agenttest.Call("c1", "echo", `{"say":"x"}`)), agenttest.Say("done")},
			"user: text of m1\nassistant: c1\ntool: {\"say\":\"x\"}"},
		{"ids", []agenttest.Reply{
			agenttest.Use(agenttest.Call("c1", "count", `{}`), agenttest.Call("c1", "count", `{}`), agenttest.Call("", "count", `{}`)),
			agenttest.Use(agenttest.Call("c1", "count", `{}`)), agenttest.Say("done")}, ""},
		{"unknown tool", []agenttest.Reply{agenttest.Use(agenttest.Call("c1", "nope", `{}`)), agenttest.Say("sorry")},
			"user: text of m1\nassistant: c1\ntool: there is no tool named \"nope\"; call one of: echo, count, fail, break, panic, long"},
		{"bad arguments", []agenttest.Reply{agenttest.Use(agenttest.Call("c1", "echo", `{"say":1,"say":2}`)), agenttest.Say("sorry")}, ""},
		{"tool errors", []agenttest.Reply{agenttest.Use(agenttest.Call("c1", "fail", `{}`)),
			agenttest.Use(agenttest.Call("c2", "break", `{}`)), agenttest.Use(agenttest.Call("c3", "panic", `{}`)), agenttest.Say("sorry")}, ""},
		{"long result", []agenttest.Reply{agenttest.Use(agenttest.Call("c1", "long", `{}`)), agenttest.Say("sorry")}, ""},
		{"nothing said", []agenttest.Reply{agenttest.Chunks(llm.Chunk{Kind: llm.Finish, Reason: llm.FinishStop})}, "user: text of m1"},
		{"max tokens", []agenttest.Reply{agenttest.Chunks(llm.Chunk{Kind: llm.Text, Text: "hel"},
			agenttest.Call("c1", "echo", `{}`), llm.Chunk{Kind: llm.Finish, Reason: llm.FinishMaxTokens})}, "user: text of m1"},
		{"blocked by the provider", []agenttest.Reply{agenttest.Chunks(llm.Chunk{Kind: llm.Text, Text: "hel"},
			llm.Chunk{Kind: llm.Finish, Reason: llm.FinishBlocked})}, "user: text of m1"},
		{"stream fails", []agenttest.Reply{agenttest.Fail(&llm.Error{Kind: llm.KindCut, Provider: "script"},
			llm.Chunk{Kind: llm.Text, Text: "hel"}, agenttest.Call("c1", "echo", `{"a`))}, "user: text of m1"},
		{"stream ends early", []agenttest.Reply{agenttest.Chunks(llm.Chunk{Kind: llm.Text, Text: "hel"})}, "user: text of m1"},
		{"provider panics", []agenttest.Reply{func(context.Context, llm.Request, func(llm.Chunk, error) bool) { panic("no") }}, "user: text of m1"},
		{"reply too large", []agenttest.Reply{agenttest.Chunks(llm.Chunk{Kind: llm.Text, Text: strings.Repeat("x", 10)},
			llm.Chunk{Kind: llm.Reasoning, Text: strings.Repeat("x", loop.ReplyMax)})}, ""},
		{"reply too large once recorded", []agenttest.Reply{agenttest.Chunks(llm.Chunk{Kind: llm.Text, Text: strings.Repeat("\x01", loop.ReplyMax)},
			llm.Chunk{Kind: llm.Finish, Reason: llm.FinishStop})}, ""},
		{"bad characters", []agenttest.Reply{agenttest.Use(agenttest.Call("c\xff", "echo", "{}")), agenttest.Say("a\xffb")}, ""},
		{"step limit", []agenttest.Reply{
			agenttest.Use(agenttest.Call("c1", "count", `{}`)), agenttest.Use(agenttest.Call("c2", "count", `{}`)),
			agenttest.Use(agenttest.Call("c3", "count", `{}`)), agenttest.Use(agenttest.Call("c4", "count", `{}`))}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := agenttest.Script(tc.replies...)
				w := agenttest.New(t, agenttest.Options{Model: model, Tools: tools(
					agenttest.Func{Name: "echo", Do: func(_ context.Context, c tool.Call) (tool.Result, error) { return tool.Result{Text: c.Arguments}, nil }},
					agenttest.Func{Name: "count", Do: func(_ context.Context, c tool.Call) (tool.Result, error) {
						return tool.Result{Text: fmt.Sprintf("%d.%d", c.Turn, c.Step), Meta: []byte(`{"x": 1}`)}, nil
					}},
					agenttest.Func{Name: "fail", Do: func(context.Context, tool.Call) (tool.Result, error) {
						return tool.Result{}, fmt.Errorf("wrapped: %w", &tool.Error{Name: "FailError", Code: "FAILED", Message: "send less"})
					}},
					agenttest.Func{Name: "break", Do: func(context.Context, tool.Call) (tool.Result, error) {
						return tool.Result{}, errors.New("the disk is wet")
					}},
					agenttest.Func{Name: "panic", Do: func(context.Context, tool.Call) (tool.Result, error) { panic("no") }},
					agenttest.Func{Name: "long", Do: func(context.Context, tool.Call) (tool.Result, error) {
						return tool.Result{Text: strings.Repeat("é", loop.ResultMax), Meta: []byte("{")}, nil
					}},
				), Loop: loop.Options{Bounds: loop.Bounds{Steps: 4, Parallel: 1}}})
				a := w.Create(event.Header{})
				agenttest.Send(t, a, "m1")
				synctest.Wait()

				got := agenttest.Transcript(t, a.Log())
				if tc.name == "long result" {
					got = strings.ReplaceAll(got, strings.Repeat("é", loop.ResultMax/2), "é…é")
				}
				golden(t, masked(got))
				if requests := model.Requests(); tc.last != "" && asked(requests[len(requests)-1]) != tc.last {
					t.Errorf("last request:\n%s\nwant:\n%s", asked(requests[len(requests)-1]), tc.last)
				}
				if s := a.Status(); s.State != agent.Idle {
					t.Errorf("status = %v, want idle", s)
				}
				balanced(t, a)
			})
		})
	}
}

var (
	uuid   = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	syntax = regexp.MustCompile(`\(invalid JSON[^)]*\)`)
)

// masked names random call ids in the order they come, and leaves out what
// another package says about JSON.
func masked(transcript string) string {
	transcript = syntax.ReplaceAllString(transcript, "(…)")
	names := map[string]string{}
	return uuid.ReplaceAllStringFunc(transcript, func(id string) string {
		if names[id] == "" {
			names[id] = fmt.Sprintf("random-%d", len(names)+1)
		}
		return names[id]
	})
}

// balanced checks what every log must hold after any end: nothing is open, and
// every call of every recorded reply has one result.
func balanced(t *testing.T, a *agent.Agent) {
	t.Helper()
	want, got := map[string]int{}, map[string]int{}
	open := 0
	for _, e := range sessiontest.Events(t, a.Log()) {
		switch e.Type {
		case event.TypeTurnStart:
			open++
		case event.TypeTurnEnd:
			open--
		case event.TypeAssistant:
			d, err := event.DecodeAssistant(e.Data)
			if err != nil {
				t.Error(err)
			}
			for _, b := range d.Blocks {
				if b.Type == event.BlockToolCall {
					want[b.CallID]++
				}
			}
		case event.TypeToolResult:
			d, err := event.DecodeToolResult(e.Data)
			if err != nil {
				t.Error(err)
			}
			got[d.CallID]++
		}
	}
	if open != 0 {
		t.Errorf("%d turns are open in\n%s", open, agenttest.Transcript(t, a.Log()))
	}
	for id, n := range want {
		if n != 1 {
			t.Errorf("call id %s is used %d times, want once", id, n)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results of calls (-want +got):\n%s\nin\n%s", diff, agenttest.Transcript(t, a.Log()))
	}
}
