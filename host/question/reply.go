package question

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"meanwhile/host/agent"
	"meanwhile/host/agent/inbox"
	"meanwhile/host/session"
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

const (
	// flightsMax bounds the late answers on their way into logs at one time.
	flightsMax = 4096
	// recordGrace is how long a withdrawal waits for an ask that is recorded as
	// open but waits nowhere: its call is about to ask, or its result about to
	// be recorded.
	recordGrace = 5 * time.Second
)

// Errors that are not about the ask or the answer.
var (
	// ErrBusy: flightsMax answers are under way.
	ErrBusy = errors.New("too many answers are being recorded: send this one again")
	// ErrUnrecorded: a continued ask is removed by the log, so the withdraw_question
	// call must stand there before Withdraw is called.
	ErrUnrecorded = errors.New("record the " + projection.WithdrawName + " call before withdrawing a continued ask")
)

// AnswerResult says whether a late answer was accepted. MessageID and State are
// set when it was; State is the reply's fate as it stands now.
type AnswerResult struct {
	Accepted  bool
	MessageID string
	State     projection.Fate
}

// flight is one late answer under way, joined by all who send it again.
type flight struct {
	done   chan struct{}
	result AnswerResult // with err, set before done is closed
	err    error
}

// Answer takes a late answer, {"answers":[…]}, to a continued ask. It is accepted
// when the reply is on disk, queued for the agent. submissionID names one press
// of the button and becomes the message's id: sent again it is known, in flight
// it joins. by is the label of the token that answers. A caller that leaves does
// not stop its answer. Errors for the person are *Error.
func (s *Service) Answer(ctx context.Context, a *agent.Agent, callID string, answer json.RawMessage, submissionID, by string) (AnswerResult, error) {
	if err := s.live(a, ForPerson); err != nil {
		return AnswerResult{}, err
	}
	if submissionID == "" || len(submissionID) > inbox.IDMax {
		return AnswerResult{}, &Error{Code: CodeBadAnswer, Field: "submissionId",
			Message: fmt.Sprintf("must have 1 to %d bytes", inbox.IDMax)}
	}
	key := flightKey{a.ID(), submissionID}
	var (
		f     *flight
		first bool
		err   error
	)
	s.update(func(Instant) {
		f = s.led.flights[key]
		switch {
		case f != nil:
		case s.closed:
			err = ErrClosed
		case len(s.led.flights) >= flightsMax:
			err = ErrBusy
		default:
			f, first = &flight{done: make(chan struct{})}, true
			s.led.flights[key] = f
			s.flying.Add(1)
		}
	})
	if err != nil {
		return AnswerResult{}, err
	}
	if first {
		go func() {
			defer s.flying.Done()
			f.result, f.err = s.deliver(a, callID, answer, submissionID, by)
			s.update(func(Instant) {
				delete(s.led.flights, key)
				if f.err == nil && f.result.Accepted {
					s.led.total.Replied++
				}
			})
			close(f.done)
		}()
	}
	if err := ready(ctx, f.done); err != nil {
		return AnswerResult{}, err
	}
	return f.result, f.err
}

// ready waits for done, and prefers it over a context that has ended.
func ready(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		select {
		case <-done:
			return nil
		default:
			return context.Cause(ctx)
		}
	}
}

// errMoved: the log said something else when the reply was to be queued.
var errMoved = errors.New("the ask moved on")

