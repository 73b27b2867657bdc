package session_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/shared/event"
)

var ctx = context.Background()

// user is a user message as a draft.
func user(id, text string) event.Draft {
	return event.Message{ID: id, Source: event.Source{Kind: event.SourceUser}, Text: text}.Draft()
}

func splice(target string, start, removed int64, inserted ...event.Message) event.Draft {
	return event.Spliced{Target: target, Start: start, RemovedCount: removed, Inserted: inserted}.Draft()
}

func msg(id, text string) event.Message {
	return event.Message{ID: id, Source: event.Source{Kind: event.SourceUser}, Text: text}
}

// timedHeader makes the asks that follow tracked.
func timedHeader() event.Draft {
	return event.RequestHeader{Provider: "p", Model: "m", Reason: event.HeaderInitial, Tools: []event.ToolSpec{{
		Name: "ask_user_question", Parameters: []byte(`{"type":"object","properties":{"timeout":{"type":"integer"}}}`)}}}.Draft()
}

const askArgs = `{"questions":[{"id":"q","question":"Which?","options":[{"label":"A"},{"label":"B"}]}]}`

func ask(turn, step int64, callID string) event.Draft {
	return event.ToolCall{Turn: turn, Step: step, CallID: callID, Name: "ask_user_question", Arguments: askArgs}.Draft()
}

func result(turn, step int64, callID, text string) event.Draft {
	return event.ToolResult{Turn: turn, Step: step, MessageID: "r-" + callID, CallID: callID, Text: text}.Draft()
}

func turn(n int64, inner ...event.Draft) []event.Draft {
	out := []event.Draft{event.TurnStart{Turn: n}.Draft(), event.Step{Turn: n, Step: 1}.StartDraft()}
	out = append(out, inner...)
	return append(out, event.Step{Turn: n, Step: 1}.EndDraft(), event.TurnEnd{Turn: n, Kind: event.TurnCompleted}.Draft())
}

func reopen(t *testing.T, m *sessiontest.Mem) *session.Store {
	t.Helper()
	return sessiontest.OpenOn(t, sessiontest.NewMem(m.Batches()...))
}

func open(t *testing.T, s *session.Store, id string) *session.Log {
	t.Helper()
	l, err := s.Open(ctx, id)
	if err != nil {
		t.Fatalf("open %s: %v", id, err)
	}
	return l
}

func TestUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := sessiontest.Create(t, sessiontest.Open(t))
		start := time.Now().UnixMilli()
		c := sessiontest.Append(t, l, user("m1", "one"), user("m2", "two"))
		time.Sleep(time.Second)
		sessiontest.Append(t, l, user("m3", "three"))
		if c.First != 0 || len(c.Events) != 2 {
			t.Errorf("first commit: seq %d, %d events", c.First, len(c.Events))
		}
		for i, e := range sessiontest.Events(t, l) {
			wantTime := start
			if i == 2 {
				wantTime += 1000
			}
			if e.Seq != int64(i) || e.Time != wantTime {
				t.Errorf("event %d: seq %d time %d, want time %d", i, e.Seq, e.Time, wantTime)
			}
		}
		if _, err := l.Update(func(*session.State) ([]event.Draft, error) { return nil, os.ErrInvalid }); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("error of a decision: got %v", err)
		}
		for name, d := range map[string]event.Draft{
			"unknown type":  {Type: "no/such", Data: []byte("{}")},
			"bad data":      {Type: event.TypeTurnStart, Data: []byte(`{"turn":`)},
			"not an object": {Type: event.TypeTurnStart, Data: []byte(`1`)},
		} {
			if _, err := l.Update(func(*session.State) ([]event.Draft, error) { return []event.Draft{d}, nil }); err == nil {
				t.Errorf("%s was appended", name)
			}
		}
		big := user("big", strings.Repeat("x", 5<<20))
		if _, err := l.Update(func(*session.State) ([]event.Draft, error) { return []event.Draft{big}, nil }); !errors.Is(err, session.ErrTooLarge) {
			t.Errorf("large change: got %v, want ErrTooLarge", err)
		}
		if got := len(sessiontest.Events(t, l)); got != 3 {
			t.Errorf("%d events after refusals, want 3", got)
		}
	})
}

