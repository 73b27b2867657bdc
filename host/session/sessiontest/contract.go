package sessiontest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"meanwhile/host/session"
)

// Disk is one backend under test: Open opens it, again after the last one it
// gave was closed, on the same data.
type Disk struct {
	Open func(testing.TB) session.Backend
}

// Contract runs what every backend must pass. disk makes an empty one.
func Contract(t *testing.T, disk func(testing.TB) Disk) {
	for _, tt := range []struct {
		name string
		test func(*testing.T, Disk)
	}{
		{"keeps what was written", testKeeps},
		{"done is called once and in order", testDone},
		{"events come in bounded runs", testEvents},
		{"a built session exists only once created", testBuild},
		{"a dropped session is gone", testDrop},
		{"values", testValues},
		{"no write after close", testClosed},
		{"shares no bytes", testAlias},
		{"writers side by side", testWriters},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, disk(t)) })
	}
}

// write writes a batch and waits for its outcome.
func write(t testing.TB, b session.Backend, batch session.Batch) {
	t.Helper()
	if err := tryWrite(b, batch); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func tryWrite(b session.Backend, batch session.Batch) error {
	done := make(chan error, 1)
	b.Write(batch, func(err error) { done <- err })
	return <-done
}

// differ says how got differs from want, "" when it does not. This package is not
// a test file, so it does without the tests' libraries.
func differ(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return fmt.Sprintf("got  %+q\nwant %+q", got, want)
}

func shut(t testing.TB, b session.Backend) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func record(t testing.TB, b session.Backend, id string) session.Record {
	t.Helper()
	rec, err := b.Load(id)
	if err != nil {
		t.Fatalf("load %s: %v", id, err)
	}
	return rec
}

func listed(t testing.TB, b session.Backend) []string {
	t.Helper()
	ids := []string{}
	if err := b.Sessions(func(r session.Record) error { ids = append(ids, r.ID); return nil }); err != nil {
		t.Fatalf("list: %v", err)
	}
	return ids
}

func numbered(first, n int) [][]byte {
	var out [][]byte
	for i := range n {
		out = append(out, fmt.Appendf(nil, "event %d", first+i))
	}
	return out
}

func create(id string, events ...[]byte) session.Batch {
	return session.Batch{Session: id, Stage: session.StageCreate, Events: events,
		Header: []byte("header " + id), Summary: []byte("summary"), Pending: []byte("pending")}
}

func testKeeps(t *testing.T, d Disk) {
	b := d.Open(t)
	write(t, b, create("a"))
	write(t, b, create("b", numbered(0, 2)...))
	write(t, b, session.Batch{Session: "a", Events: numbered(0, 3), Summary: []byte("summary 2"), Checkpoint: []byte("check")})
	write(t, b, session.Batch{Session: "a", Header: []byte("header 2")})
	want := session.Record{ID: "a", Header: []byte("header 2"), Summary: []byte("summary 2"), Pending: []byte("pending"),
		Checkpoint: []byte("check"), Events: 3}
	for _, when := range []string{"at once", "after reopening"} {
		if diff := differ(want, record(t, b, "a")); diff != "" {
			t.Errorf("%s: record:\n%s", when, diff)
		}
		if diff := differ([]string{"a", "b"}, listed(t, b)); diff != "" {
			t.Errorf("%s: sessions:\n%s", when, diff)
		}
		got, err := b.Events("a", 0, 10)
		if diff := differ(numbered(0, 3), got); err != nil || diff != "" {
			t.Errorf("%s: events: %v:\n%s", when, err, diff)
		}
		if _, err := b.Load("none"); !errors.Is(err, session.ErrNoSession) {
			t.Errorf("%s: load of no session: got %v, want ErrNoSession", when, err)
		}
		if when == "at once" {
			shut(t, b)
			b = d.Open(t)
		}
	}
	shut(t, b)
}

func testDone(t *testing.T, d Disk) {
	b := d.Open(t)
	write(t, b, create("a"))
	const n = 200
	var mu sync.Mutex
	var got []int
	for i := range n {
		b.Write(session.Batch{Session: "a", First: int64(i), Events: numbered(i, 1), Summary: []byte("s")}, func(err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("batch %d: %v", i, err)
			}
			got = append(got, i)
		})
	}
	shut(t, b)
	if len(got) != n {
		t.Fatalf("done was called %d times for %d batches", len(got), n)
	}
	for i := range n {
		if got[i] != i {
			t.Fatalf("done number %d was of batch %d", i, got[i])
		}
	}
	b = d.Open(t)
	if rec := record(t, b, "a"); rec.Events != n {
		t.Errorf("got %d events, want %d", rec.Events, n)
	}
	shut(t, b)
}

func testEvents(t *testing.T, d Disk) {
	b := d.Open(t)
	write(t, b, create("a", numbered(0, 300)...))
	write(t, b, create("ab", numbered(0, 3)...)) // an id that starts like another
	for _, tt := range []struct {
		name      string
		from      int64
		max, want int
	}{
		{"from the start", 0, 10, 10},
		{"in the middle", 255, 10, 10},
		{"to the end", 290, 100, 10},
		{"at the end", 300, 10, 0},
		{"past the end", 900, 10, 0},
	} {
		got, err := b.Events("a", tt.from, tt.max)
		var want [][]byte
		if tt.want > 0 {
			want = numbered(int(tt.from), tt.want)
		}
		if diff := differ(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v:\n%s", tt.name, err, diff)
		}
	}
	big := bytes.Repeat([]byte("x"), 700<<10)
	write(t, b, create("c", big, big, big, big))
	if got, err := b.Events("c", 0, 4); err != nil || len(got) == 0 || len(got) > 2 {
		t.Errorf("large events: got %d of them (%v), want 1 or 2", len(got), err)
	}
	shut(t, b)
}

