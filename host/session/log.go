package session

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

const (
	maxChangeBytes  = 4 << 20 // encoded events of one change
	maxChangeEvents = 4096

	checkpointEvents = 512 // a checkpoint is written after so many events …
	checkpointFactor = 4   // … and so many times its own size of them
)

// Log is one session's event log.
type Log struct {
	id     string
	store  *Store
	damage *Fault // nil: the log is whole

	mu    sync.Mutex // staged side
	state *State
	row   Row
	last  *landing // of the newest batch
	gone  bool     // deleted

	checkpointSize int // of the last checkpoint
	unwritten      int // changes of the row's lists since they were written

	feed feed // delivery side
}

// ID returns the session's id.
func (l *Log) ID() string { return l.id }

// Damage returns where the log stops being readable, nil when it is whole.
func (l *Log) Damage() *Fault { return l.damage }

// Header returns the header with every change accepted so far.
func (l *Log) Header() event.Header {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.Header
}

// Commit is one batch on its way to the disk.
type Commit struct {
	First  int64 // seq of the first event
	Events []event.Event
	land   *landing
}

// landing is the fate of one batch.
type landing struct {
	done chan struct{}
	err  error // set before done is closed
}

func newLanding() *landing { return &landing{done: make(chan struct{})} }

func landed() *landing {
	l := newLanding()
	close(l.done)
	return l
}

