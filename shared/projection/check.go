package projection

import (
	"strconv"
	"unicode"
	"unicode/utf8"

	"meanwhile/shared/event/value"
)

// CheckAsk checks a batch that may go out: counts, lengths, distinct ids and
// labels, and the intent's rules. keyed is set for a call of the timed tool,
// which carries no intent: a plan review always blocks.
func CheckAsk(qs []Question, keyed bool) *Problem {
	if len(qs) == 0 {
		return &Problem{CodeEmptyQuestions, "questions", "send at least one question"}
	}
	if len(qs) > QuestionsMax {
		return tooMany("questions", QuestionsMax)
	}
	ids := make(map[string]bool, len(qs))
	for i, q := range qs {
		at := "questions[" + strconv.Itoa(i) + "]"
		if p := checkQuestion(q, at); p != nil {
			return p
		}
		if ids[q.ID] {
			return &Problem{CodeBadQuestions, at + ".id", "give each question of the call an id of its own; " + strconv.Quote(q.ID) + " stands twice"}
		}
		ids[q.ID] = true
		if p := checkIntent(q, at, len(qs), keyed); p != nil {
			return p
		}
	}
	var w value.Writer
	AppendQuestions(&w, qs)
	if w.Len() > BatchMax {
		return &Problem{CodeBadQuestions, "questions", "the batch is over " + strconv.Itoa(BatchMax) + " bytes: shorten it or ask in two calls"}
	}
	return nil
}

func checkQuestion(q Question, at string) *Problem {
	switch {
	case blank(q.ID):
		return &Problem{CodeBadQuestions, at + ".id", "send a short name, such as \"store\""}
	case blank(q.Question):
		return &Problem{CodeBadQuestions, at + ".question", "send the question's text"}
	}
	for _, f := range []struct {
		name string
		text *string
		max  int
	}{{"id", &q.ID, IDMax}, {"question", &q.Question, QuestionMax}, {"header", q.Header, HeaderMax}, {"detail", q.Detail, DetailMax}} {
		if p := tooLong(CodeBadQuestions, at+"."+f.name, f.text, f.max); p != nil {
			return p
		}
	}
	if len(q.Options) > OptionsMax {
		return tooMany(at+".options", OptionsMax)
	}
	labels := make(map[string]bool, len(q.Options))
	for j, o := range q.Options {
		oat := at + ".options[" + strconv.Itoa(j) + "]"
		if blank(o.Label) {
			return &Problem{CodeBadQuestions, oat + ".label", "send the option's text"}
		}
		if labels[o.Label] {
			return &Problem{CodeBadQuestions, oat + ".label", "give each option of a question a label of its own"}
		}
		labels[o.Label] = true
		if p := tooLong(CodeBadQuestions, oat+".label", &o.Label, LabelMax); p != nil {
			return p
		}
		if p := tooLong(CodeBadQuestions, oat+".description", o.Description, DescriptionMax); p != nil {
			return p
		}
	}
	return nil
}

func checkIntent(q Question, at string, n int, keyed bool) *Problem {
	if q.Intent == nil {
		return nil
	}
	bad := func(msg string) *Problem { return &Problem{CodeBadIntent, at + ".intent", msg} }
	switch {
	case keyed:
		return bad("a timed ask takes no intent: ask it blocking")
	case q.Intent.Kind != IntentPlanReview:
		return bad("the only intent is " + IntentPlanReview)
	case q.Detail == nil:
		return bad("a plan review needs the plan in detail")
	}
	for _, o := range q.Options {
		if o.Label == q.Intent.Approve {
			return nil
		}
	}
	return bad("approve must be the label of one of the question's options")
}

// PlanReview reports whether a checked batch is shown as a plan review: one
// single-select question with that intent and at most one option beside approve.
// Any other batch with the intent is shown as a plain question.
func PlanReview(qs []Question) bool {
	return len(qs) == 1 && qs[0].Intent != nil && qs[0].Intent.Kind == IntentPlanReview &&
		checkIntent(qs[0], "", 1, false) == nil && !qs[0].Multi() && len(qs[0].Options) <= 2
}

// CheckAnswer reads {"answers":[…]} and checks it against the questions: each
// named exactly once, each item within its question.
func CheckAnswer(qs []Question, answer value.Value) ([]Answer, *Problem) {
	list := answer.Get("answers")
	if list.Kind() != value.Array || len(answer.Members()) != 1 {
		return nil, &Problem{CodeBadAnswer, "answers", "send an object with the one member answers, an array with one item for each question"}
	}
	byID := make(map[string]int, len(qs))
	for i, q := range qs {
		byID[q.ID] = i
	}
	seen := make([]bool, len(qs))
	answers := make([]Answer, 0, len(qs))
	for i, item := range list.Items() {
		at := "answers[" + strconv.Itoa(i) + "]"
		a, p := answerOf(item, at)
		if p != nil {
			return nil, p
		}
		n, ok := byID[a.ID]
		if !ok {
			return nil, &Problem{CodeBadAnswer, at + ".id", "names no question of this ask"}
		}
		if seen[n] {
			return nil, &Problem{CodeBadAnswer, at + ".id", "this question is answered twice"}
		}
		seen[n] = true
		if p := checkItem(qs[n], a, at); p != nil {
			return nil, p
		}
		answers = append(answers, a)
	}
	for i, done := range seen {
		if !done {
			return nil, &Problem{CodeBadAnswer, "answers", "the question " + strconv.Quote(qs[i].ID) + " is not answered; send it with an empty selected to skip it"}
		}
	}
	var w value.Writer
	AppendAnswers(&w, answers)
	if w.Len() > BatchMax {
		return nil, &Problem{CodeBadAnswer, "answers", "the answer is over " + strconv.Itoa(BatchMax) + " bytes: shorten it"}
	}
	return answers, nil
}

func checkItem(q Question, a Answer, at string) *Problem {
	bad := func(field, msg string) *Problem { return &Problem{CodeBadAnswer, at + "." + field, msg} }
	offered := make(map[string]bool, len(q.Options))
	for _, o := range q.Options {
		offered[o.Label] = true
	}
	for _, s := range a.Selected {
		if !offered[s] {
			return bad("selected", "choose among the labels offered, each once")
		}
		offered[s] = false
	}
	if !q.Multi() && len(a.Selected) > 1 {
		return bad("selected", "choose one option")
	}
	if a.Custom == nil {
		return nil
	}
	if !q.Multi() && len(a.Selected) > 0 {
		return bad("custom", "choose an option or write your own words, not both")
	}
	if blank(*a.Custom) {
		return bad("custom", "write something, or leave it out to skip")
	}
	return tooLong(CodeBadAnswer, at+".custom", a.Custom, CustomMax)
}

func tooLong(code, field string, s *string, limit int) *Problem {
	if s == nil || len(*s) <= limit || utf8.RuneCountInString(*s) <= limit {
		return nil
	}
	return &Problem{code, field, "is over " + strconv.Itoa(limit) + " characters: shorten it"}
}

func tooMany(field string, limit int) *Problem {
	return &Problem{CodeBadQuestions, field, "send at most " + strconv.Itoa(limit)}
}

// blank reports whether s shows nothing: white space and zero-width characters.
func blank(s string) bool {
	for _, r := range s {
		zero := r >= 0x200b && r <= 0x200f || r == 0x2060 || r == 0xfeff
		if !unicode.IsSpace(r) && !zero {
			return false
		}
	}
	return true
}
