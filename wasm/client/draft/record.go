package draft

import (
	"meanwhile/shared/deadline/countdown"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// The stored form.
const (
	Version = 1
	StubMax = 200 // characters of a question's text kept with a record
)

// Stub is what a record keeps of a question, enough to show an answer whose ask
// is gone.
type Stub struct{ ID, Header, Text string }

// Ended says why a card went while its text stayed. Answers is what was
// recorded instead, if that is known.
type Ended struct {
	Reason, Code, By, ByName string
	At                       int64 // wall
	Answers                  []projection.Answer
}

// Record is one stored item.
type Record struct {
	At                         int64 // wall, of the last change
	SessionID, CallID, EventID string
	Title                      string
	Draft                      Draft
	Wait                       countdown.Disposition
	Sent                       bool // a submit of it was under way
	Stubs                      []Stub
	Ended                      *Ended
}

// StubsOf cuts the questions down for a record.
func StubsOf(qs []projection.Question) []Stub {
	stubs := make([]Stub, len(qs))
	for i, q := range qs {
		stubs[i] = Stub{ID: q.ID, Text: Cut(q.Question, StubMax)}
		if q.Header != nil {
			stubs[i].Header = *q.Header
		}
	}
	return stubs
}

// Questions stands in for the questions of an ask that is gone: the stubs, with
// the chosen labels as options.
func (r *Record) Questions() []projection.Question {
	many := true
	qs := make([]projection.Question, len(r.Stubs))
	for i, s := range r.Stubs {
		qs[i] = projection.Question{ID: s.ID, Question: s.Text, MultiSelect: &many}
		if s.Header != "" {
			qs[i].Header = &s.Header
		}
		for _, l := range r.Draft.Answers[i].Selected {
			qs[i].Options = append(qs[i].Options, projection.Option{Label: l})
		}
	}
	return qs
}

// Encode writes the record.
func (r *Record) Encode() string {
	var w value.Writer
	w.Begin()
	w.IntField("v", Version)
	w.IntField("at", r.At)
	w.StrField("s", r.SessionID)
	w.OptField("c", r.CallID)
	w.OptField("e", r.EventID)
	w.OptField("title", r.Title)
	w.IntField("index", int64(r.Draft.Index))
	w.Name("answers")
	w.BeginArray()
	for _, it := range r.Draft.Answers {
		w.Begin()
		w.Name("selected")
		w.BeginArray()
		for _, l := range it.Selected {
			w.Str(l)
		}
		w.EndArray()
		w.StrField("custom", it.Custom)
		w.BoolField("skipped", it.Skipped)
		w.End()
	}
	w.EndArray()
	w.OptField("wait", string(r.Wait))
	if r.Sent {
		w.BoolField("sent", true)
	}
	w.Name("q")
	w.BeginArray()
	for _, s := range r.Stubs {
		w.Begin()
		w.StrField("id", s.ID)
		w.OptField("header", s.Header)
		w.StrField("text", s.Text)
		w.End()
	}
	w.EndArray()
	if r.Ended != nil {
		w.Name("ended")
		r.Ended.Append(&w)
	}
	w.End()
	return string(w.Bytes())
}

// Append writes the reason, in a record and in a view alike.
func (e *Ended) Append(w *value.Writer) {
	w.Begin()
	w.StrField("reason", e.Reason)
	w.OptField("code", e.Code)
	w.OptField("by", e.By)
	w.OptField("byName", e.ByName)
	w.IntField("at", e.At)
	if e.Answers != nil {
		w.Name("answers")
		projection.AppendAnswers(w, e.Answers)
	}
	w.End()
}

// Decode reads a stored item. ok is false for anything that this version did
// not write; local storage is not ours alone.
func Decode(text string) (r Record, ok bool) {
	v, err := value.ParseString(text)
	if n, _ := v.Get("v").Int(); err != nil || n != Version {
		return r, false
	}
	r.At, ok = v.Get("at").Int()
	r.SessionID, r.CallID, r.EventID = v.Get("s").Text(), v.Get("c").Text(), v.Get("e").Text()
	r.Title, r.Wait, r.Sent = v.Get("title").Text(), countdown.Disposition(v.Get("wait").Text()), v.Get("sent").True()
	index, isInt := v.Get("index").Int()
	answers, stubs := v.Get("answers").Items(), v.Get("q").Items()
	if !ok || !isInt || r.SessionID == "" || len(answers) == 0 || len(answers) != len(stubs) ||
		len(answers) > projection.QuestionsMax || index < 0 || int(index) >= len(answers) {
		return r, false
	}
	r.Draft.Index = int(index)
	for i, a := range answers {
		var it Item
		var isText bool
		if it.Custom, isText = a.Get("custom").Str(); !isText || a.Get("skipped").Kind() != value.Bool ||
			a.Get("selected").Kind() != value.Array {
			return r, false
		}
		it.Skipped = a.Get("skipped").True()
		for _, l := range a.Get("selected").Items() {
			label, isText := l.Str()
			if !isText {
				return r, false
			}
			it.Selected = append(it.Selected, label)
		}
		r.Draft.Answers = append(r.Draft.Answers, it)
		r.Stubs = append(r.Stubs, Stub{stubs[i].Get("id").Text(), stubs[i].Get("header").Text(), stubs[i].Get("text").Text()})
	}
	if e := v.Get("ended"); e.Kind() == value.Object {
		at, _ := e.Get("at").Int()
		r.Ended = &Ended{Reason: e.Get("reason").Text(), Code: e.Get("code").Text(), By: e.Get("by").Text(),
			ByName: e.Get("byName").Text(), At: at}
		r.Ended.Answers, _ = projection.AnswersOf(e.Get("answers"))
	}
	return r, true
}
