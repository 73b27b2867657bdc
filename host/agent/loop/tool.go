package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"meanwhile/host/agent"
	"meanwhile/host/tool"
	"meanwhile/shared/event/value"
)

// RunTool runs the tool a call names and says what the log and the model are
// told of it. Every call takes this way, also one that a tool makes on the
// model's behalf. What is not written for the model goes to log instead.
func RunTool(ctx context.Context, tools *tool.Registry, c tool.Call, log *slog.Logger) Outcome {
	if t, ok := tools.Get(c.Name); ok {
		if _, err := value.ParseString(c.Arguments); err != nil {
			return outcome(ctx, c, tool.Result{}, &tool.Error{Name: errorName, Code: "BAD_ARGUMENTS", Message: fmt.Sprintf(
				"the arguments are not one JSON document (%v): send an object of this schema: %s", err, t.Spec().Parameters)}, log)
		}
	}
	r, err := tools.Run(ctx, c)
	return outcome(ctx, c, r, err, log)
}

func outcome(ctx context.Context, c tool.Call, r tool.Result, err error, log *slog.Logger) Outcome {
	var told *tool.Error
	var panicked *tool.PanicError
	if errors.As(err, &panicked) {
		log.Error("tool panicked", "tool", c.Name, "call", c.CallID, "panic", panicked.Value, "stack", string(panicked.Stack))
	}
	out := Outcome{IsError: err != nil, Name: errorName}
	switch {
	case err == nil:
		out = Outcome{Text: r.Text, Meta: r.Meta}
	case errors.As(err, &told):
		out.Text, out.Code = told.Message, told.Code
		if told.Name != "" {
			out.Name = told.Name
		}
		out.Meta = r.Meta
	case errors.Is(context.Cause(ctx), agent.ErrCancelled):
		out.Code, out.Text = CodeToolAborted, "The turn was cancelled while this call ran."
	default:
		log.Warn("tool failed", "tool", c.Name, "call", c.CallID, "err", err)
		out.Text = err.Error()
	}
	if out.IsError && out.Code == "" {
		out.Code = CodeToolFailed
	}
	out.Text = clean(out.Text, ResultMax)
	if out.Meta != nil {
		v, err := value.Parse(out.Meta)
		if err != nil || len(out.Meta) > ResultMax {
			log.Warn("tool meta left out", "tool", c.Name, "call", c.CallID, "bytes", len(out.Meta), "err", err)
			out.Meta = nil
		} else {
			out.Meta = v.Bytes()
		}
	}
	return out
}
