package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"meanwhile/host/internal/id"
	"meanwhile/shared/event"
)

// Texts that a model reads in place of a result that was lost.
const (
	textNotStarted = "The program stopped before this call was started, so it had no effect. Make the call again if it is still wanted."
	textUnknown    = "The program stopped while this call was running, and its result is lost. It may have run whole, in part or not at all. " +
		"Do not simply make it again: first look at what it would have changed, then decide."
	textAskLost = "The program stopped while this was waiting for the user. Nobody approved and nobody answered: " +
		"do not take it as consent or as a choice. Ask again if the answer is still needed."
	textTimedAskLost = "The program stopped while this question was waiting for the user. Nobody has answered yet, and this is neither a skip " +
		"nor permission. The question stays open: do not ask it again. A reply will come as a user message that names this callId."
)

// The tools whose lost result means that a person was asked.
const (
	toolAsk        = "ask_user_question"
	toolSubmitPlan = "submit_plan"
)

// errName stands beside the codes that repair writes.
const errName = "ToolError"

// RepairAll closes every log whose last turn never ended. It runs before the
// host listens; the list's records say which logs these are, so no other is
// read. Damaged sessions are left as they are.
func (s *Store) RepairAll(ctx context.Context) (repaired int, err error) {
	var open []string
	for _, r := range s.list.all() {
		if r.open {
			open = append(open, r.ID)
		}
	}
	var whole atomic.Int64
	err = eachOf(open, func(id string) error {
		l, err := s.Open(ctx, id)
		if err != nil {
			return fmt.Errorf("repair session %s: %w", id, err)
		}
		if l.damage == nil {
			whole.Add(1)
		}
		return nil
	})
	return int(whole.Load()), err
}

// atOnce is how many logs are read and repaired side by side at a start: while
// some wait for the disk, in one fsync together, others are read.
const atOnce = 16

// eachOf calls do for every id and returns the first error; after one, ids that
// are not begun are left.
func eachOf(ids []string, do func(id string) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range min(atOnce, len(ids)) {
		all.Go(func() {
			for failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(ids) {
					return
				}
				if err := do(ids[i]); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Repair closes the turn that nobody drives any more, as Open does for a log
// that it reads: a log still in memory, because somebody holds it, is not read
// again. Only who knows that no driver is left may call it.
func (l *Log) Repair() error { return l.repair() }

// errBalanced ends a repair that has nothing to do.
var errBalanced = errors.New("log is balanced")

func (l *Log) repair() error {
	c, err := l.Update(func(s *State) ([]event.Draft, error) {
		if s.Balanced() {
			return nil, errBalanced
		}
		return s.closing(func(callID string) bool {
			_, ok := s.Questions.Active(callID)
			return ok
		}), nil
	})
	if errors.Is(err, errBalanced) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	return c.Wait(context.Background())
}

// closing is what ends an open turn: a result for each call without one, the
// end of the step, the end of the turn.
func (b *Balance) closing(active func(callID string) bool) []event.Draft {
	if !b.TurnOpen {
		return nil
	}
	var drafts []event.Draft
	for _, c := range b.Calls {
		r := event.ToolResult{Turn: c.Turn, Step: c.Step, MessageID: id.New(), CallID: c.CallID, IsError: true,
			ErrName: errName, ErrCode: event.CodeNotStarted, Text: textNotStarted}
		if c.Started {
			r.ErrCode, r.Text = event.CodeOutcomeUnknown, unknownText(c, active)
		}
		drafts = append(drafts, r.Draft())
	}
	if b.StepOpen {
		drafts = append(drafts, event.Step{Turn: b.Turn, Step: b.Step}.EndDraft())
	}
	return append(drafts, event.TurnEnd{Turn: b.Turn, Kind: event.TurnInterrupted}.Draft())
}

func unknownText(c Call, active func(string) bool) string {
	switch {
	case c.Name == toolSubmitPlan:
		return textAskLost
	case c.Name == toolAsk && active(c.CallID):
		return textTimedAskLost
	case c.Name == toolAsk:
		return textAskLost
	}
	return textUnknown
}
