package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"
	"weak"

	"meanwhile/host/internal/id"
	"meanwhile/shared/event"
)

// Options of a Store. Fatal is needed, the rest has defaults.
type Options struct {
	// Fatal is told of the first failed write, once, on whatever goroutine
	// found it. It must make the process stop and must not call the store.
	Fatal func(error)
	// Now is the clock of event times; nil: time.Now.
	Now func() time.Time
	// Log; nil: slog.Default.
	Log *slog.Logger
	// Landed is told of the events of each batch that reached the disk, on the
	// backend's goroutine, so it must be quick; nil: nobody is.
	Landed func(sessionID string, events []event.Event)
}

// Store is all sessions of one backend.
type Store struct {
	backend Backend
	fatal   func(error)
	clock   func() time.Time
	log     *slog.Logger
	landed  func(string, []event.Event) // may be nil
	list    list

	failOnce sync.Once

	mu     sync.Mutex
	slots  map[string]*slot
	keys   map[ownerKey]string // the ids of sessions with a key
	closed bool
}

// slot is where the one Log of an id is, or is being loaded.
type slot struct {
	ready chan struct{} // closed when log and err are set
	log   weak.Pointer[Log]
	err   error
}

type ownerKey struct{ owner, key string }

// Open lists the sessions of a backend. It reads no log, but for sessions whose
// small records are missing, of another version or behind. The Store owns the
// backend.
func Open(b Backend, o Options) (*Store, error) {
	if o.Fatal == nil {
		return nil, errors.New("session.Options.Fatal is not set: say what stops the process after a failed write")
	}
	s := &Store{backend: b, fatal: o.Fatal, clock: o.Now, log: o.Log, landed: o.Landed, list: newList(),
		slots: make(map[string]*slot), keys: make(map[ownerKey]string)}
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	var unread []string
	err := b.Sessions(func(rec Record) error {
		r, ok := rowFrom(rec)
		switch {
		case rec.Damage != "":
			s.list.upsert(damagedRow(rec.ID, r))
		case ok:
			s.list.upsert(r)
		default:
			unread = append(unread, rec.ID)
		}
		if ok && r.key != "" {
			s.keys[ownerKey{r.Owner, r.key}] = rec.ID
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open sessions: %w", err)
	}
	if err := eachOf(unread, s.relist); err != nil {
		return nil, fmt.Errorf("open sessions: %w", err)
	}
	return s, nil
}

// relist lists a session from its log.
func (s *Store) relist(id string) error {
	l, err := s.load(id)
	if err != nil {
		return err
	}
	s.list.upsert(l.row)
	if h := l.state.Header; h.Key != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.keys[ownerKey{h.Owner, h.Key}] = id
	}
	return nil
}

func (s *Store) now() int64 { return s.clock().UnixMilli() }

// failed makes the error of a write that the backend did not take, and reports
// the first one. A write after Close is refused, not unknown: a host that stops
// leaves the rest to repair.
func (s *Store) failed(what string, err error) error {
	if errors.Is(err, ErrClosed) {
		return fmt.Errorf("%s: %w", what, err)
	}
	err = fmt.Errorf("%s: %w: %w", what, ErrUnknown, err)
	s.failOnce.Do(func() {
		s.log.Error("storage failed, the process must stop", "err", err)
		s.fatal(err)
	})
	return err
}

// Close ends the followers of the list and of all logs, writes what is queued
// and closes the backend.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	logs := make([]*Log, 0, len(s.slots))
	for _, sl := range s.slots {
		select {
		case <-sl.ready:
			if l := sl.log.Value(); l != nil {
				logs = append(logs, l)
			}
		default:
		}
	}
	s.mu.Unlock()
	err := s.backend.Close()
	for _, l := range logs {
		l.feed.end(ErrClosed)
	}
	s.list.end(ErrClosed)
	return err
}

// Open returns the log of a session, reading and repairing it if nobody holds
// it. However many ask, it is read once. A damaged one is returned too.
func (s *Store) Open(ctx context.Context, id string) (*Log, error) {
	for {
		sl, mine, err := s.claim(id)
		if err != nil {
			return nil, err
		}
		if mine {
			return s.fill(id, sl, func() (*Log, error) { return s.loadRepaired(id) })
		}
		select {
		case <-sl.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if sl.err != nil {
			return nil, sl.err
		}
		if l := sl.log.Value(); l != nil {
			return l, nil
		}
		s.forget(id, sl)
	}
}

// claim finds the slot of an id, or makes one that the caller must fill.
func (s *Store) claim(id string) (sl *slot, mine bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, ErrClosed
	}
	if sl = s.slots[id]; sl != nil {
		return sl, false, nil
	}
	sl = &slot{ready: make(chan struct{})}
	s.slots[id] = sl
	return sl, true, nil
}

