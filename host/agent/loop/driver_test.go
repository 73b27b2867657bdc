package loop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/agent"
	"meanwhile/host/agent/agenttest"
	"meanwhile/host/agent/loop"
	"meanwhile/host/llm"
	"meanwhile/host/session"
	"meanwhile/host/tool"
	"meanwhile/shared/event"
)

func TestPreviews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.Script(agenttest.Hang(llm.Chunk{Kind: llm.Reasoning, Text: "hm"}, llm.Chunk{Kind: llm.Text, Text: "hel"}, llm.Chunk{Kind: llm.Text, Text: "lo"}))
		w := agenttest.New(t, agenttest.Options{Model: model})
		a := w.Create(event.Header{})
		agenttest.Send(t, a, "m1")
		synctest.Wait()
		var got []string
		ctx, cancel := context.WithCancel(context.Background())
		followed := make(chan error, 1)
		go func() {
			followed <- a.Log().Follow(ctx, nil, func(i session.Item) error {
				if i.Preview != nil {
					got = append(got, fmt.Sprintf("%d.%d %s", i.Preview.Turn, i.Preview.Step, i.Preview.Text))
				}
				return nil
			})
		}()
		synctest.Wait()
		cancel()
		<-followed
		if diff := cmp.Diff([]string{"1.1 hello"}, got); diff != "" {
			t.Errorf("previews (-want +got):\n%s", diff)
		}
		a.Cancel("by the user")
		synctest.Wait()
		if got := agenttest.Transcript(t, a.Log()); !strings.Contains(got, `interrupted (hm) "hello"`) {
			t.Errorf("what came is not recorded:\n%s", got)
		}
	})
}

func TestParallelTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := agenttest.NewGate("gate")
		model := agenttest.Script(
			agenttest.Use(agenttest.Call("a", "gate", "{}"), agenttest.Call("b", "gate", "{}"), agenttest.Call("c", "gate", "{}")),
			agenttest.Say("done"))
		w := agenttest.New(t, agenttest.Options{Model: model, Tools: tools(gate), Loop: loop.Options{Bounds: loop.Bounds{Parallel: 2}}})
		a := w.Create(event.Header{})
		agenttest.Send(t, a, "m1")
		synctest.Wait()
		if diff := cmp.Diff([]string{"a", "b"}, gate.Running()); diff != "" {
			t.Fatalf("running (-want +got):\n%s", diff)
		}
		if s := a.Status(); s.State != agent.Waiting {
			t.Errorf("status = %v, want waiting", s)
		}
		gate.Open("b", "2")
		synctest.Wait()
		gate.Open("c", "3")
		synctest.Wait()
		if n := len(model.Requests()); n != 1 {
			t.Fatalf("%d requests while a call runs, want 1", n)
		}
		gate.Open("a", "1")
		synctest.Wait()
		golden(t, agenttest.Transcript(t, a.Log()))
		if got, want := asked(model.Requests()[1]), "user: text of m1\nassistant: a b c\ntool: 1\ntool: 2\ntool: 3"; got != want {
			t.Errorf("second request:\n%s\nwant:\n%s", got, want)
		}
		balanced(t, a)
	})
}

// Nothing follows from an event before it is on disk: the tool from its call,
// the model from its results, the caller from its message.
func TestDiskBeforeAnythingFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := agenttest.NewGate("gate")
		model := agenttest.Script(agenttest.Use(agenttest.Call("a", "gate", "{}")), agenttest.Say("done"))
		w := agenttest.New(t, agenttest.Options{Model: model, Tools: tools(gate)})
		a := w.Create(event.Header{})
		w.Mem.Hold()
		sent := make(chan struct{})
		go func() { agenttest.Send(t, a, "m1"); close(sent) }()
		at := func(what string, done bool) {
			t.Helper()
			synctest.Wait()
			if done {
				t.Errorf("%s before it was on disk", what)
			}
		}
		// The splice; then turn/start; then the reply; then the call.
		synctest.Wait()
		select {
		case <-sent:
			t.Error("Send returned before its splice was on disk")
		default:
		}
		w.Mem.Sync(1)
		<-sent
		at("the model was asked", len(model.Requests()) > 0)
		w.Mem.Sync(1)
		at("the tool ran", len(gate.Running()) > 0)
		w.Mem.Sync(1)
		at("the tool ran", len(gate.Running()) > 0)
		w.Mem.Sync(1)
		synctest.Wait()
		if len(gate.Running()) != 1 {
			t.Fatal("the tool does not run although its call is on disk")
		}
		gate.Open("a", "1")
		at("the model was asked", len(model.Requests()) > 1)
		w.Mem.Sync(1)
		at("the model was asked", len(model.Requests()) > 1)
		w.Mem.Release()
		synctest.Wait()
		if len(model.Requests()) != 2 {
			t.Errorf("%d requests, want 2", len(model.Requests()))
		}
		balanced(t, a)
	})
}

func TestSteerWhileAToolRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := agenttest.NewGate("gate")
		model := agenttest.Script(agenttest.Use(agenttest.Call("a", "gate", "{}")), agenttest.Say("done"), agenttest.Say("next"), agenttest.Say("last"))
		w := agenttest.New(t, agenttest.Options{Model: model, Tools: tools(gate)})
		a := w.Create(event.Header{})
		agenttest.Send(t, a, "m1")
		synctest.Wait()
		agenttest.Send(t, a, "m2")
		agenttest.Send(t, a, "m3")
		agenttest.Steer(t, a, "s1")
		agenttest.Steer(t, a, "s2")
		synctest.Wait()
		if n := len(model.Requests()); n != 1 {
			t.Fatalf("%d requests while the tool runs, want 1", n)
		}
		gate.Open("a", "1")
		synctest.Wait()
		golden(t, agenttest.Transcript(t, a.Log()))
		balanced(t, a)
	})
}

func TestQueuedMessagesWaitAfterACancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.Script(agenttest.Hang(llm.Chunk{Kind: llm.Text, Text: "hel"}), agenttest.Say("hello"), agenttest.Say("bye"))
		w := agenttest.New(t, agenttest.Options{Model: model})
		a := w.Create(event.Header{})
		agenttest.Send(t, a, "m1")
		synctest.Wait()
		agenttest.Send(t, a, "m2")
		if !a.Cancel("by the user") {
			t.Error("Cancel() = false while a turn runs")
		}
		synctest.Wait()
		if got, want := a.Status(), (agent.Status{State: agent.Queued, Reason: event.TurnAborted}); got != want {
			t.Errorf("status = %v, want %v", got, want)
		}
		if a.Cancel("again") {
			t.Error("Cancel() = true while none runs")
		}
		agenttest.Steer(t, a, "s1")
		synctest.Wait()
		golden(t, agenttest.Transcript(t, a.Log()))
		balanced(t, a)
	})
}

func TestQueuedMessagesWaitAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := make(chan struct{})
		model := agenttest.Script(agenttest.After(fail, agenttest.Fail(errors.New("no"))), agenttest.Say("hello"), agenttest.Say("bye"))
		w := agenttest.New(t, agenttest.Options{Model: model})
		a := w.Create(event.Header{})
		agenttest.Send(t, a, "m1")
		synctest.Wait()
		agenttest.Send(t, a, "m2")
		agenttest.Send(t, a, "m3")
		close(fail)
		synctest.Wait()
		if got, want := a.Status(), (agent.Status{State: agent.Queued, Reason: event.TurnError}); got != want || len(model.Requests()) != 1 {
			t.Errorf("status = %v after %d requests, want %v after 1", got, len(model.Requests()), want)
		}
		if err := a.Continue(); err != nil {
			t.Errorf("Continue() = %v", err)
		}
		synctest.Wait()
		golden(t, agenttest.Transcript(t, a.Log()))
	})
}

