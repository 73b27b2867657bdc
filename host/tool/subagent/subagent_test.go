package subagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"meanwhile/host/agent"
	"meanwhile/host/agent/agenttest"
	"meanwhile/host/agent/loop"
	"meanwhile/host/llm"
	"meanwhile/host/session/sessiontest"
	"meanwhile/host/tool"
	"meanwhile/host/tool/subagent"
	"meanwhile/shared/event"
)

// family is a world whose agents all have the tool. What an agent's model says
// depends on the last thing it was told.
func family(t *testing.T, replies map[string]agenttest.Reply, others ...tool.Tool) (*agenttest.World, *agenttest.Model) {
	model := agenttest.Respond(func(_ int, r llm.Request) agenttest.Reply {
		last := r.Messages[len(r.Messages)-1].Text()
		for told, reply := range replies {
			if strings.Contains(last, told) {
				return reply
			}
		}
		return agenttest.Say("heard: " + last)
	})
	var w *agenttest.World
	w = agenttest.New(t, agenttest.Options{Model: model, Tools: func(a *agent.Agent) []tool.Tool {
		return append(others, subagent.New(w.Agents, w.Store, a))
	}})
	return w, model
}

func delegate(id, prompt string) agenttest.Reply {
	return agenttest.Use(agenttest.Call(id, subagent.Name, fmt.Sprintf(`{"title":"a part\u0007 of it","prompt":%q}`, prompt)))
}

// result is the recorded result of a call.
func result(t *testing.T, a *agent.Agent, callID string) event.ToolResult {
	t.Helper()
	for _, e := range sessiontest.Events(t, a.Log()) {
		if e.Type == event.TypeToolResult {
			d, err := event.DecodeToolResult(e.Data)
			if err != nil {
				t.Fatal(err)
			}
			if d.CallID == callID {
				return d
			}
		}
	}
	t.Fatalf("no result of %s in\n%s", callID, agenttest.Transcript(t, a.Log()))
	return event.ToolResult{}
}

func childOf(t *testing.T, r event.ToolResult) string {
	t.Helper()
	var meta struct{ SessionID string }
	if err := json.Unmarshal(r.Meta, &meta); err != nil {
		t.Fatalf("meta %q: %v", r.Meta, err)
	}
	return meta.SessionID
}

