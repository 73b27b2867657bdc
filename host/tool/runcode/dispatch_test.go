package runcode

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"meanwhile/host/agent"
	"meanwhile/host/agent/agenttest"
	"meanwhile/host/agent/loop"
	"meanwhile/host/session/sessiontest"
	"meanwhile/host/tool"
	"meanwhile/shared/event"
)

// turn is a whole agent whose model sends one program.
func turn(t *testing.T, code string, opt agenttest.Options, tools ...tool.Tool) (*agenttest.World, *agent.Agent) {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		t.Fatal(err)
	}
	opt.Model = agenttest.Script(agenttest.Use(agenttest.Call("c1", Name, string(raw))), agenttest.Say("done"))
	opt.Tools = func(a *agent.Agent) []tool.Tool {
		tl, err := New(engine, a, tools, Config{})
		if err != nil {
			t.Fatal(err)
		}
		return append(slices.Clone(tools), tl)
	}
	w := agenttest.New(t, opt)
	a := w.Create(event.Header{})
	agenttest.Send(t, a, "m1")
	return w, a
}

// tail is the transcript from the program's call on.
func tail(t *testing.T, a *agent.Agent) string {
	t.Helper()
	_, after, ok := strings.Cut(agenttest.Transcript(t, a.Log()), "run_code:c1\ntool/call 1.1 run_code:c1\n")
	if !ok {
		t.Fatalf("the program was not called in\n%s", agenttest.Transcript(t, a.Log()))
	}
	return after
}

func TestCallsRunSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := agenttest.NewGate("gate")
		_, a := turn(t, `return (await Promise.all(["a", "b", "c"].map(n => tools.gate({n})))).join()`, agenttest.Options{}, gate)
		synctest.Wait()
		ids := gate.Started()
		if len(ids) != 3 {
			t.Fatalf("%d calls run, want all three", len(ids))
		}
		time.Sleep(time.Hour) // the clock of the program stands
		for i, id := range []string{ids[2], ids[0], ids[1]} {
			gate.Open(id, []string{"one", "two", "three"}[i])
			synctest.Wait()
		}
		ds := dispatches(t, a.Log())
		if len(ds) != 3 || ds[0].SubCallID != ids[2] || ds[1].SubCallID != ids[0] || ds[2].SubCallID != ids[1] {
			t.Errorf("recorded %+v, want the order in which they came back", ds)
		}
		// Each promise got its own result.
		byArgs := map[string]string{}
		for _, d := range ds {
			byArgs[string(d.Arguments)] = d.Text
		}
		want := byArgs[`{"n":"a"}`] + "," + byArgs[`{"n":"b"}`] + "," + byArgs[`{"n":"c"}`]
		if got := tail(t, a); !strings.Contains(got, `tool/result 1.1 c1 "`+want+`"`) {
			t.Errorf("got\n%s\nwant the result %s", got, want)
		}
	})
}

func TestCallsAtOnceAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := agenttest.NewGate("gate")
		_, a := turn(t, `return (await Promise.all(Array.from({length: 40}, (_, n) => tools.gate({n})))).length`, agenttest.Options{}, gate)
		for done := 0; done < 40; {
			synctest.Wait()
			running := gate.Running()
			if want := min(parallelMax, 40-done); len(running) != want {
				t.Fatalf("%d calls run after %d, want %d", len(running), done, want)
			}
			for _, id := range running {
				gate.Open(id, "")
				done++
			}
		}
		synctest.Wait()
		if got := tail(t, a); !strings.Contains(got, `tool/result 1.1 c1 "40"`) {
			t.Errorf("got\n%s", got)
		}
	})
}

func TestOnDiskBeforeTheProgramSees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := sessiontest.NewMem()
		hold := agenttest.Func{Name: "hold", Do: func(context.Context, tool.Call) (tool.Result, error) {
			disk.Hold()
			return tool.Result{Text: "held"}, nil
		}}
		gate := agenttest.NewGate("gate")
		_, a := turn(t, `const x = await tools.hold({}); return await tools.gate({x})`, agenttest.Options{Backend: disk}, hold, gate)
		synctest.Wait()
		if got := gate.Started(); len(got) != 0 {
			t.Fatalf("the program went on before the result was on disk")
		}
		if n := disk.Waiting(); n != 1 {
			t.Errorf("%d batches wait, want the one of the call", n)
		}
		disk.Release()
		synctest.Wait()
		if got := gate.Started(); len(got) != 1 {
			t.Fatalf("the program does not go on")
		}
		gate.Open(gate.Started()[0], "")
		synctest.Wait()
		if got := len(dispatches(t, a.Log())); got != 2 {
			t.Errorf("%d calls recorded", got)
		}
	})
}

func TestCallsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := agenttest.NewGate("gate")
		_, a := turn(t, `tools.gate({}); tools.gate({}); return "early"`, agenttest.Options{}, gate)
		synctest.Wait()
		if got := gate.Running(); len(got) != 0 {
			t.Errorf("%v outlive the program", got)
		}
		if got := tail(t, a); !strings.Contains(got, `tool/result 1.1 c1 "early\n[2 calls the program did not wait for: cancelled]"`) {
			t.Errorf("got\n%s", got)
		}
	})
}

func TestTurnCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := agenttest.NewGate("gate")
		_, a := turn(t, `console.log("hi"); try { await tools.gate({}) } catch {} ; for (;;) await tools.gate({})`, agenttest.Options{}, gate)
		synctest.Wait()
		if !a.Cancel("enough") {
			t.Fatal("nothing to cancel")
		}
		synctest.Wait()
		want := strings.Join([]string{
			"tool/ptc-dispatch",
			`tool/result 1.1 c1 RunCodeError RUN_CODE_ABORTED "the program was ended because the turn was cancelled; what its calls did until then stands\nIts output until then:\nhi\n"`,
			"step/end 1.1", "turn/end 1 aborted enough", "",
		}, "\n")
		if got := tail(t, a); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if ds := dispatches(t, a.Log()); len(ds) != 1 || !ds[0].IsError || ds[0].Text != "The gate was given up." {
			t.Errorf("recorded %+v", ds)
		}
	})
}

// A stopping agent records nothing: repair writes what is known.
func TestAgentStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := agenttest.NewGate("gate")
		w, a := turn(t, `try { await tools.gate({}) } catch {} ; return "went on"`, agenttest.Options{}, gate)
		synctest.Wait()
		if err := w.Agents.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := tail(t, a); got != "" {
			t.Errorf("recorded\n%s", got)
		}
	})
}

// A tool that ignores its cancellation comes back after the turn has ended. Its
// call is not recorded any more: it belongs to no open call.
func TestTooLateToRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		deaf := agenttest.Func{Name: "deaf", Do: func(context.Context, tool.Call) (tool.Result, error) {
			<-free
			return tool.Result{Text: "late"}, nil
		}}
		_, a := turn(t, `return await tools.deaf({})`, agenttest.Options{Loop: loop.Options{Grace: time.Second}}, deaf)
		synctest.Wait()
		a.Cancel("enough")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		before := tail(t, a)
		if !strings.Contains(before, "TOOL_OUTCOME_UNKNOWN") || !strings.Contains(before, "turn/end") {
			t.Fatalf("the turn did not end:\n%s", before)
		}
		close(free)
		synctest.Wait()
		if got := tail(t, a); got != before {
			t.Errorf("recorded after the end:\n%s", got)
		}
	})
}
