package projection

import (
	"strconv"
	"strings"
	"testing"

	"meanwhile/shared/event/value"
)

func ptr[T any](v T) *T { return &v }

func TestCheckAsk(t *testing.T) {
	q := func(mod func(*Question)) []Question {
		one := Question{ID: "a", Question: "?", Options: []Option{{Label: "Yes"}, {Label: "No"}}}
		mod(&one)
		return []Question{one}
	}
	many := func(n int) (qs []Question) {
		for i := range n {
			qs = append(qs, Question{ID: strconv.Itoa(i), Question: "?"})
		}
		return qs
	}
	options := func(n int) (os []Option) {
		for i := range n {
			os = append(os, Option{Label: strconv.Itoa(i)})
		}
		return os
	}
	long := func(n int) string { return strings.Repeat("é", n) }
	plan := &Intent{IntentPlanReview, "Yes"}
	for _, tc := range []struct {
		name  string
		qs    []Question
		keyed bool
		code  string
		field string
	}{
		{"plain", q(func(*Question) {}), true, "", ""},
		{"none", nil, true, CodeEmptyQuestions, "questions"},
		{"16", many(16), true, "", ""},
		{"17", many(17), true, CodeBadQuestions, "questions"},
		{"64 options", q(func(q *Question) { q.Options = options(64) }), true, "", ""},
		{"65 options", q(func(q *Question) { q.Options = options(65) }), true, CodeBadQuestions, "questions[0].options"},
		{"id at its limit", q(func(q *Question) { q.ID = long(64) }), true, "", ""},
		{"id over", q(func(q *Question) { q.ID = long(65) }), true, CodeBadQuestions, "questions[0].id"},
		{"id blank", q(func(q *Question) { q.ID = " " }), true, CodeBadQuestions, "questions[0].id"},
		{"id twice", append(q(func(*Question) {}), q(func(*Question) {})...), true, CodeBadQuestions, "questions[1].id"},
		{"question blank", q(func(q *Question) { q.Question = "\n\u200b" }), true, CodeBadQuestions, "questions[0].question"},
		{"question at its limit", q(func(q *Question) { q.Question = long(10_000) }), true, "", ""},
		{"question over", q(func(q *Question) { q.Question = long(10_001) }), true, CodeBadQuestions, "questions[0].question"},
		{"header over", q(func(q *Question) { q.Header = ptr(long(81)) }), true, CodeBadQuestions, "questions[0].header"},
		{"label over", q(func(q *Question) { q.Options[1].Label = long(401) }), true, CodeBadQuestions, "questions[0].options[1].label"},
		{"label blank", q(func(q *Question) { q.Options[1].Label = "" }), true, CodeBadQuestions, "questions[0].options[1].label"},
		{"label twice", q(func(q *Question) { q.Options[1].Label = "Yes" }), true, CodeBadQuestions, "questions[0].options[1].label"},
		{"description over", q(func(q *Question) { q.Options[0].Description = ptr(long(401)) }), true, CodeBadQuestions, "questions[0].options[0].description"},
		{"detail over", q(func(q *Question) { q.Detail = ptr(long(60_001)) }), false, CodeBadQuestions, "questions[0].detail"},
		{"batch over", func() []Question {
			qs := many(16)
			for i := range qs {
				qs[i].Detail = ptr(long(20_000))
			}
			return qs
		}(), false, CodeBadQuestions, "questions"},
		{"plan", q(func(q *Question) { q.Detail, q.Intent = ptr("p"), plan }), false, "", ""},
		{"plan, timed", q(func(q *Question) { q.Detail, q.Intent = ptr("p"), plan }), true, CodeBadIntent, "questions[0].intent"},
		{"plan without detail", q(func(q *Question) { q.Intent = plan }), false, CodeBadIntent, "questions[0].intent"},
		{"plan whose approve is not offered", q(func(q *Question) { q.Detail, q.Intent = ptr("p"), &Intent{IntentPlanReview, "OK"} }), false, CodeBadIntent, "questions[0].intent"},
		{"unknown intent", q(func(q *Question) { q.Detail, q.Intent = ptr("p"), &Intent{"vote", "Yes"} }), false, CodeBadIntent, "questions[0].intent"},
	} {
		t.Run(tc.name, func(t *testing.T) { wantProblem(t, CheckAsk(tc.qs, tc.keyed), tc.code, tc.field) })
	}
}

func wantProblem(t *testing.T, got *Problem, code, field string) {
	t.Helper()
	switch {
	case code == "" && got != nil:
		t.Errorf("refused: %v", got)
	case code != "" && got == nil:
		t.Errorf("accepted, want %s on %s", code, field)
	case code != "" && (got.Code != code || got.Field != field || got.Message == ""):
		t.Errorf("got %v, want %s on %s", got, code, field)
	}
}

