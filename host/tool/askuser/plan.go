package askuser

import (
	"context"
	"encoding/json"
	"strings"

	"meanwhile/host/agent"
	"meanwhile/host/question"
	"meanwhile/host/tool"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// PlanName is the tool by which an agent has its plan approved.
const PlanName = "submit_plan"

// approve is the one label that means yes.
const approve = "Approve"

const planDescription = "Show the user a plan and wait for the decision. Use it before work that is hard to undo or large. " +
	"The call waits until the user has decided: it has no time limit. Only \"approved\": true is approval; with false the user wants " +
	"the changes given, so revise the plan and submit it again. An error means that nobody approved anything."

const planSchema = `{"type":"object","properties":{"plan":{"type":"string",` +
	`"description":"The whole plan, in markdown: what will be done, in which order, and what could go wrong. At most 60000 characters."}},` +
	`"required":["plan"]}`

// Plan is submit_plan for one agent. It always blocks, in either mode: silence
// must never be taken for approval.
type Plan struct {
	asker Asker
	agent *agent.Agent
}

// NewPlan makes the tool for one agent.
func NewPlan(asker Asker, a *agent.Agent) *Plan { return &Plan{asker, a} }

// Spec is what the model is told.
func (t *Plan) Spec() tool.Spec {
	return tool.Spec{Name: PlanName, Description: planDescription, Parameters: json.RawMessage(planSchema)}
}

// Run shows the plan and waits.
func (t *Plan) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	v, err := value.ParseString(c.Arguments)
	if err != nil {
		return badArguments("", "send the arguments as one JSON object: "+err.Error())
	}
	plan, ok := v.Get("plan").Str()
	if !ok || strings.TrimSpace(plan) == "" {
		return badArguments("plan", "send the whole plan, as a string")
	}
	header := "Plan"
	answers, err := t.asker.Ask(ctx, question.Request{Agent: t.agent, Questions: []projection.Question{{
		ID: "plan", Header: &header, Question: "Shall this plan be carried out?", Detail: &plan,
		Options: []projection.Option{{Label: approve}},
		Intent:  &projection.Intent{Kind: projection.IntentPlanReview, Approve: approve},
	}}})
	if err != nil {
		return tool.Result{}, toolError(ctx, err)
	}
	return tool.Result{Text: planText(answers)}, nil
}

// planText is approval only when the label was chosen and nothing was added.
func planText(answers []projection.Answer) string {
	var w value.Writer
	w.Begin()
	if len(answers) == 1 && len(answers[0].Selected) == 1 && answers[0].Selected[0] == approve && answers[0].Custom == nil {
		w.BoolField("approved", true)
		w.End()
		return string(w.Bytes())
	}
	w.BoolField("approved", false)
	if len(answers) == 1 && answers[0].Custom != nil {
		w.StrField("changes", *answers[0].Custom)
	} else {
		w.StrField("message", "The user did not approve and gave no words. Ask what should change before you go on.")
	}
	w.End()
	return string(w.Bytes())
}
