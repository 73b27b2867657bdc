package projection

import (
	"strconv"

	"meanwhile/shared/event/value"
)

// Limits of an ask and an answer (characters are Unicode code points).
const (
	QuestionsMax   = 16
	OptionsMax     = 64
	IDMax          = 64
	LabelMax       = 400
	DescriptionMax = 400
	HeaderMax      = 80
	QuestionMax    = 10_000
	DetailMax      = 60_000
	CustomMax      = 60_000
	BatchMax       = 512 << 10 // bytes of the encoded batch
)

// TimeoutMaxSeconds is the longest window of a timed ask: a 32-bit count of
// milliseconds, the longest that a browser's timer takes.
const TimeoutMaxSeconds = 2147483

// Blocks is the timeout that blocks until an answer.
const Blocks = -1

// ToolName is the tool whose calls are asks; WithdrawName the one that takes one back.
const (
	ToolName     = "ask_user_question"
	WithdrawName = "withdraw_question"
)

// Question is one question of a batch in the wire's spelling. A nil pointer is
// an absent member: what was asked is shown and repeated exactly as asked.
type Question struct {
	ID          string
	Question    string
	Header      *string
	Options     []Option // nil: absent
	MultiSelect *bool
	Detail      *string // markdown, only from the host's own callers
	Intent      *Intent // only from the host's own callers
}

// Multi reports whether more than one option may be chosen.
func (q Question) Multi() bool { return q.MultiSelect != nil && *q.MultiSelect }

// Option is one answer offered.
type Option struct {
	Label       string
	Description *string
}

// Intent asks for a special form; the only kind is IntentPlanReview, whose
// Approve is the label that means yes.
type Intent struct{ Kind, Approve string }

// IntentPlanReview marks the review of a plan: it always blocks.
const IntentPlanReview = "plan-review"

// Answer is the answer to one question. No selection and no Custom is a skip.
type Answer struct {
	ID       string
	Selected []string
	Custom   *string
}

// Skipped reports whether the person chose not to answer.
func (a Answer) Skipped() bool { return len(a.Selected) == 0 && a.Custom == nil }

// The codes of a Problem.
const (
	CodeEmptyQuestions = "EMPTY_QUESTIONS"
	CodeBadQuestions   = "BAD_QUESTIONS"
	CodeBadIntent      = "BAD_INTENT"
	CodeBadTimeout     = "BAD_TIMEOUT"
	CodeBadAnswer      = "BAD_ANSWER"
)

// Problem is why an ask or an answer is refused: the field, and what would do.
type Problem struct{ Code, Field, Message string }

func (p *Problem) Error() string {
	if p.Field == "" {
		return p.Code + ": " + p.Message
	}
	return p.Code + ": " + p.Field + ": " + p.Message
}

// Ask is the arguments of one call of the timed tool. Timeout is nil when it
// was left out, Blocks, or 1…TimeoutMaxSeconds.
type Ask struct {
	Questions []Question
	Timeout   *int64
}

// ParseAsk reads and checks the arguments of the timed tool. A nil Problem
// means that the ask may go out.
func ParseAsk(arguments string) (Ask, *Problem) {
	v, p := argumentsOf(arguments)
	if p != nil {
		return Ask{}, p
	}
	qs, p := questionsOf(v, toolSpelling)
	if p == nil {
		p = CheckAsk(qs, true)
	}
	if p != nil {
		return Ask{}, p
	}
	ask := Ask{Questions: qs}
	if t := v.Get("timeout"); t.Kind() != value.Missing {
		n, ok := t.Int()
		if !ok || n != Blocks && (n < 1 || n > TimeoutMaxSeconds) {
			return Ask{}, &Problem{CodeBadTimeout, "timeout", "send whole seconds from 1 to " +
				strconv.Itoa(TimeoutMaxSeconds) + ", -1 to wait until answered, or leave it out"}
		}
		ask.Timeout = &n
	}
	return ask, nil
}

// QuestionsOf reads the questions in the arguments of a tool call: the tool's
// spelling becomes the wire's, unknown members are left out, and a member of a
// wrong type is a Problem that names it. It checks types only; see CheckAsk.
func QuestionsOf(arguments string) ([]Question, *Problem) {
	v, p := argumentsOf(arguments)
	if p != nil {
		return nil, p
	}
	return questionsOf(v, toolSpelling)
}

func argumentsOf(arguments string) (value.Value, *Problem) {
	v, err := value.ParseString(arguments)
	if err != nil {
		return v, &Problem{CodeBadQuestions, "", "send the arguments as one JSON object: " + err.Error()}
	}
	if v.Kind() != value.Object {
		return v, &Problem{CodeBadQuestions, "", "send the arguments as a JSON object with a member questions"}
	}
	return v, nil
}

// QuestionsOfWire reads an array of questions in the wire's spelling, with
// detail and intent; an unknown member is a Problem.
func QuestionsOfWire(questions value.Value) ([]Question, *Problem) {
	return questionsOf(value.OfObject(value.Member{Name: "questions", Value: questions}), wireSpelling)
}

type spelling struct {
	multi  string
	strict bool // unknown members are refused; detail and intent are read
}

var (
	toolSpelling = spelling{"multi_select", false}
	wireSpelling = spelling{"multiSelect", true}
)

