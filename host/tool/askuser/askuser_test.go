package askuser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"meanwhile/host/agent"
	"meanwhile/host/question"
	"meanwhile/host/tool"
	"meanwhile/shared/projection"
)

// fakeService notes what it was asked and answers as told.
type fakeService struct {
	calls     []string
	questions []projection.Question
	outcome   question.Outcome
	err       error
	withdrawn bool
}

func (f *fakeService) Ask(_ context.Context, r question.Request) (question.Answers, error) {
	f.calls, f.questions = append(f.calls, "ask "+r.CallID), r.Questions
	return f.outcome.Answers, f.err
}

func (f *fakeService) AskTimed(_ context.Context, r question.Request, callID string, timeout time.Duration) (question.Outcome, error) {
	f.calls, f.questions = append(f.calls, fmt.Sprintf("askTimed %s %v", callID, timeout)), r.Questions
	return f.outcome, f.err
}

func (f *fakeService) Withdraw(_ context.Context, _ *agent.Agent, callID string) (bool, error) {
	f.calls = append(f.calls, "withdraw "+callID)
	return f.withdrawn, f.err
}

const batch = `"questions":[{"id":"store","question":"Which store?","header":"Store","multi_select":true,` +
	`"options":[{"label":"SQLite (Recommended)","description":"One file."},{"label":"Postgres"}],"unknown":1}]`

func run(t *testing.T, f *fakeService, mode Mode, arguments string) (tool.Result, error) {
	t.Helper()
	return New(f, nil, Options{Mode: mode}).Run(t.Context(), tool.Call{CallID: "c1", Name: projection.ToolName, Arguments: arguments})
}

func wantError(t *testing.T, err error, code, contains string) {
	t.Helper()
	var e *tool.Error
	if !errors.As(err, &e) {
		t.Errorf("error = %v, want a tool error %s", err, code)
		return
	}
	if e.Name != question.ErrorName || e.Code != code || !strings.Contains(e.Message, contains) {
		t.Errorf("error = %+v, want %s with %q", e, code, contains)
	}
}

// What is asked of the service, by mode and timeout.
func TestRoute(t *testing.T) {
	const hint = "whole seconds from 1 to 2147483"
	for _, tc := range []struct {
		name, arguments string
		mode            Mode
		want            string // the service's call, or "" for an error
	}{
		{"legacy", `{` + batch + `}`, Legacy, "ask "},
		{"legacy, with a timeout it does not have", `{` + batch + `,"timeout":5}`, Legacy, "ask "},
		{"left out", `{` + batch + `}`, Timed, "askTimed c1 2m0s"},
		{"-1", `{` + batch + `,"timeout":-1}`, Timed, "ask c1"},
		{"1", `{` + batch + `,"timeout":1}`, Timed, "askTimed c1 1s"},
		{"the largest", `{` + batch + `,"timeout":2147483}`, Timed, "askTimed c1 " + (2147483 * time.Second).String()},
		{"0", `{` + batch + `,"timeout":0}`, Timed, ""},
		{"-2", `{` + batch + `,"timeout":-2}`, Timed, ""},
		{"one too large", `{` + batch + `,"timeout":2147484}`, Timed, ""},
		{"1e12", `{` + batch + `,"timeout":1e12}`, Timed, ""},
		{"a fraction", `{` + batch + `,"timeout":1.5}`, Timed, ""},
		{"a float", `{` + batch + `,"timeout":1.0}`, Timed, ""},
		{"a string", `{` + batch + `,"timeout":"120"}`, Timed, ""},
		{"null", `{` + batch + `,"timeout":null}`, Timed, ""},
		{"true", `{` + batch + `,"timeout":true}`, Timed, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fakeService{}
			_, err := run(t, f, tc.mode, tc.arguments)
			if tc.want == "" {
				wantError(t, err, projection.CodeBadTimeout, hint)
				if len(f.calls) != 0 {
					t.Errorf("calls %q, want none", f.calls)
				}
				return
			}
			if err != nil || len(f.calls) != 1 || f.calls[0] != tc.want {
				t.Errorf("calls %q, error %v, want %q", f.calls, err, tc.want)
			}
		})
	}
}

