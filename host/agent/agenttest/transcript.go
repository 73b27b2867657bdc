package agenttest

import (
	"fmt"
	"strings"
	"testing"

	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/shared/event"
)

// Transcript is a log as one line an event, without what is random.
func Transcript(t testing.TB, l *session.Log) string {
	t.Helper()
	var out strings.Builder
	for _, e := range sessiontest.Events(t, l) {
		fmt.Fprintln(&out, Line(t, e))
	}
	return out.String()
}

// Line is one event as a line.
func Line(t testing.TB, e event.Event) string {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Errorf("event %d: %v", e.Seq, err)
		}
	}
	switch e.Type {
	case event.TypeTurnStart:
		d, err := event.DecodeTurnStart(e.Data)
		must(err)
		return fmt.Sprintf("turn/start %d", d.Turn)
	case event.TypeTurnEnd:
		d, err := event.DecodeTurnEnd(e.Data)
		must(err)
		return strings.TrimSpace(fmt.Sprintf("turn/end %d %s %s", d.Turn, d.Kind, d.Message))
	case event.TypeStepStart, event.TypeStepEnd:
		d, err := event.DecodeStep(e.Data)
		must(err)
		return fmt.Sprintf("%s %d.%d", e.Type, d.Turn, d.Step)
	case event.TypeRequestHeader:
		d, err := event.DecodeRequestHeader(e.Data)
		must(err)
		names := make([]string, len(d.Tools))
		for i, tool := range d.Tools {
			names[i] = tool.Name
		}
		return fmt.Sprintf("request/header %s %s [%s]", d.Reason, d.Model, strings.Join(names, " "))
	case event.TypeUserMessage:
		d, err := event.DecodeUserMessage(e.Data)
		must(err)
		return "user/message " + d.ID
	case event.TypeAssistant:
		d, err := event.DecodeAssistant(e.Data)
		must(err)
		s := fmt.Sprintf("assistant/message %d.%d", d.Turn, d.Step)
		if d.Interrupted {
			s += " interrupted"
		}
		for _, b := range d.Blocks {
			switch b.Type {
			case event.BlockText:
				s += fmt.Sprintf(" %q", b.Text)
			case event.BlockReasoning:
				s += fmt.Sprintf(" (%s)", b.Text)
			case event.BlockToolCall:
				s += fmt.Sprintf(" %s:%s", b.Name, b.CallID)
			}
		}
		return s
	case event.TypeToolCall:
		d, err := event.DecodeToolCall(e.Data)
		must(err)
		return fmt.Sprintf("tool/call %d.%d %s:%s", d.Turn, d.Step, d.Name, d.CallID)
	case event.TypeToolResult:
		d, err := event.DecodeToolResult(e.Data)
		must(err)
		s := fmt.Sprintf("tool/result %d.%d %s", d.Turn, d.Step, d.CallID)
		if d.IsError {
			s += " " + d.ErrName + " " + d.ErrCode
		}
		return s + fmt.Sprintf(" %q", d.Text)
	case event.TypeSpliced:
		d, err := event.DecodeSpliced(e.Data)
		must(err)
		s := fmt.Sprintf("spliced %s at %d", d.Target, d.Start)
		if d.RemovedCount > 0 {
			s += fmt.Sprintf(" -%d", d.RemovedCount)
		}
		for _, m := range d.Inserted {
			s += " +" + m.ID
		}
		return strings.TrimSpace(s + " " + d.Outcome)
	}
	return e.Type
}
