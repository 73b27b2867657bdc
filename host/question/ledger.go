package question

import "meanwhile/shared/projection"

// ledger is what one host keeps of asks beside their logs: the waits that block
// now, and the answers on their way into a log. Everything that must outlive
// the moment is in the logs; see judge.
type ledger struct {
	waits   map[waitKey]*Wait
	timed   int // how many of waits are timed
	serial  uint64
	claims  map[uint64]*stream
	flights map[flightKey]*flight
	total   Stats
}

// waitKey names a wait. serial tells unkeyed asks apart and is 0 for a keyed one.
type waitKey struct {
	session, call string
	serial        uint64
}

// flightKey names one press of the submit button.
type flightKey struct{ session, submission string }

func newLedger() ledger {
	return ledger{
		waits:   map[waitKey]*Wait{},
		claims:  map[uint64]*stream{},
		flights: map[flightKey]*flight{},
	}
}

// next gives an id that this ledger has not given before.
func (l *ledger) next() uint64 { l.serial++; return l.serial }

// enter adds a wait, or reports that its agent already waits on that call.
func (l *ledger) enter(w *Wait) bool {
	if w.key.call == "" {
		w.key.serial = l.next()
	}
	if _, dup := l.waits[w.key]; dup {
		return false
	}
	l.waits[w.key] = w
	if w.m.timed {
		l.timed++
	}
	return true
}

// leave removes a wait that ended.
func (l *ledger) leave(w *Wait) {
	if l.waits[w.key] != w {
		return
	}
	delete(l.waits, w.key)
	if w.m.timed {
		l.timed--
	}
}

// standing is where one late answer stands, read from a log.
type standing uint8

const (
	// standsKnown: a reply of this id is in the log; fate says where.
	standsKnown standing = iota
	// standsForeign: the id belongs to another message or to another ask's reply.
	standsForeign
	// standsWithdrawing: a withdrawal of the ask is recorded and has no result
	// yet; look again when the log has grown.
	standsWithdrawing
	// standsClosed: no ask of this name can take a late answer.
	standsClosed
	// standsQueued: another reply to the ask waits for admission.
	standsQueued
	// standsOpen: the ask is continued and free: this answer may be queued.
	standsOpen
)

// judge reads from the folds of a log, including what is not yet on disk, where
// a late answer stands. It is the reservation of an ask: a reply holds its ask
// from the splice that queues it, through any claim, until it is admitted or
// discarded, because a claim takes nothing out of the queue before admission.
func judge(s *projection.Set, callID, submissionID string) (standing, projection.Fate) {
	if r, ok := s.Replies.Get(submissionID); ok {
		if r.CallID != callID {
			return standsForeign, ""
		}
		return standsKnown, r.Fate
	}
	if s.Inbox.Has(submissionID) {
		return standsForeign, ""
	}
	a, ok := s.Questions.Active(callID)
	switch {
	case !ok || a.State != projection.Continued:
		return standsClosed, ""
	case s.Questions.Withdrawing(callID):
		return standsWithdrawing, ""
	}
	if _, queued := s.Inbox.Reply(callID); queued {
		return standsQueued, ""
	}
	return standsOpen, ""
}
