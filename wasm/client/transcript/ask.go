package transcript

import (
	"meanwhile/shared/event"
	"meanwhile/shared/projection"
	"meanwhile/wasm/client/card"
)

// The states of an ask row.
const (
	Waiting     = "waiting"
	Pending     = "pending"
	Queued      = "queued"
	Answered    = "answered"
	Cancelled   = "cancelled"
	Interrupted = "interrupted"
	Withdrawn   = "withdrawn"
	Closed      = "closed"
	Ambiguous   = "ambiguous"
	Failed      = "error"
)

// Ask is what the row of an ask shows.
type Ask struct {
	State     string
	N, Of     int // answered of asked
	Code      string
	Questions []projection.Question
	Answers   []projection.Answer // recorded or queued, when they can be shown
	MessageID string              // of the queued reply
}

// Ask says what became of an ask that the log holds.
func (l *Log) Ask(callID string) (Ask, bool) {
	p := l.calls[callID]
	if p == nil || p.node.kind != kAsk {
		return Ask{}, false
	}
	return l.ask(p.turn, p.node), true
}

// CodeOf is why an ask went without an answer, as far as the log says.
func (l *Log) CodeOf(callID string) string {
	if l.withdrawn[callID] {
		return card.CodeWithdrawn
	}
	if p := l.calls[callID]; p != nil && p.node.result != nil {
		return p.node.result.code
	}
	return ""
}

// ReplyBy is the label of who sent the reply that settled an ask.
func (l *Log) ReplyBy(callID string) string {
	for i := len(l.turns) - 1; i >= 0; i-- {
		for _, n := range l.turns[i].nodes {
			if n.kind == kReply && n.callID == callID {
				return n.by
			}
		}
	}
	return ""
}

func (l *Log) ask(t *turn, n *node) Ask {
	qs, _ := projection.QuestionsOf(n.text)
	a := Ask{Of: len(qs), Questions: qs}
	if p := l.calls[n.callID]; n.callID == "" || p != nil && p.many {
		a.State = Ambiguous
		return a
	}
	if active, ok := l.Set.Questions.Active(n.callID); ok {
		a.State = Waiting
		if active.State == projection.Continued {
			a.State = Pending
			if m, ok := l.Set.Inbox.Reply(n.callID); ok {
				a.State, a.MessageID = Queued, m.ID
				if pairs, ok := readReply(m.Text); ok {
					for _, p := range pairs {
						a.Answers = append(a.Answers, p.answer)
					}
				}
			}
		}
		return a
	}
	if answers, ok := l.Set.Questions.Settled(n.callID); ok {
		return a.answered(answers)
	}
	r := n.result
	switch {
	case r == nil && t.state == Running:
		a.State = Waiting
	case r == nil:
		a.State = Interrupted
	case l.withdrawn[n.callID]:
		a.State = Withdrawn
	case r.code != "":
		a.State, a.Code = stateOf(r.code), r.code
	case r.failed:
		a.State = Failed
	default:
		if answers, ok := projection.AnswersOf(r.body.Get("answers")); ok {
			return a.answered(answers)
		}
		a.State = Closed
	}
	return a
}

func stateOf(code string) string {
	switch code {
	case card.CodeCancelled:
		return Cancelled
	case card.CodeAborted, event.CodeOutcomeUnknown, event.CodeNotStarted:
		return Interrupted
	case card.CodeWithdrawn:
		return Withdrawn
	case card.CodeTimedOut, "NO_PROVIDER":
		return Closed
	}
	return Failed
}

// answered shows recorded answers if they pair with the questions.
func (a Ask) answered(answers []projection.Answer) Ask {
	a.State = Answered
	for _, x := range answers {
		if !x.Skipped() {
			a.N++
		}
	}
	if !paired(a.Questions, answers) {
		a.State, a.N = Ambiguous, len(answers)
		return a
	}
	a.Answers = answers
	return a
}
