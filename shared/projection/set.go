package projection

import (
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
)

// Set is the three folds of one session.
type Set struct {
	Questions *UserQuestions
	Inbox     *Inbox
	Replies   *Replies
}

// NewSet is the folds of an empty log.
func NewSet(h event.Header) *Set {
	return &Set{NewUserQuestions(h), NewInbox(h), NewReplies(h)}
}

// Apply folds one event into all three and notes in d, unless it is nil, what
// changed. The error is Inbox's.
func (s *Set) Apply(e event.Event, d *Delta) error {
	removed, inserted, err := s.Inbox.Apply(e)
	if err != nil {
		return err
	}
	s.Replies.Apply(e, removed, inserted)
	id := s.Questions.Apply(e)
	if d != nil {
		d.note(s, e.Type, id, removed, inserted)
	}
	return nil
}

// Delta gathers what a batch of events changed. The zero value is empty; it is
// for one batch.
type Delta struct {
	asks    ordered[bool] // touched ask → it was dropped or moved on the way
	removed []string
	touched [2]bool
}

func (d *Delta) note(s *Set, typ, ask string, removed, inserted []event.Message) {
	if ask != "" {
		// An ask that enters stands last, whatever stood under its id.
		moved := s.Questions.active.get(ask) == nil || typ == event.TypeToolCall || typ == event.TypePTCDispatch
		if prev := d.asks.get(ask); prev != nil {
			moved = moved || *prev
		}
		d.asks.put(ask, moved)
	}
	for _, m := range removed {
		d.removed = append(d.removed, m.ID)
	}
	if len(removed)+len(inserted) > 0 {
		for i := range targets {
			d.touched[i] = true
		}
	}
}

// Empty reports whether nothing changed.
func (d *Delta) Empty() bool { return d.asks.len() == 0 && !d.touched[0] && !d.touched[1] }

// Append writes the batch's net effect on s:
//
//	{"userQuestions":{"removed":[callId…],"active":[entry…],"settled":[entry…]},
//	 "inbox":{"next-step":[message…],"next-turn":[message…]}}
//
// To apply it to a view: drop the removed callIds from active; then for each
// active entry replace the one of its callId in place, or append; drop and
// append each settled entry; inbox, when present, replaces both queues. A part
// that did not change is absent.
func (d *Delta) Append(w *value.Writer, s *Set) {
	w.Begin()
	if d.asks.len() > 0 {
		w.Name("userQuestions")
		w.Begin()
		d.list(w, "removed", func(id string, moved bool) {
			if moved {
				w.Str(id)
			}
		})
		d.list(w, "active", func(id string, _ bool) {
			if a := s.Questions.active.get(id); a != nil {
				appendActive(w, a)
			}
		})
		d.list(w, "settled", func(id string, _ bool) {
			if e := s.Questions.settled.get(id); e != nil && s.Questions.active.get(id) == nil {
				appendSettled(w, e)
			}
		})
		w.End()
	}
	if d.touched[0] || d.touched[1] {
		w.Name("inbox")
		s.Inbox.AppendView(w)
	}
	w.End()
}

func (d *Delta) list(w *value.Writer, name string, each func(string, bool)) {
	w.Name(name)
	w.BeginArray()
	d.asks.all(func(id string, moved *bool) bool { each(id, *moved); return true })
	w.EndArray()
}
