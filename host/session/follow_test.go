package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/shared/event"
)

// errStop ends a follower from inside.
var errStop = errors.New("stop")

// follow runs a follower until it has seen n items or blocks for good.
func follow(t *testing.T, l *session.Log, after *int64, n int) []string {
	t.Helper()
	c, cancel := context.WithCancel(ctx)
	defer cancel()
	var got []string
	done := make(chan error, 1)
	go func() {
		done <- l.Follow(c, after, func(i session.Item) error {
			b, err := json.Marshal(i)
			if err != nil {
				return err
			}
			got = append(got, string(b))
			if len(got) == n {
				return errStop
			}
			return nil
		})
	}()
	synctest.Wait()
	cancel()
	if err := <-done; !errors.Is(err, errStop) && !errors.Is(err, context.Canceled) {
		t.Fatalf("follow: %v", err)
	}
	return got
}

func seqOf(n int64) *int64 { return &n }

func TestFollowItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := sessiontest.Create(t, sessiontest.Open(t), func(h *event.Header) { h.ID, h.CreatedAt = "s", 1 })
		sessiontest.Append(t, l, event.TurnStart{Turn: 1}.Draft(), splice(event.NextTurn, 0, 0, msg("m", "x")))
		var items []session.Item
		var wire []string
		c, cancel := context.WithCancel(ctx)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			done <- l.Follow(c, nil, func(i session.Item) error {
				b, err := json.Marshal(i)
				items, wire = append(items, i), append(wire, string(b))
				return err
			})
		}()
		synctest.Wait()
		sessiontest.Append(t, l, splice(event.NextTurn, 0, 1), user("m", "x"))
		sessiontest.Append(t, l, event.Step{Turn: 1, Step: 1}.StartDraft())
		l.Preview(1, 1, "Hel")
		l.Preview(1, 1, "lo")
		synctest.Wait()
		l.Preview(1, 1, "!")
		synctest.Wait()
		sessiontest.Append(t, l, event.Assistant{Turn: 1, Step: 1, ID: "a"}.Draft())
		l.Preview(1, 2, "next")
		synctest.Wait()
		cancel()
		<-done

		type shape struct {
			Snapshot, Changes bool
			Events            int
			Seq               int64
			Preview           string
		}
		var got []shape
		for _, i := range items {
			s := shape{Snapshot: i.Snapshot != nil, Changes: i.Changes != nil, Events: len(i.Events), Seq: i.Seq}
			if i.Preview != nil {
				s.Preview = i.Preview.Text
			}
			got = append(got, s)
		}
		want := []shape{
			{Snapshot: true, Seq: 1},
			{Events: 2, Seq: 1},
			{Changes: true, Events: 2, Seq: 3},
			{Changes: true, Events: 1, Seq: 4},
			{Preview: "Hello"},
			{Preview: "!"},
			{Changes: true, Events: 1, Seq: 5},
			{Preview: "next"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("items (-want +got):\n%s", diff)
		}
		var first struct {
			Header      struct{ ID string }
			Seq         int64
			Projections map[string]json.RawMessage
		}
		if err := json.Unmarshal([]byte(wire[0]), &first); err != nil || first.Header.ID != "s" || first.Projections["userQuestions"] == nil || first.Projections["inbox"] == nil {
			t.Errorf("first item: %v\n%s", err, wire[0])
		}
		var batch struct {
			Changes struct{ Inbox map[string][]any }
		}
		if err := json.Unmarshal([]byte(wire[2]), &batch); err != nil || batch.Changes.Inbox == nil || len(batch.Changes.Inbox["next-turn"]) != 0 {
			t.Errorf("the batch that empties the inbox: %v\n%s", err, wire[2])
		}
		if want := `{"preview":{"turn":1,"step":1,"text":"Hello"}}`; wire[4] != want {
			t.Errorf("preview: got %s, want %s", wire[4], want)
		}
	})
}

