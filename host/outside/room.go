package outside

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"meanwhile/host/agent"
	"meanwhile/host/internal/id"
	"meanwhile/host/question"
	"meanwhile/host/session"
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// room is one session's desk and its lock.
type room struct {
	svc    *Service
	id     string
	loaded chan struct{}
	err    error // of load, set before loaded is closed

	mu   sync.Mutex
	d    desk
	bell chan struct{} // closed at the next change of the session, then replaced
}

// load reads the session's asks from its log. Nothing is open in it: the log
// was repaired, or this process would have the room.
func (r *room) load(l *session.Log) error {
	var lastTurn int64
	results := map[string]event.ToolResult{}
	var order []string
	for after := l.Header().InheritedEventCount - 1; ; {
		events, err := l.Read(after, historyRead)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			after = e.Seq
			switch e.Type {
			case event.TypeTurnStart:
				if d, err := event.DecodeTurnStart(e.Data); err == nil {
					lastTurn = d.Turn
				}
			case event.TypeToolCall:
				c, err := event.DecodeToolCall(e.Data)
				q, p := projection.ParseAsk(c.Arguments)
				if err != nil || p != nil || c.Name != projection.ToolName {
					continue
				}
				r.d.add(&ask{callID: c.CallID, requestID: c.RequestID, questions: questionsKey(q.Questions),
					blocks: q.Timeout != nil && *q.Timeout == projection.Blocks, phase: closed})
			case event.TypeToolResult:
				if d, err := event.DecodeToolResult(e.Data); err == nil && r.d.asks[d.CallID] != nil {
					r.d.asks[d.CallID].code = d.ErrCode
					results[d.CallID] = d
					order = append(order, d.CallID)
				}
			}
		}
	}
	l.View(func(s *session.State) {
		for _, callID := range order {
			_, answered := s.Questions.Settled(callID)
			d := results[callID]
			if _, late := s.Questions.Active(callID); d.Turn == lastTurn && !late && (answered && !d.IsError || d.IsError) {
				r.d.keep(&result{messageID: d.MessageID, callID: callID, text: d.Text})
			}
		}
	})
	return nil
}

// reserve finds the ask of a request id, or enters a new one. Nil: that id
// stands for other questions.
func (r *room) reserve(requestID, questions string, blocks bool) (k *ask, fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if callID, ok := r.d.requests[requestID]; ok && requestID != "" {
		k = r.d.asks[callID]
		if k.questions != questions {
			return nil, false
		}
		return k, false
	}
	k = &ask{callID: id.New(), requestID: requestID, questions: questions, blocks: blocks}
	r.d.add(k)
	return k, true
}

func (r *room) ask(callID string) *ask {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.d.asks[callID]
}

func (r *room) opened(k *ask, w *question.Wait) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k.wait = w
	k.move(open)
}

// seen reports whether a client ever claimed an open ask.
func (r *room) seen(k *ask) bool {
	r.mu.Lock()
	w := k.wait
	r.mu.Unlock()
	return w != nil && w.Shown()
}

// fail ends an ask that could not be recorded: one that is not in the log is
// forgotten, so that its request id can be sent again.
func (r *room) fail(k *ask, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.phase == starting {
		k.failed = err
		r.d.forget(k)
		return
	}
	k.failed = err
	k.move(closed)
}

func (r *room) withdrawn(callID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.d.asks[callID]; k != nil {
		k.code = question.CodeWithdrawn
		k.ring()
	}
}

// wake rings for everyone who holds in this session.
func (r *room) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.bell)
	r.bell = make(chan struct{})
}

// hold keeps a call open until its ask has something to say, or the hold ends.
// A call that came while the ask was open ends when it turns continued, so that
// the agent goes on; only an await of a continued one holds for the reply.
func (r *room) hold(ctx context.Context, p Party, a *agent.Agent, k *ask, hold time.Duration, await bool) (Standing, error) {
	if hold == 0 {
		hold = HoldDefault
	}
	over := time.NewTimer(max(0, min(hold, HoldMax)))
	defer over.Stop()
	r.mu.Lock()
	k.holders++
	late := await && k.phase == closed
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		k.holders--
		r.mu.Unlock()
	}()
	for ended := false; ; {
		r.mu.Lock()
		changed, bell := k.changed, r.bell
		r.mu.Unlock()
		st, say, err := r.look(ctx, p, a, k)
		if err != nil || say == final || say == soFar && ended || say == untilReply && (ended || !late) {
			return st, err
		}
		select {
		case <-changed:
		case <-bell:
		case <-over.C:
			ended = true
		case <-ctx.Done():
			return Standing{}, context.Cause(ctx)
		case <-r.svc.ctx.Done():
			return Standing{}, question.ErrClosed
		}
	}
}

