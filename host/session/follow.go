package session

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
)

const (
	ringBatches = 256     // batches a follower may be behind …
	ringBytes   = 4 << 20 // … and their bytes; one batch is always kept
	chunkEvents = 256     // events of one history item
	previewMax  = 1 << 20 // bytes of unfinished text kept for a step
)

// Item is one message of Follow; doc.go has its JSON. The first has Snapshot,
// then come history (Events without Changes) and batches (both), in order of
// Seq, with Preview items among them.
type Item struct {
	Snapshot *Snapshot
	Events   []event.Event
	Changes  []byte // JSON
	Seq      int64
	Preview  *Preview

	size int
}

// Snapshot is a durable state with the seq of its last event.
type Snapshot struct {
	Header      event.Header
	Seq         int64
	Projections []byte // JSON, see projection.Set.AppendState
}

// Preview is unfinished text of a step.
type Preview struct {
	Turn, Step int64
	Text       string
}

// MarshalJSON writes the item as it goes to a client.
func (i Item) MarshalJSON() ([]byte, error) {
	var w value.Writer
	w.Begin()
	switch {
	case i.Preview != nil:
		w.Name("preview")
		w.Begin()
		w.IntField("turn", i.Preview.Turn)
		w.IntField("step", i.Preview.Step)
		w.StrField("text", i.Preview.Text)
		w.End()
	case i.Snapshot != nil:
		w.Name("header")
		w.Raw(event.AppendHeader(nil, i.Snapshot.Header))
		w.IntField("seq", i.Snapshot.Seq)
		w.Name("projections")
		w.Raw(i.Snapshot.Projections)
	default:
		w.Name("events")
		w.BeginArray()
		for _, e := range i.Events {
			w.Raw(event.AppendEvent(nil, e))
		}
		w.EndArray()
		if i.Changes != nil {
			w.Name("changes")
			w.Raw(i.Changes)
		}
		w.IntField("seq", i.Seq)
	}
	w.End()
	return w.Bytes(), nil
}

// Snapshot returns the state as it stands now, once it is on disk.
func (l *Log) Snapshot(ctx context.Context) (Snapshot, error) {
	l.mu.Lock()
	if l.gone {
		l.mu.Unlock()
		return Snapshot{}, fmt.Errorf("session %s: %w", l.id, ErrNoSession)
	}
	var w value.Writer
	l.state.Set.AppendState(&w)
	snap := Snapshot{Header: l.state.Header, Seq: l.state.Next - 1, Projections: w.Bytes()}
	c := Commit{land: l.last}
	l.mu.Unlock()
	return snap, c.Wait(ctx)
}

// Follow calls fn with a snapshot, the durable events after *after (nil: all)
// up to it, and then every batch and preview as it comes, until fn or ctx ends
// it. No event is left out or given twice. ErrResync when after is past the
// end, ErrLagged when fn is too slow, ErrNoSession when the session is deleted.
// A damaged log is given up to its fault, which then ends the follow.
func (l *Log) Follow(ctx context.Context, after *int64, fn func(Item) error) error {
	// Join first: whatever is staged after the snapshot then stays in the ring.
	l.feed.join()
	defer l.feed.leave()
	snap, err := l.Snapshot(ctx)
	if err != nil {
		return err
	}
	from := int64(-1)
	if after != nil {
		from = max(*after, -1)
	}
	if from > snap.Seq {
		return ErrResync
	}
	if err := fn(Item{Snapshot: &snap, Seq: snap.Seq}); err != nil {
		return err
	}
	if err := l.history(ctx, from, snap.Seq, fn); err != nil {
		return err
	}
	if l.damage != nil {
		return l.damage // nothing can come after it
	}
	return l.live(ctx, snap.Seq, fn)
}

