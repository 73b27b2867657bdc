package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"meanwhile/shared/event"
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

// auditHints checks that every ask that was answered in this life of the host
// has its answer in the log.
func (w *World) auditHints(logs map[string]*record) {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	for _, key := range sortedKeys(w.book.hints) {
		r := logs[sessionOf(key)]
		if r == nil || !strings.HasPrefix(key, "c:") || w.book.deleted[sessionOf(key)] {
			continue
		}
		ok := false
		if c := r.calls[callOf(key)]; c != nil {
			ok = c.answers != ""
		}
		for _, m := range r.messages {
			ok = ok || m.call == callOf(key)
		}
		if !ok {
			go w.failf("%s was answered, as the host said, and its answer is nowhere", key)
		}
	}
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

// record is what a log says of its asks and messages.
type record struct {
	calls    map[string]*recordedCall
	messages map[string]*recordedMessage
	open     bool // a turn has not ended
}

type recordedCall struct {
	name      string
	arguments string
	at        int64
	results   int
	answers   string // "" without
	pending   bool
	ended     int64 // time of the result
	inherited bool
}

type recordedMessage struct {
	call, batch string // of a reply
	fate        string // queued, admitted, discarded
	inherited   bool
}

// read folds a log in the plainest way, apart from the program's own folds, and
// checks what must hold at every event.
func read(events []event.Event) (*record, error) {
	r := &record{calls: map[string]*recordedCall{}, messages: map[string]*recordedMessage{}}
	queue := map[string][]string{}
	for _, e := range events {
		if err := r.apply(e, queue); err != nil {
			return r, fmt.Errorf("event %d, %s: %w", e.Seq, e.Type, err)
		}
	}
	return r, nil
}

func (r *record) apply(e event.Event, queue map[string][]string) error {
	data, err := value.Parse(e.Data)
	if err != nil {
		return err
	}
	switch e.Type {
	case event.TypeTurnStart:
		if r.open {
			return errors.New("a turn starts in another")
		}
		r.open = true
	case event.TypeTurnEnd:
		if !r.open {
			return errors.New("no turn is open")
		}
		r.open = false
		for id, c := range r.calls {
			if c.results == 0 {
				return fmt.Errorf("call %s has no result", id)
			}
		}
	case event.TypeEndSeed:
		r.open = false // what was open is the parent's
		for _, c := range r.calls {
			c.inherited = true
			c.results = max(c.results, 1)
		}
		for _, m := range r.messages {
			m.inherited = true
		}
		clear(queue)
	case event.TypeToolCall:
		id := data.Get("callId").Text()
		if r.calls[id] != nil {
			return fmt.Errorf("call %s again", id)
		}
		r.calls[id] = &recordedCall{name: data.Get("name").Text(), arguments: data.Get("arguments").Text(), at: e.Time}
	case event.TypeToolResult:
		return r.result(e, data)
	case event.TypeSpliced:
		return r.splice(data, queue)
	case event.TypeUserMessage:
		id := data.Get("id").Text()
		m := r.messages[id]
		if m == nil {
			return fmt.Errorf("message %s was never queued", id)
		}
		if m.fate != "taken" {
			return fmt.Errorf("message %s is admitted and was %s", id, m.fate)
		}
		m.fate = "admitted"
	}
	return nil
}

func (r *record) result(e event.Event, data value.Value) error {
	d, err := event.DecodeToolResult(e.Data)
	if err != nil {
		return err
	}
	c := r.calls[d.CallID]
	if c == nil {
		if d.ErrCode == event.CodeNotStarted {
			return nil // of a call that is in the reply alone
		}
		return fmt.Errorf("result of call %s, which was never made", d.CallID)
	}
	if c.results++; c.results > 1 {
		return fmt.Errorf("call %s has %d results", d.CallID, c.results)
	}
	c.ended = e.Time
	v, err := value.ParseString(d.Text)
	if c.name != projection.ToolName || err != nil || d.IsError {
		return nil
	}
	c.pending = v.Get("pending").True()
	if as, ok := projection.AnswersOf(v.Get("answers")); ok && v.Get("answers").Kind() == value.Array {
		c.answers = canonical(as)
	}
	return nil
}

func (r *record) splice(data value.Value, queue map[string][]string) error {
	target := data.Get("target").Text()
	start, _ := data.Get("start").Int()
	n, _ := data.Get("removedCount").Int()
	q := queue[target]
	if int(start+n) > len(q) {
		return fmt.Errorf("splice %d+%d of %d", start, n, len(q))
	}
	for _, id := range q[start : start+n] {
		r.messages[id].fate = "taken"
		if data.Get("outcome").Text() == event.OutcomeCanceled {
			r.messages[id].fate = "discarded"
		}
	}
	var ids []string
	for _, raw := range data.Get("inserted").Items() {
		m, err := event.MessageOf(raw)
		if err != nil {
			return err
		}
		if r.messages[m.ID] != nil {
			return fmt.Errorf("message %s is queued again", m.ID)
		}
		rm := &recordedMessage{fate: "queued"}
		if m.Source.Kind == event.SourceReply {
			rm.call = m.Source.CallID
			v, _ := value.ParseString(m.Text)
			as, _ := projection.AnswersOf(v.Get("answers"))
			rm.batch = canonical(as)
		}
		r.messages[m.ID] = rm
		ids = append(ids, m.ID)
	}
	queue[target] = slices.Concat(q[:start], ids, q[start+n:])
	return nil
}

// orphaned forgets what a fork inherited: it is its parent's to keep.
func (r *record) orphaned() {
	for id, c := range r.calls {
		if c.inherited {
			delete(r.calls, id)
		}
	}
	for id, m := range r.messages {
		if m.inherited {
			delete(r.messages, id)
		}
	}
}

// audit checks every log on disk, after a restart or at the end.
func (w *World) audit(h *host, balanced bool) map[string]*record {
	out := map[string]*record{}
	for _, row := range h.store.List() {
		id := row.ID
		events, err := h.events(id)
		if err != nil {
			w.failf("read the log of %s: %v", id, err)
			continue
		}
		r, err := read(events)
		if err != nil {
			w.failf("the log of %s: %v", id, err)
		}
		out[id] = r
		if row.ParentSession != "" {
			r.orphaned()
		}
		if balanced && r.open {
			w.failf("the log of %s has an open turn after repair", id)
		}
		w.auditAsks(id, r)
	}
	w.auditPromises(out)
	return out
}

func (w *World) auditAsks(id string, r *record) {
	settled := map[string]int{}
	for _, call := range sortedKeys(r.calls) {
		c := r.calls[call]
		if c.answers != "" {
			settled[call]++
			if !w.submitted(id, call, c.answers) {
				w.failf("%s: the result of %s is %s, which nobody submitted", id, call, c.answers)
			}
		}
		if ask, p := projection.ParseAsk(c.arguments); p == nil && c.pending && w.steady && ask.Timeout != nil && !w.isOutside(id) {
			if took, least := c.ended-c.at, *ask.Timeout*1000; took < least {
				w.failf("%s: %s was given up after %d ms of %d", id, call, took, least)
			} else if most := least + (w.maxHold + time.Second).Milliseconds(); w.maxHold > 0 && took > most {
				w.failf("%s: %s was held for %d ms, at most %d", id, call, took, most)
			}
		}
	}
	for _, msg := range sortedKeys(r.messages) {
		m := r.messages[msg]
		if m.fate == "taken" {
			w.failf("%s: message %s was taken out of the queue and is nowhere", id, msg)
		}
		if m.call == "" {
			continue
		}
		if m.fate != "discarded" {
			settled[m.call]++
		}
		if !w.submitted(id, m.call, m.batch) {
			w.failf("%s: the reply %s to %s is %s, which nobody submitted", id, msg, m.call, m.batch)
		}
		if c := r.calls[m.call]; c == nil || c.answers != "" {
			w.failf("%s: the reply %s is to %s, which is not continued", id, msg, m.call)
		}
	}
	for _, call := range sortedKeys(settled) {
		if settled[call] > 1 {
			w.failf("%s: %s was answered %d times", id, call, settled[call])
		}
	}
}

func (w *World) auditPromises(logs map[string]*record) {
	w.book.mu.Lock()
	promises, refused := slices.Clone(w.book.promises), slices.Clone(w.book.refused)
	w.book.mu.Unlock()
	for _, p := range refused {
		if r := logs[p.session]; r != nil && r.messages[p.message] != nil {
			w.failf("%s: message %s was not accepted, as the host said, and is recorded", p.session, p.message)
		}
	}
	for _, p := range promises {
		if w.wasDeleted(p.session) {
			continue
		}
		var m *recordedMessage
		if r := logs[p.session]; r != nil {
			m = r.messages[p.message]
		}
		tried := w.wasRemoved(p.message)
		switch {
		case m == nil:
			w.failf("%s: message %s was accepted and is lost", p.session, p.message)
		case m.fate == "discarded" && !tried:
			w.failf("%s: message %s was discarded by nobody", p.session, p.message)
		case m.call != p.call || m.batch != p.batch && p.call != "":
			w.failf("%s: message %s was accepted as %s and is %s", p.session, p.message, p.batch, m.batch)
		}
	}
}

// auditVanished checks that edited cards went only when what they said is
// recorded.
func (w *World) auditVanished(logs map[string]*record) {
	w.book.mu.Lock()
	list := slices.Clone(w.book.vanished)
	w.book.mu.Unlock()
	for _, v := range list {
		if w.wasDeleted(sessionOf(v.key)) {
			if v.deleted && !w.sent(v.key, v.draft) {
				w.failf("%s let go of %s with the text %s, as its session went", v.page, v.key, v.draft)
			}
			continue // else the record that told why is gone, too
		}
		session, call := sessionOf(v.key), callOf(v.key)
		keyed := strings.HasPrefix(v.key, "c:")
		ok := false
		if r := logs[session]; r != nil {
			for id, c := range r.calls {
				ok = ok || c.answers != "" && (id == call || !keyed) && says(c.answers, v.draft)
			}
			for _, m := range r.messages {
				ok = ok || m.call == call && says(m.batch, v.draft)
			}
		}
		if !keyed && !ok {
			// It ends with its waterfall. What the host took and lost in a
			// crash was submitted, and has no second road.
			ok = w.sent(v.key, v.draft)
		}
		if !ok {
			w.failf("%s let go of %s with the text %s, which is recorded nowhere", v.page, v.key, v.draft)
		}
	}
}

// sent reports whether somebody submitted to a card what a draft says.
func (w *World) sent(key, draft string) bool {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	return slices.ContainsFunc(w.book.pressed[key], func(b string) bool { return says(b, draft) })
}

// says reports whether a batch is what a draft said.
func says(batch, draft string) bool {
	v, err := value.ParseString(batch)
	if err != nil {
		return false
	}
	parts := strings.Split(strings.TrimSuffix(draft, ";"), ";")
	items := v.Items()
	if len(parts) != len(items) {
		return false
	}
	for i, it := range items {
		var labels string
		for _, s := range it.Get("selected").Items() {
			labels += "[" + s.Text() + "]"
		}
		custom, _ := it.Get("custom").Str()
		skipped := labels == "" && it.Get("custom").Kind() == value.Missing
		whole := fmt.Sprintf("%s %v %q", labels, skipped, custom)
		// A skip keeps what was chosen before; blank words are none.
		if parts[i] != whole && !(skipped && strings.Contains(parts[i], " true ")) && !(custom == "" && parts[i] == fmt.Sprintf("%s false %q", labels, " ")) {
			return false
		}
	}
	return true
}

func (w *World) isOutside(id string) bool {
	for _, o := range w.outside {
		if o.session == id {
			return true
		}
	}
	return false
}
