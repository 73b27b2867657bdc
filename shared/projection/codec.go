package projection

import (
	"errors"

	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
)

// StateVersion is the version of the encoded folds; a value of another version
// is refused and rebuilt from the log.
const StateVersion = 1

// ErrState is an encoded fold that is not exactly of this build's shape.
var ErrState = errors.New("projection state: not of this version or shape, rebuild it from the log")

// AppendState writes the folds whole: what a checkpoint keeps and what a
// follower starts from. The names userQuestions and inbox hold the views with
// what the folds need beside them.
func (s *Set) AppendState(w *value.Writer) {
	w.Begin()
	w.Name("userQuestions")
	s.Questions.AppendState(w)
	w.Name("inbox")
	s.Inbox.AppendView(w)
	w.Name("replies")
	w.BeginArray()
	s.Replies.byID.all(func(id string, r *Reply) bool {
		w.Begin()
		w.StrField("id", id)
		w.StrField("callId", r.CallID)
		w.StrField("fate", string(r.Fate))
		w.End()
		return true
	})
	w.EndArray()
	w.End()
}

// AppendState writes the fold of questions whole.
func (q *UserQuestions) AppendState(w *value.Writer) {
	w.Begin()
	w.IntField("version", StateVersion)
	w.IntField("inheritedEventCount", q.inherited)
	w.BoolField("timed", q.timed)
	q.appendLists(w)
	w.Name("withdrawing")
	w.BeginArray()
	q.withdrawing.all(func(id string, target *string) bool {
		w.Begin()
		w.StrField("callId", id)
		w.StrField("target", *target)
		w.End()
		return true
	})
	w.EndArray()
	w.End()
}

// ParseSet reads what AppendState wrote. Anything else is ErrState.
func ParseSet(h event.Header, v value.Value) (*Set, error) {
	s := NewSet(h)
	if !exact(v, "userQuestions", "inbox", "replies") {
		return nil, ErrState
	}
	var err error
	if s.Questions, err = ParseUserQuestions(h, v.Get("userQuestions")); err != nil {
		return nil, err
	}
	if s.Inbox, err = ParseInbox(h, v.Get("inbox")); err != nil {
		return nil, err
	}
	for _, item := range v.Get("replies").Items() {
		id, r := item.Get("id").Text(), Reply{item.Get("callId").Text(), Fate(item.Get("fate").Text())}
		known := r.Fate == Queued || r.Fate == Admitted || r.Fate == Discarded
		if !exact(item, "id", "callId", "fate") || id == "" || !known || s.Replies.byID.get(id) != nil {
			return nil, ErrState
		}
		s.Replies.byID.put(id, r)
	}
	return s, nil
}

// ParseUserQuestions reads what UserQuestions.AppendState wrote. Anything else
// is ErrState.
func ParseUserQuestions(h event.Header, v value.Value) (*UserQuestions, error) {
	q := NewUserQuestions(h)
	version, _ := v.Get("version").Int()
	inherited, ok := v.Get("inheritedEventCount").Int()
	if !exact(v, "version", "inheritedEventCount", "timed", "active", "settled", "withdrawing") || version != StateVersion ||
		!ok || inherited != q.inherited || v.Get("timed").Kind() != value.Bool {
		return nil, ErrState
	}
	q.timed = v.Get("timed").True()
	for _, item := range v.Get("active").Items() {
		id, state := item.Get("callId").Text(), State(item.Get("state").Text())
		qs, p := QuestionsOfWire(item.Get("questions"))
		if !exact(item, "callId", "questions", "state") || id == "" || p != nil || q.active.get(id) != nil ||
			state != Open && state != Continued {
			return nil, ErrState
		}
		q.active.put(id, Active{id, qs, state})
	}
	for _, item := range v.Get("settled").Items() {
		id := item.Get("callId").Text()
		answers, ok := AnswersOf(item.Get("answers"))
		if !exact(item, "callId", "answers") || id == "" || !ok || q.settled.get(id) != nil {
			return nil, ErrState
		}
		q.settled.put(id, Settled{id, answers})
	}
	for _, item := range v.Get("withdrawing").Items() {
		id, target := item.Get("callId").Text(), item.Get("target").Text()
		if !exact(item, "callId", "target") || id == "" || target == "" || q.withdrawing.get(id) != nil {
			return nil, ErrState
		}
		q.withdrawing.put(id, target)
	}
	return q, nil
}

// ParseInbox reads what Inbox.AppendView wrote. Anything else is ErrState.
func ParseInbox(h event.Header, v value.Value) (*Inbox, error) {
	b := NewInbox(h)
	if !exact(v, targets[:]...) {
		return nil, ErrState
	}
	for i, t := range targets {
		for _, item := range v.Get(t).Items() {
			m, err := event.MessageOf(item)
			if err != nil || b.ids[m.ID] {
				return nil, ErrState
			}
			b.ids[m.ID] = true
			b.queues[i] = append(b.queues[i], m)
		}
	}
	return b, nil
}

// exact reports whether v is an object with these members and no other, where
// a list is a list.
func exact(v value.Value, names ...string) bool {
	if v.Kind() != value.Object || len(v.Members()) != len(names) {
		return false
	}
	for _, n := range names {
		k := v.Get(n).Kind()
		isList := n == "active" || n == "settled" || n == "withdrawing" || n == "replies" || n == event.NextStep || n == event.NextTurn
		if k == value.Missing || isList && k != value.Array {
			return false
		}
	}
	return true
}
