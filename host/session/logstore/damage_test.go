package logstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"meanwhile/host/session"
)

func put(t testing.TB, s *Store, b session.Batch) {
	t.Helper()
	if err := tryPut(s, b); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func tryPut(s *Store, b session.Batch) error {
	done := make(chan error, 1)
	s.Write(b, func(err error) { done <- err })
	return <-done
}

// body is the event that stands at seq of a session.
func body(id string, seq int) []byte {
	return fmt.Appendf(nil, "%s/%d/%s", id, seq, strings.Repeat("-", 100+seq%50))
}

func bodies(id string, from, n int) [][]byte {
	var out [][]byte
	for i := range n {
		out = append(out, body(id, from+i))
	}
	return out
}

// fill creates sessions s0, s1, … and gives each some events in batches of ten,
// taking turns.
func fill(t testing.TB, s *Store, sessions, events int) {
	t.Helper()
	for i := range sessions {
		id := fmt.Sprintf("s%d", i)
		put(t, s, session.Batch{Session: id, Stage: session.StageCreate, Header: []byte("header " + id), Summary: []byte("s"), Pending: []byte("p")})
	}
	grow(t, s, sessions, 0, events)
}

func grow(t testing.TB, s *Store, sessions, from, to int) {
	t.Helper()
	for ; from < to; from += 10 {
		for i := range sessions {
			id := fmt.Sprintf("s%d", i)
			put(t, s, session.Batch{Session: id, First: int64(from), Events: bodies(id, from, min(10, to-from)), Summary: []byte("s")})
		}
	}
}

func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "LOG" || d.Name() == "LOCK" || d.Name() == "lock" {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// grown makes a database with a manifest of some length, tables and a journal.
func grown(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := mustOpen(t, dir, quiet())
	fill(t, s, 4, 60)
	for n := 60; n < 180; n += 60 {
		s.Close()
		s = mustOpen(t, dir, quiet())
		grow(t, s, 4, n, n+60)
	}
	s.Close()
	return dir
}

// check compares a store with what grown wrote. Wrong content is fatal; lost
// counts the events and sessions that are missing without a fault that says so.
func check(t testing.TB, s *Store) (lost int) {
	t.Helper()
	for i := range 4 {
		id := fmt.Sprintf("s%d", i)
		rec, err := s.Load(id)
		if err != nil {
			if errors.Is(err, session.ErrNoSession) {
				lost += 180
			}
			continue
		}
		got, err := s.Events(id, 0, 1000)
		for seq, b := range got {
			if !bytes.Equal(b, body(id, seq)) {
				t.Fatalf("session %s seq %d: wrong content %q", id, seq, b)
			}
		}
		if err == nil && rec.Damage == "" && int64(len(got)) == rec.Events {
			lost += 180 - len(got)
		}
	}
	return lost
}

// Every bit flipped in any file is either harmless, or refused, or reported.
// Only at the end of the newest journal can a flip look like a torn write.
func TestBitFlips(t *testing.T) {
	origin := grown(t)
	perFile := 10
	if testing.Short() {
		perFile = 4
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for name, data := range files(t, filepath.Join(origin, "store")) {
		kind := filepath.Ext(name)
		outcomes := make(map[string]int)
		for range perFile {
			at, bit := rng.IntN(len(data)), rng.IntN(8)
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "store"), 0o700); err != nil {
				t.Fatal(err)
			}
			for n, d := range files(t, filepath.Join(origin, "store")) {
				b := []byte(d)
				if n == name {
					b[at] ^= 1 << bit
				}
				if err := os.WriteFile(filepath.Join(dir, "store", filepath.Base(n)), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, err := Open(dir, quiet())
			if err != nil {
				outcomes["refused"]++
				continue
			}
			lost := check(t, s)
			r := s.Report()
			switch {
			case lost == 0:
				outcomes["whole or per-session fault"]++
			case r != nil && !r.Intact():
				outcomes["reported"]++
			case r != nil && kind == ".log" && at >= lastRecord([]byte(data)):
				outcomes["as a torn end"]++
			default:
				t.Errorf("%s: bit %d of byte %d: %d events are missing and nothing says so (report %v)", filepath.Base(name), bit, at, lost, r)
			}
			s.Close()
		}
		t.Logf("%s: %v", filepath.Base(name), outcomes)
	}
}

func TestTornTail(t *testing.T) {
	for _, cut := range []int{1, 7, 100, 1000, 2000} {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			dir := t.TempDir()
			s := mustOpen(t, dir, quiet())
			fill(t, s, 2, 20)
			s.Close()
			logs, _ := filepath.Glob(filepath.Join(dir, "store", "*.log"))
			newest := logs[len(logs)-1]
			fi, err := os.Stat(newest)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(newest, fi.Size()-int64(cut)); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, dir, quiet())
			if s.Report() == nil || !s.Report().Intact() {
				t.Errorf("report of a torn end: %v; want one that is intact", s.Report())
			}
			if aside, _ := filepath.Glob(filepath.Join(dir, "aside-*")); len(aside) != 0 {
				t.Errorf("the copy stayed although nothing is missing: %v", aside)
			}
			for _, id := range []string{"s0", "s1"} {
				rec, err := s.Load(id)
				if err != nil {
					t.Fatal(err)
				}
				got, err := s.Events(id, 0, 100)
				if err != nil || int64(len(got)) != rec.Events {
					t.Errorf("%s: %d events, %v; its record says %d", id, len(got), err, rec.Events)
				}
				// It goes on from there.
				put(t, s, session.Batch{Session: id, First: rec.Events, Events: bodies(id, int(rec.Events), 1), Summary: []byte("s")})
			}
			s.Close()
			s = mustOpen(t, dir, quiet())
			if s.Report() != nil {
				t.Errorf("second open: %v", s.Report())
			}
		})
	}
}