func TestCheckAnswer(t *testing.T) {
	qs := []Question{
		{ID: "one", Question: "?", Options: []Option{{Label: "A"}, {Label: "B, C"}}},
		{ID: "many", Question: "?", MultiSelect: ptr(true), Options: []Option{{Label: "A"}, {Label: "B"}}},
		{ID: "free", Question: "?"},
	}
	const rest = `,{"id":"many","selected":["A","B"],"custom":"both"},{"id":"free","selected":[],"custom":"x"}]}`
	for _, tc := range []struct{ name, doc, field string }{
		{"whole", `{"answers":[{"id":"one","selected":["B, C"]}` + rest, ""},
		{"another order, skips", `{"answers":[{"id":"free","selected":[]},{"id":"one","selected":[]},{"id":"many","selected":[]}]}`, ""},
		{"own words", `{"answers":[{"id":"one","selected":[],"custom":"neither"}` + rest, ""},
		{"not an object", `[]`, "answers"},
		{"another member", `{"answers":[],"by":"me"}`, "answers"},
		{"a question left out", `{"answers":[{"id":"one","selected":[]},{"id":"many","selected":[]}]}`, "answers"},
		{"twice", `{"answers":[{"id":"one","selected":[]},{"id":"one","selected":[]}` + rest, "answers[1].id"},
		{"unknown", `{"answers":[{"id":"two","selected":[]}` + rest, "answers[0].id"},
		{"two of a single choice", `{"answers":[{"id":"one","selected":["A","B, C"]}` + rest, "answers[0].selected"},
		{"the same twice", `{"answers":[{"id":"one","selected":["A","A"]}` + rest, "answers[0].selected"},
		{"not offered", `{"answers":[{"id":"one","selected":["a"]}` + rest, "answers[0].selected"},
		{"half of a label with a comma", `{"answers":[{"id":"one","selected":["B"]}` + rest, "answers[0].selected"},
		{"label and words", `{"answers":[{"id":"one","selected":["A"],"custom":"x"}` + rest, "answers[0].custom"},
		{"white space", `{"answers":[{"id":"one","selected":[],"custom":" \t"}` + rest, "answers[0].custom"},
		{"empty words", `{"answers":[{"id":"one","selected":[],"custom":""}` + rest, "answers[0].custom"},
		{"selected absent", `{"answers":[{"id":"one"}` + rest, "answers[0].selected"},
		{"selected is text", `{"answers":[{"id":"one","selected":"A"}` + rest, "answers[0].selected"},
		{"extra member", `{"answers":[{"id":"one","selected":[],"note":1}` + rest, "answers[0].note"},
		{"words at the limit", `{"answers":[{"id":"one","selected":[],"custom":"` + strings.Repeat("é", 60_000) + `"}` + rest, ""},
		{"words over", `{"answers":[{"id":"one","selected":[],"custom":"` + strings.Repeat("é", 60_001) + `"}` + rest, "answers[0].custom"},
		{"a label where none is offered", `{"answers":[{"id":"free","selected":["A"]},{"id":"one","selected":[]},{"id":"many","selected":[]}]}`, "answers[0].selected"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v, err := value.ParseString(tc.doc)
			if err != nil {
				t.Fatal(err)
			}
			code := CodeBadAnswer
			if tc.field == "" {
				code = ""
			}
			_, p := CheckAnswer(qs, v)
			wantProblem(t, p, code, tc.field)
		})
	}
}

func TestParseAskTimeout(t *testing.T) {
	const rest = `"questions":[{"id":"a","question":"?"}]}`
	for arg, ok := range map[string]bool{
		``: true, `"timeout":-1,`: true, `"timeout":1,`: true, `"timeout":2147483,`: true,
		`"timeout":0,`: false, `"timeout":-2,`: false, `"timeout":2147484,`: false, `"timeout":1.5,`: false,
		`"timeout":"120",`: false, `"timeout":1e12,`: false, `"timeout":null,`: false, `"timeout":[1],`: false,
	} {
		_, p := ParseAsk(`{` + arg + rest)
		if ok {
			wantProblem(t, p, "", "")
		} else {
			wantProblem(t, p, CodeBadTimeout, "timeout")
		}
	}
}

func TestPlanReviewForm(t *testing.T) {
	q := Question{ID: "p", Question: "?", Detail: ptr("plan"), Intent: &Intent{IntentPlanReview, "Go"}, Options: []Option{{Label: "Go"}}}
	with := func(mod func(*Question)) []Question { c := q; mod(&c); return []Question{c} }
	for name, tc := range map[string]struct {
		qs   []Question
		want bool
	}{
		"approve alone":     {with(func(*Question) {}), true},
		"one other":         {with(func(q *Question) { q.Options = []Option{{Label: "No"}, {Label: "Go"}} }), true},
		"two others":        {with(func(q *Question) { q.Options = []Option{{Label: "Go"}, {Label: "a"}, {Label: "b"}} }), false},
		"multi-select":      {with(func(q *Question) { q.MultiSelect = ptr(true) }), false},
		"no detail":         {with(func(q *Question) { q.Detail = nil }), false},
		"approve not there": {with(func(q *Question) { q.Options = []Option{{Label: "No"}} }), false},
		"no intent":         {with(func(q *Question) { q.Intent = nil }), false},
		"two questions":     {append(with(func(*Question) {}), Question{ID: "x", Question: "?"}), false},
	} {
		if got := PlanReview(tc.qs); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func FuzzParseAsk(f *testing.F) {
	f.Add(oneQuestion)
	f.Add(`{"timeout":5,"questions":[{"id":"a","question":"?","multi_select":true,"options":[{"label":"x","description":"y"}]}]}`)
	f.Fuzz(func(t *testing.T, args string) {
		ask, p := ParseAsk(args)
		if p != nil {
			return
		}
		var w value.Writer
		AppendQuestions(&w, ask.Questions)
		v, err := value.Parse(w.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		again, p := QuestionsOfWire(v)
		if p != nil || CheckAsk(again, true) != nil {
			t.Fatalf("%s is accepted but not what it is written as: %v", args, p)
		}
	})
}
