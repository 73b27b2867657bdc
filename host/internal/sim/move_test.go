package sim

import (
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"meanwhile/host/session"
)

// play makes the moves.
func (w *World) play() {
	for range movesMin + w.dice.pick(movesMax-movesMin) {
		time.Sleep(w.pause())
		if w.dice.in(2) {
			synctest.Wait()
		}
		w.tend()
		w.move()
	}
}

// pause is how long until the next move: often one tick from a deadline.
func (w *World) pause() time.Duration {
	d := w.dice
	if !d.in(2) {
		return d.think()
	}
	left := time.Duration(-1)
	if h := w.host; h != nil && d.in(2) {
		for _, id := range w.sessions {
			if a, ok := h.agents.Get(id); ok {
				for _, call := range openCalls(a.Log()) {
					if q, ok := h.quest.Lookup(id, call); ok && (left < 0 || q.Remaining() < left) && q.Remaining() > 0 {
						left = q.Remaining()
					}
				}
			}
		}
	}
	if left < 0 {
		p := w.pages[d.pick(len(w.pages))]
		p.mu.Lock()
		for _, row := range p.look(`{"view":"cards"}`).Get("cards").Items() {
			c := row.Get("countdown")
			if ms, is := c.Get("remainingMs").Int(); is && c.Get("state").Text() == "counting" {
				left = time.Duration(ms) * time.Millisecond
			}
		}
		p.mu.Unlock()
	}
	if left < 0 {
		return d.think()
	}
	return max(0, left+time.Duration(d.pick(3)-1)*time.Millisecond)
}

func openCalls(l *session.Log) (ids []string) {
	l.View(func(s *session.State) {
		for a := range s.Questions.AllActive {
			if a.State == "open" {
				ids = append(ids, a.CallID)
			}
		}
	})
	return ids
}

// move is one thing that happens.
func (w *World) move() {
	d := w.dice
	p := w.pages[d.pick(len(w.pages))]
	id := w.sessions[d.pick(len(w.sessions))]
	switch n := d.pick(100); {
	case n < 56:
		p.live()
		if d.in(5) { // another one at the same instant
			w.pages[d.pick(len(w.pages))].live()
		}
	case n < 57:
		w.rude(p)
	case n < 64:
		w.race(p, id)
	case n < 70:
		w.network(p)
	case n < 74:
		w.notef("%s reloads", p.name)
		p.reload()
	case n < 80:
		w.say(id)
	case n < 83:
		w.notef("cancel %s", id)
		w.admin("session/cancel", map[string]any{"sessionId": id})
	case n < 86:
		w.admin("session/continue", map[string]any{"sessionId": id})
	case n < 88:
		w.discard(id)
	case n < 92:
		w.process()
	case n < 95:
		w.clocks(p)
	case n < 97:
		p.mu.Lock()
		p.send(fmt.Sprintf(`{"type":%q,"sessionId":%q}`, []string{"follow", "follow", "unfollow"}[d.pick(3)], id))
		p.mu.Unlock()
	case n < 98:
		w.storage(p)
	case n < 99:
		w.lifecycle(id)
	default:
		time.Sleep(d.upTo(time.Minute))
	}
}

// rude sends what a page never would: an answer that does not fit.
func (w *World) rude(p *page) {
	p.mu.Lock()
	rows := p.look(`{"view":"cards"}`).Get("cards").Items()
	event := ""
	if events := sortedKeys(p.events); len(events) > 0 {
		event = events[w.dice.pick(len(events))]
	}
	p.mu.Unlock()
	bad := map[string]any{"answers": []map[string]any{{"id": "q0", "selected": []string{"None of those"}}}}
	if event != "" {
		w.admin("remote/settle", map[string]any{"eventId": event, "result": bad})
	}
	if len(rows) > 0 {
		key := rows[w.dice.pick(len(rows))].Get("key").Text()
		w.admin("userQuestions/answer", map[string]any{"sessionId": sessionOf(key), "callId": callOf(key), "answer": bad, "submissionId": "rude-" + w.newID()})
	}
}

// race has everybody who sees one ask answer it at the same instant, while
// something else may befall it.
func (w *World) race(p *page, id string) {
	d := w.dice
	p.mu.Lock()
	var keys []string
	for _, c := range p.look(`{"view":"cards"}`).Get("cards").Items() {
		if g := c.Get("group").Text(); g == "needs" || g == "late" {
			keys = append(keys, c.Get("key").Text())
		}
	}
	p.mu.Unlock()
	if len(keys) == 0 {
		return
	}
	key := keys[d.pick(len(keys))]
	for _, other := range w.pages {
		if d.in(4) {
			continue
		}
		other.mu.Lock()
		if other.card(key).Get("submit").True() {
			other.fill(key)
			other.act(key, "submit", "")
		}
		other.mu.Unlock()
	}
	switch d.pick(8) {
	case 0:
		time.Sleep(d.upTo(2 * latencyMax)) // the answers are on their way, or just there
		go w.admin("session/cancel", map[string]any{"sessionId": sessionOf(key)})
	case 1:
		time.Sleep(d.upTo(2 * latencyMax))
		w.process()
	case 2:
		time.Sleep(d.upTo(2 * latencyMax))
		w.network(p)
	case 3:
		time.Sleep(d.upTo(2 * latencyMax))
		p.reload()
	case 4:
		w.discard(id)
	}
}

