package outside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"meanwhile/host/agent"
	"meanwhile/host/agent/inbox"
	"meanwhile/host/internal/id"
	"meanwhile/host/question"
	"meanwhile/host/session"
	"meanwhile/host/tool/askuser"
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// Asking is one ask in the tool's spelling. Questions and Timeout are JSON as
// they came; a nil Timeout is the default.
type Asking struct {
	RequestID string
	Questions json.RawMessage
	Timeout   json.RawMessage
}

// Status is where an ask stands for its agent.
type Status string

// The statuses. Pending with RemainingMs > 0: only the call's hold is over and
// nothing is recorded yet; with 0 the agent goes on and the reply comes later.
// Waiting, of an ask that blocks: do not proceed, await again.
const (
	Answered Status = "answered"
	Pending  Status = "pending"
	Waiting  Status = "waiting"
)

// Standing answers Ask and Await. MessageID names what Answered hands over, for
// Admit; it is empty when there is nothing left to acknowledge. Shown is nil
// when it is not known whether anybody saw the question.
type Standing struct {
	Status      Status
	CallID      string
	Answers     []projection.Answer
	MessageID   string
	RemainingMs int64
	Shown       *bool
}

// Ask sends questions out and holds at most hold (0: HoldDefault) for the
// answer. The same RequestID is the same ask. The end of ctx ends the call alone.
func (s *Service) Ask(ctx context.Context, p Party, sessionID string, q Asking, hold time.Duration) (Standing, error) {
	if err := checkName("requestId", q.RequestID, false); err != nil {
		return Standing{}, err
	}
	args, parsed, err := parse(q)
	if err != nil {
		return Standing{}, err
	}
	r, a, err := s.enter(ctx, p, sessionID)
	if err != nil {
		return Standing{}, err
	}
	k := questionsKey(parsed.Questions)
	known, fresh := r.reserve(q.RequestID, k, parsed.Timeout != nil && *parsed.Timeout == projection.Blocks)
	if known == nil {
		return Standing{}, &question.Error{Code: question.CodeRequestConflict, Field: "requestId", Message: question.ForModel(question.CodeRequestConflict)}
	}
	if fresh {
		// Bound to no caller: one that leaves ends its call and not the ask.
		s.work.Go(func() { r.start(a, known, args, parsed) })
	}
	return r.hold(ctx, p, a, known, hold, false)
}

// parse puts the call together as the tool would have got it, and checks it.
func parse(q Asking) (args string, ask projection.Ask, err error) {
	doc := []byte(`{"questions":`)
	doc = append(doc, orNull(q.Questions)...)
	if q.Timeout != nil {
		doc = append(append(doc, `,"timeout":`...), q.Timeout...)
	}
	v, err := value.Parse(append(doc, '}'))
	if err != nil {
		return "", ask, &question.Error{Code: question.CodeBadQuestions, Field: "questions", Message: err.Error()}
	}
	args = string(v.Bytes())
	ask, problem := projection.ParseAsk(args)
	if problem != nil {
		return "", ask, &question.Error{Code: problem.Code, Field: problem.Field, Message: problem.Message}
	}
	return args, ask, nil
}

func orNull(b json.RawMessage) json.RawMessage {
	if b == nil {
		return json.RawMessage("null")
	}
	return b
}

// Await holds for an ask of this session: for its outcome, and when it is
// continued for the reply, which it hands over. A settled one repeats its answers.
func (s *Service) Await(ctx context.Context, p Party, sessionID, callID string, hold time.Duration) (Standing, error) {
	r, a, err := s.enter(ctx, p, sessionID)
	if err != nil {
		return Standing{}, err
	}
	k := r.ask(callID)
	if k == nil {
		return Standing{}, &Error{CodeUnknownCall, "callId", "names no ask of this session"}
	}
	return r.hold(ctx, p, a, k, hold, true)
}

