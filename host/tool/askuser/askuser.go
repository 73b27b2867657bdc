package askuser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"meanwhile/host/agent"
	"meanwhile/host/question"
	"meanwhile/host/tool"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// DefaultTimeout is the window of a timed ask whose timeout was left out, where
// the settings say nothing.
const DefaultTimeout = 120 * time.Second

// Mode chooses the schema.
type Mode uint8

// Legacy blocks and is the default; Timed has the timeout parameter.
const (
	Legacy Mode = iota
	Timed
)

// ParseMode reads the setting "legacy" or "timed".
func ParseMode(s string) (Mode, error) {
	switch s {
	case "legacy", "":
		return Legacy, nil
	case "timed":
		return Timed, nil
	}
	return Legacy, fmt.Errorf("mode %q: must be \"legacy\" or \"timed\"", s)
}

// Asker is what the ask tool needs of the question service.
type Asker interface {
	Ask(ctx context.Context, r question.Request) (question.Answers, error)
	AskTimed(ctx context.Context, r question.Request, callID string, timeout time.Duration) (question.Outcome, error)
}

// Options of the ask tool.
type Options struct {
	Mode    Mode
	Default time.Duration // timeout left out; 0: DefaultTimeout
}

// Tool is ask_user_question for one agent.
type Tool struct {
	asker Asker
	agent *agent.Agent
	opt   Options
}

// New makes the tool for one agent.
func New(asker Asker, a *agent.Agent, opt Options) *Tool {
	if opt.Default == 0 {
		opt.Default = DefaultTimeout
	}
	return &Tool{asker, a, opt}
}

// Spec is what the model is told.
func (t *Tool) Spec() tool.Spec {
	s := tool.Spec{Name: projection.ToolName, Description: legacyDescription, Parameters: json.RawMessage(legacySchema)}
	if t.opt.Mode == Timed {
		s.Description, s.Parameters = timedDescription, json.RawMessage(timedSchema)
	}
	return s
}

// Run asks.
func (t *Tool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if t.opt.Mode == Legacy {
		qs, p := projection.QuestionsOf(c.Arguments)
		if p == nil {
			p = projection.CheckAsk(qs, true)
		}
		if p != nil {
			return tool.Result{}, problemError(p)
		}
		return t.block(ctx, question.Request{Agent: t.agent, Questions: qs})
	}
	ask, p := projection.ParseAsk(c.Arguments)
	if p != nil {
		return tool.Result{}, problemError(p)
	}
	r := question.Request{Agent: t.agent, Questions: ask.Questions}
	timeout := t.opt.Default
	if ask.Timeout != nil {
		if *ask.Timeout == projection.Blocks {
			r.CallID = c.CallID
			return t.block(ctx, r)
		}
		timeout = time.Duration(*ask.Timeout) * time.Second
	}
	o, err := t.asker.AskTimed(ctx, r, c.CallID, timeout)
	if err != nil {
		return tool.Result{}, toolError(ctx, err)
	}
	if o.Status == question.Unanswered {
		return tool.Result{Text: PendingText(c.CallID)}, nil
	}
	return tool.Result{Text: AnswersText(o.Answers), Meta: metaOf(o.ByName)}, nil
}

func (t *Tool) block(ctx context.Context, r question.Request) (tool.Result, error) {
	answers, err := t.asker.Ask(ctx, r)
	if err != nil {
		return tool.Result{}, toolError(ctx, err)
	}
	return tool.Result{Text: AnswersText(answers)}, nil
}

// AnswersText is the result of an answered ask.
func AnswersText(answers []projection.Answer) string {
	var w value.Writer
	w.Begin()
	w.Name("answers")
	projection.AppendAnswers(&w, answers)
	w.End()
	return string(w.Bytes())
}

// pendingMessage keeps the model from the three mistakes that silence invites:
// choosing for the person, taking it for a yes, and asking again.
const pendingMessage = "Nobody has answered yet; the time you gave is over. This is not a skipped question and not " +
	"permission for anything: choose nothing on the user's behalf. Go on with work that does not depend on the " +
	"answer, and leave what does depend on it undone. Do not ask this again; the question stays open. When the user " +
	"answers, a user message that names this callId will bring the reply."

// PendingText is the result of an ask that nobody answered in time.
func PendingText(callID string) string {
	var w value.Writer
	w.Begin()
	w.BoolField("pending", true)
	w.StrField("callId", callID)
	w.StrField("message", pendingMessage)
	w.End()
	return string(w.Bytes())
}

func metaOf(byName string) json.RawMessage {
	if byName == "" {
		return nil
	}
	var w value.Writer
	w.Begin()
	w.StrField("by", byName)
	w.End()
	return w.Bytes()
}

// toolError gives the model a question error under its code. A stopping host has
// no result to give: the call stays as it is until its agent stops, too, and
// repair closes it at the next start.
func toolError(ctx context.Context, err error) error {
	if errors.Is(err, question.ErrClosed) {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	var q *question.Error
	if !errors.As(err, &q) {
		return err
	}
	return &tool.Error{Name: question.ErrorName, Code: q.Code, Message: sentence(q.Field, q.Message)}
}

func problemError(p *projection.Problem) error {
	return &tool.Error{Name: question.ErrorName, Code: p.Code, Message: sentence(p.Field, p.Message)}
}

// badArguments refuses arguments that are not of the tool's shape.
func badArguments(field, message string) (tool.Result, error) {
	return tool.Result{}, &tool.Error{Name: question.ErrorName, Code: CodeBadArguments, Message: sentence(field, message)}
}

func sentence(field, message string) string {
	if field == "" {
		return message
	}
	return field + ": " + message
}
