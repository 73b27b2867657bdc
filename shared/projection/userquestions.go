package projection

import (
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
)

// State of an active ask.
type State string

// An ask is Open from its call to its result, then Continued while a late
// answer may still come.
const (
	Open      State = "open"
	Continued State = "continued"
)

// Active is one ask that can still be answered.
type Active struct {
	CallID    string
	Questions []Question
	State     State
}

// Settled is one ask with its recorded answers; none when the recorded reply
// could not be read.
type Settled struct {
	CallID  string
	Answers []Answer
}

// UserQuestions is the fold of asks. The zero value is not ready: see NewUserQuestions.
type UserQuestions struct {
	inherited   int64
	timed       bool
	active      ordered[Active]
	settled     ordered[Settled]
	withdrawing ordered[string] // by the withdrawing call's id: the ask it names
}

// NewUserQuestions is the fold of an empty log.
func NewUserQuestions(h event.Header) *UserQuestions {
	return &UserQuestions{inherited: h.InheritedEventCount}
}

// Timed reports whether the calls that follow are of the timed tool.
func (q *UserQuestions) Timed() bool { return q.timed }

// Active returns an ask that is open or continued. The pointer is good until
// the next Apply.
func (q *UserQuestions) Active(callID string) (*Active, bool) {
	a := q.active.get(callID)
	return a, a != nil
}

// Settled returns the recorded answers of an ask.
func (q *UserQuestions) Settled(callID string) ([]Answer, bool) {
	s := q.settled.get(callID)
	if s == nil {
		return nil, false
	}
	return s.Answers, true
}

// ActiveLen is the number of active asks.
func (q *UserQuestions) ActiveLen() int { return q.active.len() }

// AllActive yields the active asks in ask order.
func (q *UserQuestions) AllActive(yield func(*Active) bool) {
	q.active.all(func(_ string, a *Active) bool { return yield(a) })
}

// AllSettled yields the settled asks in settlement order.
func (q *UserQuestions) AllSettled(yield func(*Settled) bool) {
	q.settled.all(func(_ string, s *Settled) bool { return yield(s) })
}

// Withdrawing reports whether a withdrawal of this ask has begun and has no
// result yet.
func (q *UserQuestions) Withdrawing(callID string) bool {
	found := false
	q.withdrawing.all(func(_ string, target *string) bool { found = *target == callID; return !found })
	return found
}

// Apply folds one event and reports the id of the ask whose entry it changed,
// or "". It never fails: what it cannot read is not a question event.
func (q *UserQuestions) Apply(e event.Event) (changed string) {
	if e.Seq < q.inherited {
		return ""
	}
	switch e.Type {
	case event.TypeRequestHeader, event.TypeToolCall, event.TypeToolResult, event.TypePTCDispatch, event.TypeUserMessage:
	default:
		return ""
	}
	data, err := value.Parse(e.Data)
	if err != nil {
		return ""
	}
	switch e.Type {
	case event.TypeRequestHeader:
		q.timed = timedHeader(data)
	case event.TypeToolCall:
		return q.call(data)
	case event.TypeToolResult:
		return q.result(data)
	case event.TypePTCDispatch:
		return q.subCall(data)
	case event.TypeUserMessage:
		return q.reply(data)
	}
	return ""
}

func timedHeader(data value.Value) bool {
	tools := data.Get("header").Get("tools")
	for _, t := range tools.Items() {
		if t.Get("name").Text() == ToolName &&
			t.Get("parameters").Get("properties").Get("timeout").Kind() != value.Missing {
			return true
		}
	}
	return false
}

func (q *UserQuestions) call(data value.Value) string {
	id, args := data.Get("callId").Text(), data.Get("arguments").Text()
	if id == "" {
		return ""
	}
	switch data.Get("name").Text() {
	case ToolName:
		if !q.timed {
			return ""
		}
		ask, p := ParseAsk(args)
		if p != nil {
			return ""
		}
		q.active.put(id, Active{id, ask.Questions, Open})
		return id
	case WithdrawName:
		v, err := value.ParseString(args)
		if target := v.Get("callId").Text(); err == nil && target != "" {
			q.withdrawing.put(id, target)
		}
	}
	return ""
}

func (q *UserQuestions) result(data value.Value) string {
	msg, code := data.Get("message"), data.Get("error").Get("code").Text()
	id := msg.Get("toolCallId").Text()
	failed := msg.Get("isError").True() || data.Get("error").Kind() == value.Object
	body := bodyOf(msg.Get("content"))

	if target := q.withdrawing.get(id); target != nil {
		t := *target
		q.withdrawing.drop(id)
		a := q.active.get(t)
		if failed || !body.Get("withdrawn").True() || a == nil || a.State != Continued {
			return ""
		}
		q.active.drop(t)
		return t
	}
	a := q.active.get(id)
	if a == nil {
		return ""
	}
	if body.Get("pending").True() || code == event.CodeOutcomeUnknown {
		a.State = Continued
		return id
	}
	q.active.drop(id)
	if answers, ok := AnswersOf(body.Get("answers")); ok && !failed {
		q.settled.put(id, Settled{id, answers})
	}
	return id
}

// subCall takes in an ask that a program made. Only run_code is in the model's
// header, so timed is not asked.
func (q *UserQuestions) subCall(data value.Value) string {
	id := data.Get("subCallId").Text()
	if id == "" || data.Get("name").Text() != ToolName || data.Get("isError").True() ||
		!bodyOf(data.Get("content")).Get("pending").True() || data.Get("arguments").Kind() != value.Object {
		return ""
	}
	ask, p := ParseAsk(string(data.Get("arguments").Bytes()))
	if p != nil {
		return ""
	}
	q.active.put(id, Active{id, ask.Questions, Continued})
	return id
}

func (q *UserQuestions) reply(data value.Value) string {
	src := data.Get("source")
	id := src.Get("callId").Text()
	if src.Get("kind").Text() != event.SourceReply || !q.active.drop(id) {
		return ""
	}
	answers, _ := AnswersOf(bodyOf(data.Get("content")).Get("answers"))
	q.settled.put(id, Settled{id, answers})
	return id
}

// bodyOf is the JSON object in a content's first text block, or Missing.
func bodyOf(content value.Value) value.Value {
	text, ok := event.FirstText(content)
	if !ok {
		return value.Value{}
	}
	v, err := value.ParseString(text)
	if err != nil || v.Kind() != value.Object {
		return value.Value{}
	}
	return v
}

// appendActive writes one active entry as the view and every wire form show it.
func appendActive(w *value.Writer, a *Active) {
	w.Begin()
	w.StrField("callId", a.CallID)
	w.Name("questions")
	AppendQuestions(w, a.Questions)
	w.StrField("state", string(a.State))
	w.End()
}

func appendSettled(w *value.Writer, s *Settled) {
	w.Begin()
	w.StrField("callId", s.CallID)
	w.Name("answers")
	AppendAnswers(w, s.Answers)
	w.End()
}

// AppendView writes {"active":[…],"settled":[…]}.
func (q *UserQuestions) AppendView(w *value.Writer) {
	w.Begin()
	q.appendLists(w)
	w.End()
}

func (q *UserQuestions) appendLists(w *value.Writer) {
	w.Name("active")
	w.BeginArray()
	q.AllActive(func(a *Active) bool { appendActive(w, a); return true })
	w.EndArray()
	w.Name("settled")
	w.BeginArray()
	q.AllSettled(func(s *Settled) bool { appendSettled(w, s); return true })
	w.EndArray()
}
