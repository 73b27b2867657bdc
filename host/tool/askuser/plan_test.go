package askuser

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/question"
	"meanwhile/host/tool"
	"meanwhile/shared/projection"
)

func TestPlan(t *testing.T) {
	words := "first the tests"
	for _, tc := range []struct {
		name   string
		answer projection.Answer
		want   string
	}{
		{"approved", projection.Answer{ID: "plan", Selected: []string{approve}}, `{"approved":true}`},
		{"changes", projection.Answer{ID: "plan", Custom: &words}, `{"approved":false,"changes":"first the tests"}`},
		{"label and words", projection.Answer{ID: "plan", Selected: []string{approve}, Custom: &words}, `{"approved":false,"changes":"first the tests"}`},
		{"skipped", projection.Answer{ID: "plan"}, `{"approved":false,"message":"The user did not approve and gave no words. Ask what should change before you go on."}`},
		{"another label", projection.Answer{ID: "plan", Selected: []string{"approve"}}, `{"approved":false,"message":"The user did not approve and gave no words. Ask what should change before you go on."}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fakeService{outcome: question.Outcome{Answers: []projection.Answer{tc.answer}}}
			got, err := NewPlan(f, nil).Run(t.Context(), tool.Call{CallID: "c1", Arguments: `{"plan":"# Steps\n1. go"}`})
			if err != nil || got.Text != tc.want {
				t.Errorf("result %s, %v\nwant   %s", got.Text, err, tc.want)
			}
			if diff := cmp.Diff([]string{"ask "}, f.calls); diff != "" {
				t.Errorf("calls: a plan blocks, unkeyed (-want +got):\n%s", diff)
			}
			if !projection.PlanReview(f.questions) {
				t.Errorf("asked %+v, want what is shown as a plan review", f.questions)
			}
			if p := projection.CheckAsk(f.questions, false); p != nil {
				t.Errorf("the batch is refused: %v", p)
			}
		})
	}
}

func TestPlanErrors(t *testing.T) {
	for _, tc := range []struct {
		name, arguments, code, contains string
		err                             error
	}{
		{name: "no object", arguments: `{`, code: "BAD_ARGUMENTS", contains: "one JSON object"},
		{name: "no plan", arguments: `{}`, code: "BAD_ARGUMENTS", contains: "plan: send the whole plan"},
		{name: "blank plan", arguments: `{"plan":" \n"}`, code: "BAD_ARGUMENTS", contains: "plan"},
		{name: "plan of another type", arguments: `{"plan":["go"]}`, code: "BAD_ARGUMENTS", contains: "plan"},
		{name: "refused without a word", arguments: `{"plan":"go"}`, code: question.CodeCancelled, contains: "neither an answer nor approval",
			err: &question.Error{Code: question.CodeCancelled, Message: question.ForModel(question.CodeCancelled)}},
	} {
		_, err := NewPlan(&fakeService{err: tc.err}, nil).Run(t.Context(), tool.Call{CallID: "c1", Arguments: tc.arguments})
		t.Log(tc.name)
		wantError(t, err, tc.code, tc.contains)
	}
}

func TestPlanSchema(t *testing.T) {
	spec := NewPlan(nil, nil).Spec()
	if !json.Valid(spec.Parameters) || spec.Name != "submit_plan" || strings.Contains(string(spec.Parameters), "timeout") {
		t.Errorf("spec %+v: a plan has no time limit", spec)
	}
}
