package runcode

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"meanwhile/host/agent"
	"meanwhile/host/agent/agenttest"
	"meanwhile/host/llm"
	"meanwhile/host/question"
	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/host/tool"
	"meanwhile/host/tool/askuser"
	"meanwhile/shared/event"
	"meanwhile/shared/projection"
)

// quiet carries events to nobody.
type quiet struct {
	event question.Event
	once  sync.Once
}

func (q *quiet) Cancel(code string) (first bool) {
	q.once.Do(func() {
		first = true
		q.event.Settled(question.Settlement{Kind: question.Cancelled, Code: code})
	})
	return first
}

func (q *quiet) Reemit() bool { return false }

// content finds every batch in order.
type content struct{}

func (content) CheckAsk(context.Context, []byte) (*projection.Problem, error) { return nil, nil }
func (content) CheckAnswer(context.Context, []byte, []byte) (*projection.Problem, error) {
	return nil, nil
}

const askCode = `const q = {questions: [{id: "store", question: "Which store?", options: [{label: "Postgres"}, {label: "SQLite"}]}], timeout: 5};
const r = JSON.parse(await tools.ask_user_question(q));
await tools.gate({});
return r.pending ? "pending " + r.callId : "answered"`

// asking is a world whose agents ask from programs; nobody answers in time.
type asking struct {
	*agenttest.World
	gate  *agenttest.Gate
	model *agenttest.Model
	svc   *question.Service
}

func newAsking(t *testing.T, disk *sessiontest.Mem) *asking {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"code": askCode})
	if err != nil {
		t.Fatal(err)
	}
	x := &asking{gate: agenttest.NewGate("gate")}
	x.model = agenttest.Respond(func(_ int, r llm.Request) agenttest.Reply {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == llm.RoleUser && last.Text() == "text of m1" {
			return agenttest.Use(agenttest.Call("c1", Name, string(raw)))
		}
		return agenttest.Say("done")
	})
	x.World = agenttest.New(t, agenttest.Options{Backend: disk, Model: x.model, Tools: func(a *agent.Agent) []tool.Tool {
		tools := []tool.Tool{askuser.New(x.svc, a, askuser.Options{Mode: askuser.Timed}), x.gate}
		tl, err := New(engine, a, tools, Config{})
		if err != nil {
			t.Fatal(err)
		}
		return append(tools, tl)
	}})
	start := time.Now()
	x.svc = question.New(question.Options{
		Emit:      func(e question.Event) question.Pending { return &quiet{event: e} },
		Validator: content{},
		Agents:    x.Agents,
		Clock: func() question.Instant {
			d := time.Since(start)
			return question.Instant{Wall: d, Mono: d}
		},
	})
	t.Cleanup(x.svc.Close)
	return x
}

// active is the continued ask of a session, "" for none.
func active(a *agent.Agent) (callID string) {
	a.Log().View(func(s *session.State) {
		for q := range s.Questions.AllActive {
			if q.State == projection.Continued {
				callID = q.CallID
			}
		}
	})
	return callID
}

// An ask of a program that times out is pending for the program, and its late
// answer reaches the agent as any other: here while the program still runs.
func TestAskAnsweredLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newAsking(t, nil)
		a := x.Create(event.Header{})
		agenttest.Send(t, a, "m1")
		synctest.Wait()
		if id := active(a); id != "" {
			t.Fatalf("%s is continued before its time", id)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		id := active(a)
		if len(x.gate.Started()) != 1 || id == "" {
			t.Fatalf("after the timeout: gate %v, continued %q", x.gate.Started(), id)
		}
		r, err := x.svc.Answer(t.Context(), a, id, json.RawMessage(`{"answers":[{"id":"store","selected":["SQLite"]}]}`), "late", "desk")
		if err != nil || !r.Accepted {
			t.Fatalf("answer: %+v, %v", r, err)
		}
		x.gate.Open(x.gate.Started()[0], "")
		synctest.Wait()
		got := tail(t, a)
		want := strings.Join([]string{
			"tool/ptc-dispatch", "spliced next-step at 0 +late", "tool/ptc-dispatch",
			`tool/result 1.1 c1 "pending ` + id + `"`,
			"step/end 1.1", "spliced next-step at 0 -1", "user/message late", "step/start 1.2",
			`assistant/message 1.2 "done"`, "step/end 1.2", "turn/end 1 completed", "",
		}, "\n")
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if id := active(a); id != "" {
			t.Errorf("%s is still continued", id)
		}
		if ds := dispatches(t, a.Log()); ds[0].Name != projection.ToolName || ds[0].SubCallID != id {
			t.Errorf("recorded %+v", ds[0])
		}
	})
}

// The host is killed after each write. Once the ask's event is on disk the ask
// can be answered, whatever became of the program; before, nobody hears of it.
func TestKilledAnywhere(t *testing.T) {
	var batches []session.Batch
	var asked, sub string
	synctest.Test(t, func(t *testing.T) {
		disk := sessiontest.NewMem()
		x := newAsking(t, disk)
		a := x.Create(event.Header{})
		asked = a.ID()
		agenttest.Send(t, a, "m1")
		time.Sleep(6 * time.Second)
		synctest.Wait()
		sub = active(a)
		x.gate.Open(x.gate.Started()[0], "")
		synctest.Wait()
		batches = disk.Batches()
	})
	seen := map[bool]int{}
	for n := 1; n <= len(batches); n++ {
		synctest.Test(t, func(t *testing.T) {
			x := newAsking(t, sessiontest.NewMem(batches[:n]...))
			if _, err := x.Store.RepairAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			l, err := x.Store.Open(t.Context(), asked)
			if err != nil {
				t.Fatal(err)
			}
			recorded := false
			for _, d := range dispatches(t, l) {
				recorded = recorded || d.SubCallID == sub
			}
			seen[recorded]++
			a := x.Resume(asked)
			if id := active(a); (id == sub) != recorded {
				t.Fatalf("after %d writes: recorded %v, continued %q", n, recorded, id)
			}
			r, err := x.svc.Answer(t.Context(), a, sub, json.RawMessage(`{"answers":[{"id":"store","selected":["SQLite"]}]}`), "late", "desk")
			if err != nil || r.Accepted != recorded {
				t.Errorf("after %d writes: answer %+v, %v; want accepted %v", n, r, err, recorded)
			}
			time.Sleep(6 * time.Second) // a message that waited starts its turn, and asks
			for _, id := range x.gate.Running() {
				x.gate.Open(id, "")
			}
			synctest.Wait()
			got := agenttest.Transcript(t, a.Log())
			if admitted := strings.Count(got, "user/message late"); (admitted == 1) != recorded {
				t.Errorf("after %d writes: admitted %d times in\n%s", n, admitted, got)
			}
			if !strings.HasSuffix(strings.TrimSpace(got), "completed") && recorded {
				t.Errorf("after %d writes the log ends\n%s", n, got)
			}
		})
	}
	if seen[true] < 3 || seen[false] < 3 {
		t.Errorf("the story is too short: %v", seen)
	}
}
