package question

import (
	"context"
	"encoding/json"
	"time"

	"meanwhile/host/agent"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// Wait is the handle of one ask that blocks. Its fields belong to the service's
// lock, but for those set before it is entered.
type Wait struct {
	svc  *Service
	key  waitKey
	done func(Outcome)

	// params is the event's body; the questions stand in it at [from:to]. One
	// copy serves the gateway and the check of every answer.
	params   json.RawMessage
	from, to int32

	m     wait
	began time.Duration // Mono of the clocks
	event Pending       // nil until Emit has returned
	timer *time.Timer
}

// stream is one claim's open stream.
type stream struct{ ended chan struct{} }

// CallID names the ask; "" for an unkeyed one.
func (w *Wait) CallID() string { return w.key.call }

// Abort ends the wait with ASK_ABORTED, unless it has settled. The outcome
// comes through done as always.
func (w *Wait) Abort() { w.stop(CodeAborted) }

// Remaining is the time to the host's deadline, 0 for a blocking ask.
func (w *Wait) Remaining() (left time.Duration) {
	w.svc.update(func(now Instant) { left = w.m.remaining(now) })
	return left
}

// Shown reports whether a client ever claimed the wait.
func (w *Wait) Shown() (shown bool) {
	w.svc.update(func(Instant) { shown = w.m.shown })
	return shown
}

func (w *Wait) stop(code string) {
	w.input(func(m *wait) effects { return m.stop(code) })
}

// input gives the machine one input that needs no clock.
func (w *Wait) input(f func(*wait) effects) {
	w.svc.update(func(now Instant) { w.svc.act(w, now, f(&w.m)) })
}

// pack encodes the event's body.
func (w *Wait) pack(qs []projection.Question, timed bool) {
	var b value.Writer
	b.Begin()
	b.StrField("sessionId", w.key.session)
	b.Name("request")
	b.Begin()
	b.Name("questions")
	w.from = int32(b.Len())
	projection.AppendQuestions(&b, qs)
	w.to = int32(b.Len())
	if w.key.call != "" {
		b.Name("wait")
		b.Begin()
		b.StrField("callId", w.key.call)
		if timed {
			b.BoolField("timed", true)
		}
		b.End()
	}
	b.End()
	b.End()
	w.params = append(make(json.RawMessage, 0, b.Len()), b.Bytes()...)
}

// questions is the batch as sent.
func (w *Wait) questions() []byte { return w.params[w.from:w.to:w.to] }

func (w *Wait) emit(codes []string) {
	p := w.svc.opt.Emit(Event{
		Name:    EventName,
		Scope:   eventScope,
		Params:  w.params,
		Codes:   codes,
		Check:   w.check,
		Left:    w.left,
		Settled: w.settled,
	})
	w.svc.update(func(now Instant) {
		w.event = p
		w.svc.act(w, now, w.m.emitted())
	})
}

// arm sets the one timer to the machine's next wake, under the lock.
func (w *Wait) arm(now Instant) {
	at, ok := w.m.next()
	switch {
	case !ok && w.timer != nil:
		w.timer.Stop()
		w.timer = nil
	case ok && w.timer != nil:
		w.timer.Reset(max(0, at-now.Mono))
	case ok:
		w.timer = time.AfterFunc(max(0, at-now.Mono), w.fire)
	}
}

func (w *Wait) fire() {
	w.svc.update(func(now Instant) { w.svc.act(w, now, w.m.tick(now)) })
}

// check refuses a client's answer that does not fit, before it settles anything.
func (w *Wait) check(result json.RawMessage) *Refusal {
	if e := w.svc.checkAnswer(w.questions(), result); e != nil {
		return &Refusal{Code: e.Code, Field: e.Field, Message: e.Message}
	}
	return nil
}

// left ends the claims of a client whose delivery ended without an outcome.
func (w *Wait) left(clientID string) {
	w.svc.update(func(now Instant) { w.svc.act(w, now, w.m.left(now, clientID)) })
}

// settled takes the gateway's word.
func (w *Wait) settled(x Settlement) {
	o := Outcome{By: x.ClientID, ByName: x.ClientName}
	how := endResult
	switch x.Kind {
	case Result:
		o.Answers, _ = answersOf(x.Result) // it passed the check
	case Rejected:
		how = endRejected
	case Unhandled:
		how = endUnhandled
	case Cancelled:
		how = endCancelled
	}
	w.svc.update(func(now Instant) {
		w.svc.actAs(w, now, w.m.settle(how, x.Code), o)
	})
}

// outcome turns the machine's verdict into what the asker gets.
func (w *Wait) outcome(v verdict, o Outcome) *Outcome {
	o.CallID = w.key.call
	switch {
	case v.answered:
		o.Status = Answered
	case v.code == CodeTimedOut && w.m.timed:
		o.Status = Unanswered
	default:
		o.Status, o.Err = Failed, modelError(v.code)
	}
	return &o
}

// answersOf reads {"answers":[…]}.
func answersOf(result []byte) ([]projection.Answer, bool) {
	v, err := value.Parse(result)
	if err != nil {
		return nil, false
	}
	return projection.AnswersOf(v.Get("answers"))
}

// AttachWait is one client's claim: it sends one remainder, in milliseconds, and
// returns when the claim ends. A wait that cannot be claimed gets no frame: it
// is unknown, blocking, ended, cancelled or overdue with nobody at it. The error
// is the stream's own; the claim is gone in any case.
func (s *Service) AttachWait(ctx context.Context, a *agent.Agent, callID, clientID string, send func(remainingMs int64) error) error {
	if err := s.live(a, ForPerson); err != nil {
		return err
	}
	var (
		w    *Wait
		left time.Duration
		id   uint64
		c    = &stream{ended: make(chan struct{})}
	)
	s.update(func(now Instant) {
		found := s.led.waits[waitKey{session: a.ID(), call: callID}]
		if found == nil || callID == "" {
			return
		}
		id = s.led.next()
		rest, ok, fx := found.m.attach(now, claim{id, clientID})
		if ok {
			w, left = found, rest
			s.led.claims[id] = c
		}
		s.act(found, now, fx)
	})
	if w == nil {
		return nil
	}
	defer s.update(func(now Instant) { s.act(w, now, w.m.detach(now, id)) })
	if err := send(int64((left + time.Millisecond - 1) / time.Millisecond)); err != nil {
		return err
	}
	s.update(func(Instant) { w.m.shown = true })
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