// Wait returns nil once the batch, and everything accepted before it, is on
// disk. An error that is ErrUnknown means that nobody knows and the process is
// stopping.
func (c *Commit) Wait(ctx context.Context) error {
	select {
	case <-c.land.done:
		return c.land.err
	default:
	}
	select {
	case <-c.land.done:
		return c.land.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Done is closed when Wait would return at once.
func (c *Commit) Done() <-chan struct{} { return c.land.done }

// Update runs decide on the staged state and appends what it returns as one
// batch. An error of decide is returned as it is, and nothing is appended. With
// no drafts nothing is appended either, and the Commit waits for what decide saw.
func (l *Log) Update(decide func(*State) ([]event.Draft, error)) (*Commit, error) {
	if l.damage != nil {
		return nil, l.damage
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return nil, fmt.Errorf("session %s: %w", l.id, ErrNoSession)
	}
	drafts, err := decide(l.state)
	if err != nil {
		return nil, err
	}
	if len(drafts) == 0 {
		return &Commit{First: l.state.Next, land: l.last}, nil
	}
	return l.append(drafts)
}

// View shows the staged state without appending.
func (l *Log) View(look func(*State)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	look(l.state)
}

// SetHeader rewrites the header. What identifies the session stays as it is.
func (l *Log) SetHeader(change func(*event.Header)) (*Commit, error) {
	if l.damage != nil {
		return nil, l.damage
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return nil, fmt.Errorf("session %s: %w", l.id, ErrNoSession)
	}
	old := l.state.Header
	h := old
	change(&h)
	h.Version, h.ID, h.CreatedAt, h.Key, h.Owner = old.Version, old.ID, old.CreatedAt, old.Key, old.Owner
	h.ParentSession, h.InheritedEventCount = old.ParentSession, old.InheritedEventCount
	if err := checkHeader(h); err != nil {
		return nil, err
	}
	l.state.Header = h
	l.row.refresh(l.state, false)
	b := Batch{Session: l.id, Header: event.AppendHeader(nil, h), Summary: l.row.summary(l.state, l.unwritten > 0)}
	return &Commit{First: l.state.Next, land: l.write(b, nil)}, nil
}

// append stages drafts as one batch. l.mu is held.
func (l *Log) append(drafts []event.Draft) (*Commit, error) {
	events, raws, err := encode(drafts, l.state.Next, l.store.now())
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", l.id, err)
	}
	c := &Commit{First: l.state.Next, Events: events}
	var delta projection.Delta
	for i, e := range events {
		if err := l.state.apply(e, raws[i], &delta); err != nil {
			// The decision contradicts its own state. Earlier events of the
			// batch are folded already, so the state is read again.
			return nil, errors.Join(fmt.Errorf("session %s: %w", l.id, err), l.reload())
		}
	}
	l.row.refresh(l.state, !delta.Empty())

	b := Batch{Session: l.id, First: c.First, Events: raws}
	if !delta.Empty() {
		l.unwritten++
	}
	if l.unwritten > 0 && l.unwritten*pendingEvery >= len(l.row.Active)+len(l.row.Queued) {
		b.Pending, l.unwritten = l.row.pending(), 0
	}
	b.Summary = l.row.summary(l.state, l.unwritten > 0)
	if l.state.newEvents >= checkpointEvents && l.state.newBytes >= checkpointFactor*l.checkpointSize {
		b.Checkpoint = l.state.appendCheckpoint()
		l.state.newEvents, l.state.newBytes, l.checkpointSize = 0, 0, len(b.Checkpoint)
		if b.Size() > maxChangeBytes+maxChangeBytes/4 {
			b.Checkpoint = nil // a cache is not worth a batch that is too large
		}
	}
	item := &Item{Events: events, Seq: l.state.Next - 1, size: b.Size()}
	// Who joins later takes a snapshot of a state that has this batch in it.
	if l.feed.followed() {
		var w value.Writer
		delta.Append(&w, l.state.Set)
		item.Changes = w.Bytes()
	}
	c.land = l.write(b, item)
	return c, nil
}

// encode numbers the drafts and makes sure that what is written can be read.
func encode(drafts []event.Draft, first, now int64) ([]event.Event, [][]byte, error) {
	if len(drafts) > maxChangeEvents {
		return nil, nil, ErrTooLarge
	}
	events := make([]event.Event, len(drafts))
	raws := make([][]byte, len(drafts))
	size := 0
	for i, d := range drafts {
		e := event.Event{Seq: first + int64(i), Time: now, Type: d.Type, Data: d.Data}
		raws[i] = event.AppendEvent(nil, e)
		if _, err := event.ParseEvent(raws[i]); err != nil {
			return nil, nil, fmt.Errorf("draft %d of type %s: %w", i, d.Type, err)
		}
		events[i] = e
		if size += len(raws[i]); size > maxChangeBytes {
			return nil, nil, ErrTooLarge
		}
	}
	return events, raws, nil
}

// write queues one batch and has item delivered when it is on disk. l.mu is
// held, which keeps the batches of a log in order.
func (l *Log) write(b Batch, item *Item) *landing {
	land := newLanding()
	l.last = land
	row, drop := l.row, b.Stage == StageDrop
	l.store.backend.Write(b, func(err error) {
		switch {
		case err != nil:
			land.err = l.store.failed("session "+l.id, err)
			l.feed.end(land.err)
		case drop:
			l.store.list.remove(l.id)
			l.feed.end(fmt.Errorf("session %s: %w", l.id, ErrNoSession))
		default:
			if item != nil {
				l.feed.deliver(*item)
				if l.store.landed != nil {
					l.store.landed(l.id, item.Events)
				}
			}
			l.store.list.upsert(row)
		}
		close(land.done)
	})
	return land
}

// reload replaces the staged state by what the backend holds. l.mu is held.
func (l *Log) reload() error {
	<-l.last.done
	if l.last.err != nil {
		return l.last.err
	}
	rec, err := l.store.backend.Load(l.id)
	if err != nil {
		return err
	}
	state, fault, err := readState(l.store.backend, rec)
	if err == nil && fault != nil {
		err = fault
	}
	if err != nil {
		return err
	}
	l.state = state
	l.row.refresh(state, true)
	return nil
}

// remove drops the whole log.
func (l *Log) remove() *landing {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return l.last
	}
	l.gone = true
	return l.write(Batch{Session: l.id, Stage: StageDrop}, nil)
}

// Read returns durable events after a seq: at most max of them, fewer when they
// are large, none at the end. On a damaged log it ends at the fault.
func (l *Log) Read(after int64, max int) ([]event.Event, error) {
	durable := l.feed.seq()
	if after < -1 {
		after = -1
	}
	if n := durable - after; int64(max) > n {
		max = int(n)
	}
	if max <= 0 {
		return nil, nil
	}
	raws, err := l.store.backend.Events(l.id, after+1, max)
	if err != nil {
		return nil, err
	}
	events := make([]event.Event, len(raws))
	for i, raw := range raws {
		if events[i], err = event.ParseEvent(raw); err != nil {
			return nil, &Fault{Session: l.id, Seq: after + 1 + int64(i), Reason: err.Error()}
		}
	}
	return events, nil
}
