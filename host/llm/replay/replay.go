package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"meanwhile/host/internal/id"
	"meanwhile/host/llm"
)

// Model is a scripted llm.Provider.
type Model struct{ script script }

// Name returns the script's name.
func (m *Model) Name() string { return m.script.Name }

// Stream plays the rule that fits the request.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		p := player{model: m, ctx: ctx, view: look(req), yield: yield}
		if err := p.play(); err != nil {
			yield(llm.Chunk{}, err)
		}
	}
}

// player plays one response. Its error is to be yielded; nil means that the
// sequence is over.
type player struct {
	model *Model
	ctx   context.Context
	view  *view
	yield func(llm.Chunk, error) bool
	calls int
	out   int64 // bytes of the response, for a usage of the right size
}

func (p *player) play() error {
	var steps []step
	for i := range p.model.script.Rules {
		if r := &p.model.script.Rules[i]; p.view.holds(&r.When) {
			steps = r.Do
			break
		}
	}
	if steps == nil {
		return p.fail(llm.KindRequest, fmt.Sprintf("no rule of the script fits: the last message is of role %s, tool %q, %d characters", p.view.last.Role, p.view.tool, len(p.view.text)))
	}
	reason := llm.FinishReason("")
	for _, s := range steps {
		if s.Error != "" {
			return p.fail(s.Error, "the script says so")
		}
		reason = s.Finish
		if more, err := p.step(s); err != nil || !more {
			return err
		}
	}
	if reason == "" {
		if reason = llm.FinishStop; p.calls > 0 {
			reason = llm.FinishToolCalls
		}
	}
	p.yield(llm.Chunk{Kind: llm.Finish, Reason: reason, Usage: p.usage()}, nil)
	return nil
}

// step plays one step; more is false when the consumer broke off.
func (p *player) step(s step) (more bool, err error) {
	if err := p.wait(s.WaitMs); err != nil {
		return false, err
	}
	switch {
	case s.Text != "":
		return p.say(llm.Text, s.Text, s.PaceMs)
	case s.Reasoning != "":
		return p.say(llm.Reasoning, s.Reasoning, s.PaceMs)
	case s.Call != "":
		return p.call(s)
	}
	return true, nil
}

func (p *player) say(kind llm.ChunkKind, text string, paceMs int) (bool, error) {
	text, err := p.view.fill(text)
	if err != nil {
		return false, p.fail(llm.KindRequest, err.Error())
	}
	pieces := []string{text}
	if paceMs > 0 {
		pieces = strings.SplitAfter(text, " ")
	}
	for i, piece := range pieces {
		if i > 0 {
			if err := p.wait(paceMs); err != nil {
				return false, err
			}
		}
		p.out += int64(len(piece))
		if !p.yield(llm.Chunk{Kind: kind, Text: piece}, nil) {
			return false, nil
		}
	}
	return true, nil
}

// call sends the name first and the arguments after it, as real models do.
func (p *player) call(s step) (bool, error) {
	arguments := s.Arguments
	if arguments == nil {
		arguments = map[string]any{}
	}
	filled, err := p.view.expand(arguments, p.view.fill)
	if err != nil {
		return false, p.fail(llm.KindRequest, err.Error())
	}
	b, err := json.Marshal(filled)
	if err != nil {
		return false, p.fail(llm.KindRequest, err.Error())
	}
	callID := s.ID
	if callID == "" {
		callID = id.New()
	}
	i := p.calls
	p.calls++
	p.out += int64(len(b))
	return p.yield(llm.Chunk{Kind: llm.ToolCallDelta, Index: i, CallID: callID, Name: s.Call}, nil) &&
		p.yield(llm.Chunk{Kind: llm.ToolCallDelta, Index: i, Arguments: string(b)}, nil), nil
}

func (p *player) wait(ms int) error {
	if ms > 0 {
		t := time.NewTimer(time.Duration(ms) * time.Millisecond)
		defer t.Stop()
		select {
		case <-t.C:
		case <-p.ctx.Done():
		}
	}
	if p.ctx.Err() != nil {
		e := p.fail(llm.KindAborted, "cancelled")
		e.Err = context.Cause(p.ctx)
		return e
	}
	return nil
}

func (p *player) fail(kind llm.Kind, message string) *llm.Error {
	return &llm.Error{Kind: kind, Provider: p.model.Name(), Message: message}
}

// usage guesses four bytes to a token, so that views have something to show.
func (p *player) usage() *llm.Usage {
	var in int64
	for _, m := range p.view.messages {
		for _, part := range m.Content {
			in += int64(len(part.Text) + len(part.Arguments))
		}
	}
	return &llm.Usage{InputTokens: in/4 + 1, OutputTokens: p.out/4 + 1}
}
