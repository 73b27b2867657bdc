package logstore

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"meanwhile/host/session"
)

func backup(t testing.TB, s *Store) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := s.Backup(t.Context(), &out); err != nil {
		t.Fatalf("backup: %v", err)
	}
	return out.Bytes()
}

func TestBackupHoldsEverything(t *testing.T) {
	from := mustOpen(t, grown(t), quiet())
	put(t, from, session.Batch{Values: []session.Value{{Kind: "token", Key: "k", Data: []byte("v")}}})
	copied := backup(t, from)
	// What comes after the copy is not in it.
	grow(t, from, 4, 180, 190)

	dir := filepath.Join(t.TempDir(), "new")
	if err := Restore(t.Context(), bytes.NewReader(copied), dir); err != nil {
		t.Fatal(err)
	}
	to := mustOpen(t, dir, quiet())
	if lost := check(t, to); lost != 0 {
		t.Errorf("%d events of the backup are gone", lost)
	}
	if got, err := to.Events("s0", 0, 1000); err != nil || len(got) != 180 {
		t.Errorf("s0 has %d events, %v; want the 180 of before", len(got), err)
	}
	if got, err := to.Get("token", "k"); err != nil || string(got) != "v" {
		t.Errorf("value = %q, %v", got, err)
	}
	report, err := to.Verify()
	if err != nil || !report.Intact() {
		t.Errorf("verify: %v, %v", report, err)
	}
	grow(t, to, 4, 180, 190) // it goes on
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory is open to others: %v %v", info.Mode(), err)
	}
}

// A backup that is taken while batches are written holds each of them whole or
// not at all.
func TestBackupWhileWriting(t *testing.T) {
	s := mustOpen(t, t.TempDir(), quiet())
	fill(t, s, 4, 10)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for from := 10; ; from += 10 {
			select {
			case <-stop:
				return
			default:
				grow(t, s, 4, from, from+10)
			}
		}
	}()
	for range 5 {
		dir := t.TempDir()
		if err := Restore(t.Context(), bytes.NewReader(backup(t, s)), dir); err != nil {
			t.Error(err)
			continue
		}
		copied := mustOpen(t, dir, quiet())
		rec, err := copied.Load("s3")
		if err != nil || rec.Events%10 != 0 {
			t.Errorf("s3 holds %d events, %v: a batch of ten was cut", rec.Events, err)
		}
		copied.Close()
	}
	close(stop)
	<-stopped
}

func TestRestoreRefuses(t *testing.T) {
	s := mustOpen(t, grown(t), quiet())
	whole := backup(t, s)
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for _, tc := range []struct {
		name string
		in   []byte
	}{
		{"nothing", nil},
		{"another file", []byte("PK\x03\x04 and more")},
		{"cut", whole[:len(whole)/2]},
		{"last byte cut", whole[:len(whole)-1]},
		{"flipped", flipped},
		{"something behind", append(bytes.Clone(whole), whole...)},
	} {
		dir := t.TempDir()
		if err := Restore(t.Context(), bytes.NewReader(tc.in), dir); !errors.Is(err, ErrBadBackup) {
			t.Errorf("%s: %v, want ErrBadBackup", tc.name, err)
		}
		left, err := filepath.Glob(filepath.Join(dir, "store*"))
		if err != nil || len(left) > 0 {
			t.Errorf("%s: left %v behind", tc.name, left)
		}
	}
	t.Run("a store that is there", func(t *testing.T) {
		dir := t.TempDir()
		there := mustOpen(t, dir, quiet())
		fill(t, there, 1, 10)
		var locked *LockedError
		if err := Restore(t.Context(), bytes.NewReader(whole), dir); !errors.As(err, &locked) {
			t.Errorf("in use: %v, want LockedError", err)
		}
		there.Close()
		before := files(t, dir)
		if err := Restore(t.Context(), bytes.NewReader(whole), dir); !errors.Is(err, ErrNotEmpty) {
			t.Errorf("%v, want ErrNotEmpty", err)
		}
		for name, text := range files(t, dir) {
			if before[name] != text {
				t.Errorf("%s changed", name)
			}
		}
	})
	t.Run("after an interrupted one", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, restoreName), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, restoreName, "CURRENT"), []byte("MANIFEST-000009\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Restore(t.Context(), bytes.NewReader(whole), dir); err != nil {
			t.Error(err)
		}
	})
	t.Run("called off", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Backup(ctx, &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want Canceled", err)
		}
	})
}

// Verify finds what an open does not look at: an event in the middle of a log.
func TestVerifyReadsEverything(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, quiet())
	fill(t, s, 2, 40)
	if r, err := s.Verify(); err != nil || !r.Intact() || r.Missing() != "" {
		t.Errorf("a sound store: %q, %v", r.Missing(), err)
	}
	if err := s.db.Delete(eventKey("s1", 20), synced()); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = mustOpen(t, dir, Options{ReadOnly: true, Log: quiet().Log})
	r, err := s.Verify()
	if err != nil || r.Intact() || len(r.Faults) != 1 || r.Faults[0].Session != "s1" || r.Faults[0].Seq != 20 {
		t.Errorf("report %+v, %v; want s1 to end at 20", r, err)
	}
	if !strings.Contains(r.Missing(), "session s1: seq 20") {
		t.Errorf("report %q does not name it", r.Missing())
	}
}

func TestSyncedCountsGroups(t *testing.T) {
	var got []Sync
	o := quiet()
	o.Synced = func(s Sync) { got = append(got, s) }
	s := mustOpen(t, t.TempDir(), o)
	fill(t, s, 1, 20)
	s.Close()
	batches := 0
	for _, g := range got {
		batches += g.Batches
		if g.Took <= 0 || g.Bytes <= 0 {
			t.Errorf("group %+v took no time or no bytes", g)
		}
	}
	if batches != 3 {
		t.Errorf("%d batches synced, want 3", batches)
	}
}
