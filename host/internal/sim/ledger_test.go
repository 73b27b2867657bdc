package sim

import (
	"slices"
	"strings"
	"sync"

	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// ledger is what the world knows beside the program: what people did, and what
// the host promised.
type ledger struct {
	mu        sync.Mutex
	pressed   map[string][]string // by card: the answers that somebody submitted
	promises  []promise
	refused   []promise       // late answers that the host did not take
	attempts  map[string]bool // messages that somebody tried to take back
	vanished  []vanished
	dismissed map[string]bool // stored items
	deleted   map[string]bool // sessions
	hints     map[string]bool // cards that the host said are answered, in this life of it
}

// promise is a message that the host said is on disk.
type promise struct{ session, message, call, batch string }

// vanished is an edited card that a page let go of.
type vanished struct {
	page, key, draft string
	deleted          bool // its session was gone by then
}

func newLedger() ledger {
	return ledger{pressed: map[string][]string{}, attempts: map[string]bool{}, dismissed: map[string]bool{}, deleted: map[string]bool{}, hints: map[string]bool{}}
}

func (b *ledger) forgetHints() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.hints)
}

func (b *ledger) deleting(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deleted[session] = true
}

// settled notes that the host said that an ask is answered. That is a hint: a
// crash may take it back.
func (b *ledger) settled(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hints[key] = true
}

func (b *ledger) promised(session, message, call, batch string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.promises = append(b.promises, promise{session, message, call, batch})
}

// press notes what a person submits.
func (w *World) press(key, batch string) {
	w.book.mu.Lock()
	w.book.pressed[key] = append(w.book.pressed[key], batch)
	w.book.mu.Unlock()
	w.notef("somebody submits %s to %s", batch, key)
}

// submitted reports whether somebody submitted this answer to an ask. In a
// session without call ids on the wire any card of it counts.
func (w *World) submitted(session, call, batch string) bool {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	for key, batches := range w.book.pressed {
		if (key == "c:"+session+":"+call || strings.HasPrefix(key, "e:"+session+":")) && slices.Contains(batches, batch) {
			return true
		}
	}
	return false
}

// left is an answer leaving a page.
func (w *World) left(p *page, key string, answers value.Value) {
	as, _ := projection.AnswersOf(answers)
	batch := canonical(as)
	w.book.mu.Lock()
	ok := slices.Contains(w.book.pressed[key], batch)
	w.book.mu.Unlock()
	w.notef("%s sends %s to %s", p.name, batch, key)
	if !ok {
		w.failf("%s sent %s to %s, which nobody submitted there", p.name, batch, key)
	}
}

// leftAnywhere is left for a road that names the event alone.
func (w *World) leftAnywhere(p *page, answers value.Value) {
	as, _ := projection.AnswersOf(answers)
	batch := canonical(as)
	w.notef("%s settles by POST with %s", p.name, batch)
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	for _, batches := range w.book.pressed {
		if slices.Contains(batches, batch) {
			return
		}
	}
	go w.failf("%s settled with %s, which nobody submitted", p.name, batch)
}

// accepted is the host saying that a late answer is on disk.
func (w *World) accepted(params, result value.Value) {
	as, _ := projection.AnswersOf(params.Get("answer").Get("answers"))
	id := result.Get("messageId").Text()
	w.notef("late answer %s to %s accepted, %s", id, params.Get("callId").Text(), result.Get("state").Text())
	w.book.promised(params.Get("sessionId").Text(), id, params.Get("callId").Text(), canonical(as))
}

// denied is the host saying that it did not take a late answer.
func (w *World) denied(params value.Value) {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	w.book.refused = append(w.book.refused, promise{session: params.Get("sessionId").Text(), message: params.Get("submissionId").Text()})
}

func (w *World) removing(message string) {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	w.book.attempts[message] = true
}

func (w *World) wasDeleted(session string) bool {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	return w.book.deleted[session]
}

func (w *World) wasRemoved(message string) bool {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	return w.book.attempts[message]
}

func (w *World) dismissed(p *page, key string) {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	w.book.dismissed[key+"/"+p.tab] = true
	w.book.dismissed[key] = true // another tab's item: the key ends with its tab
}

func (w *World) wasDismissed(p *page, key string) bool {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	return w.book.dismissed[key+"/"+p.tab]
}

// gone is a page letting go of an edited card.
func (w *World) gone(p *page, key, draft string) {
	w.notef("%s lets go of %s with %s", p.name, key, draft)
	if strings.Trim(strings.ReplaceAll(draft, "false", ""), "\"; ") == "" {
		return // it was emptied: there is nothing to lose
	}
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	w.book.vanished = append(w.book.vanished, vanished{p.name, key, draft, w.book.deleted[sessionOf(key)]})
}

// sent reports whether somebody submitted to a card what a draft says.
func (w *World) sent(key, draft string) bool {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	return slices.ContainsFunc(w.book.pressed[key], func(b string) bool { return says(b, draft) })
}
