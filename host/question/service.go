package question

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"meanwhile/host/agent"
	"meanwhile/shared/projection"
)

// pulseEvery is how often the clocks are read while a timed wait is open: often
// enough that a sleep shows as a gap.
const pulseEvery = 2 * time.Second

// Blocking, as a timeout, waits until the ask settles.
const Blocking time.Duration = -1

// ErrClosed: the host stops. Nothing is recorded for it; repair does that.
var ErrClosed = errors.New("question service is closed")

// Options are what a Service is made of. Emit, Validator and Agents are needed.
type Options struct {
	Emit      EmitFunc
	Validator Validator
	Agents    Agents
	// MaxHold is how far past its deadline clients may hold a timed wait by
	// claims; 0 is no bound.
	MaxHold time.Duration
	Clock   Clock        // nil: SystemClock()
	Logger  *slog.Logger // nil: none
	// Settled is told of each outcome and how long the ask waited for it, under
	// no lock; nil: nobody is.
	Settled func(o Outcome, took time.Duration)
}

// DefaultMaxHold is MaxHold where the settings say nothing.
const DefaultMaxHold = 4 * time.Hour

// Service carries asks to people and answers back. See the package's doc.
type Service struct {
	opt    Options
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	flying sync.WaitGroup // answers under way

	mu     sync.Mutex // guards what follows; reached through update alone
	closed bool
	last   Instant     // the last reading of the clocks
	pulse  *time.Timer // runs while a timed wait is open
	led    ledger
	todo   []duty // collected by act, done by update after unlock
}

// Stats counts asks. Open is a gauge, the others only grow.
type Stats struct {
	Open      int   // asks that block now
	Asked     int64 // asks that went out
	Answered  int64 // answered while the ask waited
	Continued int64 // returned pending
	Replied   int64 // late answers accepted
}

