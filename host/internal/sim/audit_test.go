package sim

import (
	"slices"
	"strings"
	"time"

	"meanwhile/shared/projection"
)

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

func (w *World) isOutside(id string) bool {
	for _, o := range w.outside {
		if o.session == id {
			return true
		}
	}
	return false
}
