package llm

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func fill(t *testing.T, chunks ...Chunk) *Accumulator {
	t.Helper()
	var a Accumulator
	for i, c := range chunks {
		if err := a.Add(c); err != nil {
			t.Fatalf("chunk %d: %v", i, err)
		}
	}
	return &a
}

func TestAccumulator(t *testing.T) {
	done := Chunk{Kind: Finish, Reason: FinishToolCalls}
	tests := []struct {
		name    string
		chunks  []Chunk
		want    []Part
		dropped int
		err     Kind
	}{
		{name: "empty", chunks: []Chunk{done}},
		{
			name: "parts in the order they began",
			chunks: []Chunk{
				{Kind: Reasoning, Text: "a"}, {Kind: Reasoning, Text: "b"}, {Kind: Text, Text: "c"}, {Kind: Text},
				{Kind: ToolCallDelta, Index: 3, CallID: "x", Name: "f", Arguments: `{"k"`},
				{Kind: ToolCallDelta, Index: 1, CallID: "y", Name: "g"},
				{Kind: ToolCallDelta, Index: 3, CallID: "other", Name: "other", Arguments: `:1}`},
				{Kind: Text, Text: "d"}, done,
			},
			want: []Part{
				{Type: PartReasoning, Text: "ab"}, {Type: PartText, Text: "c"},
				{Type: PartToolCall, CallID: "x", Name: "f", Arguments: `{"k":1}`},
				{Type: PartToolCall, CallID: "y", Name: "g", Arguments: `{}`},
				{Type: PartText, Text: "d"},
			},
		},
		{
			name:   "whole but not JSON stays",
			chunks: []Chunk{{Kind: ToolCallDelta, CallID: "x", Name: "f", Arguments: `{k:1}`}, done},
			want:   []Part{{Type: PartToolCall, CallID: "x", Name: "f", Arguments: `{k:1}`}},
		},
		{
			name:   "a torso is a cut stream",
			chunks: []Chunk{{Kind: ToolCallDelta, CallID: "x", Name: "f", Arguments: `{"k":"`}, done},
			err:    KindCut,
		},
		{
			name: "stopped for length",
			chunks: []Chunk{
				{Kind: ToolCallDelta, Index: 0, CallID: "x", Name: "f", Arguments: `{}`},
				{Kind: ToolCallDelta, Index: 1, CallID: "y", Name: "f", Arguments: `{"k"`},
				{Kind: ToolCallDelta, Index: 2, CallID: "z", Name: "f"},
				{Kind: Finish, Reason: FinishMaxTokens},
			},
			want:    []Part{{Type: PartToolCall, CallID: "x", Name: "f", Arguments: `{}`}},
			dropped: 2,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := fill(t, tt.chunks...).Response()
			if e, ok := errors.AsType[*Error](err); ok != (tt.err != "") || ok && e.Kind != tt.err {
				t.Fatalf("error %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, r.Message.Content); diff != "" {
				t.Errorf("content (-want +got)\n%s", diff)
			}
			if r.Dropped != tt.dropped {
				t.Errorf("dropped %d, want %d", r.Dropped, tt.dropped)
			}
		})
	}
}

func TestAccumulatorIncomplete(t *testing.T) {
	a := fill(t,
		Chunk{Kind: Reasoning, Text: "hm"}, Chunk{Kind: Text, Text: "I "}, Chunk{Kind: Text, Text: "look"},
		Chunk{Kind: ToolCallDelta, CallID: "x", Name: "f", Arguments: `{}`},
	)
	if _, err := a.Response(); !errors.Is(err, ErrIncomplete) {
		t.Errorf("error %v, want %v", err, ErrIncomplete)
	}
	want := Message{Role: RoleAssistant, Content: []Part{{Type: PartReasoning, Text: "hm"}, {Type: PartText, Text: "I look"}}}
	if diff := cmp.Diff(want, a.Partial()); diff != "" {
		t.Errorf("partial (-want +got)\n%s", diff)
	}
	if got := a.Text(); got != "I look" {
		t.Errorf("text %q", got)
	}
}

func TestAccumulatorRefuses(t *testing.T) {
	calls := make([]Chunk, MaxCalls)
	for i := range calls {
		calls[i] = Chunk{Kind: ToolCallDelta, Index: i, Name: "f"}
	}
	tests := []struct {
		name   string
		before []Chunk
		last   Chunk
	}{
		{name: "unknown kind", last: Chunk{}},
		{name: "finish without a reason", last: Chunk{Kind: Finish}},
		{name: "after the finish", before: []Chunk{{Kind: Finish, Reason: FinishStop}}, last: Chunk{Kind: Text, Text: "a"}},
		{name: "two finishes", before: []Chunk{{Kind: Finish, Reason: FinishStop}}, last: Chunk{Kind: Finish, Reason: FinishStop}},
		{name: "too much text", before: []Chunk{{Kind: Text, Text: strings.Repeat("x", MaxText)}}, last: Chunk{Kind: Reasoning, Text: "x"}},
		{name: "too much of arguments", before: []Chunk{{Kind: ToolCallDelta, Name: "f", Arguments: strings.Repeat("x", MaxArguments)}}, last: Chunk{Kind: ToolCallDelta, Arguments: "x"}},
		{name: "too many calls", before: calls, last: Chunk{Kind: ToolCallDelta, Index: MaxCalls, Name: "f"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := fill(t, tt.before...).Add(tt.last); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestCollectPassesTheErrorOn(t *testing.T) {
	want := &Error{Kind: KindCut, Provider: "p", Status: 200, Message: "m"}
	_, err := Collect(func(yield func(Chunk, error) bool) {
		_ = yield(Chunk{Kind: Text, Text: "a"}, nil) && yield(Chunk{}, want)
	})
	if err != want {
		t.Errorf("got %v, want %v", err, want)
	}
	if got := want.Error(); got != "LLM_CUT: p: status 200: m" {
		t.Errorf("text %q", got)
	}
}
