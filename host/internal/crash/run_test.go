package crash

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"meanwhile/host/session"
	"meanwhile/host/session/logstore"
)

const (
	within  = 30 * time.Second
	loadMin = 150 * time.Millisecond // from the first client to the kill
	loadMax = 1500 * time.Millisecond

	// acksMax is after how many confirmations a kill comes, in two of three rounds.
	acksMax = 40

	startMax = 400 * time.Millisecond // into a start that is killed
)

// script asks, carries on and takes the late answer.
const script = `{"name":"crash","rules":[
	{"when":{"tool":"ask_user_question","pending":true},"do":[{"text":"carrying on"}]},
	{"when":{"tool":"ask_user_question"},"do":[{"text":"result: {{output}}"}]},
	{"when":{"reply":true},"do":[{"text":"late: {{answers}}"}]},
	{"when":{"last":"user"},"do":[{"call":"ask_user_question","arguments":{"timeout":1,"questions":[
		{"id":"q","question":"Which?","options":[{"label":"A"},{"label":"B"}]}]}}]}
]}`

// run is one data directory and everything that was promised about it.
type run struct {
	t      *testing.T
	rng    *rand.Rand
	dir    string
	data   string
	seed   uint64
	tokens tokens
	led    *ledger
	rounds int
}

// tokens are made by the first host and must hold at all later ones.
type tokens struct{ ask, answer string }

func newRun(t *testing.T, seed uint64) *run {
	t.Helper()
	// Not t.TempDir: the name of a socket has little room.
	dir, err := os.MkdirTemp("", "mw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the data is kept in %s", dir)
			return
		}
		os.RemoveAll(dir)
	})
	if err := os.WriteFile(filepath.Join(dir, "script.json"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return &run{t: t, rng: rand.New(rand.NewPCG(seed, 1)), dir: dir, data: filepath.Join(dir, "data"), seed: seed, led: newLedger()}
}

// host is one process.
type host struct {
	cmd     *exec.Cmd
	address string
	stdout  io.Reader
	stderr  bytes.Buffer
}

// spawn starts a process without waiting for it.
func (r *run) spawn() *host {
	r.t.Helper()
	program := *binary
	if program == "" {
		program = os.Args[0]
	}
	h := &host{cmd: exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--data", r.data, "--ask-mode", "timed",
		"--script", filepath.Join(r.dir, "script.json"), "--bash-dir", r.dir, "--log", "warn")}
	h.cmd.Env = append(os.Environ(), asHost+"=1")
	h.cmd.Stderr = &h.stderr
	var err error
	if h.stdout, err = h.cmd.StdoutPipe(); err != nil {
		r.t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	return h
}

// start waits until the host listens.
func (r *run) start() *host {
	r.t.Helper()
	h := r.spawn()
	late := time.AfterFunc(within, func() { _ = h.cmd.Process.Kill() })
	line, err := bufio.NewReader(h.stdout).ReadString('\n')
	late.Stop()
	if err != nil {
		h.end(syscall.SIGKILL)
		r.t.Fatalf("round %d: the host did not start: %v\n%s", r.rounds, err, &h.stderr)
	}
	h.address, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "http://"), "/")
	return h
}

// end signals the process and waits for it.
func (h *host) end(with syscall.Signal) error {
	_ = h.cmd.Process.Signal(with) // it may have ended
	late := time.AfterFunc(within, func() { _ = h.cmd.Process.Kill() })
	defer late.Stop()
	return h.cmd.Wait()
}

// kill ends a host that must have lived until now.
func (h *host) kill(t *testing.T) {
	t.Helper()
	var exit *exec.ExitError
	if err := h.end(syscall.SIGKILL); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the host ended by itself: %v\n%s", err, &h.stderr)
	}
}

// stillborn is a host that is killed while it opens, repairs and resumes.
func (r *run) stillborn() {
	r.t.Helper()
	h := r.spawn()
	select {
	case <-time.After(time.Duration(r.rng.Int64N(int64(startMax)))):
	case <-r.t.Context().Done():
	}
	h.kill(r.t)
	r.check(false)
}

// round is one life of the host.
func (r *run) round() {
	r.t.Helper()
	r.rounds++
	if r.rounds > 1 && r.rng.IntN(4) == 0 {
		r.stillborn()
	}
	h := r.start()
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	defer cancel()
	l := &load{run: r, host: h, shot: make(chan struct{})}
	if err := l.prepare(ctx); err != nil {
		h.end(syscall.SIGKILL)
		r.t.Fatalf("round %d: %v\n%s", r.rounds, err, &h.stderr)
	}
	if r.rng.IntN(3) > 0 {
		l.acks.Store(1 + r.rng.Int64N(acksMax))
	}
	var clients sync.WaitGroup
	for i, client := range l.clients() {
		rng := rand.New(rand.NewPCG(r.seed, uint64(r.rounds*100+i)))
		clients.Go(func() {
			if err := client(ctx, rng); err != nil {
				r.t.Errorf("round %d: %v", r.rounds, err)
			}
		})
	}
	instant := loadMin + time.Duration(r.rng.Int64N(int64(loadMax-loadMin)))
	select {
	case <-time.After(instant):
	case <-l.shot:
	case <-ctx.Done():
	}
	l.dead.Store(true)
	h.kill(r.t)
	clients.Wait()
	l.close()
	r.check(false)
	if r.t.Failed() {
		r.t.Logf("round %d, killed after %v\n%s", r.rounds, instant, &h.stderr)
	}
}

// finish starts once more, stops in order, and wants every turn that nobody
// drives closed.
func (r *run) finish() {
	r.t.Helper()
	if r.t.Failed() {
		return
	}
	h := r.start()
	l := &load{run: r, host: h}
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	defer cancel()
	if err := l.prepare(ctx); err != nil {
		r.t.Errorf("after %d kills: %v", r.rounds, err)
	}
	l.close()
	if err := h.end(syscall.SIGTERM); err != nil {
		r.t.Errorf("after %d kills the host stopped with %v\n%s", r.rounds, err, &h.stderr)
	}
	r.check(true)
}

// check reads the directory that no host has.
func (r *run) check(stopped bool) {
	r.t.Helper()
	store, err := logstore.Open(r.data, logstore.Options{ReadOnly: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		r.t.Fatalf("round %d: %v", r.rounds, err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			r.t.Error(err)
		}
	}()
	report, err := store.Verify()
	switch {
	case err != nil:
		r.t.Errorf("round %d: %v", r.rounds, err)
	case !report.Intact():
		r.t.Errorf("round %d: %s", r.rounds, report)
	}
	err = session.Check(store, func(f session.Finding) error {
		if f.Fault != nil {
			r.t.Errorf("round %d: %v", r.rounds, f.Fault)
		}
		// A session of the host's own is named by its prompt, also when the kill
		// came before anybody heard of it.
		if stopped && f.TurnOpen && f.Open > 0 && !strings.HasPrefix(f.Title, "go ") {
			r.t.Errorf("session %s: its turn is open though no host cut it", f.ID)
		}
		return nil
	})
	if err != nil {
		r.t.Errorf("round %d: %v", r.rounds, err)
	}
	for _, problem := range r.led.check(func(id string) (*book, error) { return readBook(store, id) }) {
		r.t.Errorf("round %d: %s", r.rounds, problem)
	}
}

var errNotReady = errors.New("the host is not as it should be after a start")