func TestConfiguredDefault(t *testing.T) {
	f := &fakeService{}
	tl := New(f, nil, Options{Mode: Timed, Default: 7 * time.Second})
	if _, err := tl.Run(t.Context(), tool.Call{CallID: "c1", Arguments: `{` + batch + `}`}); err != nil || f.calls[0] != "askTimed c1 7s" {
		t.Errorf("calls %q, error %v, want askTimed c1 7s", f.calls, err)
	}
}

func TestSpelling(t *testing.T) {
	text := func(s string) *string { return &s }
	yes := true
	want := []projection.Question{{ID: "store", Question: "Which store?", Header: text("Store"), MultiSelect: &yes,
		Options: []projection.Option{{Label: "SQLite (Recommended)", Description: text("One file.")}, {Label: "Postgres"}}}}
	for _, mode := range []Mode{Legacy, Timed} {
		f := &fakeService{}
		if _, err := run(t, f, mode, `{`+batch+`}`); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, f.questions); diff != "" {
			t.Errorf("mode %d: questions (-want +got):\n%s", mode, diff)
		}
	}
}

func TestResult(t *testing.T) {
	own := "my own\nwords"
	for _, tc := range []struct {
		name       string
		outcome    question.Outcome
		text, meta string
	}{
		{"answered", question.Outcome{Answers: question.Answers{{ID: "store", Selected: []string{"Postgres"}}}},
			`{"answers":[{"id":"store","selected":["Postgres"]}]}`, ``},
		{"in own words, by someone", question.Outcome{ByName: "phone", Answers: question.Answers{{ID: "store", Selected: []string{}, Custom: &own}}},
			`{"answers":[{"id":"store","selected":[],"custom":"my own\nwords"}]}`, `{"by":"phone"}`},
		{"skipped", question.Outcome{Answers: question.Answers{{ID: "store", Selected: []string{}}}},
			`{"answers":[{"id":"store","selected":[]}]}`, ``},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := run(t, &fakeService{outcome: tc.outcome}, Timed, `{`+batch+`}`)
			if err != nil || got.Text != tc.text || string(got.Meta) != tc.meta {
				t.Errorf("result = %s meta %s, error %v\nwant     %s meta %s", got.Text, got.Meta, err, tc.text, tc.meta)
			}
			blocked, err := run(t, &fakeService{outcome: tc.outcome}, Legacy, `{`+batch+`}`)
			if err != nil || blocked.Text != tc.text {
				t.Errorf("legacy result = %s, error %v, want %s", blocked.Text, err, tc.text)
			}
		})
	}
}

