package session

import (
	"errors"
	"fmt"

	"meanwhile/shared/event"
)

// loadChunk is how many events one backend read asks for while folding a log.
const loadChunk = 512

// readState folds a log from its checkpoint and tail. A fault comes beside the
// state before it; an error is the backend's own.
func readState(b Backend, rec Record) (*State, *Fault, error) {
	h, err := event.ParseHeader(rec.Header)
	if err != nil {
		s := newState(event.Header{Version: event.Version, ID: rec.ID})
		return s, &Fault{Session: rec.ID, Seq: -1, Reason: "header: " + err.Error()}, nil
	}
	if h.ID != rec.ID {
		s := newState(event.Header{Version: event.Version, ID: rec.ID})
		return s, &Fault{Session: rec.ID, Seq: -1, Reason: "header is of session " + h.ID}, nil
	}
	if rec.Damage == "" {
		if s, ok, err := fromCheckpoint(b, rec, h); err != nil || ok {
			return s, nil, err
		}
	}
	s := newState(h)
	fault, err := foldFrom(b, s, rec.Events)
	if err != nil {
		return nil, nil, err
	}
	if fault == nil && rec.Damage != "" {
		fault = &Fault{Session: rec.ID, Seq: s.Next, Reason: rec.Damage}
	}
	return s, fault, nil
}

// fromCheckpoint resumes at the checkpoint if it is of this log. Whatever is
// odd about it or the tail after it, the log itself is then read from the
// start and decides.
func fromCheckpoint(b Backend, rec Record, h event.Header) (*State, bool, error) {
	if rec.Checkpoint == nil {
		return nil, false, nil
	}
	s, ok := parseCheckpoint(h, rec.Checkpoint)
	if !ok || s.Next > rec.Events {
		return nil, false, nil
	}
	raws, err := b.Events(rec.ID, s.Next-1, 1)
	if err != nil || len(raws) != 1 || sumOf(raws[0]) != s.lastSum {
		return nil, false, ignoreFault(err)
	}
	fault, err := foldFrom(b, s, rec.Events)
	return s, fault == nil && err == nil, err
}

func ignoreFault(err error) error {
	if errors.Is(err, ErrDamaged) {
		return nil
	}
	return err
}

// foldFrom applies the events from s.Next on. The log must end where its
// summary says: a tail that is gone leaves no gap to see.
func foldFrom(b Backend, s *State, end int64) (*Fault, error) {
	id := s.Header.ID
	for {
		raws, err := b.Events(id, s.Next, loadChunk)
		for _, raw := range raws {
			if s.Next == end {
				return &Fault{Session: id, Seq: end, Reason: fmt.Sprintf("more events than the %d counted", end)}, nil
			}
			e, err := event.ParseEvent(raw)
			if err == nil {
				err = s.apply(e, raw, nil)
			}
			if err != nil {
				return &Fault{Session: id, Seq: s.Next, Reason: err.Error()}, nil
			}
		}
		var fault *Fault
		switch {
		case errors.As(err, &fault):
			return fault, nil
		case err != nil:
			return nil, err
		case len(raws) == 0 && s.Next != end:
			return &Fault{Session: id, Seq: s.Next, Reason: fmt.Sprintf("log ends here, its summary counts %d events", end)}, nil
		case len(raws) == 0:
			return nil, nil
		}
	}
}

// load makes the Log of a session that is not in memory.
func (s *Store) load(id string) (*Log, error) {
	rec, err := s.backend.Load(id)
	if err != nil {
		return nil, err
	}
	state, fault, err := readState(s.backend, rec)
	if err != nil {
		return nil, fmt.Errorf("load session %s: %w", id, err)
	}
	l := newLog(s, state)
	l.damage = fault
	l.checkpointSize = len(rec.Checkpoint)
	var sum summary
	if !strictJSON(rec.Summary, &sum) || sum.Version != summaryVersion || sum.Stale {
		l.unwritten = rowEntries // with the next batch
	}
	l.row.refresh(state, true)
	if fault != nil {
		l.row = damagedRow(id, l.row)
		s.list.upsert(l.row)
		s.log.Warn("session is damaged", "session", id, "seq", fault.Seq, "reason", fault.Reason)
	}
	return l, nil
}

func newLog(s *Store, state *State) *Log {
	l := &Log{id: state.Header.ID, store: s, state: state, last: landed()}
	l.feed.durable = state.Next - 1
	return l
}