func testBuild(t *testing.T, d Disk) {
	b := d.Open(t)
	write(t, b, session.Batch{Session: "whole", Stage: session.StageBuild, Events: numbered(0, 5)})
	write(t, b, session.Batch{Session: "left", Stage: session.StageBuild, Events: numbered(0, 5)})
	if got := listed(t, b); len(got) != 0 {
		t.Errorf("sessions being built are listed: %v", got)
	}
	if _, err := b.Load("whole"); !errors.Is(err, session.ErrNoSession) {
		t.Errorf("load of a session being built: got %v, want ErrNoSession", err)
	}
	last := create("whole", numbered(5, 1)...)
	last.First = 5
	write(t, b, last)
	shut(t, b)
	b = d.Open(t)
	if diff := differ([]string{"whole"}, listed(t, b)); diff != "" {
		t.Errorf("sessions:\n%s", diff)
	}
	got, err := b.Events("whole", 0, 10)
	if diff := differ(numbered(0, 6), got); err != nil || diff != "" {
		t.Errorf("events: %v:\n%s", err, diff)
	}
	shut(t, b)
}

func testDrop(t *testing.T, d Disk) {
	b := d.Open(t)
	write(t, b, create("a", numbered(0, 3000)...))
	write(t, b, create("b", numbered(0, 2)...))
	drop := session.Batch{Session: "a", Stage: session.StageDrop, Values: []session.Value{{Kind: "k", Key: "of a", Data: nil}}}
	write(t, b, drop)
	for range 2 {
		if diff := differ([]string{"b"}, listed(t, b)); diff != "" {
			t.Errorf("sessions:\n%s", diff)
		}
		if _, err := b.Load("a"); !errors.Is(err, session.ErrNoSession) {
			t.Errorf("load: got %v, want ErrNoSession", err)
		}
		if got, err := b.Events("b", 0, 9); err != nil || len(got) != 2 {
			t.Errorf("the other session: got %d events (%v), want 2", len(got), err)
		}
		shut(t, b)
		b = d.Open(t)
	}
	shut(t, b)
}

func testValues(t *testing.T, d Disk) {
	b := d.Open(t)
	put := func(kind, key, data string) {
		v := session.Value{Kind: kind, Key: key}
		if data != "" {
			v.Data = []byte(data)
		}
		write(t, b, session.Batch{Values: []session.Value{v}})
	}
	put("token", "b", "2")
	put("token", "a", "1")
	put("tok", "en", "other kind")
	put("token", "c", "3")
	put("token", "b", "")
	put("token", "a", "1 again")
	shut(t, b)
	b = d.Open(t)
	var got []string
	err := b.Each("token", func(key string, value []byte) error { got = append(got, key+"="+string(value)); return nil })
	if diff := differ([]string{"a=1 again", "c=3"}, got); err != nil || diff != "" {
		t.Errorf("values: %v:\n%s", err, diff)
	}
	if v, err := b.Get("tok", "en"); err != nil || string(v) != "other kind" {
		t.Errorf("get: %q, %v", v, err)
	}
	if v, err := b.Get("token", "b"); err != nil || v != nil {
		t.Errorf("get of a removed value: %q, %v", v, err)
	}
	stop := errors.New("stop")
	if err := b.Each("token", func(string, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("each with a failing function: got %v, want its error", err)
	}
	shut(t, b)
}

func testClosed(t *testing.T, d Disk) {
	b := d.Open(t)
	shut(t, b)
	if err := tryWrite(b, create("a")); err == nil {
		t.Error("a write after close was accepted")
	}
	b = d.Open(t)
	if got := listed(t, b); len(got) != 0 {
		t.Errorf("a write after close was done: %v", got)
	}
	shut(t, b)
}

func testAlias(t *testing.T, d Disk) {
	b := d.Open(t)
	write(t, b, create("a", []byte("event")))
	for range 2 {
		rec := record(t, b, "a")
		events, err := b.Events("a", 0, 1)
		if err != nil || string(events[0]) != "event" || string(rec.Header) != "header a" {
			t.Fatalf("read: %q, %q, %v", events, rec.Header, err)
		}
		events[0][0] = 'X'
	}
	shut(t, b)
}

func testWriters(t *testing.T, d Disk) {
	b := d.Open(t)
	const writers, each = 16, 40
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			id := fmt.Sprintf("s%02d", w)
			if err := tryWrite(b, create(id)); err != nil {
				t.Errorf("create %s: %v", id, err)
				return
			}
			for i := range each {
				batch := session.Batch{Session: id, First: int64(i), Events: numbered(i, 1), Summary: []byte("s")}
				if err := tryWrite(b, batch); err != nil {
					t.Errorf("%s %d: %v", id, i, err)
				}
			}
		})
	}
	wg.Wait()
	shut(t, b)
	b = d.Open(t)
	for w := range writers {
		id := fmt.Sprintf("s%02d", w)
		got, err := b.Events(id, 0, each+1)
		if diff := differ(numbered(0, each), got); err != nil || diff != "" {
			t.Errorf("%s: %v:\n%s", id, err, diff)
		}
	}
	shut(t, b)
}