func questionsOf(v value.Value, s spelling) ([]Question, *Problem) {
	list := v.Get("questions")
	if list.Kind() != value.Array {
		return nil, &Problem{CodeBadQuestions, "questions", "send an array of questions"}
	}
	qs := make([]Question, 0, min(len(list.Items()), QuestionsMax+1))
	for i, item := range list.Items() {
		if i > QuestionsMax {
			break // CheckAsk refuses the count; the rest need not be read
		}
		r := reader{v: item, at: "questions[" + strconv.Itoa(i) + "]"}
		q := Question{ID: r.str("id"), Question: r.str("question"), Header: r.opt("header"), MultiSelect: r.bool(s.multi)}
		if s.strict {
			q.Detail = r.opt("detail")
			q.Intent = r.intent()
			r.only("id", "question", "header", "options", s.multi, "detail", "intent")
		}
		if o := item.Get("options"); o.Kind() == value.Array {
			q.Options = make([]Option, 0, min(len(o.Items()), OptionsMax+1))
			for j, oi := range o.Items() {
				if j > OptionsMax {
					break
				}
				or := reader{v: oi, at: r.at + ".options[" + strconv.Itoa(j) + "]"}
				q.Options = append(q.Options, Option{or.str("label"), or.opt("description")})
				if s.strict {
					or.only("label", "description")
				}
				r.keep(or.p)
			}
		} else if o.Kind() != value.Missing {
			r.bad("options", "send an array of {label, description?}, or leave it out")
		}
		if r.p != nil {
			return nil, r.p
		}
		qs = append(qs, q)
	}
	return qs, nil
}

// reader reads the members of one object and keeps the first problem.
type reader struct {
	v  value.Value
	at string
	p  *Problem
}

func (r *reader) keep(p *Problem) {
	if r.p == nil {
		r.p = p
	}
}

func (r *reader) bad(field, msg string) { r.keep(&Problem{CodeBadQuestions, r.at + "." + field, msg}) }

func (r *reader) str(name string) string {
	s, ok := r.v.Get(name).Str()
	if !ok {
		r.bad(name, "send a string")
	}
	return s
}

func (r *reader) opt(name string) *string {
	if r.v.Get(name).Kind() == value.Missing {
		return nil
	}
	s := r.str(name)
	return &s
}

func (r *reader) bool(name string) *bool {
	m := r.v.Get(name)
	if m.Kind() == value.Missing {
		return nil
	}
	if m.Kind() != value.Bool {
		r.bad(name, "send true or false")
	}
	t := m.True()
	return &t
}

func (r *reader) intent() *Intent {
	m := r.v.Get("intent")
	if m.Kind() == value.Missing {
		return nil
	}
	in := reader{v: m, at: r.at + ".intent"}
	it := &Intent{Kind: in.str("kind"), Approve: in.str("approve")}
	in.only("kind", "approve")
	r.keep(in.p)
	return it
}

func (r *reader) only(known ...string) {
	if extra := r.v.Extra(known...); len(extra) > 0 {
		r.bad(extra[0].Name, "is not a known member: leave it out")
	}
}

// AppendQuestions writes a batch of questions in the wire's spelling.
func AppendQuestions(w *value.Writer, qs []Question) {
	w.BeginArray()
	for _, q := range qs {
		w.Begin()
		w.StrField("id", q.ID)
		w.StrField("question", q.Question)
		optional(w, "header", q.Header)
		if q.Options != nil {
			w.Name("options")
			w.BeginArray()
			for _, o := range q.Options {
				w.Begin()
				w.StrField("label", o.Label)
				optional(w, "description", o.Description)
				w.End()
			}
			w.EndArray()
		}
		if q.MultiSelect != nil {
			w.BoolField("multiSelect", *q.MultiSelect)
		}
		optional(w, "detail", q.Detail)
		if q.Intent != nil {
			w.Name("intent")
			w.Begin()
			w.StrField("kind", q.Intent.Kind)
			w.StrField("approve", q.Intent.Approve)
			w.End()
		}
		w.End()
	}
	w.EndArray()
}

// AnswersOf reads an answers batch: an array of {id, selected, custom?} and
// nothing else. ok is false for anything that is not one.
func AnswersOf(v value.Value) (answers []Answer, ok bool) {
	if v.Kind() != value.Array {
		return nil, false
	}
	answers = make([]Answer, 0, len(v.Items()))
	for _, item := range v.Items() {
		a, p := answerOf(item, "")
		if p != nil {
			return nil, false
		}
		answers = append(answers, a)
	}
	return answers, true
}

func answerOf(item value.Value, at string) (Answer, *Problem) {
	r := reader{v: item, at: at}
	a := Answer{ID: r.str("id"), Custom: r.opt("custom"), Selected: []string{}}
	sel := item.Get("selected")
	if sel.Kind() != value.Array {
		r.bad("selected", "send an array of the chosen labels; an empty one skips")
	}
	for _, l := range sel.Items() {
		s, ok := l.Str()
		if !ok {
			r.bad("selected", "send labels as strings")
		}
		a.Selected = append(a.Selected, s)
	}
	r.only("id", "selected", "custom")
	if r.p != nil {
		r.p.Code = CodeBadAnswer
	}
	return a, r.p
}

// AppendAnswers writes an answers batch.
func AppendAnswers(w *value.Writer, answers []Answer) {
	w.BeginArray()
	for _, a := range answers {
		w.Begin()
		w.StrField("id", a.ID)
		w.Name("selected")
		w.BeginArray()
		for _, s := range a.Selected {
			w.Str(s)
		}
		w.EndArray()
		optional(w, "custom", a.Custom)
		w.End()
	}
	w.EndArray()
}

func optional(w *value.Writer, name string, s *string) {
	if s != nil {
		w.StrField(name, *s)
	}
}