// A prompt typed while the cancelled turn is still ending is a prompt after the
// cancel: it does not wait for another.
func TestPromptWhileACancelledTurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stubborn := make(chan struct{})
		model := agenttest.Script(agenttest.Use(agenttest.Call("a", "slow", "{}")), agenttest.Say("hello"))
		w := agenttest.New(t, agenttest.Options{Model: model, Tools: tools(agenttest.Func{Name: "slow",
			Do: func(context.Context, tool.Call) (tool.Result, error) {
				<-stubborn
				return tool.Result{Text: "done"}, nil
			}})})
		a := w.Create(event.Header{})
		agenttest.Send(t, a, "m1")
		synctest.Wait()
		a.Cancel("by the user")
		agenttest.Send(t, a, "m2")
		close(stubborn)
		synctest.Wait()
		golden(t, agenttest.Transcript(t, a.Log()))
		balanced(t, a)
	})
}

func TestContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.Script(agenttest.Fail(errors.New("no")), agenttest.Say("hello"), agenttest.Fail(errors.New("no")), agenttest.Say("again"))
		w := agenttest.New(t, agenttest.Options{Model: model})
		a := w.Create(event.Header{})
		if err := a.Continue(); !errors.Is(err, agent.ErrNothing) {
			t.Errorf("Continue() of an empty session = %v, want %v", err, agent.ErrNothing)
		}
		agenttest.Send(t, a, "m1")
		synctest.Wait()
		if s := a.Status(); s.State != agent.Idle {
			t.Errorf("status = %v, want idle", s)
		}
		if err := a.Continue(); err != nil {
			t.Errorf("Continue() after a failure = %v", err)
		}
		synctest.Wait()
		if err := a.Continue(); !errors.Is(err, agent.ErrNothing) {
			t.Errorf("Continue() after a turn that completed = %v, want %v", err, agent.ErrNothing)
		}
		golden(t, agenttest.Transcript(t, a.Log()))
	})
}

func TestWithoutAModelMessagesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var have *agenttest.Model
		var notes []agent.Status
		w := agenttest.New(t, agenttest.Options{
			Loop: loop.Options{Model: func(*agent.Agent) (loop.Model, error) {
				mu.Lock()
				defer mu.Unlock()
				if have == nil {
					return loop.Model{}, loop.ErrNoModel
				}
				return loop.Model{Provider: have}, nil
			}},
			Agents: agent.Options{Changed: func(a *agent.Agent) {
				s := a.Status()
				mu.Lock()
				defer mu.Unlock()
				notes = append(notes, s)
			}},
		})
		a := w.Create(event.Header{})
		agenttest.Steer(t, a, "s1")
		synctest.Wait()
		blocked := agent.Status{State: agent.Blocked, Reason: loop.ErrNoModel.Error()}
		if got := a.Status(); got != blocked || len(notes) == 0 || notes[len(notes)-1] != blocked {
			t.Errorf("status = %v, told %v, want %v", got, notes, blocked)
		}
		if err := a.Continue(); !errors.Is(err, loop.ErrNoModel) {
			t.Errorf("Continue() = %v, want %v", err, loop.ErrNoModel)
		}
		mu.Lock()
		have = agenttest.Script(agenttest.Say("hello"))
		mu.Unlock()
		a.Driver().Wake(-1)
		synctest.Wait()
		if got := a.Status(); got.State != agent.Idle || notes[len(notes)-1].State != agent.Idle {
			t.Errorf("status = %v, told %v, want idle", got, notes[len(notes)-1])
		}
		golden(t, agenttest.Transcript(t, a.Log()))
	})
}

// The model goes while a turn runs: the turn ends as blocked, what was steered
// stays, and goes on when there is a model again.
func TestModelGoesDuringATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		gone := false
		gate := agenttest.NewGate("gate")
		model := agenttest.Script(agenttest.Use(agenttest.Call("a", "gate", "{}")), agenttest.Say("hello"))
		w := agenttest.New(t, agenttest.Options{Tools: tools(gate), Loop: loop.Options{
			Model: func(*agent.Agent) (loop.Model, error) {
				mu.Lock()
				defer mu.Unlock()
				if gone {
					return loop.Model{}, loop.ErrNoModel
				}
				return loop.Model{Provider: model, Name: "one"}, nil
			}}})
		a := w.Create(event.Header{})
		agenttest.Send(t, a, "m1")
		synctest.Wait()
		agenttest.Steer(t, a, "s1")
		mu.Lock()
		gone = true
		mu.Unlock()
		gate.Open("a", "1")
		synctest.Wait()
		if got := a.Status(); got.State != agent.Blocked {
			t.Errorf("status = %v, want blocked", got)
		}
		mu.Lock()
		gone = false
		mu.Unlock()
		a.Driver().Wake(-1)
		synctest.Wait()
		golden(t, agenttest.Transcript(t, a.Log()))
		balanced(t, a)
	})
}

func TestRequestHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		name := "one"
		model := agenttest.Respond(func(int, llm.Request) agenttest.Reply { return agenttest.Say("ok") })
		options := agenttest.Options{Loop: loop.Options{Model: func(*agent.Agent) (loop.Model, error) {
			mu.Lock()
			defer mu.Unlock()
			return loop.Model{Provider: model, Name: name}, nil
		}}}
		w := agenttest.New(t, options)
		a := w.Create(event.Header{})
		prompt := func(a *agent.Agent, id string) {
			agenttest.Send(t, a, id)
			synctest.Wait()
		}
		prompt(a, "m1")
		prompt(a, "m2")
		mu.Lock()
		name = "two"
		mu.Unlock()
		prompt(a, "m3")
		if err := w.Agents.Remove(context.Background(), a); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		name = "three"
		mu.Unlock()
		prompt(w.Resume(a.ID()), "m4")

		fork, err := w.Store.Fork(context.Background(), a.ID(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		prompt(w.Resume(fork.ID()), "m5")
		golden(t, agenttest.Transcript(t, fork))
	})
}

func TestGraceOfCancelledTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		model := agenttest.Script(agenttest.Use(agenttest.Call("a", "deaf", "{}"), agenttest.Call("b", "gate", "{}")), agenttest.Say("hello"))
		w := agenttest.New(t, agenttest.Options{Model: model, Tools: tools(agenttest.NewGate("gate"), agenttest.Func{Name: "deaf",
			Do: func(context.Context, tool.Call) (tool.Result, error) { <-let; return tool.Result{Text: "late"}, nil }}),
			Loop: loop.Options{Grace: time.Minute}})
		a := w.Create(event.Header{})
		agenttest.Send(t, a, "m1")
		synctest.Wait()
		a.Cancel("by the user")
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		if s := a.Status(); s.State != agent.Waiting {
			t.Errorf("status a tick before the end of the grace = %v, want waiting", s)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if s := a.Status(); s.State != agent.Idle {
			t.Errorf("status after the grace = %v, want idle", s)
		}
		// Its late return must not disturb the next turn.
		agenttest.Send(t, a, "m2")
		close(let)
		synctest.Wait()
		golden(t, agenttest.Transcript(t, a.Log()))
		balanced(t, a)
	})
}

// A stopping host records nothing; the next start repairs, and what was cut
// short waits for a word.
func TestStopRecordsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := agenttest.NewGate("gate")
		model := agenttest.Script(agenttest.Use(agenttest.Call("a", "gate", "{}")))
		w := agenttest.New(t, agenttest.Options{Model: model, Tools: tools(gate)})
		a := w.Create(event.Header{})
		agenttest.Send(t, a, "m1")
		synctest.Wait()
		agenttest.Steer(t, a, "s1")
		before := agenttest.Transcript(t, a.Log())
		if err := w.Agents.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, agenttest.Transcript(t, a.Log())); diff != "" {
			t.Errorf("recorded while stopping (-before +after):\n%s", diff)
		}
		if err := a.Steer(context.Background(), agenttest.Message("s2")); !errors.Is(err, agent.ErrNotLive) {
			t.Errorf("Steer() after close = %v, want %v", err, agent.ErrNotLive)
		}

		next := agenttest.New(t, agenttest.Options{Backend: w.Mem.Crash(), Model: agenttest.Script(agenttest.Say("hello"))})
		b := next.Resume(a.ID())
		synctest.Wait()
		if got, want := b.Status(), (agent.Status{State: agent.Queued, Reason: event.TurnInterrupted}); got != want {
			t.Errorf("status after the restart = %v, want %v", got, want)
		}
		if err := b.Continue(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		golden(t, agenttest.Transcript(t, b.Log()))
		balanced(t, b)
	})
}