func (s *Store) fill(id string, sl *slot, make func() (*Log, error)) (*Log, error) {
	l, err := make()
	if err != nil {
		sl.err = err
		s.forget(id, sl)
	} else {
		sl.log = weak.Make(l)
		runtime.AddCleanup(l, func(sl *slot) { s.forget(id, sl) }, sl)
	}
	close(sl.ready)
	return l, err
}

func (s *Store) forget(id string, sl *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots[id] == sl {
		delete(s.slots, id)
	}
}

func (s *Store) loadRepaired(id string) (*Log, error) {
	l, err := s.load(id)
	if err != nil || l.damage != nil {
		return l, err
	}
	if err := l.repair(); err != nil {
		return nil, err
	}
	return l, nil
}

// Create makes an empty session. Version, an empty id and a zero CreatedAt are
// filled in. When owner and key are taken it is a *KeyTakenError.
func (s *Store) Create(ctx context.Context, h event.Header) (*Log, error) {
	l, created, err := s.OpenOrCreate(ctx, h)
	if err == nil && !created {
		return nil, &KeyTakenError{ID: l.id}
	}
	return l, err
}

// KeyTakenError says which session has the owner and key.
type KeyTakenError struct{ ID string }

func (e *KeyTakenError) Error() string { return "key is taken by session " + e.ID }

// OpenOrCreate opens the session of the header's owner and key, or creates it.
// Without a key it always creates.
func (s *Store) OpenOrCreate(ctx context.Context, h event.Header) (l *Log, created bool, err error) {
	h.Version = event.Version
	if h.ID == "" {
		h.ID = id.New()
	}
	if h.CreatedAt == 0 {
		h.CreatedAt = s.now()
	}
	if err := checkHeader(h); err != nil {
		return nil, false, err
	}
	sl := &slot{ready: make(chan struct{})}
	have, err := s.reserve(h, sl)
	if err != nil {
		return nil, false, err
	}
	if have != "" {
		l, err := s.Open(ctx, have)
		return l, false, err
	}
	l, err = s.fill(h.ID, sl, func() (*Log, error) { return s.create(h) })
	if err != nil {
		s.freeKey(h.Owner, h.Key, h.ID)
	}
	return l, err == nil, err
}

// reserve takes id and key for a new session, or returns who has the key.
func (s *Store) reserve(h event.Header, sl *slot) (have string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", ErrClosed
	}
	if h.Key != "" {
		if have := s.keys[ownerKey{h.Owner, h.Key}]; have != "" {
			return have, nil
		}
	}
	if _, ok := s.list.get(h.ID); ok || s.slots[h.ID] != nil {
		return "", fmt.Errorf("session %s exists already", h.ID)
	}
	if h.Key != "" {
		s.keys[ownerKey{h.Owner, h.Key}] = h.ID
	}
	s.slots[h.ID] = sl
	return "", nil
}

func (s *Store) freeKey(owner, key, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := (ownerKey{owner, key}); key != "" && s.keys[k] == id {
		delete(s.keys, k)
	}
}

// FindKey returns the session that an owner opened under a key.
func (s *Store) FindKey(owner, key string) (id string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok = s.keys[ownerKey{owner, key}]
	return id, ok && key != ""
}

// create writes a session without events. The wait is bound to no caller:
// others may wait for the same session.
func (s *Store) create(h event.Header) (*Log, error) {
	l := newLog(s, newState(h))
	l.row.refresh(l.state, true)
	l.mu.Lock()
	land := l.write(Batch{Session: h.ID, Stage: StageCreate, Header: event.AppendHeader(nil, h),
		Summary: l.row.summary(l.state, false), Pending: l.row.pending()}, nil)
	l.mu.Unlock()
	<-land.done
	return l, land.err
}

// Delete removes a session with its log, its key and its followers.
func (s *Store) Delete(ctx context.Context, id string) error {
	l, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	land := l.remove()
	h := l.Header()
	s.freeKey(h.Owner, h.Key, id)
	<-land.done
	s.mu.Lock()
	delete(s.slots, id)
	s.mu.Unlock()
	return land.err
}

// Rename sets a session's title, at most maxTitle characters; "" goes back to
// the first words.
func (s *Store) Rename(ctx context.Context, id, title string) error {
	return s.setHeader(ctx, id, func(h *event.Header) { h.Title = title })
}

// Archive marks a session as archived or takes the mark back. It stops nothing.
func (s *Store) Archive(ctx context.Context, id string, archived bool) error {
	return s.setHeader(ctx, id, func(h *event.Header) { h.Archived = archived })
}

func (s *Store) setHeader(ctx context.Context, id string, change func(*event.Header)) error {
	l, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	c, err := l.SetHeader(change)
	if err != nil {
		return err
	}
	return c.Wait(ctx)
}

// Follow opens a session and follows it; see Log.Follow.
func (s *Store) Follow(ctx context.Context, id string, after *int64, fn func(Item) error) error {
	l, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	return l.Follow(ctx, after, fn)
}