// deliver looks, checks and queues, until what it looked at still holds in the
// very change that queues the reply.
func (s *Service) deliver(a *agent.Agent, callID string, answer json.RawMessage, submissionID, by string) (AnswerResult, error) {
	// A reply that is on its way to the disk is waited for even while the host
	// stops; only waiting for others is cut.
	disk := context.WithoutCancel(s.ctx)
	for {
		var (
			at   standing
			fate projection.Fate
			asks []projection.Question
		)
		seen, err := a.Log().Update(func(st *session.State) ([]event.Draft, error) {
			if at, fate = judge(st.Set, callID, submissionID); at == standsOpen {
				asks = asked(st.Set, callID)
			}
			return nil, nil
		})
		if err != nil {
			return AnswerResult{}, fmt.Errorf("answer to call %s: %w", callID, err)
		}
		if at != standsOpen {
			// Nothing is said of what is not on disk yet.
			if err := seen.Wait(disk); err != nil {
				return AnswerResult{}, err
			}
		}
		switch at {
		case standsKnown:
			return AnswerResult{Accepted: true, MessageID: submissionID, State: fate}, nil
		case standsClosed, standsForeign:
			return AnswerResult{}, nil
		case standsQueued:
			return AnswerResult{}, personError(CodeReplyQueued)
		case standsWithdrawing:
			if err := grown(s.ctx, a.Log(), seen.First-1); err != nil {
				return AnswerResult{}, err
			}
			continue
		}
		if e := s.checkAnswer(encoded(asks), answer); e != nil {
			return AnswerResult{}, e
		}
		err = s.steer(disk, a, callID, asks, answer, submissionID, by)
		switch {
		case err == nil || errors.Is(err, errMoved):
			// Look again: after success the reply is known, and its fate is what
			// it is now.
			continue
		case errors.Is(err, agent.ErrNotLive):
			return AnswerResult{}, personError(CodeNotLive)
		default:
			return AnswerResult{}, fmt.Errorf("answer to call %s: %w", callID, err)
		}
	}
}

// steer queues the reply, if the ask still stands open with these questions. It
// returns when the reply is on disk.
func (s *Service) steer(ctx context.Context, a *agent.Agent, callID string, asks []projection.Question, answer json.RawMessage, submissionID, by string) error {
	answers, ok := answersOf(answer)
	if !ok { // it passed the check
		return personError(CodeBadAnswer)
	}
	return a.SteerIf(ctx, func(st *session.State) (event.Message, error) {
		if at, _ := judge(st.Set, callID, submissionID); at != standsOpen || !sameBatch(asked(st.Set, callID), asks) {
			return event.Message{}, errMoved
		}
		return ReplyMessage(callID, asks, answers, submissionID, by), nil
	})
}

// checkAnswer lets the module judge an answer, late or in time.
func (s *Service) checkAnswer(questions, answer []byte) *Error {
	p, err := s.opt.Validator.CheckAnswer(context.Background(), questions, answer)
	switch {
	case err != nil:
		s.opt.Logger.Error("answer not checked", "err", err)
		return personError(CodeValidatorFailed)
	case p != nil:
		return &Error{Code: p.Code, Field: p.Field, Message: p.Message}
	}
	if _, ok := answersOf(answer); !ok {
		return personError(CodeBadAnswer)
	}
	return nil
}

// Withdraw takes an ask back and reports whether it did. One that blocks ends
// with ASK_WITHDRAWN. A continued one is removed by the log, when the result of
// the recorded withdraw_question call says withdrawn; until that result is on
// disk an Answer waits. A settled one, or one whose reply is queued, stays.
func (s *Service) Withdraw(ctx context.Context, a *agent.Agent, callID string) (bool, error) {
	if err := s.live(a, ForModel); err != nil {
		return false, err
	}
	patience, cancel := context.WithTimeout(ctx, recordGrace)
	defer cancel()
	for last := false; ; {
		if w, ok := s.Lookup(a.ID(), callID); ok {
			o, err := w.withdraw(ctx)
			if err != nil {
				return false, err
			}
			if o.Status == Failed && o.Err.Code == CodeWithdrawn {
				return true, nil
			}
			// Something else ended it first. If that was the deadline, it is
			// about to be recorded as continued.
		}
		var open, continued, granted, recorded bool
		seen, err := a.Log().Update(func(st *session.State) ([]event.Draft, error) {
			q, ok := st.Questions.Active(callID)
			open = ok && q.State == projection.Open
			continued = ok && q.State == projection.Continued
			granted = Withdrawable(st.Set, callID)
			recorded = st.Questions.Withdrawing(callID)
			return nil, nil
		})
		switch {
		case err != nil:
			return false, fmt.Errorf("withdraw call %s: %w", callID, err)
		case continued && !recorded:
			return false, ErrUnrecorded
		case !open || last:
			return granted, seen.Wait(ctx)
		}
		if err := seen.Wait(ctx); err != nil {
			return false, err
		}
		if err := grown(patience, a.Log(), seen.First-1); err != nil {
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
			if patience.Err() == nil {
				return false, err
			}
			last = true // look once more, then leave it open
		}
	}
}

