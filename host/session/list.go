package session

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
)

// listChunk is how many rows one change item of the list holds.
const listChunk = 64

// ListItem is one message of FollowList; doc.go has its JSON.
type ListItem struct {
	Sessions []Row    `json:"sessions,omitzero"` // the first item: all, oldest first
	Upsert   []Row    `json:"upsert,omitempty"`
	Removed  []string `json:"removed,omitempty"`
}

// list is the rows of all sessions, as far as they are on disk.
type list struct {
	mu        sync.Mutex
	rows      map[string]Row
	followers map[*listFollower]struct{}
	ended     error
}

// listFollower remembers which rows changed, not how: it cannot lag, and holds
// no more than one id for each session.
type listFollower struct {
	dirty []string
	in    map[string]bool
	wake  chan struct{}
}

func newList() list {
	return list{rows: make(map[string]Row), followers: make(map[*listFollower]struct{})}
}

func (l *list) upsert(r Row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Note = l.rows[r.ID].Note
	r.shown, r.state = nil, nil // they would keep the state of a log that nobody holds
	l.rows[r.ID] = r
	l.changed(r.ID)
}

func (l *list) remove(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.rows, id)
	l.changed(id)
}

func (l *list) note(id, note string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.rows[id]
	if !ok || r.Note == note {
		return
	}
	r.Note = note
	l.rows[id] = r
	l.changed(id)
}

func (l *list) changed(id string) {
	for f := range l.followers {
		if !f.in[id] {
			f.in[id] = true
			f.dirty = append(f.dirty, id)
		}
		f.signal()
	}
}

func (f *listFollower) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (l *list) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = err
	for f := range l.followers {
		f.signal()
	}
}

func (l *list) get(id string) (Row, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.rows[id]
	return r, ok
}

func (l *list) all() []Row {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sorted()
}

func (l *list) sorted() []Row {
	rows := make([]Row, 0, len(l.rows))
	for _, r := range l.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	return rows
}

func (l *list) join() (*listFollower, []Row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &listFollower{in: make(map[string]bool), wake: make(chan struct{}, 1)}
	l.followers[f] = struct{}{}
	return f, l.sorted()
}

func (l *list) leave(f *listFollower) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.followers, f)
}

// take gives the follower's oldest changes as the rows are now.
func (l *list) take(f *listFollower) (item ListItem, more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		return ListItem{}, false, l.ended
	}
	n := min(len(f.dirty), listChunk)
	for _, id := range f.dirty[:n] {
		delete(f.in, id)
		if r, ok := l.rows[id]; ok {
			item.Upsert = append(item.Upsert, r)
		} else {
			item.Removed = append(item.Removed, id)
		}
	}
	f.dirty = slices.Delete(f.dirty, 0, n)
	return item, n > 0, nil
}

// FollowList calls fn with all rows and then with what changes, until fn or ctx
// ends it.
func (s *Store) FollowList(ctx context.Context, fn func(ListItem) error) error {
	f, rows := s.list.join()
	defer s.list.leave(f)
	if err := fn(ListItem{Sessions: rows}); err != nil {
		return err
	}
	for {
		item, some, err := s.list.take(f)
		if err != nil {
			return err
		}
		if some {
			if err := fn(item); err != nil {
				return err
			}
			continue
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// List returns the rows of all sessions, oldest first.
func (s *Store) List() []Row { return s.list.all() }

// Row returns one session's row.
func (s *Store) Row(id string) (Row, bool) { return s.list.get(id) }

// SetNote sets the volatile note of a session's row, "" to clear it.
func (s *Store) SetNote(id, note string) { s.list.note(id, note) }
