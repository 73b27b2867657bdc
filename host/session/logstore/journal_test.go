package logstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"meanwhile/host/session"
)

// journalOf makes a store with one journal and nothing else.
func journalOf(t *testing.T) (dir, journal string, data []byte) {
	t.Helper()
	dir = t.TempDir()
	s := mustOpen(t, dir, quiet())
	fill(t, s, 2, 60)
	put(t, s, session.Batch{Session: "s0", First: 60, Events: [][]byte{[]byte(strings.Repeat("long", journalBlock))}, Summary: []byte("s")})
	grow(t, s, 1, 61, 71)
	s.Close()
	logs, err := filepath.Glob(filepath.Join(dir, "store", "*.log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("journals %v, %v", logs, err)
	}
	if data, err = os.ReadFile(logs[0]); err != nil {
		t.Fatal(err)
	}
	return dir, logs[0], data
}

// lastRecord is where the newest record begins.
func lastRecord(data []byte) (at int) {
	for block := 0; block < len(data); block += journalBlock {
		b := data[block:min(block+journalBlock, len(data))]
		for i := 0; ; {
			kind, n := chunkAt(b[i:])
			if n == 0 {
				break
			}
			if kind == chunkFull || kind == chunkFirst {
				at = block + i
			}
			i += n
		}
	}
	return at
}

func TestRotten(t *testing.T) {
	_, _, data := journalOf(t)
	if rotten(data) {
		t.Fatal("a whole journal")
	}
	last := lastRecord(data)
	for n := 0; n <= len(data); n += 97 {
		if rotten(data[:n]) {
			t.Errorf("cut to %d of %d bytes: a torn end", n, len(data))
		}
	}
	for at := 0; at < len(data); at += 389 {
		b := []byte(string(data))
		b[at] ^= 4
		if got, want := rotten(b), at < last; got != want {
			t.Errorf("byte %d flipped: %v, want %v; the last record begins at %d", at, got, want, last)
		}
		clear(b[at:])
		if rotten(b) {
			t.Errorf("zeros from %d on: a torn end", at)
		}
	}
}

// What was on disk and is dropped with a bad place is not passed over in silence.
func TestRottenJournalIsReported(t *testing.T) {
	dir, journal, data := journalOf(t)
	data[len(data)/2] ^= 1
	if err := os.WriteFile(journal, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, dir, quiet())
	defer s.Close()
	r := s.Report()
	if r == nil || r.Intact() || !strings.Contains(r.String(), filepath.Base(journal)) {
		t.Fatalf("report %v", r)
	}
	if _, err := os.Stat(filepath.Join(r.Aside, filepath.Base(journal))); err != nil {
		t.Errorf("the copy: %v", err)
	}
}

// A store that cannot be opened at all is left alone, however often it is tried.
func TestRefusedOpensPileNothingUp(t *testing.T) {
	dir := grown(t)
	if err := os.WriteFile(filepath.Join(dir, "store", "CURRENT"), []byte("junk\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(dir, "store", "CURRENT.bak"))
	before := files(t, dir)
	for range asideMax + 1 {
		_, err := Open(dir, quiet())
		if err == nil || !strings.Contains(err.Error(), "nothing in it was changed: put a backup") {
			t.Fatalf("got %v", err)
		}
	}
	after := files(t, dir)
	for name, data := range before {
		if after[name] != data {
			t.Errorf("%s changed", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files, had %d", len(after), len(before))
	}
}