func (w *World) network(p *page) {
	d := w.dice
	p.mu.Lock()
	l := p.line
	p.mu.Unlock()
	if l == nil {
		return
	}
	switch d.pick(5) {
	case 0:
		w.notef("%s is cut", p.name)
		l.cut()
	case 1, 2:
		after := d.upTo(90 * time.Second)
		if d.in(3) || w.fault == GhostClients {
			after = 0
		}
		w.notef("%s loses its connection, the host sees it after %v", p.name, after)
		l.drop(after)
	case 3:
		w.notef("%s stalls", p.name)
		l.stall(d.upTo(80 * time.Second))
	case 4:
		p.mu.Lock()
		p.slow = d.upTo(3 * time.Second)
		w.notef("%s reads a frame every %v", p.name, p.slow)
		time.AfterFunc(d.upTo(40*time.Second), func() { p.mu.Lock(); p.slow = 0; p.mu.Unlock() })
		p.mu.Unlock()
	}
}

func (w *World) process() {
	if w.host == nil || w.solid {
		return
	}
	switch w.dice.pick(4) {
	case 0:
		w.crash("is killed")
	case 1:
		w.stop()
	default:
		n := 1 + w.dice.pick(4)
		w.notef("write %d from now will fail", n)
		w.disk.failSoon(n)
	}
}

// clocks steps a wall clock or lets machines sleep.
func (w *World) clocks(p *page) {
	if w.steady {
		return
	}
	d := w.dice
	by := d.upTo(10 * time.Minute)
	switch d.pick(4) {
	case 0:
		w.notef("the host's clock steps by %v", by)
		w.mu.Lock()
		w.step += by - 5*time.Minute
		w.mu.Unlock()
	case 1:
		p.mu.Lock()
		w.notef("the clock of %s steps by %v", p.name, by)
		p.wall += by - 5*time.Minute
		p.mu.Unlock()
	case 2: // a laptop with the host and a page on it
		w.notef("the host and %s sleep for %v", p.name, by)
		w.mu.Lock()
		w.slept += by
		w.mu.Unlock()
		p.mu.Lock()
		p.wall += by
		if d.in(2) { // not every browser's monotonic clock stands still
			p.mono += by
		}
		p.mu.Unlock()
	case 3:
		w.notef("%s sleeps for %v", p.name, by)
		p.mu.Lock()
		p.wall += by
		if d.in(2) {
			p.mono += by
		}
		if p.line != nil && d.in(2) {
			p.line.cut()
		}
		p.mu.Unlock()
	}
}

// lifecycle forks, renames, archives or deletes a session.
func (w *World) lifecycle(id string) {
	d := w.dice
	if w.host == nil {
		return
	}
	params := map[string]any{"sessionId": id}
	switch d.pick(4) {
	case 0:
		if len(w.sessions) >= sessionsMax {
			return
		}
		out, err := w.admin("session/fork", params)
		if err != nil {
			return
		}
		fork := out.Get("sessionId").Text()
		w.notef("%s is forked as %s", id, fork)
		w.sessions = append(w.sessions, fork)
		w.setModel(fork, &model{dice: newDice(w.seed, 30+uint64(len(w.sessions)))})
		w.say(fork)
	case 1:
		params["title"] = fmt.Sprint("title ", d.pick(100))
		w.admin("session/rename", params)
	case 2:
		params["archived"] = d.in(2)
		w.admin("session/archive", params)
	case 3:
		if len(w.sessions) < 2 || w.isOutside(id) {
			return
		}
		w.notef("delete %s", id)
		w.book.deleting(id)
		w.sessions = slices.DeleteFunc(w.sessions, func(s string) bool { return s == id })
		if _, err := w.admin("session/delete", params); err != nil {
			w.notef("delete: %v", err)
		}
	}
}

// storage fills or frees a browser's storage.
func (w *World) storage(p *page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.browser.mu.Lock()
	p.browser.failing = !p.browser.failing
	failing := p.browser.failing
	p.browser.mu.Unlock()
	w.notef("storage of %s fails: %v", p.name, failing)
}

// say sends a prompt.
func (w *World) say(id string) {
	msg := fmt.Sprint("prompt-", w.newID())
	w.notef("send %s to %s", msg, id)
	if _, err := w.admin("session/send", map[string]any{"sessionId": id, "text": "go on", "messageId": msg}); err == nil {
		w.book.promised(id, msg, "", "")
	}
}

// discard takes a waiting message out.
func (w *World) discard(id string) {
	h := w.host
	if h == nil {
		return
	}
	row, _ := h.store.Row(id)
	if len(row.Queued) == 0 {
		return
	}
	msg := row.Queued[w.dice.pick(len(row.Queued))].ID
	w.removing(msg)
	w.notef("discard %s", msg)
	if _, err := w.admin("inbox/remove", map[string]any{"sessionId": id, "messageId": msg}); err != nil {
		w.notef("discard: %v", err)
	}
}