// A missing table takes events of all sessions: each is named, the copy stays,
// and a new session can still be written.
func TestMissingTable(t *testing.T) {
	dir := grown(t)
	tables, _ := filepath.Glob(filepath.Join(dir, "store", "*.ldb"))
	if len(tables) == 0 {
		t.Fatal("no table in the database")
	}
	if err := os.Truncate(tables[0], 0); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, quiet())
	if err != nil {
		// goleveldb may refuse the table outright; then the copy is named.
		if aside, _ := filepath.Glob(filepath.Join(dir, "aside-*")); len(aside) != 1 || !strings.Contains(err.Error(), aside[0]) {
			t.Errorf("refused without naming the copy: %v", err)
		}
		return
	}
	defer s.Close()
	if s.Report() == nil || len(s.Report().Faults) == 0 {
		t.Fatalf("report %v; want a fault for each session", s.Report())
	}
}

// A gap inside one log: the others stay whole, the mark outlives reopening.
func TestGapIsMarked(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, quiet())
	fill(t, s, 2, 30)
	if err := s.db.Delete(eventKey("s0", 12), nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := os.WriteFile(filepath.Join(dir, "suspect"), []byte("test"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"lenient open", "next open"} {
		s = mustOpen(t, dir, quiet())
		rec, err := s.Load("s0")
		if err != nil || !strings.Contains(rec.Damage, "12") {
			t.Errorf("%s: damage %q, %v; want one that names seq 12", when, rec.Damage, err)
		}
		if rec, err := s.Load("s1"); err != nil || rec.Damage != "" {
			t.Errorf("%s: the other session: damage %q, %v", when, rec.Damage, err)
		}
		if when == "lenient open" {
			r := s.Report()
			if r == nil || len(r.Faults) != 1 || r.Faults[0].Session != "s0" || r.Faults[0].Seq != 12 {
				t.Errorf("report %v; want one fault, session s0 seq 12", r)
			}
			if text, err := os.ReadFile(filepath.Join(r.Aside, "REPORT.txt")); err != nil || !strings.Contains(string(text), "s0") {
				t.Errorf("report beside the copy: %q, %v", text, err)
			}
		} else if s.Report() != nil {
			t.Errorf("%s: %v", when, s.Report())
		}
		s.Close()
	}
	// A torn end later on is no new damage, and leaves no second copy.
	if err := os.WriteFile(filepath.Join(dir, "suspect"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, dir, quiet()).Report()
	if r == nil || !r.Intact() || len(r.Known) != 1 {
		t.Errorf("later lenient open: %+v; want an intact report with one known fault", r)
	}
	if aside, _ := filepath.Glob(filepath.Join(dir, "aside-*")); len(aside) != 1 {
		t.Errorf("copies: %v; want the first one only", aside)
	}
}

// Whole sessions and ends of logs that are gone leave no gap; the tally tells.
func TestTally(t *testing.T) {
	for _, tt := range []struct {
		name             string
		lose             func(*Store) error
		sessions, events int64
	}{
		{"a whole session", func(s *Store) error {
			for _, k := range [][]byte{idKey(kindHeader, "s0"), idKey(kindSummary, "s0"), idKey(kindPending, "s0")} {
				if err := s.db.Delete(k, nil); err != nil {
					return err
				}
			}
			for i := range int64(10) {
				if err := s.db.Delete(eventKey("s0", i), nil); err != nil {
					return err
				}
			}
			return nil
		}, 1, 10},
		{"the end of a log with its summary", func(s *Store) error {
			if err := s.db.Delete(eventKey("s0", 9), nil); err != nil {
				return err
			}
			key := idKey(kindSummary, "s0")
			return s.db.Put(key, seal(key, countedSummary(9, []byte("s"))...), nil)
		}, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			s := mustOpen(t, dir, quiet())
			fill(t, s, 2, 10)
			if err := tt.lose(s); err != nil {
				t.Fatal(err)
			}
			s.Close()
			if err := os.WriteFile(filepath.Join(dir, "suspect"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			r := mustOpen(t, dir, quiet()).Report()
			if r == nil || r.MissingSessions != tt.sessions || r.MissingEvents != tt.events {
				t.Errorf("report %+v; want %d sessions and %d events missing", r, tt.sessions, tt.events)
			}
		})
	}
}

func TestMissingRootFile(t *testing.T) {
	dir := grown(t)
	if err := os.Remove(filepath.Join(dir, "store", "CURRENT")); err != nil {
		t.Fatal(err)
	}
	os.Remove(filepath.Join(dir, "store", "CURRENT.bak"))
	if _, err := Open(dir, quiet()); err == nil {
		t.Error("a store without its root file was opened as an empty one")
	}
	if tables, _ := filepath.Glob(filepath.Join(dir, "store", "*.ldb")); len(tables) == 0 {
		t.Error("the tables were removed")
	}
}
