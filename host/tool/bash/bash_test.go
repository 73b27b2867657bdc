//go:build linux

package bash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"meanwhile/host/tool"
)

// long is more than any test takes: reaching it is a failure, not a pace.
const long = time.Minute

func shell(t *testing.T, change func(*Config)) *Shell {
	t.Helper()
	cfg := Config{Dir: t.TempDir(), Timeout: long, Grace: 5 * time.Second}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// call runs one of the shell's tools, arguments given as a Go value.
func call(ctx context.Context, s *Shell, name string, arguments any) (tool.Result, error) {
	text, ok := arguments.(string)
	if !ok {
		b, err := json.Marshal(arguments)
		if err != nil {
			panic(err)
		}
		text = string(b)
	}
	for _, tl := range s.Tools() {
		if tl.Spec().Name == name {
			return tl.Run(ctx, tool.Call{Name: name, Arguments: text})
		}
	}
	panic("no tool " + name)
}

type args map[string]any

func run(t *testing.T, s *Shell, command string) tool.Result {
	t.Helper()
	r, err := call(t.Context(), s, "bash", args{"command": command})
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return r
}

func wantCode(t *testing.T, err error, code string) *tool.Error {
	t.Helper()
	e, ok := errors.AsType[*tool.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return e
}

// fifo is how commands tell the test where they are: a test waits for a line,
// never for a time.
type fifo struct {
	t    *testing.T
	path string
	f    *os.File
}

func newFIFO(t *testing.T) *fifo {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &fifo{t: t, path: path, f: f}
}

// line waits for the next line of at most 64 bytes.
func (p *fifo) line() string {
	p.t.Helper()
	p.f.SetReadDeadline(time.Now().Add(long))
	var b []byte
	var one [1]byte
	for {
		if _, err := p.f.Read(one[:]); err != nil {
			p.t.Fatalf("waiting for the command: %v", err)
		}
		if one[0] == '\n' {
			return string(b)
		}
		b = append(b, one[0])
	}
}

// pid waits for a line with a process number and makes sure that the process
// does not outlive the test.
func (p *fifo) pid() int {
	p.t.Helper()
	n, err := strconv.Atoi(p.line())
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { syscall.Kill(n, syscall.SIGKILL) })
	return n
}

func alive(pid int) bool { _, ok := readProcess(pid); return ok }

func TestRun(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SOME_API_KEY", "secret")
	t.Setenv("MEANWHILE_TOKEN", "secret")
	t.Setenv("PLAIN", "plain")
	s := shell(t, func(c *Config) { c.Dir = dir })
	tests := []struct {
		name, command, want string
		code                int
	}{
		{name: "output", command: "echo hello", want: "hello\n"},
		{name: "both streams in order", command: "echo a; echo b >&2; echo c", want: "a\nb\nc\n"},
		{name: "nothing", command: "true", want: "[no output]\n"},
		{name: "exit status", command: "echo a; exit 3", want: "a\n[exit status 3]\n", code: 3},
		{name: "no newline at the end", command: "printf a; exit 1", want: "a\n[exit status 1]\n", code: 1},
		{name: "nothing but a status", command: "exit 4", want: "[exit status 4]\n", code: 4},
		{name: "its own signal", command: "kill -9 $$", want: "[signal: killed]\n", code: -1},
		{name: "directory", command: "pwd", want: dir + "\n"},
		{name: "no input", command: "cat", want: "[no output]\n"},
		{name: "environment without secrets", command: "echo $SOME_API_KEY$MEANWHILE_TOKEN$PLAIN", want: "plain\n"},
		{name: "not utf-8", command: `printf 'a\377b\n'`, want: "a\ufffdb\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := run(t, s, tt.command)
			if r.Text != tt.want {
				t.Errorf("text %q, want %q", r.Text, tt.want)
			}
			var meta runMeta
			if err := json.Unmarshal(r.Meta, &meta); err != nil || meta.ExitCode != tt.code {
				t.Errorf("meta %s, want exit code %d", r.Meta, tt.code)
			}
		})
	}
}

func TestLargeOutput(t *testing.T) {
	s := shell(t, func(c *Config) { c.MaxOutput = 100 })
	r := run(t, s, "seq 1 20000")
	var all strings.Builder
	for i := range 20000 {
		fmt.Fprintln(&all, i+1)
	}
	whole := all.String()
	want := whole[:50] + "\n" + fmt.Sprintf("[… %d bytes left out …]\n", len(whole)-100) + whole[len(whole)-50:]
	if r.Text != want {
		t.Errorf("text %q, want %q", r.Text, want)
	}
}