// The pending message must say each of these, or a model picks an answer itself,
// goes ahead, or asks for ever.
func TestPendingResult(t *testing.T) {
	got, err := run(t, &fakeService{outcome: question.Outcome{Status: question.Unanswered, CallID: "c1"}}, Timed, `{`+batch+`}`)
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Pending bool   `json:"pending"`
		CallID  string `json:"callId"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal([]byte(got.Text), &body); err != nil || !body.Pending || body.CallID != "c1" {
		t.Fatalf("result = %s, %v, want a pending object that names c1", got.Text, err)
	}
	for _, say := range []string{"Nobody has answered", "not a skipped question", "not permission", "does not depend on", "Do not ask this again", "user message", "callId"} {
		if !strings.Contains(body.Message, say) {
			t.Errorf("message does not say %q: %s", say, body.Message)
		}
	}
}

// Over a limit or misshapen: an error that names the field, and no ask.
func TestRefusedArguments(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	many := func(n int, one string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = fmt.Sprintf(one, i)
		}
		return strings.Join(items, ",")
	}
	for _, tc := range []struct{ name, arguments, code, field string }{
		{"not JSON", `questions`, projection.CodeBadQuestions, "JSON object"},
		{"no questions", `{}`, projection.CodeBadQuestions, "questions"},
		{"none", `{"questions":[]}`, projection.CodeEmptyQuestions, "questions"},
		{"17", `{"questions":[` + many(17, `{"id":"q%d","question":"?"}`) + `]}`, projection.CodeBadQuestions, "questions: "},
		{"no id", `{"questions":[{"question":"?"}]}`, projection.CodeBadQuestions, "questions[0].id"},
		{"same id twice", `{"questions":[{"id":"a","question":"?"},{"id":"a","question":"?"}]}`, projection.CodeBadQuestions, "questions[1].id"},
		{"long id", `{"questions":[{"id":"` + long(65) + `","question":"?"}]}`, projection.CodeBadQuestions, "questions[0].id"},
		{"long question", `{"questions":[{"id":"a","question":"` + long(10001) + `"}]}`, projection.CodeBadQuestions, "questions[0].question"},
		{"long header", `{"questions":[{"id":"a","question":"?","header":"` + long(81) + `"}]}`, projection.CodeBadQuestions, "questions[0].header"},
		{"wrong type", `{"questions":[{"id":"a","question":"?","multi_select":"yes"}]}`, projection.CodeBadQuestions, "questions[0].multi_select"},
		{"65 options", `{"questions":[{"id":"a","question":"?","options":[` + many(65, `{"label":"l%d"}`) + `]}]}`, projection.CodeBadQuestions, "questions[0].options"},
		{"same label twice", `{"questions":[{"id":"a","question":"?","options":[{"label":"x"},{"label":"x"}]}]}`, projection.CodeBadQuestions, "questions[0].options[1].label"},
		{"long label", `{"questions":[{"id":"a","question":"?","options":[{"label":"` + long(401) + `"}]}]}`, projection.CodeBadQuestions, "questions[0].options[0].label"},
		{"long description", `{"questions":[{"id":"a","question":"?","options":[{"label":"x","description":"` + long(401) + `"}]}]}`,
			projection.CodeBadQuestions, "questions[0].options[0].description"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, mode := range []Mode{Legacy, Timed} {
				f := &fakeService{}
				_, err := run(t, f, mode, tc.arguments)
				wantError(t, err, tc.code, tc.field)
				if len(f.calls) != 0 {
					t.Errorf("calls %q, want none", f.calls)
				}
			}
		})
	}
}

func TestServiceErrors(t *testing.T) {
	for _, code := range []string{question.CodeAborted, question.CodeCancelled, question.CodeDelegated, question.CodeNotLive, question.CodeNoProvider,
		question.CodeWithdrawn, question.CodeDuplicateWait, question.CodeValidatorFailed} {
		f := &fakeService{err: &question.Error{Code: code, Message: question.ForModel(code)}}
		_, err := run(t, f, Timed, `{`+batch+`}`)
		wantError(t, err, code, question.ForModel(code))
		_, err = run(t, f, Legacy, `{`+batch+`}`)
		wantError(t, err, code, question.ForModel(code))
	}
}

// A stopping host gives no result that could be recorded: the call stays until
// its agent stops.
func TestStoppingHostGivesNoResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := New(&fakeService{err: question.ErrClosed}, nil, Options{Mode: Timed}).Run(ctx, tool.Call{CallID: "c1", Arguments: `{` + batch + `}`})
			done <- err
		}()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("the call returned %v before its agent stopped", err)
		default:
		}
		stop(agent.ErrStopping)
		if err := <-done; !errors.Is(err, agent.ErrStopping) {
			t.Errorf("error = %v, want %v", err, agent.ErrStopping)
		}
	})
}

func TestWithdraw(t *testing.T) {
	withdraw := func(f *fakeService, arguments string) (tool.Result, error) {
		return NewWithdraw(f, nil).Run(t.Context(), tool.Call{CallID: "w1", Arguments: arguments})
	}
	f := &fakeService{withdrawn: true}
	if got, err := withdraw(f, `{"callId":"c1"}`); err != nil || got.Text != `{"withdrawn":true}` || f.calls[0] != "withdraw c1" {
		t.Errorf("result = %s, %v, calls %q, want it withdrawn", got.Text, err, f.calls)
	}
	f = &fakeService{}
	if got, err := withdraw(f, `{"callId":"c1"}`); err != nil || !strings.HasPrefix(got.Text, `{"withdrawn":false,"message":"`) {
		t.Errorf("result = %s, %v, want it kept and said why", got.Text, err)
	}
	for _, arguments := range []string{``, `[]`, `{}`, `{"callId":""}`, `{"callId":7}`} {
		f := &fakeService{}
		_, err := withdraw(f, arguments)
		wantError(t, err, CodeBadArguments, "")
		if len(f.calls) != 0 {
			t.Errorf("%s: calls %q, want none", arguments, f.calls)
		}
	}
	_, err := withdraw(&fakeService{err: &question.Error{Code: question.CodeNotLive, Message: "gone"}}, `{"callId":"c1"}`)
	wantError(t, err, question.CodeNotLive, "gone")
}