// A follower is told of a batch when it is on disk, and not before.
func TestFollowDurableOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := sessiontest.NewMem()
		l := sessiontest.Create(t, sessiontest.OpenOn(t, mem))
		c, cancel := context.WithCancel(ctx)
		defer cancel()
		var got []int64
		done := make(chan error, 1)
		go func() {
			done <- l.Follow(c, nil, func(i session.Item) error { got = append(got, i.Seq); return nil })
		}()
		synctest.Wait()
		mem.Hold()
		for _, id := range []string{"m0", "m1"} {
			if _, err := l.Update(func(*session.State) ([]event.Draft, error) { return []event.Draft{user(id, "x")}, nil }); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range [][]int64{{-1}, {-1, 0}, {-1, 0, 1}} {
			if i > 0 {
				mem.Sync(1)
			}
			synctest.Wait()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("with %d batches on disk: -want +got\n%s", i, diff)
			}
		}
		cancel()
		<-done
		mem.Release()
	})
}

func TestFollowAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := sessiontest.Create(t, sessiontest.Open(t))
		if got := follow(t, l, nil, 9); len(got) != 1 {
			t.Errorf("an empty log: %v", got)
		}
		for i := range 600 {
			sessiontest.Append(t, l, user(fmt.Sprint(i), "x"))
		}
		for _, tt := range []struct {
			name   string
			after  *int64
			chunks int
		}{
			{"all", nil, 3}, {"from the start", seqOf(-1), 3}, {"below the start", seqOf(-9), 3},
			{"in the middle", seqOf(299), 2}, {"the last", seqOf(598), 1}, {"none", seqOf(599), 0},
		} {
			if got := follow(t, l, tt.after, 99); len(got) != 1+tt.chunks {
				t.Errorf("%s: %d items, want the snapshot and %d chunks", tt.name, len(got), tt.chunks)
			}
		}
		if err := l.Follow(ctx, seqOf(600), func(session.Item) error { return nil }); !errors.Is(err, session.ErrResync) {
			t.Errorf("past the end: got %v, want ErrResync", err)
		}
	})
}

// A follower that does not keep up is ended; one that resumes has no gap.
func TestFollowLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := sessiontest.Create(t, sessiontest.Open(t))
		sessiontest.Append(t, l, user("first", "x"))
		block := make(chan struct{})
		var last int64
		done := make(chan error, 1)
		go func() {
			done <- l.Follow(ctx, nil, func(i session.Item) error {
				if i.Events != nil {
					last = i.Seq
					<-block
				}
				return nil
			})
		}()
		synctest.Wait()
		for i := range 300 {
			sessiontest.Append(t, l, user(fmt.Sprint(i), "x"))
		}
		close(block)
		if err := <-done; !errors.Is(err, session.ErrLagged) {
			t.Fatalf("got %v, want ErrLagged", err)
		}
		if got := follow(t, l, &last, 99); len(got) < 2 {
			t.Errorf("resuming after %d: %v", last, got)
		}
	})
}