func TestRun(t *testing.T) {
	for _, tc := range []struct {
		name    string
		replies map[string]agenttest.Reply
		code    string
		text    string
	}{
		{"its last words", map[string]agenttest.Reply{"m1": delegate("c1", "do it")}, "", "heard: do it"},
		{"nothing said", map[string]agenttest.Reply{"m1": delegate("c1", "do it"),
			"do it": agenttest.Chunks(llm.Chunk{Kind: llm.Finish, Reason: llm.FinishStop})}, "", "The subagent finished without a final message."},
		{"it fails", map[string]agenttest.Reply{"m1": delegate("c1", "do it"),
			"do it": agenttest.Fail(errors.New("no"), llm.Chunk{Kind: llm.Text, Text: "half"})},
			subagent.CodeFailed, "the subagent's turn did not complete (error no). Its last words before: half"},
		{"no prompt", map[string]agenttest.Reply{"m1": delegate("c1", " ")}, subagent.CodeBadArguments, "prompt: is empty: say what the subagent is to do"},
		{"too long a prompt", map[string]agenttest.Reply{"m1": delegate("c1", strings.Repeat("x", 100_001))},
			subagent.CodeBadArguments, "prompt: is over 100000 bytes: name files for it to read instead"},
		{"unknown argument", map[string]agenttest.Reply{"m1": agenttest.Use(agenttest.Call("c1", subagent.Name, `{"task":"x"}`))},
			subagent.CodeBadArguments, `arguments: json: unknown field "task": send {"prompt": "the whole task", "title": "a few words"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := family(t, tc.replies)
				root := w.Create(event.Header{CWD: "/src"})
				agenttest.Send(t, root, "m1")
				synctest.Wait()
				r := result(t, root, "c1")
				if r.ErrCode != tc.code || r.Text != tc.text {
					t.Errorf("result = %s %q, want %s %q", r.ErrCode, r.Text, tc.code, tc.text)
				}
				if live := w.Agents.Live(); len(live) != 1 {
					t.Errorf("%d agents are live afterwards, want the root alone", len(live))
				}
				if tc.code == subagent.CodeBadArguments {
					return
				}
				log, err := w.Store.Open(context.Background(), childOf(t, r))
				if err != nil {
					t.Fatal(err)
				}
				if h := log.Header(); h.ParentSession != root.ID() || h.DelegationDepth != 1 || h.CWD != "/src" || h.Title != "a part of it" {
					t.Errorf("child's header = %+v", h)
				}
			})
		})
	}
}

// The child is owned as long as it lives, which is what its asks are refused by.
func TestChildHasItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := agenttest.NewGate("gate")
		w, _ := family(t, map[string]agenttest.Reply{"m1": delegate("c1", "do it"),
			"do it": agenttest.Use(agenttest.Call("g1", "gate", "{}"))}, gate)
		root := w.Create(event.Header{})
		agenttest.Send(t, root, "m1")
		synctest.Wait()
		owned := 0
		for _, a := range w.Agents.Live() {
			if a != root && a.Owner() == root && w.Agents.IsLive(a.Owner()) {
				owned++
			}
		}
		if owned != 1 {
			t.Errorf("%d children are owned by the root, want 1", owned)
		}
		gate.Open("g1", "opened")
		synctest.Wait()
		if got := result(t, root, "c1").Text; got != "heard: opened" {
			t.Errorf("result = %q", got)
		}
	})
}

func TestCancelReachesTheChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := agenttest.NewGate("gate")
		w, _ := family(t, map[string]agenttest.Reply{"m1": delegate("c1", "do it"),
			"do it": agenttest.Use(agenttest.Call("g1", "gate", "{}"))}, gate)
		root := w.Create(event.Header{})
		agenttest.Send(t, root, "m1")
		synctest.Wait()
		root.Cancel("by the user")
		synctest.Wait()
		r := result(t, root, "c1")
		if r.ErrCode != subagent.CodeAborted {
			t.Errorf("code = %q, want %q", r.ErrCode, subagent.CodeAborted)
		}
		log, err := w.Store.Open(context.Background(), childOf(t, r))
		if err != nil {
			t.Fatal(err)
		}
		got := agenttest.Transcript(t, log)
		for _, want := range []string{"tool/result 1.1 g1 GateError GATE_ABORTED", "turn/end 1 aborted the turn that called it was cancelled"} {
			if !strings.Contains(got, want) {
				t.Errorf("the child's log has no %q:\n%s", want, got)
			}
		}
		if len(w.Agents.Live()) != 1 {
			t.Error("the child lives on")
		}
	})
}

func TestDepth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, model := family(t, map[string]agenttest.Reply{"m1": delegate("c", "deeper"), "deeper": delegate("c", "deeper")})
		root := w.Create(event.Header{})
		agenttest.Send(t, root, "m1")
		synctest.Wait()
		// The fourth generation is refused; each one above repeats what it heard.
		if got := result(t, root, "c"); got.ErrCode != "" || !strings.HasPrefix(got.Text, "heard: heard: heard: there are 3 generations") {
			t.Errorf("result = %s %q", got.ErrCode, got.Text)
		}
		if n := len(w.Store.List()); n != 4 {
			t.Errorf("%d sessions, want the root and 3 generations", n)
		}
		if n := len(model.Requests()); n != 8 {
			t.Errorf("%d requests, want 2 for each of the 4 agents", n)
		}
	})
}

func TestTooManyChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := agenttest.NewGate("gate")
		var calls []llm.Chunk
		for i := range 9 {
			calls = append(calls, agenttest.Call(fmt.Sprint("c", i), subagent.Name, `{"prompt":"do it"}`))
		}
		w, _ := family(t, map[string]agenttest.Reply{"m1": agenttest.Use(calls...),
			"do it": agenttest.Use(agenttest.Call("g", "gate", "{}"))}, gate)
		root := w.Create(event.Header{})
		agenttest.Send(t, root, "m1")
		synctest.Wait()
		if n := len(w.Agents.Live()); n != 9 {
			t.Errorf("%d agents live, want the root and 8 children", n)
		}
		root.Cancel("enough")
		synctest.Wait()
		busy := 0
		for i := range 9 {
			if result(t, root, fmt.Sprint("c", i)).ErrCode == subagent.CodeBusy {
				busy++
			}
		}
		if busy != 1 {
			t.Errorf("%d calls were refused, want 1", busy)
		}
	})
}

func TestChildWithoutAModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := agenttest.Script(delegate("c1", "do it"), agenttest.Say("done"))
		var w *agenttest.World
		w = agenttest.New(t, agenttest.Options{
			Tools: func(a *agent.Agent) []tool.Tool { return []tool.Tool{subagent.New(w.Agents, w.Store, a)} },
			Loop: loop.Options{Model: func(a *agent.Agent) (loop.Model, error) {
				if a.Owner() != nil {
					return loop.Model{}, loop.ErrNoModel
				}
				return loop.Model{Provider: model}, nil
			}}})
		root := w.Create(event.Header{})
		agenttest.Send(t, root, "m1")
		synctest.Wait()
		if r := result(t, root, "c1"); r.ErrCode != subagent.CodeBlocked || r.Text != "the subagent cannot start: no model is configured" {
			t.Errorf("result = %s %q, want %s", r.ErrCode, r.Text, subagent.CodeBlocked)
		}
	})
}

func TestCloseWhileChildrenWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := agenttest.NewGate("gate")
		w, _ := family(t, map[string]agenttest.Reply{"m1": delegate("c1", "do it"),
			"do it": agenttest.Use(agenttest.Call("g1", "gate", "{}"))}, gate)
		root := w.Create(event.Header{})
		agenttest.Send(t, root, "m1")
		synctest.Wait()
		if err := w.Agents.Remove(context.Background(), root); err != nil {
			t.Fatal(err)
		}
		if n := len(w.Agents.Live()); n != 0 {
			t.Errorf("%d agents are live, want none", n)
		}
	})
}
