package sessiontest

import (
	"context"
	"testing"

	"meanwhile/host/session"
	"meanwhile/shared/event"
)

// Open returns an empty store in memory that lives as long as the test.
func Open(t testing.TB) *session.Store {
	t.Helper()
	return OpenOn(t, NewMem())
}

// OpenOn opens a store on a backend and closes it with the test. A failed write
// fails the test; use session.Open where one is expected.
func OpenOn(t testing.TB, b session.Backend) *session.Store {
	t.Helper()
	s, err := session.Open(b, session.Options{Fatal: func(err error) { t.Errorf("storage failed: %v", err) }})
	if err != nil {
		t.Fatalf("open store: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return s
}

// Create makes an empty session; change may set its header.
func Create(t testing.TB, s *session.Store, change ...func(*event.Header)) *session.Log {
	t.Helper()
	var h event.Header
	for _, c := range change {
		c(&h)
	}
	l, err := s.Create(context.Background(), h)
	if err != nil {
		t.Fatalf("create session: %v", err)
	}
	return l
}

// Append appends drafts as one batch and waits until it is on disk.
func Append(t testing.TB, l *session.Log, drafts ...event.Draft) *session.Commit {
	t.Helper()
	c, err := l.Update(func(*session.State) ([]event.Draft, error) { return drafts, nil })
	if err == nil {
		err = c.Wait(context.Background())
	}
	if err != nil {
		t.Fatalf("append to session %s: %v", l.ID(), err)
	}
	return c
}

// Events returns all durable events of a log.
func Events(t testing.TB, l *session.Log) []event.Event {
	t.Helper()
	var all []event.Event
	for {
		events, err := l.Read(int64(len(all))-1, 1000)
		if err != nil {
			t.Fatalf("read session %s: %v", l.ID(), err)
		}
		if len(events) == 0 {
			return all
		}
		all = append(all, events...)
	}
}

// Types returns the events' types, for a glance at what a log holds.
func Types(events []event.Event) []string {
	types := make([]string, len(events))
	for i, e := range events {
		types[i] = e.Type
	}
	return types
}