// start records an ask and sends it out.
func (r *room) start(a *agent.Agent, k *ask, args string, q projection.Ask) {
	ctx := r.svc.ctx
	err := a.Passive().BeginCall(ctx, func(*session.State) (agent.Begin, error) {
		return agent.Begin{CallID: k.callID, Name: projection.ToolName, Arguments: args,
			RequestID: k.requestID, Header: r.svc.opt.Header}, nil
	})
	if err != nil {
		r.fail(k, err)
		return
	}
	timeout := r.svc.opt.DefaultTimeout
	if q.Timeout != nil {
		timeout = time.Duration(*q.Timeout) * time.Second
	}
	if k.blocks {
		timeout = question.Blocking
	}
	// The outcome may come before Start returns; the room settles it after.
	started := make(chan struct{})
	w, err := r.svc.opt.Questions.Start(question.Request{Agent: a, CallID: k.callID, Questions: q.Questions}, k.callID, timeout,
		func(o question.Outcome) {
			r.svc.work.Go(func() {
				<-started
				r.settle(a, k, q.Questions, o)
			})
		})
	switch {
	case errors.Is(err, question.ErrClosed):
		r.fail(k, err) // the host stops: repair records what became of it
	case err != nil:
		o := question.Outcome{Status: question.Failed, CallID: k.callID}
		if !errors.As(err, &o.Err) {
			o.Err = &question.Error{Code: "INTERNAL", Message: "the host could not ask: " + err.Error()}
		}
		r.settle(a, k, q.Questions, o)
	default:
		r.opened(k, w)
		close(started)
	}
}

// settle records an outcome: for the call that holds the ask, or for the inbox.
func (r *room) settle(a *agent.Agent, k *ask, qs []projection.Question, o question.Outcome) {
	seen := r.seen(k)
	r.mu.Lock()
	held := r.d.settle(k, seen)
	r.mu.Unlock()

	e := agent.Ending{Result: event.ToolResult{CallID: k.callID, MessageID: id.New()}}
	code, kept := "", true
	pend := func() { e.Result.Text, kept = askuser.PendingText(k.callID), false }
	switch {
	case o.Status == question.Answered && held:
		e.Result.Text = askuser.AnswersText(o.Answers)
	case o.Status == question.Answered:
		m := question.ReplyMessage(k.callID, qs, o.Answers, id.New(), o.ByName)
		e.Reply = &m
		pend()
	case o.Status == question.Unanswered:
		pend()
	default:
		code = o.Err.Code
		e.Result.IsError, e.Result.ErrName, e.Result.ErrCode = true, question.ErrorName, code
		e.Result.Text = o.Err.Message
	}
	end := func() error {
		return a.Passive().EndCall(r.svc.ctx, func(*session.State) (agent.Ending, error) { return e, nil })
	}
	err := end()
	if errors.Is(err, inbox.ErrFull) && e.Reply != nil {
		// No room for a reply: the answer becomes the result after all, and Claim
		// hands it over.
		e.Reply, e.Result.Text, kept = nil, askuser.AnswersText(o.Answers), true
		err = end()
	}
	if errors.Is(err, agent.ErrNotLive) && code == question.CodeAborted {
		err = o.Err // its session is being deleted: that is the end of it
	}
	if err != nil {
		r.fail(k, err)
		return
	}
	text := ""
	if kept {
		text = e.Result.Text
	}
	r.mu.Lock()
	r.d.close(k, code, e.Result.MessageID, text)
	r.mu.Unlock()
}

// Withdraw takes an ask back, unless it is settled or its reply is queued.
func (s *Service) Withdraw(ctx context.Context, p Party, sessionID, callID string) (bool, error) {
	r, a, err := s.enter(ctx, p, sessionID)
	if err != nil {
		return false, err
	}
	if r.ask(callID) == nil {
		return false, &Error{CodeUnknownCall, "callId", "names no ask of this session"}
	}
	done, err := s.opt.Questions.Withdraw(ctx, a, callID)
	if !errors.Is(err, question.ErrUnrecorded) {
		return done, err
	}
	// Continued: the log removes it, by the call and the result of a tool.
	w := agent.Begin{CallID: id.New(), Name: projection.WithdrawName, Header: s.opt.Header,
		Arguments: string(value.OfObject(value.Member{Name: "callId", Value: value.OfString(callID)}).Bytes())}
	errSettled := errors.New("settled meanwhile")
	record := context.WithoutCancel(ctx) // a call without its result would hold the ask
	err = a.Passive().BeginCall(record, func(st *session.State) (agent.Begin, error) {
		if !question.Withdrawable(st.Set, callID) {
			return agent.Begin{}, errSettled
		}
		return w, nil
	})
	if errors.Is(err, errSettled) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("withdraw call %s: %w", callID, err)
	}
	err = a.Passive().EndCall(record, func(st *session.State) (agent.Ending, error) {
		done = question.Withdrawable(st.Set, callID)
		return agent.Ending{Result: event.ToolResult{CallID: w.CallID, Text: askuser.WithdrawnText(done)}}, nil
	})
	if err != nil {
		return false, fmt.Errorf("withdraw call %s: %w", callID, err)
	}
	if done {
		r.withdrawn(callID)
	}
	return done, nil
}