// Nothing is readable, listed or acknowledged before it is on disk.
func TestDurableOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := sessiontest.NewMem()
		s := sessiontest.OpenOn(t, mem)
		l := sessiontest.Create(t, s)
		sessiontest.Append(t, l, user("m0", "zero"))
		mem.Hold()
		c, err := l.Update(func(*session.State) ([]event.Draft, error) { return []event.Draft{user("m1", "one")}, nil })
		if err != nil {
			t.Fatal(err)
		}
		var saw int64
		empty, err := l.Update(func(s *session.State) ([]event.Draft, error) { saw = s.Next; return nil, nil })
		if err != nil || saw != 2 {
			t.Fatalf("the next decision sees seq %d, %v; want the staged event", saw, err)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		for name, wait := range map[string]func() error{
			"commit":       func() error { return c.Wait(short) },
			"empty commit": func() error { return empty.Wait(short) },
			"snapshot":     func() error { _, err := l.Snapshot(short); return err },
		} {
			if err := wait(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s before the sync: got %v, want the context's end", name, err)
			}
		}
		if got := sessiontest.Events(t, l); len(got) != 1 {
			t.Errorf("%d events are readable before the sync, want 1", len(got))
		}
		if r, _ := s.Row(l.ID()); r.Seq != 0 {
			t.Errorf("the list has seq %d before the sync, want 0", r.Seq)
		}
		mem.Release()
		for name, err := range map[string]error{"commit": c.Wait(ctx), "empty commit": empty.Wait(ctx)} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if r, _ := s.Row(l.ID()); r.Seq != 1 || len(sessiontest.Events(t, l)) != 2 {
			t.Errorf("after the sync: seq %d in the list", r.Seq)
		}
	})
}

// Whichever batch fails: it and all later ones are refused, Fatal is told once,
// and what was acknowledged is there after a restart.
func TestEveryWriteFails(t *testing.T) {
	for fail := range 6 {
		mem := sessiontest.NewMem()
		n := 0
		mem.FailWhen(func(session.Batch) error {
			if n++; n > fail {
				return errors.New("disk says no")
			}
			return nil
		})
		fatal := 0
		s, err := session.Open(mem, session.Options{Fatal: func(error) { fatal++ }})
		if err != nil {
			t.Fatal(err)
		}
		acked := 0
		l, err := s.Create(ctx, event.Header{ID: "s"})
		for i := range 5 {
			if err != nil {
				break
			}
			var c *session.Commit
			c, err = l.Update(func(*session.State) ([]event.Draft, error) { return []event.Draft{user(fmt.Sprint(i), "x")}, nil })
			if err == nil {
				err = c.Wait(ctx)
			}
			if err == nil {
				acked++
			}
		}
		if !errors.Is(err, session.ErrUnknown) && fail < 6 {
			t.Errorf("fault at batch %d: got %v, want ErrUnknown", fail, err)
		}
		if l != nil {
			if c, err := l.Update(func(*session.State) ([]event.Draft, error) { return []event.Draft{user("late", "x")}, nil }); err == nil && c.Wait(ctx) == nil {
				t.Errorf("fault at batch %d: a later write was acknowledged", fail)
			}
		}
		if fatal != 1 {
			t.Errorf("fault at batch %d: Fatal was called %d times", fail, fatal)
		}
		after := reopen(t, mem)
		if fail == 0 {
			if len(after.List()) != 0 {
				t.Error("a session whose creation failed is listed")
			}
			continue
		}
		if got := len(sessiontest.Events(t, open(t, after, "s"))); got != acked {
			t.Errorf("fault at batch %d: %d events after restart, %d acknowledged", fail, got, acked)
		}
	}
}

// A decision that contradicts the folds is refused whole.
func TestBadSpliceLeavesNoTrace(t *testing.T) {
	l := sessiontest.Create(t, sessiontest.Open(t))
	sessiontest.Append(t, l, splice(event.NextTurn, 0, 0, msg("a", "x")))
	bad := []event.Draft{splice(event.NextTurn, 1, 0, msg("b", "x")), splice(event.NextTurn, 9, 0, msg("c", "x"))}
	if _, err := l.Update(func(*session.State) ([]event.Draft, error) { return bad, nil }); err == nil {
		t.Fatal("a splice out of range was accepted")
	}
	l.View(func(s *session.State) {
		if s.Next != 1 || s.Inbox.Len() != 1 || !s.Inbox.Has("a") {
			t.Errorf("state after refusal: next %d, %d waiting", s.Next, s.Inbox.Len())
		}
	})
	sessiontest.Append(t, l, splice(event.NextTurn, 1, 0, msg("b", "x")))
}

