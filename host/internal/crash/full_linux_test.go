package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"meanwhile/host/internal/id"
)

// A disk that is full for real: the host ends by itself with exit code 1, what it
// confirmed is there, and with room again the next host goes on from it.
func TestDiskFull(t *testing.T) {
	r := newRun(t, 1)
	disk := filepath.Join(r.dir, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("a full disk was NOT tested: mounting a small tmpfs is not allowed here (%v)", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	r.data = filepath.Join(disk, "data")

	h := r.start()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	l := &load{run: r, host: h, fails: true}
	if err := l.prepare(ctx); err != nil {
		h.end(syscall.SIGKILL)
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.cmd.Wait() }()
	var clients sync.WaitGroup
	for i, client := range append(l.clients(), l.filler) {
		clients.Go(func() {
			if err := client(ctx, rand.New(rand.NewPCG(1, uint64(i)))); err != nil {
				t.Error(err)
			}
		})
	}
	var exit *exec.ExitError
	select {
	case err := <-ended:
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(h.stderr.String(), "storage failed") {
			t.Errorf("the host ended with %v, want exit code 1 for its storage\n%s", err, &h.stderr)
		}
	case <-ctx.Done():
		_ = h.cmd.Process.Kill()
		t.Fatalf("the host goes on with a full disk\n%s", &h.stderr)
	}
	l.dead.Store(true)
	clients.Wait()
	l.close()
	r.check(false)
	if got := r.led.tally(); got.prompts == 0 || got.answered+got.accepted == 0 {
		t.Errorf("nothing was confirmed before the disk was full: %+v", got)
	}

	if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	r.rounds = 1
	r.round()
	r.finish()
	t.Logf("%+v", r.led.tally())
}

// filler sends long prompts to one session until no more are taken.
func (l *load) filler(ctx context.Context, rng *rand.Rand) error {
	call, leave, err := l.overSocket(ctx)
	if err != nil {
		return err
	}
	defer leave()
	led := l.run.led
	var opened struct{ SessionID string }
	if err := call(ctx, "session/create", obj{"title": "go on"}, &opened); err != nil {
		return l.settled(ctx, l.fate("session/create", err))
	}
	led.note(func() { led.sessions[opened.SessionID] = true })
	for {
		text := make([]byte, 0, 16<<10)
		for len(text) < cap(text)-16 {
			text = fmt.Appendf(text, "%016x", rng.Uint64())
		}
		message := id.New()
		if err := call(ctx, "session/send", obj{"sessionId": opened.SessionID, "messageId": message, "text": string(text)}, nil); err != nil {
			return l.settled(ctx, l.fate("session/send", err))
		}
		led.note(func() { led.prompts = append(led.prompts, note{opened.SessionID, message}) })
		pause(ctx, 5*time.Millisecond)
	}
}
