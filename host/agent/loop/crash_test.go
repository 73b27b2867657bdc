package loop_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"meanwhile/host/agent"
	"meanwhile/host/agent/agenttest"
	"meanwhile/host/agent/loop"
	"meanwhile/host/llm"
	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/host/tool"
	"meanwhile/shared/event"
)

// story is a turn with two tools, one of which waits, and a prompt and two
// steered messages that come while it runs.
type story struct {
	gate  *agenttest.Gate
	model *agenttest.Model
	tools func(*agent.Agent) []tool.Tool
}

func newStory() *story {
	s := &story{gate: agenttest.NewGate("gate")}
	s.model = agenttest.Respond(func(n int, r llm.Request) agenttest.Reply {
		last := r.Messages[len(r.Messages)-1]
		if last.Role == llm.RoleUser && last.Text() == "text of m1" {
			return agenttest.Use(agenttest.Call("a", "gate", "{}"), agenttest.Call("b", "echo", "{}"))
		}
		return agenttest.Say(fmt.Sprint("reply ", n))
	})
	s.tools = tools(s.gate, agenttest.Func{Name: "echo", Do: func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Text: "echoed"}, nil
	}})
	return s
}

// wellFormed checks what every provider demands of a request: each call is
// followed by its result, and no result stands without its call.
func wellFormed(t *testing.T, m *agenttest.Model) {
	t.Helper()
	for n, r := range m.Requests() {
		var open []string
		for i, msg := range r.Messages {
			if msg.Role == llm.RoleTool {
				if len(open) == 0 || open[0] != msg.ToolCallID {
					t.Errorf("request %d, message %d: result of %s where %v are open", n, i, msg.ToolCallID, open)
					return
				}
				open = open[1:]
				continue
			}
			if len(open) > 0 {
				t.Errorf("request %d, message %d: a %s message where results of %v belong", n, i, msg.Role, open)
			}
			for _, c := range msg.ToolCalls() {
				open = append(open, c.CallID)
			}
		}
		if len(open) > 0 {
			t.Errorf("request %d ends without results of %v", n, open)
		}
	}
}

// fates counts how often each message was admitted and removed, and checks that
// nothing else became of it.
func fates(t *testing.T, a *agent.Agent) (queued, admitted map[string]int) {
	t.Helper()
	queued, admitted = map[string]int{}, map[string]int{}
	for _, e := range sessiontest.Events(t, a.Log()) {
		switch e.Type {
		case event.TypeSpliced:
			d, err := event.DecodeSpliced(e.Data)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range d.Inserted {
				queued[m.ID]++
			}
		case event.TypeUserMessage:
			m, err := event.DecodeUserMessage(e.Data)
			if err != nil {
				t.Fatal(err)
			}
			admitted[m.ID]++
		}
	}
	return queued, admitted
}

// onceEach checks that every message that was queued is admitted exactly once.
func onceEach(t *testing.T, a *agent.Agent) {
	t.Helper()
	queued, admitted := fates(t, a)
	for id := range queued {
		if admitted[id] != 1 {
			t.Errorf("message %s is admitted %d times in\n%s", id, admitted[id], agenttest.Transcript(t, a.Log()))
		}
	}
	if len(admitted) > len(queued) {
		t.Errorf("%d messages are admitted, %d were queued", len(admitted), len(queued))
	}
}

// anywhere plays the story and, after each number of writes, calls interrupt.
// Whatever it does, the log it leaves goes on balanced once there is a new word,
// and no message is lost or read twice.
func anywhere(t *testing.T, interrupt func(w *agenttest.World, a *agent.Agent) *agent.Agent) {
	for at, done := 0, false; !done; at++ {
		if at > 100 {
			t.Fatal("the story does not end")
		}
		t.Run(fmt.Sprint("batch ", at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStory()
				w := agenttest.New(t, agenttest.Options{Model: s.model, Tools: s.tools})
				a := w.Create(event.Header{})
				w.Mem.Hold()
				go agenttest.Send(t, a, "m1")
				for tick := range at {
					synctest.Wait()
					switch {
					case w.Mem.Waiting() > 0:
						w.Mem.Sync(1)
					case len(s.gate.Running()) > 0:
						s.gate.Open("a", "opened")
					default:
						done = true
					}
					if tick == 4 {
						go agenttest.Steer(t, a, "s1")
						go agenttest.Send(t, a, "m2")
					}
				}
				synctest.Wait()
				a = interrupt(w, a)
				synctest.Wait()
				s.gate.Open("a", "opened") // where no turn ran yet
				synctest.Wait()
				balanced(t, a)
				agenttest.Steer(t, a, "s2")
				synctest.Wait()
				s.gate.Open("a", "opened")
				synctest.Wait()
				balanced(t, a)
				onceEach(t, a)
				wellFormed(t, s.model)
				// What came too late for its turn ends no other.
				if last := agenttest.Transcript(t, a.Log()); !strings.HasSuffix(last, " completed\n") {
					t.Errorf("the last turn did not complete:\n%s", last)
				}
				if got := a.Status(); got.State != agent.Idle {
					t.Errorf("status = %v, want idle", got)
				}
			})
		})
	}
}