func TestSpecs(t *testing.T) {
	legacy, timed := New(nil, nil, Options{}).Spec(), New(nil, nil, Options{Mode: Timed}).Spec()
	withdraw := NewWithdraw(nil, nil).Spec()
	if _, err := tool.NewRegistry(New(nil, nil, Options{Mode: Timed}), NewWithdraw(nil, nil)); err != nil {
		t.Errorf("registry refuses the tools: %v", err)
	}
	for name, s := range map[string]tool.Spec{"legacy": legacy, "timed": timed, "withdraw": withdraw} {
		var schema any
		if err := json.Unmarshal(s.Parameters, &schema); err != nil {
			t.Errorf("%s: schema: %v", name, err)
		}
		if typ := listOfTypes(schema); typ != "" {
			t.Errorf("%s: %s is a list of types, which some models refuse", name, typ)
		}
	}
	has := func(s tool.Spec) bool {
		var schema struct {
			Properties map[string]struct{ Description string } `json:"properties"`
		}
		if err := json.Unmarshal(s.Parameters, &schema); err != nil {
			t.Fatal(err)
		}
		p, ok := schema.Properties["timeout"]
		if ok && !strings.Contains(p.Description, fmt.Sprint(projection.TimeoutMaxSeconds)) {
			t.Errorf("timeout's description does not name the limit %d", projection.TimeoutMaxSeconds)
		}
		return ok
	}
	if has(legacy) || !has(timed) {
		t.Error("the parameter timeout must stand in the timed schema alone: the log tells the modes apart by it")
	}
}

// listOfTypes finds a "type" that is not a string.
func listOfTypes(v any) string {
	switch v := v.(type) {
	case map[string]any:
		if typ, ok := v["type"]; ok {
			if _, plain := typ.(string); !plain {
				return fmt.Sprint(typ)
			}
		}
		for _, m := range v {
			if found := listOfTypes(m); found != "" {
				return found
			}
		}
	case []any:
		for _, m := range v {
			if found := listOfTypes(m); found != "" {
				return found
			}
		}
	}
	return ""
}

func TestParseMode(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want Mode
		bad  bool
	}{{"", Legacy, false}, {"legacy", Legacy, false}, {"timed", Timed, false}, {"Timed", Legacy, true}, {"on", Legacy, true}} {
		if got, err := ParseMode(tc.in); got != tc.want || (err != nil) != tc.bad {
			t.Errorf("ParseMode(%q) = %v, %v, want %v and an error: %v", tc.in, got, err, tc.want, tc.bad)
		}
	}
}
