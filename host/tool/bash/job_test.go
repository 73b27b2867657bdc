//go:build linux

package bash

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"meanwhile/host/tool"
)

// background starts a command and returns its id.
func background(t *testing.T, s *Shell, command string) string {
	t.Helper()
	r, err := call(t.Context(), s, "bash", args{"command": command, "background": true})
	if err != nil {
		t.Fatal(err)
	}
	var meta struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(r.Meta, &meta); err != nil || meta.ID == "" || !strings.Contains(r.Text, meta.ID) {
		t.Fatalf("started as %q, %s", r.Text, r.Meta)
	}
	return meta.ID
}

func TestBackground(t *testing.T) {
	p, q := newFIFO(t), newFIFO(t)
	s := shell(t, func(c *Config) { c.Timeout, c.TimeoutMax = time.Millisecond, long }) // no timeout applies
	id := background(t, s, `echo one; echo a >`+p.path+`; read x <`+q.path+`; echo two $x; exit 7`)
	p.line()
	out := func(a args) tool.Result {
		t.Helper()
		a["id"] = id
		r, err := call(t.Context(), s, "bash_output", a)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if got, want := untilOutput(t, s, id), "one\n[still running]\n"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if got, want := out(args{}).Text, "[no new output]\n[still running]\n"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	q.f.WriteString("more\n")
	r := out(args{"wait": 50})
	if want := "two more\n[ended: exit status 7]\n"; r.Text != want {
		t.Errorf("text %q, want %q", r.Text, want)
	}
	if want := `{"id":"` + id + `","running":false,"exitCode":7}`; string(r.Meta) != want {
		t.Errorf("meta %s, want %s", r.Meta, want)
	}
	if got, want := out(args{"wait": 50}).Text, "[no new output]\n[ended: exit status 7]\n"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	r, err := call(t.Context(), s, "bash_kill", args{"id": id})
	if err != nil || !strings.HasSuffix(r.Text, "[ended: exit status 7]\n") {
		t.Errorf("killing the ended: %q, %v", r.Text, err)
	}
}

// untilOutput reads until there is some: the command has written it already,
// only its reader may not have come to it.
func untilOutput(t *testing.T, s *Shell, id string) string {
	t.Helper()
	for {
		r, err := call(t.Context(), s, "bash_output", args{"id": id})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(r.Text, "[no new output]") {
			return r.Text
		}
	}
}

func TestKill(t *testing.T) {
	p := newFIFO(t)
	s := shell(t, nil)
	id := background(t, s, `setsid sh -c 'echo $$ >`+p.path+`; exec sleep 1000' & echo $$ >`+p.path+`; wait`)
	pids := []int{p.pid(), p.pid()}
	r, err := call(t.Context(), s, "bash_kill", args{"id": id})
	if err != nil || !strings.Contains(r.Text, "[ended: killed, signal: terminated]") {
		t.Fatalf("got %q, %v", r.Text, err)
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
}

func TestWaitEnds(t *testing.T) {
	s := shell(t, func(c *Config) { c.TimeoutMax = 50 * time.Millisecond })
	id := background(t, s, "sleep 1000")
	r, err := call(t.Context(), s, "bash_output", args{"id": id, "wait": 30}) // clamped to the maximum
	if err != nil || !strings.Contains(r.Text, "[still running]") {
		t.Errorf("got %q, %v", r.Text, err)
	}
	_, err = call(t.Context(), s, "bash_output", args{"id": id, "wait": -1})
	if e := wantCode(t, err, CodeArguments); !strings.Contains(e.Message, "wait must be more than 0") {
		t.Errorf("message %q", e.Message)
	}
	s = shell(t, nil)
	id = background(t, s, "sleep 1000")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantCode(t, second(call(ctx, s, "bash_output", args{"id": id, "wait": 30})), CodeAborted)
}

func TestClose(t *testing.T) {
	p := newFIFO(t)
	s := shell(t, nil)
	background(t, s, `echo $$ >`+p.path+`; exec sleep 1000`)
	background(t, s, `setsid sh -c 'echo $$ >`+p.path+`; exec sleep 1000' & wait`)
	done := make(chan error, 1)
	go func() {
		done <- second(call(t.Context(), s, "bash", args{"command": `echo $$ >` + p.path + `; exec sleep 1000`}))
	}()
	pids := []int{p.pid(), p.pid(), p.pid()}
	s.Close()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	wantCode(t, <-done, CodeAborted)
	wantCode(t, second(call(t.Context(), s, "bash", args{"command": "true"})), CodeClosed)
	wantCode(t, second(call(t.Context(), s, "bash", args{"command": "true", "background": true})), CodeClosed)
	s.Close()
}

func TestLimits(t *testing.T) {
	s := shell(t, nil)
	var ids []string
	for range MaxRunning {
		ids = append(ids, background(t, s, "exec sleep 1000"))
	}
	e := wantCode(t, second(call(t.Context(), s, "bash", args{"command": "true", "background": true})), CodeTooMany)
	for _, id := range ids {
		if !strings.Contains(e.Message, id) {
			t.Errorf("message %q does not name %s", e.Message, id)
		}
	}
	e = wantCode(t, second(call(t.Context(), s, "bash_output", args{"id": "none"})), CodeUnknownID)
	if !strings.Contains(e.Message, ids[0]) {
		t.Errorf("message %q does not name what runs", e.Message)
	}
	if _, err := call(t.Context(), s, "bash_kill", args{"id": ids[0]}); err != nil {
		t.Fatal(err)
	}
	background(t, s, "true")
}

func TestTheEndedAreForgotten(t *testing.T) {
	s := shell(t, nil)
	first := background(t, s, "true")
	s.mu.Lock()
	gone := make(chan struct{})
	close(gone)
	for range maxEnded {
		s.jobs = append(s.jobs, &job{id: "old", done: gone})
	}
	s.mu.Unlock()
	if _, err := call(t.Context(), s, "bash_output", args{"id": first, "wait": 50}); err != nil {
		t.Fatal(err)
	}
	background(t, s, "true")
	wantCode(t, second(call(t.Context(), s, "bash_output", args{"id": first})), CodeUnknownID)
	if got := len(s.jobs); got != maxEnded+1 {
		t.Errorf("%d jobs remembered, want %d", got, maxEnded+1)
	}
}

// TestHammer: commands of both kinds, reads, kills and the close at once, for
// the race detector. Afterwards nothing runs.
func TestHammer(t *testing.T) {
	p := newFIFO(t)
	s := shell(t, func(c *Config) { c.Grace = 20 * time.Millisecond })
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			_, _ = call(t.Context(), s, "bash", args{"command": "echo $$ >" + p.path + "; exec sleep 1000"})
		})
		wg.Go(func() {
			r, err := call(t.Context(), s, "bash", args{"command": "echo $$ >" + p.path + "; exec sleep 1000", "background": true})
			if e, ok := errors.AsType[*tool.Error](err); ok && e.Code == CodeClosed {
				return // the close came first
			} else if err != nil {
				t.Error(err)
				return
			}
			var meta struct {
				ID string `json:"id"`
			}
			if err := json.Unmarshal(r.Meta, &meta); err != nil {
				t.Error(err)
			}
			for _, name := range []string{"bash_output", "bash_kill", "bash_kill", "bash_output"} {
				wg.Go(func() {
					if _, err := call(t.Context(), s, name, args{"id": meta.ID}); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
		})
	}
	pids := []int{p.pid(), p.pid(), p.pid(), p.pid()} // at least the foreground ones tell
	s.Close()
	wg.Wait()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
}