func TestCancelAnywhere(t *testing.T) {
	anywhere(t, func(w *agenttest.World, a *agent.Agent) *agent.Agent {
		a.Cancel("by the user")
		w.Mem.Release()
		return a
	})
}

// The agent closes in the middle and comes back in the same process.
func TestCloseAnywhere(t *testing.T) {
	anywhere(t, func(w *agenttest.World, a *agent.Agent) *agent.Agent {
		if err := w.Agents.Remove(context.Background(), a); err != nil {
			t.Error(err)
		}
		w.Mem.Release()
		synctest.Wait()
		return w.Resume(a.ID())
	})
}

// A write fails, whichever it is: the agent gives the turn up, says so, and can
// still be closed. The process stops meanwhile; the next one repairs.
func TestStorageFailsAnywhere(t *testing.T) {
	for at := 1; at < 12; at++ {
		t.Run(fmt.Sprint("batch ", at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wet := errors.New("the disk is wet")
				n, fatal := 0, 0
				mem := sessiontest.NewMem()
				mem.FailWhen(func(session.Batch) error {
					if n++; n > at {
						return wet
					}
					return nil
				})
				store, err := session.Open(mem, session.Options{Fatal: func(error) { fatal++ }, Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				s := newStory()
				w := agenttest.New(t, agenttest.Options{Backend: mem, Store: store, Model: s.model, Tools: s.tools})
				a := w.Create(event.Header{})
				sent := a.Send(context.Background(), agenttest.Message("m1"))
				synctest.Wait()
				s.gate.Open("a", "opened")
				synctest.Wait()
				if sent == nil {
					sent = a.Steer(context.Background(), agenttest.Message("s1"))
					synctest.Wait()
				}
				if at < 10 && (sent == nil || fatal != 1) {
					t.Errorf("a message was taken (%v), the failure was reported %d times, want an error and 1", sent, fatal)
				}
				if err := w.Agents.Remove(context.Background(), a); err != nil {
					t.Error(err)
				}

				again := newStory()
				next := agenttest.New(t, agenttest.Options{Backend: mem.Crash(), Model: again.model, Tools: again.tools})
				b := next.Resume(a.ID())
				synctest.Wait()
				again.gate.Open("a", "opened")
				synctest.Wait()
				balanced(t, b)
				wellFormed(t, again.model)
			})
		})
	}
}

// A process that dies after any write leaves a log that the next one repairs
// and drives to its end, with every message that was accepted read once.
func TestCrashAnywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStory()
		w := agenttest.New(t, agenttest.Options{Model: s.model, Tools: s.tools})
		a := w.Create(event.Header{})
		agenttest.Send(t, a, "m1")
		synctest.Wait()
		agenttest.Steer(t, a, "s1")
		agenttest.Send(t, a, "m2")
		agenttest.Steer(t, a, "s2")
		s.gate.Open("a", "opened")
		synctest.Wait()
		onceEach(t, a)
		full := agenttest.Transcript(t, a.Log())
		batches := w.Mem.Batches()
		if len(batches) < 15 {
			t.Fatalf("the story has %d batches, want more to cut between", len(batches))
		}
		for n := 1; n <= len(batches); n++ {
			disk := sessiontest.NewMem(batches[:n]...)
			again := newStory()
			next := agenttest.New(t, agenttest.Options{Backend: disk, Model: again.model, Tools: again.tools})
			before := 0
			for _, b := range batches[:n] {
				before += len(b.Events)
			}
			if _, err := next.Store.RepairAll(context.Background()); err != nil {
				t.Fatal(err)
			}
			b := next.Resume(a.ID())
			synctest.Wait()
			again.gate.Open("a", "opened")
			synctest.Wait()
			balanced(t, b)
			if b.Status().State == agent.Queued {
				agenttest.Steer(t, b, "word")
				synctest.Wait()
			}
			if got := b.Status(); got.State != agent.Idle {
				t.Errorf("cut after %d batches: status = %v, want idle", n, got)
			}
			balanced(t, b)
			onceEach(t, b)
			wellFormed(t, again.model)
			if got, want := firstLines(agenttest.Transcript(t, b.Log()), before), firstLines(full, before); got != want {
				t.Errorf("cut after %d batches: the log before the cut changed:\n%s\nwant:\n%s", n, got, want)
			}
		}
	})
}

