package runcode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"meanwhile/host/agent"
	"meanwhile/host/agent/agenttest"
	"meanwhile/host/llm"
	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/host/tool"
	"meanwhile/shared/event"
	"meanwhile/wasm/quickjs"
)

// engine is compiled once for all tests of the package.
var engine *quickjs.Engine

func TestMain(m *testing.M) {
	var err error
	if engine, err = quickjs.New(quickjs.Options{Memory: 16 << 20}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// bench is a tool whose call is recorded, as the loop would have done it.
func bench(t *testing.T, cfg Config, tools ...tool.Tool) (*Tool, *agent.Agent) {
	t.Helper()
	w := agenttest.New(t, agenttest.Options{})
	a := w.Create(event.Header{})
	sessiontest.Append(t, a.Log(), event.TurnStart{Turn: 1}.Draft(), event.Step{Turn: 1, Step: 1}.StartDraft(),
		event.ToolCall{Turn: 1, Step: 1, CallID: "root", Name: Name, Arguments: "{}"}.Draft())
	tl, err := New(engine, a, tools, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tl, a
}

func run(ctx context.Context, tl *Tool, code string) (tool.Result, error) {
	raw, err := json.Marshal(map[string]string{"code": code})
	if err != nil {
		panic(err)
	}
	return tl.Run(ctx, tool.Call{SessionID: tl.agent.ID(), CallID: "root", Name: Name, Arguments: string(raw), Turn: 1, Step: 1})
}

func wantCode(t *testing.T, err error, code string) *tool.Error {
	t.Helper()
	e, ok := errors.AsType[*tool.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return e
}

var echo = agenttest.Func{Name: "echo", Do: func(_ context.Context, c tool.Call) (tool.Result, error) {
	return tool.Result{Text: c.Arguments}, nil
}}

var broken = agenttest.Func{Name: "broken", Do: func(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{}, &tool.Error{Name: "BrokenError", Code: "BROKEN", Message: "it broke"}
}}

func TestPrograms(t *testing.T) {
	tl, _ := bench(t, Config{}, echo, broken)
	for _, tt := range []struct{ name, code, want string }{
		{"a string as it is", `return "äöü\n"`, "äöü\n"},
		{"an object", `return {a: [1, null], big: 12n}`, "{\n \"a\": [\n  1,\n  null\n ],\n \"big\": \"12\"\n}"},
		{"nothing", `;`, "[no result]"},
		{"what cannot be shown", `const a = []; a.push(a, 1); return a`, "[a value that cannot be shown]"},
		{"half a character", `return "a\ud800b"`, "a\ufffdb"},
		{"output and result", `console.log("x", 1, {y: 2}); console.error("e"); return 3`, "x 1 {\n \"y\": 2\n}\ne\n[result]\n3"},
		{"a call", `return await tools.echo({text: "hello"})`, `{"text":"hello"}`},
		{"a call with nothing", `return await tools.echo()`, `{}`},
		{"a tool's error", `try { await tools.broken({}) } catch (e) { return [e instanceof Error, e.name, e.code, e.message] }`, "[\n true,\n \"BrokenError\",\n \"BROKEN\",\n \"it broke\"\n]"},
		{"no object", `try { await tools.echo([1]) } catch (e) { return e.code + " " + e.message }`, "RUN_CODE_ARGUMENTS call tools.echo with one object"},
		{"too much", `try { await tools.echo({a: "x".repeat(300000)}) } catch (e) { return e.code }`, "RUN_CODE_ARGUMENTS"},
		{"side by side", `const all = await Promise.all([1, 2, 3].map(n => tools.echo({n}))); return all.join()`, `{"n":1},{"n":2},{"n":3}`},
		{"one after the other", `let n = 0; for (let i = 0; i < 5; i++) n += JSON.parse(await tools.echo({i})).i; return n`, "10"},
		{"no world", `return [typeof host, typeof require, typeof process, typeof fetch, typeof setTimeout, typeof std, typeof os].join()`, strings.TrimSuffix(strings.Repeat("undefined,", 7), ",")},
		{"no modules", `try { await import("fs"); return "imported" } catch (e) { return "refused" }`, "refused"},
		{"its own tools only", `try { tools.more = 1 } catch {}; return Object.keys(tools).join()`, "echo,broken"},
		{"a clock", `return Date.now() > 1700000000000`, "true"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := run(t.Context(), tl, tt.code)
			if err != nil || r.Text != tt.want {
				t.Errorf("got %q, %v; want %q", r.Text, err, tt.want)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	tl, _ := bench(t, Config{}, echo, broken)
	for _, tt := range []struct{ name, code, want, says string }{
		{"thrown", `console.log("before"); throw new TypeError("no")`, CodeFailed, "threw TypeError: no"},
		{"the output is kept", `console.log("before"); throw 1`, CodeFailed, "Its output until then:\nbefore\n"},
		{"thrown later", "await tools.echo({});\nnull.x", CodeFailed, "TypeError: cannot read property 'x' of null\n    at anonymous (line 2:"},
		{"a tool's error not caught", `await tools.broken({})`, CodeFailed, "BrokenError: it broke"},
		{"not JavaScript", `let = = 1`, CodeFailed, "SyntaxError"},
		{"no such tool", `await tools.bash({})`, CodeFailed, "not a function"},
		{"waits for nothing", `await new Promise(() => {})`, CodeStuck, "nothing will settle"},
		{"deep", `(function f() { f() })()`, CodeFailed, "Maximum call stack"},
		{"over many calls", `for (;;) await tools.echo({})`, CodeTooMany, "may make 200 calls"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := run(t.Context(), tl, tt.code)
			want := tt.want
			if want == CodeTooMany { // it reaches the program, which lets it through
				want = CodeFailed
			}
			if e := wantCode(t, err, want); !strings.Contains(e.Message, tt.says) {
				t.Errorf("message %q does not say %q", e.Message, tt.says)
			}
		})
	}
}

// Whatever a program does, it ends in time and in its memory, and the next one
// runs as if nothing had been.
func TestHostilePrograms(t *testing.T) {
	tl, _ := bench(t, Config{Timeout: 300 * time.Millisecond}, echo)
	for _, tt := range []struct{ name, code, want string }{
		{"endless loop", `for (;;);`, CodeTimeout},
		{"endless loop that catches", `for (;;) try { for (;;); } catch {} finally { for (;;); }`, CodeTimeout},
		{"endless promises", `const f = () => Promise.resolve().then(f); await f()`, CodeTimeout},
		{"endless loop after a call", `await tools.echo({}); for (;;);`, CodeTimeout},
		{"endless loop inside the engine", `Array.prototype.lastIndexOf.call({length: 2 ** 53 - 1}, 1)`, CodeTimeout},
		{"a slow pattern", `return /(a+)+$/.test("a".repeat(40) + "b")`, CodeTimeout},
		{"a loop in toString", `return {toString() { for (;;); }, toJSON() { for (;;); }}`, CodeTimeout},
		{"a loop in what is thrown", `throw {toString() { for (;;); }, toJSON() { for (;;); }}`, CodeTimeout},
		{"one large piece", `return new Uint8Array(1e9).length`, CodeMemory},
		{"a long text", `return "x".repeat(5e8).length`, CodeMemory},
		{"the prelude broken", `Promise.prototype.then = Map.prototype.get = JSON.stringify = undefined; return 1`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			begin := time.Now()
			r, err := run(t.Context(), tl, tt.code)
			if tt.want != "" {
				wantCode(t, err, tt.want)
			} else if err != nil {
				wantCode(t, err, CodeFailed)
			}
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			if len(r.Meta) == 0 {
				t.Error("no meta")
			}
			if r, err := run(t.Context(), tl, `return await tools.echo({still: "here"})`); err != nil || r.Text != `{"still":"here"}` {
				t.Errorf("afterwards: %q, %v", r.Text, err)
			}
		})
	}
}

func TestMemoryBombs(t *testing.T) {
	tl, _ := bench(t, Config{Timeout: time.Minute}, echo)
	for _, tt := range []struct{ name, code string }{
		{"many arrays", `const a = []; for (;;) a.push([...Array(100)].map(() => ({})))`},
		{"long texts", `let s = "x".repeat(1000); const a = []; for (;;) { if (s.length < 1e6) s += s; a.push(s + a.length + s) }`},
		{"many buffers", `const a = []; for (;;) a.push(new Uint8Array(1e6))`},
		{"that catches", `const a = []; for (;;) try { a.push(new Uint8Array(1e6)) } catch { a.push(new Uint8Array(1e3)) }`},
		{"after a call", `await tools.echo({}); const a = []; for (;;) a.push({a, b: new Uint8Array(1e4)})`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := run(t.Context(), tl, tt.code)
			wantCode(t, err, CodeMemory)
		})
	}
}

func TestOutputIsBounded(t *testing.T) {
	tl, _ := bench(t, Config{})
	r, err := run(t.Context(), tl, `for (let i = 0; i < 100; i++) console.log("x".repeat(1000)); return "y".repeat(3e5)`)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Text) > outputMax+resultMax+200 || !strings.Contains(r.Text, "bytes of output were left out") || !strings.HasSuffix(r.Text, "[200000 more bytes were cut]") {
		t.Errorf("text of %d bytes, ends %q", len(r.Text), r.Text[len(r.Text)-40:])
	}
}

func TestArguments(t *testing.T) {
	tl, _ := bench(t, Config{})
	for _, tt := range []struct{ name, raw, says string }{
		{"not json", `{`, "arguments"},
		{"unknown field", `{"code":"1","tiemout":1}`, "tiemout"},
		{"text after", `{"code":"1"} x`, "after"},
		{"empty", `{"code":" "}`, "code is empty"},
		{"long", `{"code":"` + strings.Repeat("x", codeMax+1) + `"}`, "at most 200000"},
		{"zero", `{"code":"1","timeout":0}`, "timeout must be more than 0"},
		{"negative", `{"code":"1","timeout":-5}`, "timeout must be more than 0"},
		{"fraction", `{"code":"1","timeout":1.5}`, "timeout"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tl.Run(t.Context(), tool.Call{CallID: "root", Arguments: tt.raw})
			if e := wantCode(t, err, CodeArguments); !strings.Contains(e.Message, tt.says) {
				t.Errorf("message %q does not say %q", e.Message, tt.says)
			}
		})
	}
	if _, d, err := tl.parse(`{"code":"1","timeout":9000000000000000000}`); err != nil || d != defaultMax {
		t.Errorf("an enormous timeout is %v, %v; want %v", d, err, defaultMax)
	}
}

func TestNewRefuses(t *testing.T) {
	_, a := bench(t, Config{})
	for _, tools := range [][]tool.Tool{{echo, echo}, {agenttest.Func{Name: Name}}} {
		if _, err := New(engine, a, tools, Config{}); err == nil {
			t.Errorf("accepted %v", tools)
		}
	}
}

// dispatches are the recorded calls of programs.
func dispatches(t *testing.T, l *session.Log) []event.PTCDispatch {
	t.Helper()
	var all []event.PTCDispatch
	for _, e := range sessiontest.Events(t, l) {
		if e.Type == event.TypePTCDispatch {
			d, err := event.DecodePTCDispatch(e.Data)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, d)
		}
	}
	return all
}

// In a whole turn: the calls stand between the program's call and its result,
// each under an id of its own, as they came back.
func TestTranscript(t *testing.T) {
	var a *agent.Agent
	model := agenttest.Script(
		agenttest.Use(agenttest.Call("c1", Name, `{"code":"await tools.echo({n: 1}); try { await tools.broken({}) } catch {} ; return 'all'"}`)),
		agenttest.Say("done"),
	)
	w := agenttest.New(t, agenttest.Options{Model: model, Tools: func(a *agent.Agent) []tool.Tool {
		tl, err := New(engine, a, []tool.Tool{echo, broken}, Config{})
		if err != nil {
			t.Fatal(err)
		}
		return []tool.Tool{echo, broken, tl}
	}})
	a = w.Create(event.Header{})
	agenttest.Send(t, a, "m1")
	if err := a.Driver().Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"spliced next-turn at 0 +m1", "turn/start 1", "spliced next-turn at 0 -1", "user/message m1", "step/start 1.1",
		"request/header initial one [echo broken run_code]", "assistant/message 1.1 run_code:c1",
		"tool/call 1.1 run_code:c1", "tool/ptc-dispatch", "tool/ptc-dispatch", `tool/result 1.1 c1 "all"`, "step/end 1.1",
		"step/start 1.2", `assistant/message 1.2 "done"`, "step/end 1.2", "turn/end 1 completed", "",
	}, "\n")
	if got := agenttest.Transcript(t, a.Log()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	ds := dispatches(t, a.Log())
	if len(ds) != 2 || ds[0].SubCallID == ds[1].SubCallID || len(ds[0].SubCallID) < 32 {
		t.Fatalf("recorded %+v", ds)
	}
	ds[0].SubCallID, ds[1].SubCallID = "", ""
	for i, want := range []string{
		fmt.Sprintf("%+v", event.PTCDispatch{RootCallID: "c1", ParentCallID: "c1", Name: "echo", Arguments: []byte(`{"n":1}`), Text: `{"n":1}`}),
		fmt.Sprintf("%+v", event.PTCDispatch{RootCallID: "c1", ParentCallID: "c1", Name: "broken", Arguments: []byte(`{}`), IsError: true, Text: "it broke"}),
	} {
		if got := fmt.Sprintf("%+v", ds[i]); got != want {
			t.Errorf("call %d: got %s, want %s", i, got, want)
		}
	}
	// The model sees what the program returned and nothing of its calls.
	last := model.Requests()[1].Messages
	if got := last[len(last)-1]; got.Role != llm.RoleTool || got.Text() != "all" {
		t.Errorf("the model got %+v", got)
	}
}
