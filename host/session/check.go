package session

import (
	"fmt"

	"meanwhile/shared/projection"
)

// Finding is what one session's log was found to hold.
type Finding struct {
	ID, Title string
	Events    int64 // readable ones
	TurnOpen  bool  // the host that wrote it ended in the middle of a turn; the next one repairs it
	Open      int   // asks that waited
	Continued int   // asks to be answered late
	Queued    int   // messages that no agent has read
	Fault     *Fault
}

// Check reads every log of a backend from its first event, past checkpoints, and
// compares the small records of the list with what the log says. It changes
// nothing. fn may end it with an error.
func Check(b Backend, fn func(Finding) error) error {
	var ids []string
	if err := b.Sessions(func(rec Record) error { ids = append(ids, rec.ID); return nil }); err != nil {
		return fmt.Errorf("check sessions: %w", err)
	}
	for _, id := range ids {
		f, err := check(b, id)
		if err != nil {
			return fmt.Errorf("check session %s: %w", id, err)
		}
		if err := fn(f); err != nil {
			return err
		}
	}
	return nil
}

func check(b Backend, id string) (Finding, error) {
	rec, err := b.Load(id)
	if err != nil {
		return Finding{}, err
	}
	rec.Checkpoint = nil
	s, fault, err := readState(b, rec)
	if err != nil {
		return Finding{}, err
	}
	f := Finding{ID: id, Title: s.Title(), Events: s.Next, TurnOpen: s.TurnOpen, Queued: s.Inbox.Len(), Fault: fault}
	s.Questions.AllActive(func(a *projection.Active) bool {
		if a.State == projection.Open {
			f.Open++
		} else {
			f.Continued++
		}
		return true
	})
	if fault == nil {
		f.Fault = unlisted(rec, s)
	}
	return f, nil
}

// unlisted compares the list's records with the log. Records of another version
// are none: the list is then made from the log.
func unlisted(rec Record, s *State) *Fault {
	listed, ok := rowFrom(rec)
	if !ok {
		return nil
	}
	real := Row{}
	real.refresh(s, true)
	switch {
	case listed.open != real.open:
		return &Fault{Session: rec.ID, Seq: s.Next, Reason: "the list is wrong about an open turn, so it would not be repaired"}
	case !listed.stale && string(listed.pending()) != string(real.pending()):
		return &Fault{Session: rec.ID, Seq: s.Next, Reason: "the list shows other questions or messages than the log holds"}
	}
	return nil
}