// say is how good a look at an ask is.
type say uint8

const (
	final      say = iota
	soFar          // open: a hold may bring the outcome
	untilReply     // continued: a hold may bring the reply
	between        // something is being recorded; it has an end of its own, the disk's
)

// look says where an ask stands.
func (r *room) look(ctx context.Context, p Party, a *agent.Agent, k *ask) (Standing, say, error) {
	r.mu.Lock()
	phase, wait, code, failed := k.phase, k.wait, k.code, k.failed
	st := Standing{Status: Pending, CallID: k.callID, Shown: k.seen}
	r.mu.Unlock()
	if k.blocks {
		st.Status = Waiting
	}
	switch {
	case failed != nil:
		return Standing{}, final, failed
	case phase == open:
		// Held past its deadline by a claim it is still open: never 0.
		st.RemainingMs = max(1, wait.Remaining().Milliseconds())
		shown := wait.Shown()
		st.Shown = &shown
		return st, soFar, nil
	case phase != closed:
		return st, between, nil
	}
	var settled, queued, active bool
	var reply event.Message
	c, err := a.Log().Update(func(s *session.State) ([]event.Draft, error) {
		st.Answers, settled = s.Questions.Settled(k.callID)
		_, active = s.Questions.Active(k.callID)
		reply, queued = s.Inbox.Reply(k.callID)
		return nil, nil
	})
	if err == nil {
		err = c.Wait(ctx)
	}
	switch {
	case err != nil:
		return Standing{}, final, err
	case settled:
		st.Status, st.MessageID = Answered, r.handResult(p, k.callID)
		return st, final, nil
	case queued:
		ok, err := a.Passive().Take(ctx, reply.ID, p.Holder, LeaseFor)
		if err != nil || !ok {
			return st, untilReply, err
		}
		r.handReplies(p, reply.ID)
		v, _ := value.ParseString(reply.Text)
		st.Answers, _ = projection.AnswersOf(v.Get("answers"))
		st.Status, st.MessageID = Answered, reply.ID
		return st, final, nil
	case active:
		return st, untilReply, nil
	}
	if code == "" {
		code = question.CodeWithdrawn
	}
	r.handResult(p, k.callID)
	return Standing{}, final, &question.Error{Code: code, Message: question.ForModel(code)}
}

// handResult leases the ask's unacknowledged result, if there is one, to the caller.
func (r *room) handResult(p Party, callID string) (messageID string) {
	r.mu.Lock()
	res := r.d.resultOf(callID)
	if res != nil {
		res.lease = r.leaseFor(p)
		messageID = res.messageID
	}
	r.mu.Unlock()
	if res != nil {
		r.handed(p, []string{messageID})
	}
	return messageID
}

// handReplies notes queued replies that were just leased to the caller.
func (r *room) handReplies(p Party, ids ...string) {
	r.mu.Lock()
	r.d.sweep(time.Now())
	for _, id := range ids {
		r.d.replies[id] = r.leaseFor(p)
	}
	r.mu.Unlock()
	r.handed(p, ids)
}

func (r *room) leaseFor(p Party) lease {
	return lease{holder: p.Holder, until: time.Now().Add(LeaseFor), line: p.Line}
}

// handed watches what becomes of the response that carries these messages.
func (r *room) handed(p Party, ids []string) {
	r.svc.carry(p.Line)
	if p.Written != nil && p.Holder != "" {
		l := lease{holder: p.Holder, line: p.Line}
		p.Written(func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.d.wrote(l, ids)
		})
	}
}

// returned is what a holder acknowledged by calling again.
func (r *room) returned(holder string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.d.returned(holder, time.Now())
}