func TestBalance(t *testing.T) {
	l := sessiontest.Create(t, sessiontest.Open(t))
	sessiontest.Append(t, l, user("u", "  Fix the\u0007 build\nplease"),
		event.TurnStart{Turn: 1}.Draft(), event.Step{Turn: 1, Step: 1}.StartDraft(), timedHeader(),
		event.Assistant{Turn: 1, Step: 1, ID: "a", Blocks: []event.Block{
			{Type: event.BlockToolCall, CallID: "c1", Name: "bash", Arguments: "{}"},
			{Type: event.BlockToolCall, CallID: "c2", Name: "bash", Arguments: "{}"},
			{Type: event.BlockToolCall, CallID: "c3", Name: "bash", Arguments: "{}"}}}.Draft(),
		event.ToolCall{Turn: 1, Step: 1, CallID: "c2", Name: "bash", Arguments: "{}"}.Draft(),
		event.ToolCall{Turn: 1, Step: 1, CallID: "c1", Name: "bash", Arguments: "{}"}.Draft(),
		result(1, 1, "c1", "done"))
	l.View(func(s *session.State) {
		want := []session.Call{{Turn: 1, Step: 1, CallID: "c2", Name: "bash", Started: true}, {Turn: 1, Step: 1, CallID: "c3", Name: "bash"}}
		if diff := cmp.Diff(want, s.Calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if !s.TurnOpen || !s.StepOpen || s.Turn != 1 || s.Step != 1 || s.Balanced() {
			t.Errorf("balance: %+v", s.Balance)
		}
		if s.Title() != "Fix the build" {
			t.Errorf("title %q", s.Title())
		}
		if !s.Used("c3") || s.Used("c4") {
			t.Error("used call ids are wrong")
		}
		if s.Request == nil {
			t.Error("the request header is not kept")
		}
	})
}

func TestRepair(t *testing.T) {
	call := func(id, name, args string) event.Draft {
		return event.ToolCall{Turn: 1, Step: 1, CallID: id, Name: name, Arguments: args}.Draft()
	}
	begin := []event.Draft{event.TurnStart{Turn: 1}.Draft(), event.Step{Turn: 1, Step: 1}.StartDraft()}
	for _, tt := range []struct {
		name string
		log  []event.Draft
		want []string          // types added
		code map[string]string // by call id
		text map[string]string // part of the result's text, by call id
	}{
		{name: "empty"},
		{name: "balanced", log: turn(1, call("c", "bash", "{}"), result(1, 1, "c", "ok"))},
		{name: "message alone", log: []event.Draft{user("u", "x")}},
		{name: "turn only", log: begin[:1], want: []string{"turn/end"}},
		{name: "step open", log: begin, want: []string{"step/end", "turn/end"}},
		{name: "not started", log: append(begin[:2:2], event.Assistant{Turn: 1, Step: 1, ID: "a",
			Blocks: []event.Block{{Type: event.BlockToolCall, CallID: "c", Name: "bash", Arguments: "{}"}}}.Draft()),
			want: []string{"tool/result", "step/end", "turn/end"}, code: map[string]string{"c": event.CodeNotStarted},
			text: map[string]string{"c": "no effect"}},
		{name: "outcome unknown", log: append(begin[:2:2], call("c", "bash", "{}")),
			want: []string{"tool/result", "step/end", "turn/end"}, code: map[string]string{"c": event.CodeOutcomeUnknown},
			text: map[string]string{"c": "first look at"}},
		{name: "plan", log: append(begin[:2:2], call("c", "submit_plan", "{}")),
			want: []string{"tool/result", "step/end", "turn/end"}, code: map[string]string{"c": event.CodeOutcomeUnknown},
			text: map[string]string{"c": "Nobody approved"}},
		{name: "legacy ask", log: append(begin[:2:2], call("c", "ask_user_question", askArgs)),
			want: []string{"tool/result", "step/end", "turn/end"}, code: map[string]string{"c": event.CodeOutcomeUnknown},
			text: map[string]string{"c": "Ask again"}},
		{name: "timed ask", log: append(begin[:2:2], timedHeader(), ask(1, 1, "c")),
			want: []string{"tool/result", "step/end", "turn/end"}, code: map[string]string{"c": event.CodeOutcomeUnknown},
			text: map[string]string{"c": "do not ask it again"}},
		{name: "calls in their order", log: append(begin[:2:2], call("b", "bash", "{}"), call("a", "bash", "{}"), call("c", "bash", "{}"), result(1, 1, "a", "ok")),
			want: []string{"tool/result", "tool/result", "step/end", "turn/end"},
			code: map[string]string{"b": event.CodeOutcomeUnknown, "c": event.CodeOutcomeUnknown}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mem := sessiontest.NewMem()
			l := sessiontest.Create(t, sessiontest.OpenOn(t, mem))
			if len(tt.log) > 0 {
				sessiontest.Append(t, l, tt.log...)
			}
			s := reopen(t, mem)
			n, err := s.RepairAll(ctx)
			if err != nil || (n > 0) != (len(tt.want) > 0) {
				t.Errorf("repaired %d logs, %v", n, err)
			}
			events := sessiontest.Events(t, open(t, s, l.ID()))
			added := events[len(tt.log):]
			if diff := cmp.Diff(tt.want, append([]string(nil), sessiontest.Types(added)...)); diff != "" {
				t.Errorf("added (-want +got):\n%s", diff)
			}
			for _, e := range added {
				if e.Type != event.TypeToolResult {
					continue
				}
				r, err := event.DecodeToolResult(e.Data)
				if err != nil || !r.IsError || r.ErrCode != tt.code[r.CallID] || !strings.Contains(r.Text, tt.text[r.CallID]) {
					t.Errorf("result of %s: %+v, %v", r.CallID, r, err)
				}
			}
			open(t, s, l.ID()).View(func(st *session.State) {
				if _, active := st.Questions.Active("c"); active != (tt.name == "timed ask") {
					t.Errorf("ask active after repair: %v", active)
				}
				if len(tt.want) > 0 && st.Ended != event.TurnInterrupted {
					t.Errorf("last turn ended %q", st.Ended)
				}
			})
			if n, err := s.RepairAll(ctx); n != 0 || err != nil {
				t.Errorf("second repair: %d, %v", n, err)
			}
		})
	}
}

