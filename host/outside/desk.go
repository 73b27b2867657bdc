package outside

import (
	"time"

	"meanwhile/host/question"
	"meanwhile/shared/projection"
)

// phase is where an ask stands; see the package's doc.
type phase uint8

const (
	starting phase = iota
	open
	settling
	closed
)

// ask is what this process knows of one ask beside the log.
type ask struct {
	callID    string
	requestID string
	questions string // as recorded, to tell a repeated request from a conflict
	blocks    bool   // asked with -1
	phase     phase
	holders   int
	wait      *question.Wait // while open
	code      string         // why it closed without an answer; "" when it did not
	failed    error          // it could not be recorded, or its record is unknown
	seen      *bool          // a client ever claimed it; nil when that is not known
	changed   chan struct{}  // closed at the next change, then replaced
}

// result is one recorded answer or refusal that nobody acknowledged.
type result struct {
	messageID, callID, text string
	lease
}

// lease says who was handed something, and until when.
type lease struct {
	holder  string
	until   time.Time
	line    <-chan struct{} // the connection that carried it, nil without one
	written bool            // its response was written whole
}

// heldByOther: without a name every holder is another.
func (l lease) heldByOther(holder string, now time.Time) bool {
	return (holder == "" || l.holder != holder) && now.Before(l.until)
}

// desk is the pure state of one session's asks and hand-overs. Its owner locks.
type desk struct {
	asks     map[string]*ask
	requests map[string]string // request id → call id
	results  []*result         // unacknowledged, oldest first, at most ResultsMax
	replies  map[string]lease  // queued replies handed over, by message id
}

func newDesk() desk {
	return desk{asks: map[string]*ask{}, requests: map[string]string{}, replies: map[string]lease{}}
}

// add enters an ask.
func (d *desk) add(a *ask) {
	a.changed = make(chan struct{})
	d.asks[a.callID] = a
	if a.requestID != "" {
		d.requests[a.requestID] = a.callID
	}
}

// forget takes back an ask that was never recorded.
func (d *desk) forget(a *ask) {
	delete(d.asks, a.callID)
	if d.requests[a.requestID] == a.callID {
		delete(d.requests, a.requestID)
	}
	a.move(closed)
}

// move sets the phase and wakes whoever holds the ask.
func (a *ask) move(p phase) {
	a.phase = p
	a.ring()
}

func (a *ask) ring() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// settle takes the outcome of an open ask and decides how it is recorded. held
// is true when a call holds the ask, which then gets the outcome itself.
func (d *desk) settle(a *ask, seen bool) (held bool) {
	a.seen, a.wait = &seen, nil
	a.move(settling)
	return a.holders > 0
}

// close ends settling. text is what was recorded as an answer or a refusal, ""
// when it was pending.
func (d *desk) close(a *ask, code, messageID, text string) {
	a.code = code
	if text != "" {
		d.keep(&result{messageID: messageID, callID: a.callID, text: text})
	}
	a.move(closed)
}

func (d *desk) keep(r *result) {
	if len(d.results) >= ResultsMax {
		d.results = d.results[1:]
	}
	d.results = append(d.results, r)
}

// resultOf is the unacknowledged result of an ask, or nil.
func (d *desk) resultOf(callID string) *result {
	for _, r := range d.results {
		if r.callID == callID {
			return r
		}
	}
	return nil
}

// claimResults leases up to max results that no other holder has.
func (d *desk) claimResults(l lease, max int, now time.Time) []*result {
	var out []*result
	for _, r := range d.results {
		if len(out) < max && !r.heldByOther(l.holder, now) {
			r.lease = l
			out = append(out, r)
		}
	}
	return out
}

// acknowledge forgets the named results and returns the names that were none.
func (d *desk) acknowledge(ids []string) (done, rest []string) {
	named := make(map[string]bool, len(ids))
	for _, id := range ids {
		named[id] = true
	}
	kept := d.results[:0:0]
	for _, r := range d.results {
		if named[r.messageID] {
			named[r.messageID] = false
			done = append(done, r.messageID)
		} else {
			kept = append(kept, r)
		}
	}
	d.results = kept
	for _, id := range ids {
		if named[id] {
			named[id] = false
			rest = append(rest, id)
		}
	}
	return done, rest
}

// wrote notes that the response with these messages was written whole.
func (d *desk) wrote(l lease, ids []string) {
	for _, id := range ids {
		if r, ok := d.replies[id]; ok && r.holder == l.holder && r.line == l.line {
			r.written = true
			d.replies[id] = r
		}
		for _, r := range d.results {
			if r.messageID == id && r.holder == l.holder && r.line == l.line {
				r.written = true
			}
		}
	}
}

// returned lists what a holder that calls again has thereby acknowledged.
func (d *desk) returned(holder string, now time.Time) (ids []string) {
	if holder == "" {
		return nil
	}
	for id, l := range d.replies {
		if l.holder == holder && l.written && now.Before(l.until) {
			ids = append(ids, id)
		}
	}
	for _, r := range d.results {
		if r.holder == holder && r.written && now.Before(r.until) {
			ids = append(ids, r.messageID)
		}
	}
	return ids
}

// hangUp ends every lease that a connection carried and returns the replies.
func (d *desk) hangUp(line <-chan struct{}) (replies []string) {
	for id, l := range d.replies {
		if l.line == line {
			delete(d.replies, id)
			replies = append(replies, id)
		}
	}
	for _, r := range d.results {
		if r.line == line {
			r.lease = lease{}
		}
	}
	return replies
}

// handBack ends the leases on these messages.
func (d *desk) handBack(ids []string) {
	for _, id := range ids {
		delete(d.replies, id)
		for _, r := range d.results {
			if r.messageID == id {
				r.lease = lease{}
			}
		}
	}
}

// mayAdmit reports whether a holder may acknowledge a reply now. Who names no
// holder names the message, which only those who were handed it know.
func (d *desk) mayAdmit(id, holder string, now time.Time) bool {
	l, ok := d.replies[id]
	return !ok || holder == "" || l.holder == holder || !now.Before(l.until)
}

// sweep drops leases that ended.
func (d *desk) sweep(now time.Time) {
	for id, l := range d.replies {
		if !now.Before(l.until) {
			delete(d.replies, id)
		}
	}
}

// questionsKey is a batch as text, equal when the questions are.
func questionsKey(qs []projection.Question) string { return string(encodeQuestions(qs)) }