// hangUp hands back what an ended connection carried.
func (r *room) hangUp(line <-chan struct{}) {
	r.mu.Lock()
	ids := r.d.hangUp(line)
	r.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	if a, ok := r.svc.opt.Agents.Get(r.id); ok && a.Passive() != nil {
		a.Passive().Release(ids...)
	}
	r.wake()
}

// Message is one thing handed over by Claim: a queued message, or the recorded
// result of an ask, whose source kind is ResultKind.
type Message struct {
	ID   string
	Body []byte // JSON of the message
}

// ResultKind is the source kind of a handed-over result.
const ResultKind = "user-question-result"

// Claim hands over what waits for the agent, at most max (0: ClaimMax), and
// returns how long the caller has to acknowledge it.
func (s *Service) Claim(ctx context.Context, p Party, sessionID string, max int) ([]Message, time.Duration, error) {
	if max < 0 || max > ClaimMax {
		return nil, 0, &Error{CodeBadParams, "max", fmt.Sprintf("send 1 to %d, or leave it out", ClaimMax)}
	}
	if max == 0 {
		max = ClaimMax
	}
	r, a, err := s.enter(ctx, p, sessionID)
	if err != nil {
		return nil, 0, err
	}
	var out []Message
	var results, replies []string
	r.mu.Lock()
	for _, res := range r.d.claimResults(r.leaseFor(p), max, time.Now()) {
		out = append(out, Message{ID: res.messageID, Body: resultBody(res)})
		results = append(results, res.messageID)
	}
	r.mu.Unlock()
	if left := max - len(out); left > 0 {
		queued, err := a.Passive().Claim(ctx, p.Holder, left, LeaseFor)
		if err != nil {
			return nil, 0, err
		}
		for _, m := range queued {
			out = append(out, Message{ID: m.ID, Body: bodyOf(m)})
			replies = append(replies, m.ID)
		}
	}
	r.handReplies(p, replies...)
	r.handed(p, results)
	if n := fit(out); n < len(out) {
		r.handBack(a, out[n:])
		out = out[:n]
	}
	return out, LeaseFor, nil
}

// fit is how many messages one response holds: always one.
func fit(out []Message) int {
	size := 0
	for i, m := range out {
		if size += len(m.Body); size > claimBytes && i > 0 {
			return i
		}
	}
	return len(out)
}

func (r *room) handBack(a *agent.Agent, out []Message) {
	ids := make([]string, len(out))
	for i, m := range out {
		ids[i] = m.ID
	}
	r.mu.Lock()
	r.d.handBack(ids)
	r.mu.Unlock()
	a.Passive().Release(ids...)
}

func resultBody(res *result) []byte {
	m := event.Message{ID: res.messageID, Source: event.Source{Kind: ResultKind, CallID: res.callID}, Text: res.text}
	return bodyOf(m)
}

// Admit acknowledges what was handed over and returns the ids that it knew:
// replies are recorded as read, results forgotten. Ids read before count too.
func (s *Service) Admit(ctx context.Context, p Party, sessionID string, ids []string) ([]string, error) {
	if len(ids) == 0 || len(ids) > AdmitMax {
		return nil, &Error{CodeBadParams, "messageIds", fmt.Sprintf("send 1 to %d message ids", AdmitMax)}
	}
	r, a, err := s.enter(ctx, p, sessionID)
	if err != nil {
		return nil, err
	}
	return r.admit(ctx, a, p.Holder, ids)
}

func (r *room) admit(ctx context.Context, a *agent.Agent, holder string, ids []string) ([]string, error) {
	r.mu.Lock()
	now := time.Now()
	done, rest := r.d.acknowledge(ids)
	mine := rest[:0:0]
	for _, id := range rest {
		if r.d.mayAdmit(id, holder, now) {
			mine = append(mine, id)
		}
	}
	r.mu.Unlock()
	if len(mine) == 0 {
		return done, nil
	}
	// Recorded for whoever is served next, though this caller may leave.
	read, err := a.Passive().Admit(context.WithoutCancel(ctx), mine)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.d.handBack(mine)
	r.mu.Unlock()
	a.Log().View(func(s *session.State) {
		for _, id := range mine {
			f, ok := s.Replies.Get(id)
			if ok && f.Fate == projection.Admitted || slices.Contains(read, id) {
				done = append(done, id)
			}
		}
	})
	return done, nil
}
