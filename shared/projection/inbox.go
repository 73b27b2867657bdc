package projection

import (
	"strconv"

	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
)

// LogError is an event that contradicts the log before it.
type LogError struct {
	Session string
	Seq     int64
	Why     string
}

func (e *LogError) Error() string {
	return "session " + e.Session + ", event " + strconv.FormatInt(e.Seq, 10) + ": " + e.Why
}

// Inbox is the fold of messages that wait for the agent, in two queues.
type Inbox struct {
	session   string
	inherited int64
	queues    [2][]event.Message // next-step, next-turn
	ids       map[string]bool
}

// Targets are the two queues in the order in which they are admitted.
var targets = [2]string{event.NextStep, event.NextTurn}

// NewInbox is the fold of an empty log.
func NewInbox(h event.Header) *Inbox {
	return &Inbox{session: h.ID, inherited: h.InheritedEventCount, ids: map[string]bool{}}
}

func slot(target string) int {
	for i, t := range targets {
		if t == target {
			return i
		}
	}
	return -1
}

// Queue returns the messages of one target in order, not to be changed.
func (b *Inbox) Queue(target string) []event.Message {
	if i := slot(target); i >= 0 {
		return b.queues[i]
	}
	return nil
}

// Len is the number of messages that wait.
func (b *Inbox) Len() int { return len(b.ids) }

// Has reports whether a message waits.
func (b *Inbox) Has(messageID string) bool { return b.ids[messageID] }

// Find returns a waiting message's target and place, or ok false.
func (b *Inbox) Find(messageID string) (target string, index int, ok bool) {
	if !b.ids[messageID] {
		return "", 0, false
	}
	for i, q := range b.queues {
		for j, m := range q {
			if m.ID == messageID {
				return targets[i], j, true
			}
		}
	}
	return "", 0, false
}

// Reply returns the waiting reply to an ask, if there is one.
func (b *Inbox) Reply(callID string) (event.Message, bool) {
	for _, q := range b.queues {
		for _, m := range q {
			if m.Source.Kind == event.SourceReply && m.Source.CallID == callID {
				return m, true
			}
		}
	}
	return event.Message{}, false
}

// Apply folds one event; only a splice says anything to it. It returns the
// messages taken out and put in, and a *LogError for a splice that does not
// fit, which leaves the queues untouched.
func (b *Inbox) Apply(e event.Event) (removed, inserted []event.Message, err error) {
	if e.Type != event.TypeSpliced || e.Seq < b.inherited {
		return nil, nil, nil
	}
	bad := func(why string) ([]event.Message, []event.Message, error) {
		return nil, nil, &LogError{b.session, e.Seq, why}
	}
	d, derr := event.DecodeSpliced(e.Data)
	if derr != nil {
		return bad(derr.Error())
	}
	i := slot(d.Target)
	if i < 0 {
		return bad("splice of an unknown target " + strconv.Quote(d.Target))
	}
	q := b.queues[i]
	n := int64(len(q))
	if d.Start < 0 || d.Start > n || d.RemovedCount < 0 || d.RemovedCount > n-d.Start {
		return bad("splice out of range: start " + strconv.FormatInt(d.Start, 10) + ", removed " +
			strconv.FormatInt(d.RemovedCount, 10) + " of " + strconv.FormatInt(n, 10))
	}
	removed = append(removed, q[d.Start:d.Start+d.RemovedCount]...)
	pending := make(map[string]bool, len(d.Inserted)) // told by this splice, over b.ids
	for _, m := range removed {
		pending[m.ID] = false
	}
	for _, m := range d.Inserted {
		waits, told := pending[m.ID]
		if waits || !told && b.ids[m.ID] {
			return bad("message " + strconv.Quote(m.ID) + " is pending already")
		}
		pending[m.ID] = true
	}
	for _, m := range removed {
		delete(b.ids, m.ID)
	}
	for _, m := range d.Inserted {
		b.ids[m.ID] = true
	}
	next := make([]event.Message, 0, len(q)-len(removed)+len(d.Inserted))
	next = append(append(append(next, q[:d.Start]...), d.Inserted...), q[d.Start+d.RemovedCount:]...)
	b.queues[i] = next
	return removed, d.Inserted, nil
}

// AppendView writes {"next-step":[…],"next-turn":[…]}.
func (b *Inbox) AppendView(w *value.Writer) {
	w.Begin()
	b.appendQueues(w)
	w.End()
}

func (b *Inbox) appendQueues(w *value.Writer) {
	for i, t := range targets {
		w.Name(t)
		w.BeginArray()
		for _, m := range b.queues[i] {
			w.Raw(m.Bytes())
		}
		w.EndArray()
	}
}

// Fate is what became of a reply.
type Fate string

// A reply is Queued until the agent reads it (Admitted) or it is taken out of
// the queue unread (Discarded).
const (
	Queued    Fate = "queued"
	Admitted  Fate = "admitted"
	Discarded Fate = "discarded"
)

// Reply is the ask that a late answer named, and the answer's fate.
type Reply struct {
	CallID string
	Fate   Fate
}

// Replies is the fold that remembers every late answer by its message id, so
// that one sent twice is known.
type Replies struct {
	inherited int64
	byID      ordered[Reply]
}

// NewReplies is the fold of an empty log.
func NewReplies(h event.Header) *Replies { return &Replies{inherited: h.InheritedEventCount} }

// Get returns what is known of a reply.
func (r *Replies) Get(messageID string) (Reply, bool) {
	if p := r.byID.get(messageID); p != nil {
		return *p, true
	}
	return Reply{}, false
}

// Apply folds one event; removed and inserted are what Inbox.Apply gave for it.
func (r *Replies) Apply(e event.Event, removed, inserted []event.Message) {
	for _, m := range removed {
		if p := r.byID.get(m.ID); p != nil {
			p.Fate = Discarded
		}
	}
	for _, m := range inserted {
		if m.Source.Kind == event.SourceReply {
			r.byID.put(m.ID, Reply{m.Source.CallID, Queued})
		}
	}
	if e.Type != event.TypeUserMessage || e.Seq < r.inherited {
		return
	}
	m, err := event.DecodeUserMessage(e.Data)
	if err != nil || m.Source.Kind != event.SourceReply {
		return
	}
	if p := r.byID.get(m.ID); p != nil {
		p.Fate = Admitted
	} else {
		r.byID.put(m.ID, Reply{m.Source.CallID, Admitted})
	}
}
