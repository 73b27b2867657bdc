package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"meanwhile/host/internal/id"
	"meanwhile/host/llm"
	"meanwhile/host/session"
	"meanwhile/host/tool"
	"meanwhile/shared/event"
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
		d.send(note{in: Done{c.ID, RunTool(ctx, d.tools, call, d.slog)}})
	})
	return nil
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