// After a crash between any two batches, repair leaves a balanced log, and the
// queue and the asks are what the batches before said.
func TestCrashBetweenWrites(t *testing.T) {
	mem := sessiontest.NewMem()
	l := sessiontest.Create(t, sessiontest.OpenOn(t, mem))
	steps := [][]event.Draft{
		{splice(event.NextTurn, 0, 0, msg("u1", "go"))},
		{event.TurnStart{Turn: 1}.Draft(), splice(event.NextTurn, 0, 1), user("u1", "go")},
		{event.Step{Turn: 1, Step: 1}.StartDraft(), timedHeader()},
		{event.Assistant{Turn: 1, Step: 1, ID: "a", Blocks: []event.Block{{Type: event.BlockToolCall, CallID: "c1", Name: "ask_user_question", Arguments: askArgs},
			{Type: event.BlockToolCall, CallID: "c2", Name: "bash", Arguments: "{}"}}}.Draft()},
		{ask(1, 1, "c1")},
		{event.ToolCall{Turn: 1, Step: 1, CallID: "c2", Name: "bash", Arguments: "{}"}.Draft()},
		{result(1, 1, "c1", `{"pending":true,"callId":"c1","message":"later"}`)},
		{result(1, 1, "c2", "ok"), event.Step{Turn: 1, Step: 1}.EndDraft()},
		{splice(event.NextStep, 0, 0, event.Message{ID: "r", Source: event.Source{Kind: event.SourceReply, CallID: "c1", Outcome: "answered"}, Text: `{"answers":[{"id":"q","selected":["A"]}]}`})},
		{splice(event.NextStep, 0, 1), event.Message{ID: "r", Source: event.Source{Kind: event.SourceReply, CallID: "c1", Outcome: "answered"}, Text: `{"answers":[{"id":"q","selected":["A"]}]}`}.Draft()},
		{event.TurnEnd{Turn: 1, Kind: event.TurnCompleted}.Draft()},
	}
	for _, d := range steps {
		sessiontest.Append(t, l, d...)
	}
	batches := mem.Batches()
	for n := range len(batches) + 1 {
		s := sessiontest.OpenOn(t, sessiontest.NewMem(batches[:n]...))
		if _, err := s.RepairAll(ctx); err != nil {
			t.Fatalf("after %d batches: %v", n, err)
		}
		rows := s.List()
		if n == 0 {
			if len(rows) != 0 {
				t.Errorf("after no batch: %v", rows)
			}
			continue
		}
		open(t, s, l.ID()).View(func(st *session.State) {
			if !st.Balanced() || len(st.Calls) != 0 {
				t.Errorf("after %d batches: not balanced: %+v", n, st.Balance)
			}
			_, active := st.Questions.Active("c1")
			answers, settled := st.Questions.Settled("c1")
			if wantActive := n >= 6 && n < 11; active != wantActive || settled != (n >= 11) || settled && len(answers) != 1 {
				t.Errorf("after %d batches: ask active %v, settled %v %v", n, active, settled, answers)
			}
			if want := map[bool]int{true: 1, false: 0}[n == 2 || n == 10]; st.Inbox.Len() != want {
				t.Errorf("after %d batches: %d messages wait, want %d", n, st.Inbox.Len(), want)
			}
		})
		if r := s.List()[0]; r.Status == session.StatusRunning || n >= 3 && n < 12 && r.Status != event.TurnInterrupted {
			t.Errorf("after %d batches: status %q", n, r.Status)
		}
	}
}
