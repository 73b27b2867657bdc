package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/agent"
	"meanwhile/host/agent/agenttest"
	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/host/tool"
	"meanwhile/shared/event"
)

// asking is the header of an outside session's calls.
func asking(t *testing.T) event.RequestHeader {
	h, err := agent.Header("external", "bot", "", []tool.Spec{{Name: "ask", Description: "Ask.", Parameters: []byte(`{ "type": "object" }`)}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func newPassive(t *testing.T) (*agenttest.World, *agent.Agent) {
	w := agenttest.New(t, agenttest.Options{})
	var h event.Header
	external(&h)
	return w, w.Create(h)
}

func begin(t *testing.T, a *agent.Agent, id string) error {
	return a.Passive().BeginCall(context.Background(), func(*session.State) (agent.Begin, error) {
		return agent.Begin{CallID: id, Name: "ask", Arguments: "{}", RequestID: "r-" + id, Header: asking(t)}, nil
	})
}

func end(a *agent.Agent, id, text string, reply *event.Message) error {
	return a.Passive().EndCall(context.Background(), func(*session.State) (agent.Ending, error) {
		return agent.Ending{Result: event.ToolResult{CallID: id, Text: text}, Reply: reply}, nil
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// batches is the log with a line between its batches.
func batches(t *testing.T, w *agenttest.World, a *agent.Agent) string {
	t.Helper()
	var out []string
	for _, b := range w.Mem.Batches() {
		if b.Session != a.ID() || len(b.Events) == 0 {
			continue
		}
		var lines []string
		for _, raw := range b.Events {
			e, err := event.ParseEvent(raw)
			must(t, err)
			lines = append(lines, agenttest.Line(t, e))
		}
		out = append(out, strings.Join(lines, "\n"))
	}
	return strings.Join(out, "\n--\n")
}

func TestPassiveRecords(t *testing.T) {
	m1 := agenttest.Message("m1")
	for _, tc := range []struct {
		name string
		do   func(t *testing.T, a *agent.Agent)
		want string
	}{
		{"overlapping calls share a turn, closed by the last result", func(t *testing.T, a *agent.Agent) {
			must(t, begin(t, a, "a"))
			must(t, begin(t, a, "b"))
			must(t, end(a, "a", "1", nil))
			must(t, begin(t, a, "c"))
			must(t, end(a, "c", "3", nil))
			must(t, end(a, "b", "2", nil))
		}, `
turn/start 1
step/start 1.1
request/header initial bot [ask]
tool/call 1.1 ask:a
--
tool/call 1.1 ask:b
--
tool/result 1.1 a "1"
--
tool/call 1.1 ask:c
--
tool/result 1.1 c "3"
--
tool/result 1.1 b "2"
step/end 1.1
turn/end 1 completed`},
		{"the next call opens the next turn", func(t *testing.T, a *agent.Agent) {
			must(t, begin(t, a, "a"))
			must(t, end(a, "a", "1", nil))
			must(t, begin(t, a, "b"))
		}, `
turn/start 1
step/start 1.1
request/header initial bot [ask]
tool/call 1.1 ask:a
--
tool/result 1.1 a "1"
step/end 1.1
turn/end 1 completed
--
turn/start 2
step/start 2.1
tool/call 2.1 ask:b`},
		{"pending and its reply are one batch", func(t *testing.T, a *agent.Agent) {
			must(t, begin(t, a, "a"))
			must(t, end(a, "a", "pending", &m1))
		}, `
turn/start 1
step/start 1.1
request/header initial bot [ask]
tool/call 1.1 ask:a
--
tool/result 1.1 a "pending"
step/end 1.1
turn/end 1 completed
spliced next-step at 0 +m1`},
		{"an admission is a turn of its own, one batch", func(t *testing.T, a *agent.Agent) {
			agenttest.Steer(t, a, "m1")
			agenttest.Send(t, a, "m2")
			got, err := a.Passive().Admit(context.Background(), []string{"m2", "m1", "gone"})
			must(t, err)
			if diff := cmp.Diff([]string{"m1", "m2"}, got); diff != "" {
				t.Errorf("Admit() (-want +got):\n%s", diff)
			}
			got, err = a.Passive().Admit(context.Background(), []string{"m1"})
			must(t, err)
			if len(got) != 0 {
				t.Errorf("Admit() again = %v, want nothing", got)
			}
		}, `
spliced next-step at 0 +m1
--
spliced next-turn at 0 +m2
--
turn/start 1
spliced next-turn at 0 -1
spliced next-step at 0 -1
user/message m1
user/message m2
turn/end 1 completed`},
		{"within an open turn it joins it", func(t *testing.T, a *agent.Agent) {
			must(t, begin(t, a, "a"))
			agenttest.Steer(t, a, "m1")
			_, err := a.Passive().Admit(context.Background(), []string{"m1"})
			must(t, err)
			must(t, end(a, "a", "1", nil))
		}, `
turn/start 1
step/start 1.1
request/header initial bot [ask]
tool/call 1.1 ask:a
--
spliced next-step at 0 +m1
--
spliced next-step at 0 -1
user/message m1
--
tool/result 1.1 a "1"
step/end 1.1
turn/end 1 completed`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, a := newPassive(t)
			tc.do(t, a)
			if diff := cmp.Diff(strings.TrimPrefix(tc.want, "\n"), batches(t, w, a)); diff != "" {
				t.Errorf("batches (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPassiveRefuses(t *testing.T) {
	w, a := newPassive(t)
	no := errors.New("no longer")
	if err := end(a, "a", "1", nil); !errors.Is(err, agent.ErrCallEnded) {
		t.Errorf("EndCall() of no call = %v, want %v", err, agent.ErrCallEnded)
	}
	must(t, begin(t, a, "a"))
	if err := begin(t, a, "a"); !errors.Is(err, agent.ErrCallUsed) {
		t.Errorf("BeginCall() of a used id = %v, want %v", err, agent.ErrCallUsed)
	}
	if err := a.Passive().EndCall(context.Background(), func(*session.State) (agent.Ending, error) { return agent.Ending{}, no }); !errors.Is(err, no) {
		t.Errorf("EndCall() = %v, want %v", err, no)
	}
	must(t, end(a, "a", "1", nil))
	if err := end(a, "a", "1", nil); !errors.Is(err, agent.ErrCallEnded) {
		t.Errorf("EndCall() again = %v, want %v", err, agent.ErrCallEnded)
	}
	before := batches(t, w, a)
	if err := a.Continue(); !errors.Is(err, agent.ErrOutside) {
		t.Errorf("Continue() = %v, want %v", err, agent.ErrOutside)
	}
	if a.Cancel("no") {
		t.Error("Cancel() = true")
	}
	if after := batches(t, w, a); after != before {
		t.Errorf("recorded:\n%s", strings.TrimPrefix(after, before))
	}
	must(t, w.Agents.Remove(context.Background(), a))
	if err := begin(t, a, "b"); !errors.Is(err, agent.ErrNotLive) {
		t.Errorf("BeginCall() of an agent that is gone = %v, want %v", err, agent.ErrNotLive)
	}
}

func TestTooManyOpenCalls(t *testing.T) {
	_, a := newPassive(t)
	for i := range agent.OpenCallsMax {
		must(t, begin(t, a, fmt.Sprint("c", i)))
	}
	if err := begin(t, a, "more"); !errors.Is(err, agent.ErrTooOften) {
		t.Errorf("BeginCall() = %v, want %v", err, agent.ErrTooOften)
	}
}

func TestPassiveStatus(t *testing.T) {
	_, a := newPassive(t)
	check := func(want agent.Status) {
		t.Helper()
		if got := a.Status(); got != want {
			t.Errorf("status = %v, want %v", got, want)
		}
	}
	check(agent.Status{State: agent.Idle})
	must(t, begin(t, a, "a"))
	check(agent.Status{State: agent.Waiting})
	agenttest.Steer(t, a, "m1")
	must(t, end(a, "a", "1", nil))
	check(agent.Status{State: agent.Queued, Reason: agent.OnAgent})
	_, err := a.Passive().Admit(context.Background(), []string{"m1"})
	must(t, err)
	check(agent.Status{State: agent.Idle})
}

// A message that an agent was handed can be removed by nobody, until the lease
// ends; then it is handed out again, under its id.
func TestClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, a := newPassive(t)
		ctx := context.Background()
		claim := func(holder string) []string {
			t.Helper()
			messages, err := a.Passive().Claim(ctx, holder, 10, time.Minute)
			must(t, err)
			out := []string{}
			for _, m := range messages {
				out = append(out, m.ID)
			}
			return out
		}
		removed := func(id string) bool {
			t.Helper()
			ok, err := a.RemoveQueued(ctx, id)
			must(t, err)
			return ok
		}
		agenttest.Send(t, a, "m1")
		agenttest.Steer(t, a, "s1")
		if diff := cmp.Diff([]string{"s1", "m1"}, claim("one")); diff != "" {
			t.Fatalf("Claim() (-want +got):\n%s", diff)
		}
		if got := claim("two"); len(got) != 0 {
			t.Errorf("Claim() of another = %v, want nothing", got)
		}
		if removed("s1") {
			t.Error("a leased message was removed")
		}
		time.Sleep(time.Minute - 1)
		if removed("s1") {
			t.Error("a leased message was removed a tick before the end of its lease")
		}
		time.Sleep(time.Nanosecond)
		if diff := cmp.Diff([]string{"s1", "m1"}, claim("two")); diff != "" {
			t.Errorf("Claim() after the lease (-want +got):\n%s", diff)
		}
		a.Passive().Leave("two")
		if !removed("s1") {
			t.Error("RemoveQueued() = false although the holder left")
		}
		if got, err := a.Passive().Admit(ctx, []string{"s1", "m1"}); err != nil || fmt.Sprint(got) != "[m1]" {
			t.Errorf("Admit() = %v, %v, want m1 alone", got, err)
		}
		if ok, err := a.Passive().Take(ctx, "m1", "one", time.Minute); ok || err != nil {
			t.Errorf("Take() of an admitted message = %t, %v, want false", ok, err)
		}

		// Nothing that is not on disk is handed out.
		w.Mem.Hold()
		go agenttest.Steer(t, a, "s2")
		synctest.Wait()
		got := make(chan []string)
		go func() { got <- claim("one") }()
		synctest.Wait()
		select {
		case ids := <-got:
			t.Errorf("Claim() = %v before it is on disk", ids)
		default:
			w.Mem.Release()
			if ids := <-got; fmt.Sprint(ids) != "[s2]" {
				t.Errorf("Claim() = %v, want s2", ids)
			}
		}
	})
}

// Cut after any write, the log is repaired to one that balances, the outcome of
// an open call is unknown, and no message is lost or admitted twice.
func TestPassiveCrashAnywhere(t *testing.T) {
	w, a := newPassive(t)
	m := agenttest.Message("late")
	must(t, begin(t, a, "a"))
	must(t, begin(t, a, "b"))
	agenttest.Steer(t, a, "m1")
	must(t, end(a, "a", "pending", &m))
	_, err := a.Passive().Admit(context.Background(), []string{"m1"})
	must(t, err)
	must(t, end(a, "b", "2", nil))
	_, err = a.Passive().Admit(context.Background(), []string{"late"})
	must(t, err)
	all := w.Mem.Batches()
	for n := 1; n <= len(all); n++ {
		next := agenttest.New(t, agenttest.Options{Backend: sessiontest.NewMem(all[:n]...)})
		b := next.Resume(a.ID())
		b.Log().View(func(s *session.State) {
			if !s.Balanced() || len(s.Calls) > 0 {
				t.Errorf("cut after %d batches: not balanced: %v", n, s.Calls)
			}
		})
		if _, err := b.Passive().Admit(context.Background(), []string{"m1", "late"}); err != nil {
			t.Fatal(err)
		}
		times := map[string]int{}
		for _, e := range sessiontest.Events(t, b.Log()) {
			if e.Type == event.TypeUserMessage {
				times[agenttest.Line(t, e)]++
			}
		}
		for line, got := range times {
			if got != 1 {
				t.Errorf("cut after %d batches: %s %d times", n, line, got)
			}
		}
		for _, id := range []string{"m1", "late"} {
			if queued := strings.Contains(agenttest.Transcript(t, b.Log()), "+"+id); queued != (times["user/message "+id] == 1) {
				t.Errorf("cut after %d batches: %s was queued: %t, and admitted %d times", n, id, queued, times["user/message "+id])
			}
		}
	}
}
