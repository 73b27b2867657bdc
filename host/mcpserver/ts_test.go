package mcpserver_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"meanwhile/host/internal/hosttest"
)

// script is the TypeScript SDK's client in a process of its own.
type script struct {
	t     *testing.T
	in    io.Writer
	lines <-chan []byte
}

type spoken struct {
	said
	Result json.RawMessage
	Text   string
	Error  bool
	Failed string
	Code   any
	Tools  []string
}

func startScript(t *testing.T, env []string, args ...string) *script {
	t.Helper()
	dir := filepath.Join("testdata", "ts")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("the TypeScript SDK is not installed: run npm ci in host/mcpserver/testdata/ts")
		}
		t.Skip("the TypeScript SDK is not installed: run npm ci in host/mcpserver/testdata/ts")
	}
	cmd := exec.Command("node", append([]string{"client.mjs"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan []byte, 100)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- slices.Clone(s.Bytes())
		}
	}()
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the script ended with %v", err)
		}
	})
	s := &script{t, in, lines}
	if got, want := strings.Join(s.next().Tools, " "), "ask_user_question await_answer check_inbox withdraw_question"; got != want {
		t.Fatalf("tools %q, want %q", got, want)
	}
	return s
}

// next is the outcome of the next call.
func (s *script) next() (out spoken) {
	s.t.Helper()
	raw, ok := <-s.lines
	if !ok {
		s.t.Fatal("the script ended")
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		s.t.Fatalf("%v: %s", err, raw)
	}
	if out.Result != nil {
		if err := json.Unmarshal(out.Result, &out.said); err != nil {
			s.t.Fatalf("%v: %s", err, out.Result)
		}
	}
	return out
}

func (s *script) begin(tool string, in args, more args) {
	s.t.Helper()
	call := args{"tool": tool, "args": in}
	for k, v := range more {
		call[k] = v
	}
	raw, err := json.Marshal(call)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.in.Write(append(raw, '\n')); err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) call(tool string, in args) spoken {
	s.t.Helper()
	s.begin(tool, in, nil)
	return s.next()
}

// The TypeScript SDK checks every result against the tool's output schema, and
// gives up on a call after its own limit.
func TestTypeScriptClient(t *testing.T) {
	for _, door := range []string{"stdio", "http"} {
		t.Run(door, func(t *testing.T) {
			h := hosttest.Start(t, hosttest.Options{})
			desk := person(h)
			var me *script
			if door == "stdio" {
				self, err := os.Executable()
				if err != nil {
					t.Fatal(err)
				}
				me = startScript(t, []string{"MEANWHILE_TEST_RUN=1"}, "stdio", self, "mcp", "--data", h.Config().Data)
			} else {
				token, _ := h.Token("agent", "ask")
				me = startScript(t, nil, "http", h.URL("/mcp"), token)
			}

			me.begin("ask_user_question", store(nil), nil)
			desk.Next().Answer(postgres)
			if s := me.next(); s.Status != "answered" || s.Answers[0].Selected[0] != "Postgres, hosted" {
				t.Fatalf("ask: %+v", s)
			}

			// The client's limit is shorter than the call's hold: it gives up, and
			// the same questions sent again meet the same ask.
			in := args{"timeout": 600, "questions": []args{{"id": "name", "question": "Which name?"}}}
			me.begin("ask_user_question", in, args{"timeout": 500})
			card := desk.Next()
			if s := me.next(); s.Failed == "" {
				t.Fatalf("the client waited longer than it said: %+v", s)
			}
			card.Answer(`[{"id":"name","selected":[],"custom":"Ada"}]`)
			<-card.Gone
			s := me.call("ask_user_question", in)
			if s.CallID != card.Request.Wait.CallID {
				t.Errorf("sent again: %+v", s)
			}
			if s.Status != "answered" {
				s = me.call("await_answer", args{"callId": s.CallID})
			}
			if s.Status != "answered" || s.Answers[0].Custom != "Ada" {
				t.Errorf("the answer that the client missed: %+v", s)
			}

			// A late reply rides on the next result, whatever it is.
			asked := me.call("ask_user_question", store(args{"timeout": 1}))
			if asked.Status != "pending" || desk.Next().Request.Wait.CallID != asked.CallID {
				t.Fatalf("ask: %+v", asked)
			}
			late(desk, sessionOf(desk), asked.CallID, "press")
			if s := me.call("await_answer", args{"callId": "nothing"}); !s.Error || !strings.Contains(s.Text, "UNKNOWN_CALL") || !strings.Contains(s.Text, "press") {
				t.Errorf("an error with a reply on it: %+v", s)
			}
			if s := me.call("check_inbox", args{}); len(s.Messages) != 0 {
				t.Errorf("the reply came again: %+v", s)
			}

			me.begin("ask_user_question", args{"timeout": 600, "questions": []args{{"id": "q", "question": "Still there?"}}}, args{"timeout": 300})
			open := desk.Next()
			if s := me.next(); s.Failed == "" {
				t.Fatalf("the client waited longer than it said: %+v", s)
			}
			if s := me.call("withdraw_question", args{"callId": open.Request.Wait.CallID}); s.Withdrawn == nil || !*s.Withdrawn {
				t.Errorf("withdraw: %+v", s)
			}
			<-open.Gone

		})
	}
}