func TestArguments(t *testing.T) {
	s := shell(t, nil)
	tests := []struct {
		name, tool string
		arguments  string
		want       string // part of the message
	}{
		{"not json", "bash", `{`, "arguments"},
		{"empty", "bash", ``, "arguments"},
		{"text after", "bash", `{"command":"true"}}`, "after"},
		{"no command", "bash", `{}`, "command is empty"},
		{"blank command", "bash", `{"command":" \n"}`, "command is empty"},
		{"zero byte", "bash", `{"command":"a\u0000b"}`, "zero byte"},
		{"long", "bash", `{"command":"` + strings.Repeat("x", maxCommand+1) + `"}`, "write it to a file"},
		{"unknown field", "bash", `{"command":"true","tiemout":1}`, "tiemout"},
		{"wrong type", "bash", `{"command":["true"]}`, "command must be a string, not array"},
		{"zero timeout", "bash", `{"command":"true","timeout":0}`, "timeout must be more than 0"},
		{"negative timeout", "bash", `{"command":"true","timeout":-1}`, "timeout must be more than 0"},
		{"fraction", "bash", `{"command":"true","timeout":1.5}`, "timeout must be a whole number, not number 1.5"},
		{"huge", "bash", `{"command":"true","timeout":1e30}`, "timeout must be a whole number"},
		{"timeout as text", "bash", `{"command":"true","timeout":"60"}`, "timeout must be a whole number, not string"},
		{"not an object", "bash", `[]`, "one JSON object"},
		{"background as text", "bash", `{"command":"true","background":"yes"}`, "background must be true or false"},
		{"timeout in the background", "bash", `{"command":"true","timeout":1,"background":true}`, "leave one of them out"},
		{"zero wait", "bash_output", `{"id":"x","wait":0}`, "no background command"},
		{"unknown id", "bash_output", `{"id":"x"}`, "no background command"},
		{"unknown id to kill", "bash_kill", `{"id":"x"}`, "no background command"},
		{"unknown field of output", "bash_output", `{"di":"x"}`, "di"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := call(t.Context(), s, tt.tool, tt.arguments)
			e, ok := errors.AsType[*tool.Error](err)
			if !ok || !strings.Contains(e.Message, tt.want) {
				t.Errorf("got %v, want a message with %q", err, tt.want)
			}
		})
	}
	if _, err := tool.NewRegistry(s.Tools()...); err != nil {
		t.Errorf("the tools do not fit a registry: %v", err)
	}
}

func TestTimeoutValue(t *testing.T) {
	s := shell(t, func(c *Config) { c.Timeout, c.TimeoutMax = 20*time.Second, time.Minute })
	tests := []struct {
		seconds int64
		want    time.Duration
	}{{1, time.Second}, {60, time.Minute}, {61, time.Minute}, {math.MaxInt64, time.Minute}}
	for _, tt := range tests {
		if got, err := s.timeout(&tt.seconds, "timeout"); err != nil || got != tt.want {
			t.Errorf("timeout %d: got %v, %v; want %v", tt.seconds, got, err, tt.want)
		}
	}
	if got, err := s.timeout(nil, "timeout"); err != nil || got != 20*time.Second {
		t.Errorf("no timeout: got %v, %v; want 20s", got, err)
	}
	for _, seconds := range []int64{0, -1, math.MinInt64} {
		if got, err := s.timeout(&seconds, "timeout"); err == nil {
			t.Errorf("timeout %d: got %v, want an error", seconds, got)
		}
	}
}

func TestTimeout(t *testing.T) {
	s := shell(t, func(c *Config) { c.Timeout = 200 * time.Millisecond })
	e := wantCode(t, second(call(t.Context(), s, "bash", args{"command": "sleep 1000"})), CodeTimeout)
	if !strings.Contains(e.Message, "after 200ms") {
		t.Errorf("message %q", e.Message)
	}
}

// TestTheExitIsPreferred: a command that ended by itself has just exited, even
// if the deadline passed by the time anybody looks.
func TestTheExitIsPreferred(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &command{exited: make(chan struct{})}
	close(c.exited)
	for range 100 {
		if !c.wait(ctx) {
			t.Fatal("an exited command was called cancelled")
		}
	}
}

func second[A any](_ A, err error) error { return err }