// New makes a service. Close it.
func New(opt Options) *Service {
	if opt.Clock == nil {
		opt.Clock = SystemClock()
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{opt: opt, led: newLedger(), last: opt.Clock()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Request is one batch of questions and the agent that asks it. CallID is read
// by Ask alone: with it a blocking ask is keyed, and its clients keep one card
// for it across reconnects; without, the ask ends with its panel.
type Request struct {
	Agent     *agent.Agent
	CallID    string
	Questions []projection.Question
}

// Answers is a batch with one item for each question.
type Answers = []projection.Answer

// Status is how an ask came out.
type Status uint8

// The statuses. Unanswered is the tool's pending; Failed carries Err.
const (
	Answered Status = iota
	Unanswered
	Failed
)

// Outcome is the one settlement of a foreground ask. By is the client that
// settled it and ByName the label of its token, when a client did.
type Outcome struct {
	Status     Status
	CallID     string
	Answers    Answers
	By, ByName string
	Err        *Error
}

// Ask blocks until the ask settles. A cancelled context ends it with
// ASK_ABORTED, unless an answer was taken before.
func (s *Service) Ask(ctx context.Context, r Request) (Answers, error) {
	o, err := s.await(ctx, r, r.CallID, Blocking)
	return o.Answers, err
}

// AskTimed waits at most until timeout. Then the outcome is Unanswered; every
// other failure is an error.
func (s *Service) AskTimed(ctx context.Context, r Request, callID string, timeout time.Duration) (Outcome, error) {
	if timeout == Blocking {
		return Outcome{}, modelError(CodeBadTimeout)
	}
	return s.await(ctx, r, callID, timeout)
}

func (s *Service) await(ctx context.Context, r Request, callID string, timeout time.Duration) (Outcome, error) {
	if ctx.Err() != nil {
		return Outcome{}, modelError(CodeAborted)
	}
	done := make(chan Outcome, 1)
	w, err := s.Start(r, callID, timeout, func(o Outcome) { done <- o })
	if err != nil {
		return Outcome{}, err
	}
	// A cancelled context only asks for an end. The gateway still has the last
	// word: an answer that it took before counts.
	cancelled := ctx.Done()
	for {
		select {
		case o := <-done:
			return o, o.error()
		case <-cancelled:
			cancelled = nil
			w.Abort()
		case <-s.ctx.Done():
			select {
			case o := <-done:
				return o, o.error()
			default:
				return Outcome{}, ErrClosed
			}
		}
	}
}

// error is Err without the nil pointer in an interface.
func (o Outcome) error() error {
	if o.Err == nil {
		return nil
	}
	return o.Err
}

// Start sends an ask out and returns at once; Ask and AskTimed are made of it.
// done is called exactly once, without locks and from whatever goroutine
// settled the ask, so it must not block. A service that is closed first never
// calls it: a stopping host settles nothing. timeout is Blocking or a whole
// number of milliseconds from 1 to TimeoutMax.
func (s *Service) Start(r Request, callID string, timeout time.Duration, done func(Outcome)) (*Wait, error) {
	r.CallID = callID
	if err := s.admit(r, timeout); err != nil {
		return nil, err
	}
	w := &Wait{svc: s, done: done, key: waitKey{session: r.Agent.ID(), call: r.CallID}}
	w.pack(r.Questions, timeout != Blocking)
	if err := s.checkAsk(w.questions()); err != nil {
		return nil, err
	}
	var err error
	s.update(func(now Instant) {
		w.m = blockingWait()
		if timeout != Blocking {
			w.m = timedWait(now, timeout, s.opt.MaxHold)
		}
		switch {
		case s.closed:
			err = ErrClosed
		case !s.led.enter(w):
			err = modelError(CodeDuplicateWait)
		default:
			s.led.total.Asked++
			w.began = now.Mono
			s.act(w, now, effects{})
			s.watch()
		}
	})
	if err != nil {
		return nil, err
	}
	w.emit(codesOf(r, timeout))
	return w, nil
}

// admit refuses an ask that may not go out, before anything is made of it.
func (s *Service) admit(r Request, timeout time.Duration) error {
	if err := s.mayAsk(r.Agent); err != nil {
		return err
	}
	if len(r.Questions) == 0 {
		return modelError(CodeEmptyQuestions)
	}
	if timeout != Blocking {
		if timeout <= 0 || timeout > TimeoutMax || timeout%time.Millisecond != 0 {
			return modelError(CodeBadTimeout)
		}
		if r.CallID == "" {
			return &Error{Code: CodeBadQuestions, Field: "callId", Message: "a timed ask needs a call id: its late answer is addressed by it"}
		}
	}
	if p := projection.CheckAsk(r.Questions, timeout != Blocking); p != nil {
		return &Error{Code: p.Code, Field: p.Field, Message: p.Message}
	}
	return nil
}

// checkAsk asks the module, which has the last word over the batch as sent.
func (s *Service) checkAsk(questions []byte) error {
	p, err := s.opt.Validator.CheckAsk(context.Background(), questions)
	switch {
	case err != nil:
		s.opt.Logger.Error("ask not checked", "err", err)
		return modelError(CodeValidatorFailed)
	case p != nil:
		return &Error{Code: p.Code, Field: p.Field, Message: p.Message}
	}
	return nil
}

// codesOf lists the errors by which a client may end the event. A timed card
// ends by its countdown; a card without a call id, or a plan, by being closed;
// a keyed blocking card by nothing but an answer, for closing only hides it.
func codesOf(r Request, timeout time.Duration) []string {
	var codes []string
	if timeout != Blocking {
		codes = append(codes, CodeTimedOut)
	}
	refusable := r.CallID == ""
	for _, q := range r.Questions {
		refusable = refusable || q.Intent != nil
	}
	if refusable {
		codes = append(codes, CodeCancelled)
	}
	return codes
}

// Lookup finds the wait of a keyed ask that blocks now.
func (s *Service) Lookup(sessionID, callID string) (*Wait, bool) {
	if callID == "" {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.led.waits[waitKey{session: sessionID, call: callID}]
	return w, ok
}

// AbortAll ends every ask of a session that blocks with ASK_ABORTED, as its
// deletion must.
func (s *Service) AbortAll(sessionID string) {
	s.update(func(now Instant) {
		for key, w := range s.led.waits {
			if key.session == sessionID {
				s.act(w, now, w.m.stop(CodeAborted))
			}
		}
	})
}

// Stats counts.
func (s *Service) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.led.total
	t.Open = len(s.led.waits)
	return t
}

// Close ends every wait and claim without an outcome and waits for the answers
// that are on their way into a log. It records nothing.
func (s *Service) Close() {
	s.update(func(now Instant) {
		s.closed = true
		for _, w := range s.led.waits {
			s.act(w, now, w.m.discard())
		}
		clear(s.led.waits)
		s.led.timed = 0
		if s.pulse != nil {
			s.pulse.Stop()
			s.pulse = nil
		}
	})
	s.cancel()
	s.flying.Wait()
}

// update is the one way to the state: f changes it and calls act for what
// follows from it, which is done after unlock.
func (s *Service) update(f func(now Instant)) {
	s.mu.Lock()
	f(s.read())
	todo := s.todo
	s.todo = nil
	s.mu.Unlock()
	for _, d := range todo {
		d.do()
	}
}

// read reads the clocks. While the pulse runs, a gap means that the machine
// slept, and every wait is told.
func (s *Service) read() Instant {
	now := s.opt.Clock()
	slept := s.pulse != nil && now.Mono-s.last.Mono > gapMax
	s.last = now
	if slept {
		for _, w := range s.led.waits {
			w.m.wake(now)
			w.arm(now)
		}
	}
	return now
}

// watch keeps the pulse going while a timed wait is open.
func (s *Service) watch() {
	if s.pulse == nil && s.led.timed > 0 {
		s.pulse = time.AfterFunc(pulseEvery, s.beat)
	}
}

func (s *Service) beat() {
	s.update(func(Instant) {
		if s.pulse == nil {
			return // closed
		}
		if s.led.timed == 0 {
			s.pulse = nil
			return
		}
		s.pulse.Reset(pulseEvery)
	})
}

// act takes the effects of one input to a wait's machine, under the lock.
func (s *Service) act(w *Wait, now Instant, fx effects) { s.actAs(w, now, fx, Outcome{}) }

// actAs is act where the input may settle the wait, and o says with what.
func (s *Service) actAs(w *Wait, now Instant, fx effects, o Outcome) {
	w.arm(now)
	d := duty{w: w, event: w.event, cancel: fx.cancel, reemit: fx.reemit}
	for _, id := range fx.released {
		if c := s.led.claims[id]; c != nil {
			delete(s.led.claims, id)
			close(c.ended)
		}
	}
	if fx.verdict != nil {
		s.led.leave(w)
		d.outcome, d.took = w.outcome(*fx.verdict, o), now.Mono-w.began
		switch d.outcome.Status {
		case Answered:
			s.led.total.Answered++
		case Unanswered:
			s.led.total.Continued++
		}
	}
	if d.outcome != nil || d.event != nil && (d.cancel != "" || d.reemit) {
		s.todo = append(s.todo, d)
	}
}

// duty is what is left to do for one wait after unlock.
type duty struct {
	w       *Wait
	event   Pending
	cancel  string
	reemit  bool
	outcome *Outcome
	took    time.Duration // with outcome
}

func (d duty) do() {
	if d.cancel != "" && d.event != nil {
		d.event.Cancel(d.cancel)
	}
	if d.reemit && d.event != nil {
		d.event.Reemit()
		d.w.input((*wait).emitted)
	}
	if d.outcome != nil {
		if settled := d.w.svc.opt.Settled; settled != nil {
			settled(*d.outcome, d.took)
		}
		d.w.done(*d.outcome)
	}
}
