package logstore

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
	"meanwhile/shared/event"
)

// openSessions opens a session.Store on the disk, as the host does.
func openSessions(t testing.TB, dir string) (*session.Store, *Store) {
	t.Helper()
	db := mustOpen(t, dir, quiet())
	s, err := session.Open(db, session.Options{Log: quiet().Log, Fatal: func(err error) { t.Errorf("storage failed: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	return s, db
}

func message(i int) event.Draft {
	return event.Message{ID: fmt.Sprint(i), Source: event.Source{Kind: event.SourceUser}, Text: "hello"}.Draft()
}

func TestSessionsOnDisk(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s, db := openSessions(t, dir)
	logs := make([]*session.Log, 4)
	for i := range logs {
		logs[i] = sessiontest.Create(t, s, func(h *event.Header) { h.CreatedAt = int64(i + 1) })
		sessiontest.Append(t, logs[i], event.TurnStart{Turn: 1}.Draft(), message(0))
	}
	if err := s.Delete(ctx, logs[3].ID()); err != nil {
		t.Fatal(err)
	}
	if err := s.Values().Put("token", "a", []byte("hash")); err != nil {
		t.Fatal(err)
	}
	fork, err := s.Fork(ctx, logs[0].ID(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := sessiontest.Types(sessiontest.Events(t, fork))
	// One log loses the middle of itself behind the store's back.
	if err := db.db.Delete(eventKey(logs[1].ID(), 0), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s, _ = openSessions(t, dir)
	if n, err := s.RepairAll(ctx); n != 2 || err != nil {
		t.Errorf("repaired %d, %v; want the two whole logs", n, err)
	}
	var got []string
	for _, r := range s.List() {
		got = append(got, r.Status)
	}
	if diff := cmp.Diff([]string{event.TurnInterrupted, session.StatusDamaged, event.TurnInterrupted, session.StatusNew}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	f, err := s.Open(ctx, fork.ID())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, sessiontest.Types(sessiontest.Events(t, f))); diff != "" {
		t.Errorf("fork (-want +got):\n%s", diff)
	}
	if b, err := s.Values().Get("token", "a"); err != nil || string(b) != "hash" {
		t.Errorf("value: %q, %v", b, err)
	}
}

// A thousand sessions with logs are listed from their small records.
func TestManySessionsOnDisk(t *testing.T) {
	dir := t.TempDir()
	s, _ := openSessions(t, dir)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 63 {
				l := sessiontest.Create(t, s)
				sessiontest.Append(t, l, message(1), message(2), message(3))
			}
		})
	}
	wg.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	s, _ = openSessions(t, dir)
	t.Logf("opened %d sessions in %v", len(s.List()), time.Since(start))
	if n := len(s.List()); n != 16*63 {
		t.Errorf("%d sessions, want %d", n, 16*63)
	}
}

// BenchmarkLogAppend is the whole way: decision, folds, one synced batch.
// Compare with BenchmarkSyncedAppend/bare_put.
func BenchmarkLogAppend(b *testing.B) {
	for _, sessions := range []int{1, 64} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			s, _ := openSessions(b, b.TempDir())
			logs := make([]*session.Log, sessions)
			for i := range logs {
				logs[i] = sessiontest.Create(b, s)
			}
			b.ResetTimer()
			var wg sync.WaitGroup
			for w, l := range logs {
				wg.Go(func() {
					for i := w; i < b.N; i += sessions {
						sessiontest.Append(b, l, message(i))
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
			b.StopTimer()
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
