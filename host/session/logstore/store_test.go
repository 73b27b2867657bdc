package logstore

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
)

func quiet() Options { return Options{Log: slog.New(slog.DiscardHandler)} }

func mustOpen(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestContract(t *testing.T) {
	sessiontest.Contract(t, func(t testing.TB) sessiontest.Disk {
		dir := t.TempDir()
		return sessiontest.Disk{Open: func(t testing.TB) session.Backend {
			s := mustOpen(t, dir, quiet())
			if s.Report() != nil {
				t.Errorf("a store that was closed did not open cleanly: %v", s.Report())
			}
			return s
		}}
	})
}

func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := mustOpen(t, dir, quiet())
	for _, o := range []Options{quiet(), {ReadOnly: true, Log: quiet().Log}} {
		_, err := Open(dir, o)
		var locked *LockedError
		if !errors.As(err, &locked) || locked.PID != os.Getpid() {
			t.Errorf("second open (read only %v): got %v, want a LockedError with pid %d", o.ReadOnly, err, os.Getpid())
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, dir, quiet())
}

func TestPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, dir, quiet())
	for _, p := range []string{dir, filepath.Join(dir, "store"), filepath.Join(dir, "lock")} {
		fi, err := os.Stat(p)
		if err != nil || fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %v, %v; others must have no access", p, fi.Mode(), err)
		}
	}
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "none"), Options{ReadOnly: true, Log: quiet().Log}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("read-only open of nothing: got %v, want os.ErrNotExist", err)
	}
	s := mustOpen(t, dir, quiet())
	fill(t, s, 3, 5)
	s.Close()
	before := files(t, dir)
	r := mustOpen(t, dir, Options{ReadOnly: true, Log: quiet().Log})
	if got, err := r.Events("s0", 0, 10); err != nil || len(got) != 5 {
		t.Errorf("events: %d, %v; want 5", len(got), err)
	}
	done := make(chan error, 1)
	r.Write(session.Batch{Session: "s0", Header: []byte("h")}, func(err error) { done <- err })
	if err := <-done; !errors.Is(err, ErrReadOnly) {
		t.Errorf("write: got %v, want ErrReadOnly", err)
	}
	r.Close()
	for name, data := range before {
		if got, err := os.ReadFile(name); err != nil || string(got) != data {
			t.Errorf("%s was changed by a read-only open (%v)", filepath.Base(name), err)
		}
	}
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, quiet())
	fill(t, s, 2, 3000)
	put(t, s, session.Batch{Session: "s0", Stage: session.StageDrop})
	s.Close()
	s = mustOpen(t, dir, quiet())
	// Other writes go between the rounds of the sweep; wait until it is over.
	for i := int64(3000); ; i++ {
		put(t, s, session.Batch{Session: "s1", First: i, Events: [][]byte{[]byte("x")}, Summary: []byte("s")})
		s.groups.mu.Lock()
		left := len(s.groups.doomed)
		s.groups.mu.Unlock()
		if left == 0 {
			break
		}
	}
	if got, err := s.Events("s0", 0, 10); err != nil || len(got) != 0 {
		t.Errorf("events of a dropped session: %d, %v; want none", len(got), err)
	}
	if got, err := s.Events("s1", 0, 10); err != nil || len(got) != 10 {
		t.Errorf("events of the other session: %d, %v", len(got), err)
	}
}

// A process that ends during an open leaves two journals; a reader takes both,
// changes nothing, and goes on to see what is there.
func TestReadOnlyAfterAnOpenThatWasCut(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, quiet())
	fill(t, s, 2, 40)
	s.Close()
	// The next journal, made and not yet named by a manifest.
	if err := os.WriteFile(filepath.Join(dir, "store", "000099.log"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	for range 2 {
		r, err := Open(dir, Options{ReadOnly: true, Log: quiet().Log})
		if err != nil {
			t.Fatal(err)
		}
		report, err := r.Verify()
		if err != nil || !report.Intact() {
			t.Errorf("verify: %v, %v", report, err)
		}
		if got, err := r.Events("s1", 0, 100); err != nil || len(got) != 40 {
			t.Errorf("%d events, %v; want 40", len(got), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(before, files(t, dir)); diff != "" {
		t.Errorf("reading changed the directory:\n%s", diff)
	}
}