func firstLines(s string, n int) string {
	if n == 0 {
		return ""
	}
	for i := range s {
		if s[i] == '\n' {
			if n--; n == 0 {
				return s[:i+1]
			}
		}
	}
	return s
}

// Messages that arrive while turns end, are cancelled and start anew: each is
// read once or was taken back, whatever the interleaving.
func TestHammer(t *testing.T) {
	const writers, each = 8, 40
	model := agenttest.Respond(func(n int, r llm.Request) agenttest.Reply {
		if n%5 == 1 && r.Messages[len(r.Messages)-1].Role == llm.RoleUser {
			return agenttest.Use(agenttest.Call("", "echo", "{}"), agenttest.Call("", "echo", "{}"))
		}
		return agenttest.Say("ok")
	})
	w := agenttest.New(t, agenttest.Options{Model: model, Tools: newStory().tools,
		Loop: loop.Options{Bounds: loop.Bounds{Steps: 6}}})
	a := w.Create(event.Header{})
	var removed sync.Map
	var taken atomic.Int32
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 3))
			for j := range each {
				id := fmt.Sprintf("w%d-%d", i, j)
				switch rnd.IntN(8) {
				case 0:
					agenttest.Send(t, a, id)
				case 1:
					a.Cancel("hammer")
					agenttest.Steer(t, a, id)
				case 2:
					agenttest.Send(t, a, id)
					ok, err := a.RemoveQueued(context.Background(), id)
					if err != nil {
						t.Error(err)
					}
					if ok {
						removed.Store(id, true)
						taken.Add(1)
					}
				default:
					agenttest.Steer(t, a, id)
				}
			}
		})
	}
	all.Wait()
	agenttest.Steer(t, a, "last")
	if err := a.Driver().Settled(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := a.Status(); got.State != agent.Idle {
		t.Errorf("status = %v, want idle", got)
	}
	balanced(t, a)
	wellFormed(t, model)
	queued, admitted := fates(t, a)
	for id := range queued {
		want := 1
		if _, ok := removed.Load(id); ok {
			want = 0
		}
		if admitted[id] != want {
			t.Errorf("message %s is admitted %d times, want %d", id, admitted[id], want)
		}
	}
	if want := writers*each + 1; len(queued) != want {
		t.Errorf("%d messages were queued, want %d", len(queued), want)
	}
	t.Logf("%d messages, %d taken back, %d requests", len(queued), taken.Load(), len(model.Requests()))
}

// The end of a turn and the arrival of a message, over and over: the message is
// in the turn or starts the next one, and never waits for a third.
func TestNoWakeIsLost(t *testing.T) {
	model := agenttest.Respond(func(int, llm.Request) agenttest.Reply { return agenttest.Say("ok") })
	w := agenttest.New(t, agenttest.Options{Model: model})
	ctx := context.Background()
	for i := range 10 {
		a := w.Create(event.Header{})
		for j := range 40 {
			var both sync.WaitGroup
			both.Go(func() { agenttest.Steer(t, a, fmt.Sprint("a", j)) })
			both.Go(func() { agenttest.Steer(t, a, fmt.Sprint("b", j)) })
			both.Wait()
			if err := a.Driver().Settled(ctx); err != nil {
				t.Fatal(err)
			}
			if got := a.Status(); got.State != agent.Idle {
				t.Fatalf("agent %d, round %d: status = %v, want idle", i, j, got)
			}
		}
	}
}
