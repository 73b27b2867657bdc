package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"meanwhile/host/internal/hosttest"
)

// examples is the folder of the programs that docs/examples/README.md lists.
var examples = filepath.Join("..", "..", "..", "docs", "examples")

// programs are the commands of the examples that speak HTTP.
func programs(t *testing.T) map[string]func(t *testing.T) []string {
	web, err := filepath.Abs(filepath.Join("..", "..", "..", "web", "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func(t *testing.T) []string{
		"curl": func(t *testing.T) []string {
			need(t, "bash", "curl", "jq")
			return []string{"bash", filepath.Join(examples, "curl", "ask.sh")}
		},
		"python": func(t *testing.T) []string {
			need(t, "python3")
			return []string{"python3", filepath.Join(examples, "python", "ask.py")}
		},
		"typescript": func(t *testing.T) []string {
			installed(t, web, "npm ci in web")
			out := t.TempDir()
			tsc := exec.Command(filepath.Join(web, ".bin", "tsc"), "--ignoreConfig", "--strict", "--erasableSyntaxOnly", "--noUnusedLocals",
				"--target", "es2022", "--module", "nodenext", "--skipLibCheck", "--typeRoots", filepath.Join(web, "@types"), "--types", "node",
				"--outDir", out, filepath.Join(examples, "typescript", "ask.mts"))
			if said, err := tsc.CombinedOutput(); err != nil {
				t.Fatalf("tsc: %v\n%s", err, said)
			}
			return []string{"node", filepath.Join(out, "ask.mjs")}
		},
		"langgraph": func(t *testing.T) []string {
			dir := filepath.Join(examples, "langgraph")
			installed(t, filepath.Join(dir, "node_modules"), "npm ci in docs/examples/langgraph")
			return []string{"node", filepath.Join(dir, "bridge.mjs")}
		},
	}
}

func need(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("this example needs %s: run .ci/need %s, or install it", name, name)
		}
	}
}

func installed(t *testing.T, modules, how string) {
	t.Helper()
	if _, err := os.Stat(modules); err == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not there: run %s", modules, how)
	}
	t.Skipf("%s is not there: run %s, or make test", modules, how)
}

// run is one run of an example.
type run struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string
	said  []string
}

// startExample runs an example with these settings beside the host and the token.
func startExample(t *testing.T, command []string, settings ...string) *run {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*within)
	t.Cleanup(cancel)
	r := &run{t: t, cmd: exec.CommandContext(ctx, command[0], command[1:]...), lines: make(chan string, 100)}
	r.cmd.Env = append(os.Environ(), settings...)
	r.cmd.Stderr = t.Output()
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			r.lines <- s.Text()
		}
	}()
	return r
}

// until reads lines up to one that begins with a word.
func (r *run) until(word string) {
	r.t.Helper()
	for line := range r.lines {
		r.said = append(r.said, line)
		if strings.HasPrefix(line, word+": ") {
			return
		}
	}
	r.t.Fatalf("it ended without %q, having said\n%s", word, strings.Join(r.said, "\n"))
}

// end waits for the end and returns all lines, repeated ones once, because how
// often a hold ends is up to the machine.
func (r *run) end(code int) []string {
	r.t.Helper()
	for line := range r.lines {
		r.said = append(r.said, line)
	}
	err := r.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		r.t.Errorf("exit code %d, want %d", got, code)
	}
	return slices.Compact(r.said)
}

const (
	openLine    = "open: only this request is over, the person still has time"
	waitingLine = "waiting: asked without a limit, so nothing goes on without the answer"
	pendingLine = "pending: nobody answered in time, so nothing was chosen"
	workingLine = "working: on what does not depend on the answer"
	restLine    = "unanswered: what depends on it is not done; the next run finds the reply"

	postgres = `[{"id":"store","selected":["Postgres"]}]`
	sqlite   = `[{"id":"store","selected":["SQLite"]}]`
	words    = `[{"id":"store","selected":[],"custom":"none \u202e\u001b[2J"}]`
	skipped  = `[{"id":"store","selected":[]}]`
)

