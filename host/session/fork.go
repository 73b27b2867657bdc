package session

import (
	"context"
	"fmt"

	"meanwhile/host/internal/id"
	"meanwhile/shared/event"
)

// Fork makes a session that begins with the events of another, up to seq *at
// (nil: all that are on disk), and ends its inheritance with session/end-seed.
// A turn that is open at that place is closed in the copy as repair would close
// it, so that the copy is one a model can read. Questions and the inbox are not
// inherited, no checkpoint is copied, and key and owner stay with the parent.
// change may set the rest of the header. A damaged session can be forked up to
// its fault.
func (s *Store) Fork(ctx context.Context, parent string, at *int64, change func(*event.Header)) (*Log, error) {
	from, err := s.Open(ctx, parent)
	if err != nil {
		return nil, err
	}
	end := from.feed.seq() + 1
	if at != nil {
		if *at < -1 || *at >= end {
			return nil, fmt.Errorf("fork of session %s at seq %d: %w", parent, *at, ErrForkAt)
		}
		end = *at + 1
	}
	h := from.Header()
	h.Key, h.Owner, h.Archived = "", "", false
	if change != nil {
		change(&h)
	}
	h.Version, h.ID, h.CreatedAt, h.ParentSession, h.InheritedEventCount = event.Version, id.New(), s.now(), parent, 0
	if err := checkHeader(h); err != nil {
		return nil, err
	}
	sl := &slot{ready: make(chan struct{})}
	if have, err := s.reserve(h, sl); err != nil {
		return nil, err
	} else if have != "" {
		return nil, &KeyTakenError{ID: have}
	}
	l, err := s.fill(h.ID, sl, func() (*Log, error) { return s.fork(ctx, parent, h, end) })
	if err != nil {
		s.freeKey(h.Owner, h.Key, h.ID)
	}
	return l, err
}

func (s *Store) fork(ctx context.Context, parent string, h event.Header, end int64) (*Log, error) {
	var b Balance
	built, err := s.copyEvents(ctx, parent, h.ID, end, &b)
	var events []event.Event
	var raws [][]byte
	if err == nil {
		notHere := func(string) bool { return false } // no ask is inherited
		events, raws, err = encode(append(b.closing(notHere), event.EndSeedDraft()), end, s.now())
	}
	if err != nil {
		if built {
			s.abandon(h.ID)
		}
		return nil, fmt.Errorf("fork session %s: %w", parent, err)
	}
	h.InheritedEventCount = end + int64(len(events))
	state := newState(h)
	for _, e := range events {
		b.apply(e)
	}
	// The folds take nothing from inherited events, so they are those of an
	// empty log.
	state.Balance, state.Next = b, h.InheritedEventCount
	state.lastSum, state.lastTime = sumOf(raws[len(raws)-1]), events[len(events)-1].Time

	l := newLog(s, state)
	l.row.refresh(state, true)
	l.mu.Lock()
	land := l.write(Batch{Session: h.ID, Stage: StageCreate, First: end, Events: raws, Header: event.AppendHeader(nil, h),
		Summary: l.row.summary(state, false), Pending: l.row.pending()}, nil)
	l.mu.Unlock()
	<-land.done
	return l, land.err
}

// abandon removes what was built of a session that never came to be.
func (s *Store) abandon(id string) {
	s.backend.Write(Batch{Session: id, Stage: StageDrop}, s.noted("session "+id))
}

// noted is the done of a write that nobody waits for.
func (s *Store) noted(what string) func(error) {
	return func(err error) {
		if err != nil {
			_ = s.failed(what, err)
		}
	}
}

// copyEvents copies events as they are recorded and folds them into b. built
// reports whether anything was written.
func (s *Store) copyEvents(ctx context.Context, from, to string, end int64, b *Balance) (built bool, err error) {
	for next := int64(0); next < end; {
		if ctx.Err() != nil {
			return built, context.Cause(ctx)
		}
		raws, err := s.backend.Events(from, next, int(min(loadChunk, end-next)))
		if err != nil {
			return built, err
		}
		if len(raws) == 0 {
			return built, &Fault{Session: from, Seq: next, Reason: "missing"}
		}
		for _, raw := range raws {
			e, err := event.ParseEvent(raw)
			if err != nil {
				return built, err
			}
			b.apply(e)
		}
		// The chunks need no wait: they are written in order, and only the
		// last batch makes the session exist.
		s.backend.Write(Batch{Session: to, Stage: StageBuild, First: next, Events: raws}, s.noted("session "+to))
		built = true
		next += int64(len(raws))
	}
	return built, nil
}