// withdraw ends the wait with ASK_WITHDRAWN and returns how it really ended.
func (w *Wait) withdraw(ctx context.Context) (Outcome, error) {
	out := make(chan Outcome, 1)
	ended := true
	w.svc.update(func(now Instant) {
		if w.m.phase == phaseEnded {
			return
		}
		ended = false
		prev := w.done
		w.done = func(o Outcome) { out <- o; prev(o) }
		w.svc.act(w, now, w.m.stop(CodeWithdrawn))
	})
	if ended {
		return Outcome{Status: Unanswered}, nil
	}
	select {
	case o := <-out:
		return o, nil
	case <-ctx.Done():
		return Outcome{}, context.Cause(ctx)
	case <-w.svc.ctx.Done():
		return Outcome{}, ErrClosed
	}
}

// Withdrawable reports whether a continued ask can be taken back: no reply to it
// waits. Under a log's lock it decides for whoever records the withdrawal's call
// and result in one batch, without Withdraw.
func Withdrawable(s *projection.Set, callID string) bool {
	q, ok := s.Questions.Active(callID)
	if !ok || q.State != projection.Continued {
		return false
	}
	_, queued := s.Inbox.Reply(callID)
	return !queued
}

// live refuses an agent that is not the registry's exact instance.
func (s *Service) live(a *agent.Agent, text func(string) string) error {
	if a == nil || !s.opt.Agents.IsLive(a) {
		return &Error{Code: CodeNotLive, Message: text(CodeNotLive)}
	}
	return nil
}

// mayAsk also refuses an agent that another live agent owns. Lineage in the log
// does not matter: resumed as a root, it may ask.
func (s *Service) mayAsk(a *agent.Agent) error {
	if err := s.live(a, ForModel); err != nil {
		return err
	}
	if owner := a.Owner(); owner != nil && s.opt.Agents.IsLive(owner) {
		return modelError(CodeDelegated)
	}
	return nil
}

// errGrown ends a follow.
var errGrown = errors.New("the log has grown")

// grown returns when the log on disk goes past seq.
func grown(ctx context.Context, l *session.Log, seq int64) error {
	err := l.Follow(ctx, &seq, func(it session.Item) error {
		if it.Seq > seq {
			return errGrown
		}
		return nil
	})
	if errors.Is(err, errGrown) {
		return nil
	}
	return err
}

// asked is the questions of an active ask. The slice is the fold's: it is
// replaced by another ask, never changed.
func asked(s *projection.Set, callID string) []projection.Question {
	q, ok := s.Questions.Active(callID)
	if !ok {
		return nil
	}
	return q.Questions
}

// sameBatch reports whether two slices are one: an ask made again under its id
// has another.
func sameBatch(a, b []projection.Question) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

func encoded(qs []projection.Question) []byte {
	var w value.Writer
	projection.AppendQuestions(&w, qs)
	return w.Bytes()
}

// ReplyKind marks the JSON of a late answer.
const ReplyKind = "answer_to_pending_question"

// ReplyMessage is a late answer as the agent will read it. messageID is the
// submission's id and by the label of the token that answered.
func ReplyMessage(callID string, questions []projection.Question, answers Answers, messageID, by string) event.Message {
	var w value.Writer
	w.Begin()
	w.StrField("kind", ReplyKind)
	w.StrField("tool", projection.ToolName)
	w.StrField("callId", callID)
	w.Name("questions")
	projection.AppendQuestions(&w, questions)
	w.Name("answers")
	projection.AppendAnswers(&w, answers)
	w.End()
	return event.Message{
		ID:     messageID,
		Source: event.Source{Kind: event.SourceReply, CallID: callID, Outcome: event.OutcomeAnswered, By: by},
		Text:   string(w.Bytes()),
	}
}