func TestExamples(t *testing.T) {
	for name, command := range programs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			argv := command(t)
			h := hosttest.Start(t, hosttest.Options{})
			token, _ := h.Token(name, "ask")
			desk := h.Connect("Ann", "read", "answer")
			begin := func(t *testing.T, key string, settings ...string) *run {
				return startExample(t, argv, append([]string{"MEANWHILE_URL=" + h.URL(""), "MEANWHILE_TOKEN=" + token, "MEANWHILE_KEY=" + key}, settings...)...)
			}
			late := func(t *testing.T, ask *hosttest.Ask, answers string) {
				t.Helper()
				var out struct{ Accepted bool }
				desk.Call("userQuestions/answer", map[string]any{
					"sessionId": ask.SessionID, "callId": ask.Request.Wait.CallID, "submissionId": "press-" + ask.Request.Wait.CallID,
					"answer": map[string]json.RawMessage{"answers": json.RawMessage(answers)},
				}, &out)
				if !out.Accepted {
					t.Fatal("the late answer was not accepted")
				}
			}
			check := func(t *testing.T, got []string, want ...string) {
				t.Helper()
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("what it said (-want +got):\n%s", diff)
				}
			}
			// read waits until the log says that the agent read its late replies.
			read := func(t *testing.T, ask *hosttest.Ask) {
				t.Helper()
				desk.Until(ask.SessionID, func(e hosttest.Event) bool {
					return e.Type == "user/message" && strings.Contains(string(e.Data), "press-"+ask.Request.Wait.CallID)
				})
			}

			t.Run("in time", func(t *testing.T) {
				r := begin(t, "time", "MEANWHILE_HOLD_MS=200")
				ask := desk.Next()
				r.until("open")
				ask.Answer(postgres)
				check(t, r.end(0), openLine, `answered: {"id":"store","selected":["Postgres"]}`, "acknowledged: 1")
			})
			t.Run("late", func(t *testing.T) {
				r := begin(t, "late", "MEANWHILE_TIMEOUT=1")
				ask := desk.Next()
				r.until("working")
				late(t, ask, words)
				check(t, r.end(0), pendingLine, workingLine, `late: {"id":"store","selected":[],"custom":"none \u202e\u001b[2J"}`, "acknowledged: 1")
				read(t, ask)
			})
			t.Run("waiting", func(t *testing.T) {
				r := begin(t, "waiting", "MEANWHILE_TIMEOUT=-1", "MEANWHILE_HOLD_MS=200")
				ask := desk.Next()
				r.until("waiting")
				ask.Answer(skipped)
				check(t, r.end(0), waitingLine, "answered: store was skipped, nothing was chosen", "acknowledged: 1")
			})
			t.Run("after its end", func(t *testing.T) {
				r := begin(t, "end", "MEANWHILE_TIMEOUT=1", "MEANWHILE_PATIENCE=0")
				ask := desk.Next()
				check(t, r.end(4), pendingLine, workingLine, restLine)
				late(t, ask, sqlite)

				r = begin(t, "end")
				next := desk.Next()
				read(t, ask) // before anything else, it took what waited
				next.Answer(postgres)
				check(t, r.end(0), `earlier: {"id":"store","selected":["SQLite"]}`, "acknowledged: 1", `answered: {"id":"store","selected":["Postgres"]}`, "acknowledged: 1")
			})
			t.Run("taken back", func(t *testing.T) {
				r := begin(t, "back")
				ask := desk.Next()
				call := map[string]string{"sessionId": ask.SessionID, "callId": ask.Request.Wait.CallID}
				if status, body := h.Post(token, "userQuestions/withdraw", call); status != 200 {
					t.Fatalf("withdraw: %d %s", status, body)
				}
				check(t, r.end(5))
			})
		})
	}
}

// plugin is what Claude Code reads of the plugin's folder.
type plugin struct {
	hooks   map[string][]hookGroup
	servers map[string]serverEntry
}

type hookGroup struct {
	Matcher string
	Hooks   []struct {
		Type, Command string
		Timeout       int
	}
}

type serverEntry struct {
	Command string
	Args    []string
}

func readPlugin(t *testing.T, hooks, servers string) plugin {
	t.Helper()
	var h struct{ Hooks map[string][]hookGroup }
	var s struct{ MCPServers map[string]serverEntry }
	readInto(t, hooks, &h)
	readInto(t, servers, &s)
	return plugin{h.Hooks, s.MCPServers}
}

func readInto(t *testing.T, path string, out any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// The plugin and an installation are the same entries, or one of the two is old.
func TestPluginIsAsInstalled(t *testing.T) {
	dir := t.TempDir()
	c := exec.Command("meanwhile", "install", "claude-code", "--scope", "project")
	c.Dir, c.Env = dir, append(os.Environ(), "HOME="+dir, "CLAUDE_CONFIG_DIR=", "MEANWHILE_DATA="+filepath.Join(dir, "data"))
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	root := filepath.Join(examples, "claude-code-plugin")
	got := readPlugin(t, filepath.Join(root, "hooks", "hooks.json"), filepath.Join(root, ".mcp.json"))
	want := readPlugin(t, filepath.Join(dir, ".claude", "settings.json"), filepath.Join(dir, ".mcp.json"))
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(plugin{})); diff != "" {
		t.Errorf("the plugin (-installed +plugin):\n%s", diff)
	}
	var manifest struct{ Name, Version string }
	readInto(t, filepath.Join(root, ".claude-plugin", "plugin.json"), &manifest)
	if manifest.Name != "meanwhile" || manifest.Version == "" {
		t.Errorf("plugin.json: %+v", manifest)
	}
}