// Appending while followers join: each sees every event once, in order.
func TestFollowHandOver(t *testing.T) {
	const writers, each, followers = 4, 60, 12
	l := sessiontest.Create(t, sessiontest.Open(t))
	total := int64(writers * each)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				sessiontest.Append(t, l, user(fmt.Sprintf("%d-%d", w, i), "x"))
			}
		})
	}
	for range followers {
		wg.Go(func() {
			next := int64(0)
			for next < total {
				after := next - 1
				err := l.Follow(ctx, &after, func(i session.Item) error {
					for _, e := range i.Events {
						if e.Seq != next {
							return fmt.Errorf("seq %d where %d is next", e.Seq, next)
						}
						next++
					}
					if next == total {
						return errStop
					}
					return nil
				})
				if !errors.Is(err, errStop) && !errors.Is(err, session.ErrLagged) {
					t.Errorf("follow: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestFollowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := session.Open(sessiontest.NewMem(), session.Options{Fatal: func(err error) { t.Errorf("closing was taken for a failure: %v", err) }})
		if err != nil {
			t.Fatal(err)
		}
		run := func(l *session.Log) chan error {
			done := make(chan error, 1)
			go func() { done <- l.Follow(ctx, nil, func(session.Item) error { return nil }) }()
			synctest.Wait()
			return done
		}
		deleted, kept := sessiontest.Create(t, s), sessiontest.Create(t, s)
		d1, d2 := run(deleted), run(kept)
		if err := s.Delete(ctx, deleted.ID()); err != nil {
			t.Fatal(err)
		}
		if err := <-d1; !errors.Is(err, session.ErrNoSession) {
			t.Errorf("after delete: got %v, want ErrNoSession", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-d2; !errors.Is(err, session.ErrClosed) {
			t.Errorf("after close: got %v, want ErrClosed", err)
		}
		c, err := kept.Update(func(*session.State) ([]event.Draft, error) { return []event.Draft{user("a", "x")}, nil })
		if err == nil {
			err = c.Wait(ctx)
		}
		if !errors.Is(err, session.ErrClosed) || errors.Is(err, session.ErrUnknown) {
			t.Errorf("update after close: got %v, want ErrClosed", err)
		}
	})
}

func TestFollowList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sessiontest.Open(t)
		mk := func(id string, at int64) *session.Log {
			return sessiontest.Create(t, s, func(h *event.Header) { h.ID, h.CreatedAt = id, at })
		}
		b, a := mk("b", 2), mk("a", 1)
		var items []session.ListItem
		c, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() {
			done <- s.FollowList(c, func(i session.ListItem) error { items = append(items, i); return nil })
		}()
		synctest.Wait()
		step := func(change func() error) {
			t.Helper()
			if err := change(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		step(func() error {
			sessiontest.Append(t, a, event.TurnStart{Turn: 1}.Draft(), timedHeader(), ask(1, 1, "c"))
			return nil
		})
		step(func() error {
			sessiontest.Append(t, b, splice(event.NextStep, 0, 0, event.Message{ID: "r", Source: event.Source{Kind: event.SourceReply, CallID: "c9"}, Text: "{}"}),
				splice(event.NextTurn, 0, 0, msg("m", "secret words")))
			return nil
		})
		step(func() error { mk("c", 3); return nil })
		step(func() error { return s.Rename(ctx, "b", "New name") })
		step(func() error { return s.Archive(ctx, "b", true) })
		step(func() error { s.SetNote("a", "no-model"); return nil })
		step(func() error { return s.Delete(ctx, "c") })
		cancel()
		<-done

		ids := func(rows []session.Row) (out []string) {
			for _, r := range rows {
				out = append(out, r.ID)
			}
			return out
		}
		var got []string
		for _, i := range items {
			got = append(got, fmt.Sprint(ids(i.Sessions), ids(i.Upsert), i.Removed))
		}
		want := []string{"[a b] [] []", "[] [a] []", "[] [b] []", "[] [c] []", "[] [b] []", "[] [b] []", "[] [a] []", "[] [] [c]"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("items (-want +got):\n%s", diff)
		}
		ra := items[1].Upsert[0]
		if ra.Status != session.StatusRunning || ra.Seq != 2 || len(ra.Active) != 1 ||
			string(ra.Active[0]) != `{"callId":"c","questions":[{"id":"q","question":"Which?","options":[{"label":"A"},{"label":"B"}]}],"state":"open"}` {
			t.Errorf("row of a: %+v %s", ra, ra.Active)
		}
		wantQueue := []session.Queued{{ID: "r", Target: event.NextStep, CallID: "c9", Text: "{}"}, {ID: "m", Target: event.NextTurn}}
		if diff := cmp.Diff(wantQueue, items[2].Upsert[0].Queued); diff != "" {
			t.Errorf("queue of b (-want +got):\n%s", diff)
		}
		if r := items[5].Upsert[0]; r.Title != "New name" || !r.Archived || len(r.Queued) != 2 {
			t.Errorf("row of b: %+v", r)
		}
		if r := items[6].Upsert[0]; r.Note != "no-model" || len(r.Active) != 1 {
			t.Errorf("row of a with its note: %+v", r)
		}
		if b, _ := json.Marshal(items[7]); string(b) != `{"removed":["c"]}` {
			t.Errorf("removal on the wire: %s", b)
		}
	})
}

// A slow follower of the list gets each row once, as it is when it looks.
func TestFollowListCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sessiontest.Open(t)
		l := sessiontest.Create(t, s)
		block := make(chan struct{})
		var items []session.ListItem
		c, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() {
			done <- s.FollowList(c, func(i session.ListItem) error { items = append(items, i); <-block; return nil })
		}()
		synctest.Wait()
		for i := range 500 {
			sessiontest.Append(t, l, user(fmt.Sprint(i), "x"))
		}
		close(block)
		synctest.Wait()
		cancel()
		<-done
		if len(items) != 2 || len(items[1].Upsert) != 1 || items[1].Upsert[0].Seq != 499 {
			t.Errorf("%d items, want the list and one upsert with seq 499", len(items))
		}
	})
}
