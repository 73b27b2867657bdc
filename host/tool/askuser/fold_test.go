package askuser

import (
	"testing"

	"meanwhile/host/tool"
	"meanwhile/shared/event"
	"meanwhile/shared/projection"
)

// fold records the calls and results of these tools as a loop does.
type fold struct {
	*projection.Set
	t   *testing.T
	seq int64
}

func newFold(t *testing.T, mode Mode) *fold {
	f := &fold{Set: projection.NewSet(event.Header{Version: 1, ID: "s"}), t: t}
	h := event.RequestHeader{Reason: event.HeaderInitial}
	for _, s := range []tool.Spec{New(nil, nil, Options{Mode: mode}).Spec(), NewWithdraw(nil, nil).Spec()} {
		h.Tools = append(h.Tools, event.ToolSpec{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
	}
	f.record(h.Draft())
	return f
}

func (f *fold) record(d event.Draft) {
	f.t.Helper()
	if err := f.Apply(event.Event{Seq: f.seq, Type: d.Type, Data: d.Data}, nil); err != nil {
		f.t.Fatal(err)
	}
	f.seq++
}

func (f *fold) call(id, name, arguments string) {
	f.record(event.ToolCall{CallID: id, Name: name, Arguments: arguments}.Draft())
}

func (f *fold) result(id, text string) {
	f.record(event.ToolResult{MessageID: "m-" + id, CallID: id, Text: text}.Draft())
}

func (f *fold) state(id string) string {
	if a, ok := f.Questions.Active(id); ok {
		return string(a.State)
	}
	if _, ok := f.Questions.Settled(id); ok {
		return "settled"
	}
	return "none"
}

// What the tools write is what the projection reads.
func TestResultsFold(t *testing.T) {
	for _, tc := range []struct {
		name string
		mode Mode
		do   func(*fold)
		want string
	}{
		{"legacy is not tracked", Legacy, func(*fold) {}, "none"},
		{"timed opens", Timed, func(*fold) {}, "open"},
		{"pending", Timed, func(f *fold) { f.result("c1", PendingText("c1")) }, "continued"},
		{"answered", Timed, func(f *fold) {
			f.result("c1", AnswersText([]projection.Answer{{ID: "store", Selected: []string{"Postgres"}}}))
		}, "settled"},
		{"withdrawn", Timed, func(f *fold) {
			f.result("c1", PendingText("c1"))
			f.call("w1", projection.WithdrawName, `{"callId":"c1"}`)
			f.result("w1", WithdrawnText(true))
		}, "none"},
		{"not withdrawn", Timed, func(f *fold) {
			f.result("c1", PendingText("c1"))
			f.call("w1", projection.WithdrawName, `{"callId":"c1"}`)
			f.result("w1", WithdrawnText(false))
		}, "continued"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFold(t, tc.mode)
			f.call("c1", projection.ToolName, `{`+batch+`,"timeout":5}`)
			tc.do(f)
			if got := f.state("c1"); got != tc.want {
				t.Errorf("ask is %s, want %s", got, tc.want)
			}
		})
	}
}
