package mcpserver_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"meanwhile/host/internal/hosttest"
)

// formed is a form that the agent's client was given.
type formed struct {
	params *mcp.ElicitParams
	gone   <-chan struct{}
	answer chan *mcp.ElicitResult
}

// withForms connects an agent whose client shows forms, with or without a token
// that lets them answer.
func withForms(t *testing.T, h *hosttest.Host, token string) (*agent, <-chan formed) {
	forms := make(chan formed, 10)
	me := stdio(t, h.Config().Data, options{protocol: "2025-11-25", env: []string{"MEANWHILE_ANSWER_TOKEN=" + token}, client: &mcp.ClientOptions{
		ElicitationHandler: func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			f := formed{r.Params, ctx.Done(), make(chan *mcp.ElicitResult, 1)}
			forms <- f
			select {
			case a := <-f.answer:
				return a, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}}})
	return me, forms
}

func accept(content map[string]any) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: content}
}

func TestForm(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	token, _ := h.Token("terminal", "answer")
	desk := person(h)
	me, forms := withForms(t, h, token)
	asked := me.begin("ask_user_question", store(nil))
	card := desk.Next()
	f := <-forms
	raw, err := json.Marshal(f.params.RequestedSchema)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, f.params.Message, "Which store?")
	contains(t, string(raw), `"enum":["SQLite","Postgres, hosted"]`)
	if strings.Contains(string(raw), "default") {
		t.Errorf("the form presets an answer: %s", raw)
	}
	// Neither chosen nor skipped: the form comes again.
	f.answer <- accept(map[string]any{"q1_own_words": " "})
	f = <-forms
	contains(t, f.params.Message, "or skip it")
	f.answer <- accept(map[string]any{"q1": "Postgres, hosted"})
	if s := <-asked; s.Status != "answered" || s.Answers[0].Selected[0] != "Postgres, hosted" {
		t.Errorf("ask: %+v", s)
	}
	<-card.Gone
	if n := desk.Notice("remote/settled"); !strings.Contains(string(n.Params), `"byName":"terminal"`) {
		t.Errorf("the other client was told %s", n.Params)
	}
}

func TestFormLosesTheRace(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	token, _ := h.Token("terminal", "answer")
	desk := person(h)
	me, forms := withForms(t, h, token)
	asked := me.begin("ask_user_question", store(nil))
	f := <-forms
	desk.Next().Answer(postgres)
	<-f.gone
	if s := <-asked; s.Status != "answered" {
		t.Errorf("ask: %+v", s)
	}
}

// A form that is declined is no answer, and takes no other client's card.
func TestFormDismissed(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	token, _ := h.Token("terminal", "answer")
	desk := person(h)
	me, forms := withForms(t, h, token)
	asked := me.begin("ask_user_question", store(nil))
	f := <-forms
	f.answer <- &mcp.ElicitResult{Action: "decline"}
	card := desk.Next()
	// The host has taken the form's word once the next question comes to it.
	second := me.begin("ask_user_question", args{"questions": []args{{"id": "n", "question": "Name?"}}})
	f = <-forms
	select {
	case <-card.Gone:
		t.Error("the question went with the form")
	default:
	}
	f.answer <- accept(map[string]any{"q1_skip": true})
	if s := <-second; s.Status != "answered" || len(s.Answers[0].Selected) != 0 || s.Answers[0].Custom != "" {
		t.Errorf("skipped: %+v", s)
	}
	card.Answer(postgres)
	if s := <-asked; s.Status != "answered" {
		t.Errorf("ask: %+v", s)
	}
}

func TestFormAnsweredLate(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	token, _ := h.Token("terminal", "answer")
	me, forms := withForms(t, h, token)
	asked := me.begin("ask_user_question", store(args{"timeout": 1}))
	f := <-forms
	s := <-asked
	if s.Status != "pending" || *s.RemainingMs != 0 {
		t.Fatalf("ask: %+v", s)
	}
	select {
	case <-f.gone:
		t.Fatal("the form went with the window")
	default:
	}
	f.answer <- accept(map[string]any{"q1_own_words": "neither"})
	if s := me.call("await_answer", args{"callId": s.CallID}); s.Status != "answered" || s.Answers[0].Custom != "neither" {
		t.Errorf("await: %+v", s)
	}
}

// Declaring elicitation alone gives nothing, nor does a token that asks.
func TestNoFormWithoutAToken(t *testing.T) {
	h := hosttest.Start(t, hosttest.Options{})
	desk := person(h)
	ask, _ := h.Token("agent", "ask")
	for _, token := range []string{"", "mwt_nonsense", ask} {
		me, forms := withForms(t, h, token)
		asked := me.begin("ask_user_question", args{"questions": []args{{"id": "store", "question": "Which store, " + token + "?", "options": []args{{"label": "Postgres, hosted"}}}}})
		desk.Next().Answer(postgres)
		if s := <-asked; s.Status != "answered" {
			t.Errorf("ask: %+v", s)
		}
		select {
		case f := <-forms:
			t.Errorf("a form was shown with token %q: %s", token, f.params.Message)
		default:
		}
	}
}