// A deadline from above is a cancellation here, whatever it is called there.
func TestAnOuterDeadlineIsAnAbort(t *testing.T) {
	s := shell(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wantCode(t, second(call(ctx, s, "bash", args{"command": "sleep 1000"})), CodeAborted)
	wantCode(t, second(call(ctx, s, "bash", args{"command": "true"})), CodeAborted)
}

// TestFamilyEnds: whatever a command does with its children, an abort leaves
// none. Each command reports the numbers of those it made through the fifo.
func TestFamilyEnds(t *testing.T) {
	tests := []struct {
		name    string
		command string // FIFO is the fifo
		pids    int
		grace   time.Duration
	}{
		{name: "itself", command: `echo $$ >FIFO; exec sleep 1000`, pids: 1},
		{name: "a child", command: `sleep 1000 & echo $! >FIFO; wait`, pids: 1},
		{name: "a child in a session of its own", command: `setsid sh -c 'echo $$ >FIFO; exec sleep 1000' & wait`, pids: 1},
		{name: "a child in a session of its own, whose parent is gone", command: `(setsid sh -c 'echo $$ >FIFO; exec sleep 1000' &) ; sleep 1000`, pids: 1},
		{name: "a grandchild of a session of its own", command: `setsid sh -c 'sh -c "echo \$\$ >FIFO; exec sleep 1000" & wait' & wait`, pids: 1},
		{name: "a child without the environment", command: `setsid env -i sh -c 'echo $$ >FIFO; exec sleep 1000' & wait`, pids: 1},
		{name: "many", command: `for i in 1 2 3 4 5; do setsid sh -c 'echo $$ >FIFO; exec sleep 1000' & done; wait`, pids: 5},
		{name: "deaf to TERM", command: `trap '' TERM; echo $$ >FIFO; while :; do sleep 1000; done`, pids: 1, grace: 50 * time.Millisecond},
		{name: "a deaf child in a session of its own", command: `setsid sh -c 'trap "" TERM; echo $$ >FIFO; while :; do sleep 1000; done' & wait`, pids: 1, grace: 50 * time.Millisecond},
		{name: "stopped", command: `sh -c 'echo $$ >FIFO; kill -STOP $$' & wait`, pids: 1, grace: 50 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newFIFO(t)
			s := shell(t, func(c *Config) {
				if tt.grace > 0 {
					c.Grace = tt.grace
				}
			})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- second(call(ctx, s, "bash", args{"command": strings.ReplaceAll(tt.command, "FIFO", p.path)}))
			}()
			var pids []int
			for range tt.pids {
				pids = append(pids, p.pid())
			}
			cancel()
			wantCode(t, <-done, CodeAborted)
			for _, pid := range pids {
				if alive(pid) {
					t.Errorf("process %d is left", pid)
				}
			}
		})
	}
}

func TestGraceLetsACommandTidyUp(t *testing.T) {
	p := newFIFO(t)
	s := shell(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- second(call(ctx, s, "bash", args{"command": `trap 'echo tidy; exit 0' TERM; echo ready >` + p.path + `; while :; do sleep 0.05; done`}))
	}()
	p.line()
	cancel()
	if e := wantCode(t, <-done, CodeAborted); !strings.HasSuffix(e.Message, "tidy\n") {
		t.Errorf("message %q", e.Message)
	}
}

// What a command leaves behind holds its output pipe; it must not hold the
// call.
func TestLeftBehind(t *testing.T) {
	t.Run("in the group: ended", func(t *testing.T) {
		p := newFIFO(t)
		r := run(t, shell(t, nil), `sleep 1000 & echo $! >`+p.path+`; echo done`)
		if want := "done\n[1 processes it left running were ended; use background for those]\n"; r.Text != want {
			t.Errorf("text %q, want %q", r.Text, want)
		}
		if pid := p.pid(); alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	})
	t.Run("in a session of its own: stays", func(t *testing.T) {
		p := newFIFO(t)
		begin := time.Now()
		r := run(t, shell(t, nil), `setsid sh -c 'echo $$ >`+p.path+`; exec sleep 1000' & read x <`+p.path+`; echo $x`)
		if took := time.Since(begin); took > long/2 {
			t.Errorf("took %v", took)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(r.Text))
		if err != nil {
			t.Fatalf("text %q", r.Text)
		}
		defer syscall.Kill(pid, syscall.SIGKILL)
		if !alive(pid) {
			t.Error("it was ended")
		}
	})
}

func TestStartFails(t *testing.T) {
	s := shell(t, func(c *Config) { c.Dir = filepath.Join(c.Dir, "nowhere") })
	wantCode(t, second(call(t.Context(), s, "bash", args{"command": "true"})), CodeStart)
	wantCode(t, second(call(t.Context(), s, "bash", args{"command": "true", "background": true})), CodeStart)
}
