package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/shared/event"
)

// state is what a log amounts to, for comparing.
func state(t *testing.T, l *session.Log) string {
	t.Helper()
	snap, err := l.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var rest string
	l.View(func(s *session.State) {
		rest = fmt.Sprint(s.Next, s.Turn, s.Step, s.TurnOpen, s.StepOpen, s.Calls, s.Ended, string(s.Request), s.Title(), s.Used("c1"), s.Used("zz"))
	})
	return string(event.AppendHeader(nil, snap.Header)) + "\n" + string(snap.Projections) + "\n" + rest
}

// long appends turns with asks until there are n events.
func long(t *testing.T, l *session.Log, n int64) {
	t.Helper()
	sessiontest.Append(t, l, timedHeader())
	for i := int64(1); ; i++ {
		id := fmt.Sprint("c", i)
		c := sessiontest.Append(t, l, turn(i, ask(i, 1, id), result(i, 1, id, `{"pending":true}`))...)
		if c.First >= n {
			return
		}
	}
}

func TestReopen(t *testing.T) {
	mem := sessiontest.NewMem()
	s := sessiontest.OpenOn(t, mem)
	l := sessiontest.Create(t, s, func(h *event.Header) { h.Agent = &event.Agent{Kind: event.KindExternal, Name: "bot"} })
	long(t, l, 100)
	sessiontest.Append(t, l, splice(event.NextTurn, 0, 0, msg("m", "x")), user("u", "Title here"))
	again := reopen(t, mem)
	if diff := cmp.Diff(s.List(), again.List(), cmp.AllowUnexported(session.Row{})); diff != "" {
		t.Errorf("list (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(state(t, l), state(t, open(t, again, l.ID()))); diff != "" {
		t.Errorf("state (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(sessiontest.Events(t, l), sessiontest.Events(t, open(t, again, l.ID()))); diff != "" {
		t.Errorf("events (-before +after):\n%s", diff)
	}
}

// The checkpoint gives the same state with fewer reads, and one that does not
// fit its log, its version or its shape is not believed.
func TestCheckpoint(t *testing.T) {
	mem := sessiontest.NewMem()
	l := sessiontest.Create(t, sessiontest.OpenOn(t, mem))
	long(t, l, 2000)
	want := state(t, l)
	rec, err := mem.Load(l.ID())
	if err != nil || rec.Checkpoint == nil {
		t.Fatalf("no checkpoint after 2000 events: %v", err)
	}
	full := len(sessiontest.Events(t, l))
	for _, tt := range []struct {
		name   string
		change func([]byte) []byte
		used   bool
	}{
		{"as written", func(b []byte) []byte { return b }, true},
		{"none", func([]byte) []byte { return nil }, false},
		{"no JSON", func(b []byte) []byte { return b[:len(b)/2] }, false},
		{"other version", func(b []byte) []byte { return bytes.Replace(b, []byte(`"version":1`), []byte(`"version":0`), 1) }, false},
		{"unknown member", func(b []byte) []byte { return append([]byte(`{"x":1,`), b[1:]...) }, false},
		{"sum of another event", func(b []byte) []byte { return bytes.Replace(b, []byte(`"sum":`), []byte(`"sum":1`), 1) }, false},
		{"past the end", func(b []byte) []byte { return bytes.Replace(b, []byte(`"next":`), []byte(`"next":9`), 1) }, false},
		{"ask twice", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"active":[{"callId":"c1"`), []byte(`"active":[{"callId":"c2"`), 1)
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := sessiontest.NewMem(mem.Batches()...)
			m.CorruptRecord(l.ID(), func(r *session.Record) { r.Checkpoint = tt.change(r.Checkpoint) })
			s := sessiontest.OpenOn(t, m)
			listing := m.EventReads()
			if got := state(t, open(t, s, l.ID())); got != want {
				t.Errorf("state differs (-want +got):\n%s", cmp.Diff(want, got))
			}
			if reads := m.EventReads() - listing; reads <= full/512 != tt.used {
				t.Errorf("%d reads of %d events: checkpoint used %v, want %v", reads, full, !tt.used, tt.used)
			}
		})
	}
}

func TestDamage(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(m *sessiontest.Mem, id string)
		seq   int64
		keep  int // events that stay readable
	}{
		{"unknown event", func(m *sessiontest.Mem, id string) {
			m.Corrupt(id, 3, func(b []byte) []byte {
				return []byte(`{"seq":3,"time":1,"type":"from/the-future","data":{}}`)
			})
		}, 3, 3},
		{"wrong seq", func(m *sessiontest.Mem, id string) {
			m.Corrupt(id, 2, func(b []byte) []byte { return bytes.Replace(b, []byte(`"seq":2`), []byte(`"seq":7`), 1) })
		}, 2, 2},
		{"no JSON", func(m *sessiontest.Mem, id string) { m.Corrupt(id, 4, func(b []byte) []byte { return b[1:] }) }, 4, 4},
		{"end is missing", func(m *sessiontest.Mem, id string) {
			m.Corrupt(id, 5, func([]byte) []byte { return nil })
		}, 5, 5},
		{"splice out of range", func(m *sessiontest.Mem, id string) {
			m.Corrupt(id, 1, func([]byte) []byte {
				return []byte(`{"seq":1,"time":1,"type":"agent/inbox/spliced","data":{"target":"next-step","start":4,"inserted":[]}}`)
			})
		}, 1, 1},
		{"header", func(m *sessiontest.Mem, id string) {
			m.CorruptRecord(id, func(r *session.Record) { r.Header = []byte(`{"version":9,"id":"` + id + `","createdAt":1}`) })
		}, -1, 0},
		{"marked by the backend", func(m *sessiontest.Mem, id string) {
			m.CorruptRecord(id, func(r *session.Record) { r.Damage = "block 7" })
		}, 6, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mem := sessiontest.NewMem()
			s := sessiontest.OpenOn(t, mem)
			bad, good := sessiontest.Create(t, s), sessiontest.Create(t, s)
			for _, l := range []*session.Log{bad, good} {
				// A turn is open, so both would be repaired.
				sessiontest.Append(t, l, event.TurnStart{Turn: 1}.Draft(), user("a", "x"), user("b", "x"), user("c", "x"), user("d", "x"), user("e", "x"))
			}
			m := sessiontest.NewMem(mem.Batches()...)
			tt.spoil(m, bad.ID())
			s = sessiontest.OpenOn(t, m)
			if _, err := s.RepairAll(ctx); err != nil {
				t.Fatalf("repair: %v", err)
			}
			if r, _ := s.Row(good.ID()); r.Status != event.TurnInterrupted {
				t.Errorf("the other session: status %q", r.Status)
			}
			l := open(t, s, bad.ID())
			if l.Damage() == nil || l.Damage().Seq != tt.seq {
				t.Fatalf("damage %v, want seq %d", l.Damage(), tt.seq)
			}
			if r, _ := s.Row(bad.ID()); r.Status != session.StatusDamaged {
				t.Errorf("listed as %q", r.Status)
			}
			if got := len(sessiontest.Events(t, l)); got != tt.keep {
				t.Errorf("%d events are readable, want %d", got, tt.keep)
			}
			for name, call := range map[string]func() error{
				"update": func() error {
					_, err := l.Update(func(*session.State) ([]event.Draft, error) { return nil, nil })
					return err
				},
				"rename":  func() error { return s.Rename(ctx, bad.ID(), "x") },
				"archive": func() error { return s.Archive(ctx, bad.ID(), true) },
			} {
				if err := call(); !errors.Is(err, session.ErrDamaged) {
					t.Errorf("%s: got %v, want ErrDamaged", name, err)
				}
			}
			if tt.keep > 0 {
				fork, err := s.Fork(ctx, bad.ID(), nil, nil)
				if err != nil || fork.Damage() != nil || len(sessiontest.Events(t, fork)) < tt.keep {
					t.Errorf("fork of what is readable: %v", err)
				}
			}
			if err := s.Delete(ctx, bad.ID()); err != nil {
				t.Errorf("delete: %v", err)
			}
		})
	}
}

func TestIgnorableAndUnknownFieldsAreKept(t *testing.T) {
	mem := sessiontest.NewMem()
	l := sessiontest.Create(t, sessiontest.OpenOn(t, mem))
	sessiontest.Append(t, l, user("a", "x"), user("b", "x"))
	line := `{"seq":1,"time":1,"type":"from/the-future","data":{"x":1},"ignorable":true,"more":[1]}`
	m := sessiontest.NewMem(mem.Batches()...)
	m.Corrupt(l.ID(), 1, func([]byte) []byte { return []byte(line) })
	l = open(t, sessiontest.OpenOn(t, m), l.ID())
	if l.Damage() != nil {
		t.Fatalf("refused: %v", l.Damage())
	}
	if got := string(event.AppendEvent(nil, sessiontest.Events(t, l)[1])); got != line {
		t.Errorf("got %s, want %s", got, line)
	}
}

func TestFork(t *testing.T) {
	mem := sessiontest.NewMem()
	s := sessiontest.OpenOn(t, mem)
	p := sessiontest.Create(t, s, func(h *event.Header) { h.Title, h.Key, h.Owner = "Parent", "k", "o" })
	sessiontest.Append(t, p, timedHeader())
	sessiontest.Append(t, p, turn(1, ask(1, 1, "c1"), result(1, 1, "c1", `{"pending":true}`))...)
	sessiontest.Append(t, p, event.TurnStart{Turn: 2}.Draft(), event.Step{Turn: 2, Step: 1}.StartDraft(), ask(2, 1, "c2"),
		splice(event.NextTurn, 0, 0, msg("m", "x")))
	parent := sessiontest.Events(t, p)
	for _, tt := range []struct {
		name string
		at   *int64
		own  []string // types after the copied part
		copy int
	}{
		{"all", nil, []string{"tool/result", "step/end", "turn/end", "session/end-seed"}, len(parent)},
		{"after a turn", seqOf(6), []string{"session/end-seed"}, 7},
		{"nothing", seqOf(-1), []string{"session/end-seed"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := s.Fork(ctx, p.ID(), tt.at, func(h *event.Header) { h.DelegationDepth = 1 })
			if err != nil {
				t.Fatal(err)
			}
			got := sessiontest.Events(t, f)
			if diff := cmp.Diff(parent[:tt.copy], got[:tt.copy]); diff != "" {
				t.Errorf("copied part (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.own, sessiontest.Types(got[tt.copy:])); diff != "" {
				t.Errorf("own part (-want +got):\n%s", diff)
			}
			h := f.Header()
			if h.InheritedEventCount != int64(len(got)) || h.ParentSession != p.ID() || h.Key != "" || h.Owner != "" || h.DelegationDepth != 1 || h.Title != "Parent" {
				t.Errorf("header: %+v", h)
			}
			f.View(func(st *session.State) {
				if st.Questions.ActiveLen() != 0 || st.Inbox.Len() != 0 || !st.Balanced() || st.Request != nil || st.Ended != "" {
					t.Errorf("the fork inherited state: %+v", st.Balance)
				}
			})
			if rec, err := mem.Load(f.ID()); err != nil || rec.Checkpoint != nil {
				t.Errorf("checkpoint of the fork: %q, %v", rec.Checkpoint, err)
			}
			if r, _ := s.Row(f.ID()); r.Status != session.StatusNew {
				t.Errorf("status %q", r.Status)
			}
			sessiontest.Append(t, f, user("own", "x"))
			again := open(t, reopen(t, mem), f.ID())
			if diff := cmp.Diff(state(t, f), state(t, again)); diff != "" {
				t.Errorf("state after reopening (-before +after):\n%s", diff)
			}
		})
	}
	if _, err := s.Fork(ctx, p.ID(), seqOf(int64(len(parent))), nil); !errors.Is(err, session.ErrForkAt) {
		t.Errorf("fork past the end: got %v, want ErrForkAt", err)
	}
}

// A fork of a long log comes in chunks; a crash among them leaves no session.
func TestForkIsAtomic(t *testing.T) {
	mem := sessiontest.NewMem()
	s := sessiontest.OpenOn(t, mem)
	p := sessiontest.Create(t, s)
	long(t, p, 1500)
	before := len(mem.Batches())
	f, err := s.Fork(ctx, p.ID(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := mem.Batches()
	if len(all)-before < 3 {
		t.Fatalf("the fork was written in %d batches, want chunks", len(all)-before)
	}
	for n := before; n < len(all); n++ {
		if rows := sessiontest.OpenOn(t, sessiontest.NewMem(all[:n]...)).List(); len(rows) != 1 {
			t.Errorf("after %d of %d batches %d sessions are listed", n-before, len(all)-before, len(rows))
		}
	}
	if got := len(sessiontest.Events(t, open(t, reopen(t, mem), f.ID()))); int64(got) != f.Header().InheritedEventCount {
		t.Errorf("%d events in the fork", got)
	}
}

func TestForkCancelled(t *testing.T) {
	s := sessiontest.Open(t)
	p := sessiontest.Create(t, s)
	long(t, p, 100)
	c, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Fork(c, p.ID(), nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if n := len(s.List()); n != 1 {
		t.Errorf("%d sessions are listed", n)
	}
}

func TestDelete(t *testing.T) {
	mem := sessiontest.NewMem()
	s := sessiontest.OpenOn(t, mem)
	l, _, err := s.OpenOrCreate(ctx, event.Header{Key: "k", Owner: "o"})
	if err != nil {
		t.Fatal(err)
	}
	sessiontest.Append(t, l, user("a", "x"))
	n := len(mem.Batches())
	if err := s.Delete(ctx, l.ID()); err != nil {
		t.Fatal(err)
	}
	if got := len(mem.Batches()) - n; got != 1 {
		t.Errorf("delete took %d batches, want one", got)
	}
	if _, err := l.Update(func(*session.State) ([]event.Draft, error) { return []event.Draft{user("b", "x")}, nil }); !errors.Is(err, session.ErrNoSession) {
		t.Errorf("update: got %v, want ErrNoSession", err)
	}
	for name, call := range map[string]func() error{
		"open":   func() error { _, err := s.Open(ctx, l.ID()); return err },
		"delete": func() error { return s.Delete(ctx, l.ID()) },
		"follow": func() error { return s.Follow(ctx, l.ID(), nil, func(session.Item) error { return nil }) },
		"stale":  func() error { return l.Follow(ctx, nil, func(session.Item) error { return nil }) },
	} {
		if err := call(); !errors.Is(err, session.ErrNoSession) {
			t.Errorf("%s: got %v, want ErrNoSession", name, err)
		}
	}
	if _, ok := s.FindKey("o", "k"); ok {
		t.Error("the key is not free")
	}
	if _, created, err := s.OpenOrCreate(ctx, event.Header{Key: "k", Owner: "o"}); err != nil || !created {
		t.Errorf("the key again: created %v, %v", created, err)
	}
}

func TestKeys(t *testing.T) {
	mem := sessiontest.NewMem()
	s := sessiontest.OpenOn(t, mem)
	// However many ask at once, one session comes of it.
	ids := make([]string, 16)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			l, _, err := s.OpenOrCreate(ctx, event.Header{Key: "k", Owner: "o"})
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = l.ID()
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("different sessions for one key: %v", ids)
		}
	}
	other, created, err := s.OpenOrCreate(ctx, event.Header{Key: "k", Owner: "someone else"})
	if err != nil || !created || other.ID() == ids[0] {
		t.Errorf("another owner's key: created %v, %v", created, err)
	}
	var taken *session.KeyTakenError
	if _, err := s.Create(ctx, event.Header{Key: "k", Owner: "o"}); !errors.As(err, &taken) || taken.ID != ids[0] {
		t.Errorf("create with a taken key: %v", err)
	}
	again := reopen(t, mem)
	if id, ok := again.FindKey("o", "k"); !ok || id != ids[0] {
		t.Errorf("after reopening: %q, %v", id, ok)
	}
}

func TestHeaderRules(t *testing.T) {
	s := sessiontest.Open(t)
	l := sessiontest.Create(t, s, func(h *event.Header) { h.Owner = "o" })
	for _, title := range []string{strings.Repeat("x", 201), "a\x1b[31mb", "a\nb", "a\u202eb"} {
		if err := s.Rename(ctx, l.ID(), title); !errors.Is(err, session.ErrBadTitle) {
			t.Errorf("title %q: got %v, want ErrBadTitle", title, err)
		}
	}
	if err := s.Rename(ctx, l.ID(), strings.Repeat("ä", 200)); err != nil {
		t.Errorf("title of 200 characters: %v", err)
	}
	before := l.Header()
	c, err := l.SetHeader(func(h *event.Header) { h.ID, h.Owner, h.InheritedEventCount, h.CWD = "x", "y", 9, "/w" })
	if err != nil || c.Wait(ctx) != nil {
		t.Fatal(err)
	}
	before.CWD = "/w"
	if diff := cmp.Diff(before, l.Header()); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	if _, err := s.Create(ctx, event.Header{CWD: strings.Repeat("x", 65<<10)}); !errors.Is(err, session.ErrTooLarge) {
		t.Errorf("a large header: got %v, want ErrTooLarge", err)
	}
	if _, err := s.Create(ctx, event.Header{ID: l.ID()}); err == nil {
		t.Error("a second session with the same id")
	}
}

// One *Log while anybody holds it, read once however many ask; a fresh one after.
func TestOneLog(t *testing.T) {
	mem := sessiontest.NewMem()
	id := sessiontest.Create(t, sessiontest.OpenOn(t, mem)).ID()
	s := reopen(t, mem)
	logs := make([]*session.Log, 16)
	var wg sync.WaitGroup
	for i := range logs {
		wg.Go(func() { logs[i], _ = s.Open(ctx, id) })
	}
	wg.Wait()
	for _, l := range logs {
		if l != logs[0] {
			t.Fatal("two logs of one session")
		}
	}
	clear(logs)
	runtime.GC()
	l := open(t, s, id)
	sessiontest.Append(t, l, user("a", "x"))
	if open(t, s, id) != l {
		t.Error("a second log while the first is held")
	}
	if _, err := s.Open(ctx, "none"); !errors.Is(err, session.ErrNoSession) {
		t.Errorf("no session: %v", err)
	}
}

// Listing a thousand sessions at start reads no log.
func TestManySessions(t *testing.T) {
	mem := sessiontest.NewMem()
	s := sessiontest.OpenOn(t, mem)
	for i := range 1000 {
		l := sessiontest.Create(t, s)
		sessiontest.Append(t, l, turn(1)...)
		if i%100 == 0 {
			sessiontest.Append(t, l, event.TurnStart{Turn: 2}.Draft())
		}
	}
	m := sessiontest.NewMem(mem.Batches()...)
	start := time.Now()
	again := sessiontest.OpenOn(t, m)
	if n := len(again.List()); n != 1000 || m.EventReads() != 0 {
		t.Errorf("%d sessions with %d log reads, want 1000 and none", n, m.EventReads())
	}
	t.Logf("opened in %v", time.Since(start))
	n, err := again.RepairAll(ctx)
	if n != 10 || err != nil || m.EventReads() > 30 {
		t.Errorf("repaired %d (%v) with %d log reads, want 10 and about two each", n, err, m.EventReads())
	}
}

func TestSummaryIsRebuilt(t *testing.T) {
	mem := sessiontest.NewMem()
	s := sessiontest.OpenOn(t, mem)
	l := sessiontest.Create(t, s)
	sessiontest.Append(t, l, turn(1, user("a", "hello"))...)
	m := sessiontest.NewMem(mem.Batches()...)
	m.CorruptRecord(l.ID(), func(r *session.Record) { r.Summary, r.Pending = []byte(`{"version":0}`), nil })
	if diff := cmp.Diff(s.List(), sessiontest.OpenOn(t, m).List(), cmp.AllowUnexported(session.Row{})); diff != "" {
		t.Errorf("list (-before +after):\n%s", diff)
	}
}

func TestValues(t *testing.T) {
	mem := sessiontest.NewMem()
	v := sessiontest.OpenOn(t, mem).Values()
	for _, err := range []error{v.Put("token", "a", []byte("1")), v.Put("token", "b", []byte("2")), v.Delete("token", "a"), v.Delete("token", "none")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, err := range map[string]error{"no kind": v.Put("", "a", []byte("1")), "no data": v.Put("k", "a", nil),
		"large": v.Put("k", "a", make([]byte, 65<<10)), "long key": v.Put("k", strings.Repeat("x", 600), []byte("1"))} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	var got []string
	if err := reopen(t, mem).Values().Each("token", func(k string, d []byte) error { got = append(got, k+"="+string(d)); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b=2"}, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestExport(t *testing.T) {
	l := sessiontest.Create(t, sessiontest.Open(t))
	long(t, l, 700)
	var b bytes.Buffer
	if err := session.Export(ctx, &b, l); err != nil {
		t.Fatal(err)
	}
	r, err := session.NewReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l.Header(), r.Header()); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	var got []event.Event
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	if diff := cmp.Diff(sessiontest.Events(t, l), got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestReaderRefuses(t *testing.T) {
	const header = `{"version":1,"id":"s","createdAt":1}` + "\n"
	const first = `{"seq":0,"time":1,"type":"turn/start","data":{"turn":1}}` + "\n"
	for _, tt := range []struct {
		name, in string
		line     int
	}{
		{"nothing", "", 1},
		{"no header", first, 1},
		{"other version", `{"version":2,"id":"s","createdAt":1}` + "\n", 1},
		{"a gap", header + first + strings.Replace(first, `"seq":0`, `"seq":2`, 1), 3},
		{"a repeated event", header + first + first, 3},
		{"half a line", header + first + `{"seq":1,"ti`, 3},
		{"an empty line", header + "\n" + first, 2},
		{"a line too long", header + first + strings.Repeat("x", 9<<20), 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := session.NewReader(strings.NewReader(tt.in))
			for err == nil {
				_, err = r.Next()
			}
			var le *session.LineError
			if !errors.As(err, &le) || le.Line != tt.line {
				t.Errorf("got %v, want an error of line %d", err, tt.line)
			}
		})
	}
}
