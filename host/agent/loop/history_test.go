package loop

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/llm"
	"meanwhile/shared/event"
)

func fold(t *testing.T, drafts ...event.Draft) *history {
	t.Helper()
	h := newHistory()
	for i, d := range drafts {
		if err := h.apply(event.Event{Seq: int64(i), Type: d.Type, Data: d.Data}); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func said(text string) event.Draft {
	return event.Message{ID: "m-" + text, Source: event.Source{Kind: event.SourceUser}, Text: text}.Draft()
}

func reply(blocks ...event.Block) event.Draft {
	return event.Assistant{Turn: 1, Step: 1, ID: "a", Blocks: blocks}.Draft()
}

func called(id string) event.Draft {
	return event.ToolCall{Turn: 1, Step: 1, CallID: id, Name: "bash", Arguments: `{}`}.Draft()
}

func result(id, text string) event.Draft {
	return event.ToolResult{Turn: 1, Step: 1, MessageID: "r-" + id, CallID: id, Text: text}.Draft()
}

func text(s string) event.Block { return event.Block{Type: event.BlockText, Text: s} }
func think(s string) event.Block {
	return event.Block{Type: event.BlockReasoning, Text: s}
}
func call(id string) event.Block {
	return event.Block{Type: event.BlockToolCall, CallID: id, Name: "bash", Arguments: `{}`}
}

func TestHistoryMessages(t *testing.T) {
	for _, tc := range []struct {
		name   string
		drafts []event.Draft
		want   []string
	}{
		{"a talk", []event.Draft{said("hi"), reply(text("hello"))}, []string{"user: hi", "assistant: hello"}},
		{"reasoning stays beside calls only",
			[]event.Draft{reply(think("hm"), text("hello")), reply(think("hm"), call("a")), called("a"), result("a", "ok")},
			[]string{"assistant: hello", "assistant: (hm) a()", "tool a: ok"}},
		{"results come back in the order of the calls",
			[]event.Draft{reply(call("a"), call("b")), called("a"), called("b"), result("b", "2"), result("a", "1")},
			[]string{"assistant: a() b()", "tool a: 1", "tool b: 2"}},
		{"a call without a result gets one that says so",
			[]event.Draft{reply(call("a")), called("a"), said("and?")},
			[]string{"assistant: a()", "tool a: ! No result of this call was recorded here. It may have taken effect: check before you run it again.", "user: and?"}},
		{"a result without a call is left out", []event.Draft{said("hi"), result("x", "?")}, []string{"user: hi"}},
		{"an outside agent's overlapping asks read as calls",
			[]event.Draft{called("a"), called("b"), result("b", "2"), said("note"), result("a", "1")},
			[]string{"assistant: a() b()", "tool a: 1", "tool b: 2", "user: note"}},
		{"one asked after another had its result is a message of its own",
			[]event.Draft{called("a"), result("a", "1"), called("b"), result("b", "2")},
			[]string{"assistant: a()", "tool a: 1", "assistant: b()", "tool b: 2"}},
		{"nothing is made of empty texts", []event.Draft{said(""), reply(think("only thoughts"))}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, m := range fold(t, tc.drafts...).messages() {
				got = append(got, messageString(m))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func messageString(m llm.Message) string {
	s := string(m.Role)
	if m.ToolCallID != "" {
		s += " " + m.ToolCallID
	}
	s += ":"
	if m.IsError {
		s += " !"
	}
	for _, p := range m.Content {
		switch p.Type {
		case llm.PartText:
			s += " " + p.Text
		case llm.PartReasoning:
			s += " (" + p.Text + ")"
		case llm.PartToolCall:
			s += " " + p.CallID + "()"
		}
	}
	return s
}

func TestHistoryWantsNoGap(t *testing.T) {
	h := newHistory()
	d := said("hi")
	if err := h.apply(event.Event{Seq: 1, Type: d.Type, Data: d.Data}); err == nil {
		t.Error("apply() took event 1 where 0 belongs")
	}
}

func TestRenumber(t *testing.T) {
	parts := []llm.Part{
		{Type: llm.PartText, Text: "x"},
		{Type: llm.PartToolCall, CallID: ""},
		{Type: llm.PartToolCall, CallID: "old"},
		{Type: llm.PartToolCall, CallID: "new"},
		{Type: llm.PartToolCall, CallID: "new"},
	}
	n := 0
	used := func(id string) bool { return id == "old" || id == "draw-1" }
	renumber(parts, used, func() string { n++; return fmt.Sprint("draw-", n) })
	var got []string
	for _, p := range parts {
		got = append(got, p.CallID)
	}
	if diff := cmp.Diff([]string{"", "draw-2", "draw-3", "new", "draw-4"}, got); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}
