package crash

import (
	"encoding/json"
	"fmt"
	"sync"

	"meanwhile/host/question"
	"meanwhile/host/session"
	"meanwhile/shared/event"
	"meanwhile/shared/projection"
)

// ledger is what clients were told, and so what must be on disk.
type ledger struct {
	mu        sync.Mutex
	submitted map[string]bool // texts that were sent as an answer
	accepted  []acceptance
	answered  []acceptance // told to the asker; message is empty for a result
	prompts   []note
	admitted  []note
	sessions  map[string]bool
	requests  map[string]request // by asker: one whose outcome nobody told
}

type acceptance struct{ session, call, message, text string }

type note struct{ session, message string }

type request struct{ session, id string }

// tally sums up a run.
type tally struct{ kills, accepted, answered, prompts, admitted, sessions int }

func (t *tally) add(o tally) {
	t.accepted, t.answered, t.prompts = t.accepted+o.accepted, t.answered+o.answered, t.prompts+o.prompts
	t.admitted, t.sessions = t.admitted+o.admitted, t.sessions+o.sessions
}

func newLedger() *ledger {
	return &ledger{submitted: map[string]bool{}, sessions: map[string]bool{}, requests: map[string]request{}}
}

func (l *ledger) note(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

func (l *ledger) tally() tally {
	return tally{accepted: len(l.accepted), answered: len(l.answered), prompts: len(l.prompts), admitted: len(l.admitted), sessions: len(l.sessions)}
}

// book is what one log says.
type book struct {
	admitted map[string]int      // message id → user messages
	queued   map[string]bool     // message ids
	replies  map[string][]string // call → message ids of its replies
	texts    map[string]string   // message id → text of the answer
	results  map[string][]string // call → texts answered in the foreground
	requests map[string]int      // request id → calls
	handed   map[string]bool     // message ids of results: an asker may admit these, which writes nothing
}

func readBook(store session.Backend, id string) (*book, error) {
	b := &book{admitted: map[string]int{}, queued: map[string]bool{}, replies: map[string][]string{}, texts: map[string]string{},
		results: map[string][]string{}, requests: map[string]int{}, handed: map[string]bool{}}
	inbox := projection.NewInbox(event.Header{ID: id})
	for seq := int64(0); ; {
		raws, err := store.Events(id, seq, 1000)
		if err != nil {
			return nil, err
		}
		if len(raws) == 0 {
			break
		}
		for _, raw := range raws {
			e, err := event.ParseEvent(raw)
			if err != nil {
				return nil, err
			}
			_, inserted, err := inbox.Apply(e)
			if err != nil {
				return nil, err
			}
			for _, m := range inserted {
				b.reply(m)
			}
			b.event(e)
			seq++
		}
	}
	for _, target := range []string{event.NextStep, event.NextTurn} {
		for _, m := range inbox.Queue(target) {
			b.queued[m.ID] = true
		}
	}
	return b, nil
}

func (b *book) event(e event.Event) {
	switch e.Type {
	case event.TypeUserMessage:
		if m, err := event.DecodeUserMessage(e.Data); err == nil {
			b.admitted[m.ID]++
			b.reply(m)
		}
	case event.TypeToolCall:
		var d struct{ RequestID string }
		if json.Unmarshal(e.Data, &d) == nil && d.RequestID != "" {
			b.requests[d.RequestID]++
		}
	case event.TypeToolResult:
		d, err := event.DecodeToolResult(e.Data)
		b.handed[d.MessageID] = true
		if text, ok := answerText([]byte(d.Text)); err == nil && !d.IsError && ok {
			b.results[d.CallID] = append(b.results[d.CallID], text)
		}
	}
}

func (b *book) reply(m event.Message) {
	if m.Source.Kind != event.SourceReply {
		return
	}
	if _, known := b.texts[m.ID]; !known {
		b.replies[m.Source.CallID] = append(b.replies[m.Source.CallID], m.ID)
		b.texts[m.ID], _ = answerText([]byte(m.Text))
	}
}

// answerText is the words of a batch of one answer.
func answerText(raw []byte) (string, bool) {
	var d struct {
		Kind    string
		Answers []struct {
			Custom string
		}
	}
	if json.Unmarshal(raw, &d) != nil || len(d.Answers) != 1 || d.Kind != "" && d.Kind != question.ReplyKind {
		return "", false
	}
	return d.Answers[0].Custom, true
}

// check compares every promise with the logs.
func (l *ledger) check(read func(id string) (*book, error)) (problems []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	books := map[string]*book{}
	for id := range l.sessions {
		b, err := read(id)
		if err != nil {
			say("session %s: %v", id, err)
			b = &book{}
		}
		books[id] = b
		l.checkBook(id, b, say)
	}
	once := func(what string, n note) {
		b := books[n.session]
		if b == nil {
			say("%s %s: session %s is gone", what, n.message, n.session)
			return
		}
		times := b.admitted[n.message]
		if b.queued[n.message] {
			times++
		}
		if times != 1 {
			say("session %s: %s %s was confirmed and stands there %d times (queued %v, admitted %d)", n.session, what, n.message, times, b.queued[n.message], b.admitted[n.message])
		}
	}
	for _, a := range l.accepted {
		once("answer", note{a.session, a.message})
		if got := books[a.session].texts[a.message]; got != a.text {
			say("session %s: answer %s is %q, sent was %q", a.session, a.message, got, a.text)
		}
	}
	for _, n := range l.prompts {
		once("prompt", n)
	}
	for _, n := range l.admitted {
		if got := books[n.session].admitted[n.message]; got != 1 && !books[n.session].handed[n.message] {
			say("session %s: message %s was confirmed as admitted and is %d times", n.session, n.message, got)
		}
	}
	for _, a := range l.answered {
		b := books[a.session]
		recorded := false
		for _, text := range b.results[a.call] {
			recorded = recorded || text == a.text
		}
		for _, m := range b.replies[a.call] {
			recorded = recorded || b.texts[m] == a.text
		}
		if !recorded {
			say("session %s: call %s was told answered with %q, the log has %v and %v", a.session, a.call, a.text, b.results[a.call], b.replies[a.call])
		}
	}
	return problems
}

// checkBook looks for what may be in no log.
func (l *ledger) checkBook(id string, b *book, say func(string, ...any)) {
	calls := map[string]int{}
	for call, texts := range b.results {
		calls[call] += len(texts)
		for _, text := range texts {
			if !l.submitted[text] {
				say("session %s: call %s is answered with %q, which nobody sent", id, call, text)
			}
		}
	}
	for call, messages := range b.replies {
		calls[call] += len(messages)
		for _, m := range messages {
			if !l.submitted[b.texts[m]] {
				say("session %s: reply %s says %q, which nobody sent", id, m, b.texts[m])
			}
		}
	}
	for call, n := range calls {
		if n > 1 {
			say("session %s: call %s is settled %d times: %v, %v", id, call, n, b.results[call], b.replies[call])
		}
	}
	for m, n := range b.admitted {
		if n > 1 {
			say("session %s: message %s is admitted %d times", id, m, n)
		}
	}
	for r, n := range b.requests {
		if n > 1 {
			say("session %s: request %s made %d asks", id, r, n)
		}
	}
}