const toolUse = `{"session_id":"s1","cwd":"/","hook_event_name":"PreToolUse","tool_name":"AskUserQuestion","tool_use_id":"%s",` +
	`"tool_input":{"questions":[{"question":"Which store?","header":"Store","options":[{"label":"Postgres"},{"label":"SQLite"}]}]}}`

func TestPlugin(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	desk := h.Connect("Ann", "read", "answer")
	root := filepath.Join(examples, "claude-code-plugin")
	p := readPlugin(t, filepath.Join(root, "hooks", "hooks.json"), filepath.Join(root, ".mcp.json"))
	env := append(os.Environ(), "MEANWHILE_DATA="+h.Config().Data)

	// hook runs an event's command as Claude Code does: by a shell.
	hook := func(event, payload, more string) <-chan string {
		t.Helper()
		if len(p.hooks[event]) != 1 || len(p.hooks[event][0].Hooks) != 1 {
			t.Fatalf("hooks of %s: %+v", event, p.hooks[event])
		}
		entry := p.hooks[event][0].Hooks[0]
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(entry.Timeout)*time.Second)
		c := exec.CommandContext(ctx, "sh", "-c", entry.Command+more)
		c.Env, c.Stdin, c.Stderr = env, strings.NewReader(payload), t.Output()
		out := make(chan string, 1)
		go func() {
			defer cancel()
			said, err := c.Output()
			if err != nil {
				t.Errorf("%s: %v", event, err)
			}
			out <- string(said)
		}()
		return out
	}

	out := hook("PreToolUse", fmt.Sprintf(toolUse, "t1"), "")
	desk.Next().Answer(`[{"id":"q1","selected":["Postgres"]}]`)
	if said := <-out; !strings.Contains(said, `"permissionDecision":"allow"`) || !strings.Contains(said, `"answers":{"Which store?":"Postgres"}`) {
		t.Errorf("answered in time: %s", said)
	}

	out = hook("PreToolUse", fmt.Sprintf(toolUse, "t2"), " --window 1s")
	ask := desk.Next()
	if said := <-out; !strings.Contains(said, `"permissionDecision":"deny"`) || !strings.Contains(said, "neither a skip nor permission") {
		t.Errorf("nobody answered: %s", said)
	}
	for _, event := range []string{"PostToolBatch", "SessionStart", "Stop"} {
		if said := <-hook(event, `{"session_id":"s1","cwd":"/","hook_event_name":"`+event+`"}`, ""); said != "" {
			t.Errorf("%s with nothing to say: %s", event, said)
		}
	}
	var taken struct{ Accepted bool }
	desk.Call("userQuestions/answer", map[string]any{"sessionId": ask.SessionID, "callId": ask.Request.Wait.CallID, "submissionId": "press",
		"answer": map[string]json.RawMessage{"answers": json.RawMessage(`[{"id":"q1","selected":["SQLite"]}]`)}}, &taken)
	prompt := `{"session_id":"s1","cwd":"/","hook_event_name":"UserPromptSubmit","prompt":"go on"}`
	if said := <-hook("UserPromptSubmit", prompt, ""); !taken.Accepted || !strings.Contains(said, "SQLite") || !strings.Contains(said, "press") {
		t.Errorf("a late answer: %s", said)
	}
	if said := <-hook("UserPromptSubmit", prompt, ""); said != "" {
		t.Errorf("the late answer came again: %s", said)
	}

	// The server, as the entry starts it.
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	entry := p.servers["meanwhile"]
	server := exec.CommandContext(ctx, entry.Command, entry.Args...)
	server.Env, server.Stderr = env, t.Output()
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "claude-code", Version: "0"}, nil).Connect(ctx, &mcp.CommandTransport{Command: server}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	done := make(chan *mcp.CallToolResult, 1)
	go func() {
		res, err := agent.CallTool(ctx, &mcp.CallToolParams{Name: "ask_user_question", Arguments: json.RawMessage(
			`{"questions":[{"id":"store","question":"Which store?","options":[{"label":"Postgres"},{"label":"SQLite"}]}]}`)})
		if err != nil {
			t.Errorf("ask_user_question: %v", err)
		}
		done <- res
	}()
	desk.Next().Answer(sqlite)
	if res := <-done; res != nil {
		raw, err := json.Marshal(res.StructuredContent)
		if err != nil || !strings.Contains(string(raw), `"SQLite"`) || !strings.Contains(string(raw), `"answered"`) {
			t.Errorf("the server's result: %s %v", raw, err)
		}
	}
}
