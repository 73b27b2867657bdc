package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"meanwhile/host/agent"
	"meanwhile/host/internal/id"
	"meanwhile/host/llm"
	"meanwhile/host/session"
	"meanwhile/host/tool"
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
)

// Codes of the results this package writes for a tool that gave none.
const (
	CodeToolFailed  = "TOOL_FAILED"
	CodeToolAborted = "TOOL_ABORTED"
)

// errTooLarge ends a turn whose model would not stop.
var errTooLarge = fmt.Errorf("REPLY_TOO_LARGE: the reply is over %d bytes", ReplyMax)

// fits reports whether a reply can be recorded: escapes make it grow.
func fits(m llm.Message) bool {
	return len(event.Assistant{Blocks: blocks(m)}.Draft().Data) <= recordMax
}

// ask sends the request of the open step. Its goroutine ends in one Replied.
func (d *Driver) ask(e AskModel) {
	specs := d.tools.Specs()
	r := llm.Request{Model: d.run.model.Name, System: d.run.model.System, MaxTokens: d.run.model.MaxTokens,
		Messages: d.run.history.messages(), Tools: make([]llm.ToolSpec, len(specs))}
	for i, s := range specs {
		r.Tools[i] = llm.ToolSpec(s)
	}
	if len(r.Messages) == 0 {
		d.send(note{in: Replied{End: EndFailed, Reason: Reason{Kind: event.TurnError, Message: "there is no message to reply to"}}})
		return
	}
	provider := d.run.model.Provider
	ctx, cancel := context.WithCancelCause(d.ctx)
	d.run.stopModel = cancel
	d.work.Go(func() { d.send(d.stream(ctx, provider, r, e.Turn, e.Step)) })
}

// stream reads one reply. A provider that panics is a reply that failed.
func (d *Driver) stream(ctx context.Context, p llm.Provider, r llm.Request, turn, step int64) (n note) {
	var acc llm.Accumulator
	fail := func(err error) note {
		partial := acc.Partial()
		cleanParts(partial.Content)
		if !fits(partial) {
			partial.Content = nil
		}
		return note{reply: partial, in: Replied{End: EndFailed, Text: readable(partial),
			Reason: Reason{Kind: event.TurnError, Message: err.Error()}}}
	}
	defer func() {
		if v := recover(); v != nil {
			d.slog.Error("model provider panicked", "provider", p.Name(), "panic", v, "stack", string(debug.Stack()))
			n = fail(fmt.Errorf("the adapter of %s failed inside", p.Name()))
		}
	}()
	size := 0
	for c, err := range p.Stream(ctx, r) {
		if size += len(c.Text) + len(c.Arguments); err == nil && size > ReplyMax {
			err = errTooLarge
		}
		if err == nil {
			err = acc.Add(c)
		}
		if err != nil {
			return fail(err)
		}
		if c.Kind == llm.Text {
			d.log.Preview(turn, step, c.Text)
		}
	}
	resp, err := acc.Response()
	if err != nil {
		return fail(err)
	}
	if resp.Reason == llm.FinishBlocked {
		return fail(errors.New("the provider refused to complete this reply"))
	}
	cleanParts(resp.Message.Content)
	if !fits(resp.Message) {
		return fail(errTooLarge)
	}
	in := Replied{Text: readable(resp.Message)}
	if resp.Reason == llm.FinishMaxTokens {
		in.End = EndLength
	}
	return note{in: in, reply: resp.Message, usage: resp.Usage}
}

// readable reports whether a message has text that a person could read.
func readable(m llm.Message) bool { return strings.TrimSpace(m.Text()) != "" }

// cleanParts makes every text fit for a JSON log.
func cleanParts(parts []llm.Part) {
	for i := range parts {
		p := &parts[i]
		for _, s := range []*string{&p.Text, &p.CallID, &p.Name, &p.Arguments} {
			*s = strings.ToValidUTF8(*s, "\uFFFD")
		}
	}
}

// runCall records a call and starts it. Its goroutine waits for the disk, runs
// the tool and ends in one Done.
func (d *Driver) runCall(c Call) error {
	turn, step := d.run.machine.At()
	commit, err := d.log.Update(func(*session.State) ([]event.Draft, error) {
		return []event.Draft{event.ToolCall{Turn: turn, Step: step, CallID: c.ID, Name: c.Name, Arguments: c.Arguments}.Draft()}, nil
	})
	if err != nil {
		return err
	}
	ctx := d.run.tools
	call := tool.Call{SessionID: d.log.ID(), CallID: c.ID, Name: c.Name, Arguments: c.Arguments, Turn: turn, Step: step}
	d.work.Go(func() {
		if err := commit.Wait(ctx); err != nil || ctx.Err() != nil {
			// Whether the call is on disk is not known here, but it did not run.
			d.send(note{in: Done{c.ID, Outcome{IsError: true, Name: errorName, Code: event.CodeNotStarted,
				Text: "Not run: the turn was cancelled before this call started."}}})
			return
		}
		result, err := d.runTool(ctx, call)
		d.send(note{in: Done{c.ID, d.outcome(ctx, call, result, err)}})
	})
	return nil
}

// runTool runs the tool a call names; its panic is its error.
func (d *Driver) runTool(ctx context.Context, c tool.Call) (tool.Result, error) {
	t, ok := d.tools.Get(c.Name)
	if ok {
		if _, err := value.ParseString(c.Arguments); err != nil {
			return tool.Result{}, &tool.Error{Name: errorName, Code: "BAD_ARGUMENTS", Message: fmt.Sprintf(
				"the arguments are not one JSON document (%v): send an object of this schema: %s", err, t.Spec().Parameters)}
		}
	}
	return d.tools.Run(ctx, c)
}

// outcome is what the log and the model are told of a run. What is not written
// for the model goes to the host's log instead.
func (d *Driver) outcome(ctx context.Context, c tool.Call, r tool.Result, err error) Outcome {
	var told *tool.Error
	var panicked *tool.PanicError
	if errors.As(err, &panicked) {
		d.slog.Error("tool panicked", "tool", c.Name, "call", c.CallID, "panic", panicked.Value, "stack", string(panicked.Stack))
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
		d.slog.Warn("tool failed", "tool", c.Name, "call", c.CallID, "err", err)
		out.Text = err.Error()
	}
	if out.IsError && out.Code == "" {
		out.Code = CodeToolFailed
	}
	out.Text = clean(out.Text, ResultMax)
	if out.Meta != nil {
		v, err := value.Parse(out.Meta)
		if err != nil || len(out.Meta) > ResultMax {
			d.slog.Warn("tool meta left out", "tool", c.Name, "call", c.CallID, "bytes", len(out.Meta), "err", err)
			out.Meta = nil
		} else {
			out.Meta = v.Bytes()
		}
	}
	return out
}

// clean makes a text fit for a JSON log and cuts it to max bytes, saying so.
func clean(s string, max int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= max {
		return s
	}
	cut := max
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + fmt.Sprintf("\n[%d more bytes were cut]", len(s)-cut)
}

func (d *Driver) recordResult(e RecordResult) error {
	turn, step := d.run.machine.At()
	r := event.ToolResult{Turn: turn, Step: step, MessageID: id.New(), CallID: e.Call.ID,
		IsError: e.Outcome.IsError, Text: e.Outcome.Text, Meta: e.Outcome.Meta}
	if r.IsError {
		r.ErrName, r.ErrCode = e.Outcome.Name, e.Outcome.Code
	}
	return d.record(r.Draft())
}