func (l *Log) history(ctx context.Context, from, to int64, fn func(Item) error) error {
	for from < to {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		events, err := l.Read(from, int(min(chunkEvents, to-from)))
		if err != nil {
			return err
		}
		if len(events) == 0 {
			return &Fault{Session: l.id, Seq: from + 1, Reason: "missing"}
		}
		from = events[len(events)-1].Seq
		if err := fn(Item{Events: events, Seq: from}); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) live(ctx context.Context, seq int64, fn func(Item) error) error {
	var seen previewMark
	for {
		items, preview, wake, err := l.feed.after(seq, &seen)
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := fn(item); err != nil {
				return err
			}
			seq = item.Seq
		}
		if preview != nil {
			if err := fn(Item{Preview: preview}); err != nil {
				return err
			}
		}
		if len(items) > 0 || preview != nil {
			continue // more may have come meanwhile
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Preview tells followers of unfinished text: what came since the last call for
// that step. It is never stored, and goes when the step's message is recorded.
func (l *Log) Preview(turn, step int64, text string) { l.feed.addPreview(turn, step, text) }

// feed hands durable batches to followers.
type feed struct {
	mu        sync.Mutex
	durable   int64 // seq of the last event on disk
	followers int
	ring      []Item // the newest batches, kept only while somebody follows
	ringSize  int
	dropped   int64 // seq of the last batch that fell out of the ring
	wake      chan struct{}
	ended     error

	previewTurn, previewStep int64
	preview                  []byte
	previewGen               int // counts previews begun
}

// previewMark is how much of which preview a follower has.
type previewMark struct{ gen, size int }

func (f *feed) seq() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.durable
}

func (f *feed) followed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.followers > 0
}

func (f *feed) join() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers == 0 {
		f.dropped = f.durable
	}
	f.followers++
}

func (f *feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers--; f.followers == 0 {
		f.ring, f.ringSize = nil, 0
	}
}

func (f *feed) deliver(item Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.durable = item.Seq
	for _, e := range item.Events {
		if e.Type == event.TypeAssistant || e.Type == event.TypeStepEnd || e.Type == event.TypeTurnEnd {
			f.preview = nil
		}
	}
	if f.followers == 0 {
		return
	}
	f.ring = append(f.ring, item)
	f.ringSize += item.size
	n := 0
	for ; len(f.ring)-n > 1 && (len(f.ring)-n > ringBatches || f.ringSize > ringBytes); n++ {
		f.ringSize -= f.ring[n].size
		f.dropped = f.ring[n].Seq
	}
	f.ring = slices.Delete(f.ring, 0, n)
	f.signal()
}

func (f *feed) addPreview(turn, step int64, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.preview == nil || f.previewTurn != turn || f.previewStep != step {
		f.previewTurn, f.previewStep, f.preview = turn, step, []byte{}
		f.previewGen++
	}
	if len(f.preview)+len(text) <= previewMax {
		f.preview = append(f.preview, text...)
	}
	f.signal()
}

// end stops all followers after what is in the ring.
func (f *feed) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended == nil {
		f.ended = err
	}
	f.signal()
}

func (f *feed) signal() {
	if f.wake != nil {
		close(f.wake)
		f.wake = nil
	}
}

// after returns what a follower at seq has not seen, and the channel to wait on
// when that is nothing.
func (f *feed) after(seq int64, seen *previewMark) (items []Item, p *Preview, wake <-chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if seq < f.dropped {
		return nil, nil, nil, ErrLagged
	}
	for i, item := range f.ring {
		if item.Seq > seq {
			items = slices.Clone(f.ring[i:])
			break
		}
	}
	if len(items) == 0 && f.ended != nil {
		return nil, nil, nil, f.ended
	}
	if seen.gen != f.previewGen {
		*seen = previewMark{gen: f.previewGen}
	}
	if n := len(f.preview); n > seen.size {
		p = &Preview{Turn: f.previewTurn, Step: f.previewStep, Text: string(f.preview[seen.size:])}
		seen.size = n
	}
	if f.wake == nil {
		f.wake = make(chan struct{})
	}
	return items, p, f.wake, nil
}
