package sim

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing/synctest"
	"time"

	"meanwhile/host/agent"
	"meanwhile/host/session"
	"meanwhile/shared/projection"
)

// settle lets everything heal and checks what must then be true.
func (w *World) settle() {
	for w.host == nil {
		time.Sleep(time.Second)
		w.tend()
	}
	w.heal()
	for range 4 {
		time.Sleep(45 * time.Second)
		w.tend()
	}
	for w.host == nil { // a write that was about to fail has failed
		time.Sleep(20 * time.Second)
		w.tend()
	}
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	w.converge()
	for _, o := range w.outside {
		o.end()
		o.drain()
	}
	synctest.Wait()
	w.converge()
	w.nothingForgotten()
	w.leave()
	w.finish()
}

func (w *World) heal() {
	w.notef("heal")
	w.solid = true
	w.disk.failSoon(0)
	w.mu.Lock()
	models := maps.Clone(w.models)
	w.mu.Unlock()
	for _, m := range models {
		m.mu.Lock()
		m.still = true
		m.mu.Unlock()
	}
	for _, b := range w.browsers {
		b.mu.Lock()
		b.failing = false
		b.mu.Unlock()
	}
	for _, p := range w.pages {
		p.mu.Lock()
		p.slow = 0
		if p.line != nil && w.fault != GhostClients {
			p.line.cut() // half open ones are found by and by, and that takes a minute
		}
		p.mu.Unlock()
	}
}

// converge compares every client with a fresh one and with the log.
func (w *World) converge() {
	fresh := newPage(w, 9, &browser{items: map[string]string{}})
	for _, id := range w.sessions {
		fresh.mu.Lock()
		fresh.send(fmt.Sprintf(`{"type":"follow","sessionId":%q}`, id))
		fresh.mu.Unlock()
	}
	time.Sleep(30 * time.Second)
	synctest.Wait()
	want := w.folded()
	fresh.mu.Lock()
	shown := fresh.shown()
	transcripts := map[string]string{}
	for _, id := range w.sessions {
		transcripts[id] = fresh.transcript(id)
	}
	fresh.mu.Unlock()
	if got := keyedOnly(shown); got != want {
		w.failf("a fresh client shows\n%swhere the logs hold\n%s", got, want)
	}
	for _, p := range w.pages {
		p.mu.Lock()
		if !p.online {
			w.failf("%s is not connected after all", p.name)
		}
		if got := p.shown(); got != shown {
			w.failf("%s shows\n%swhere a fresh client shows\n%s", p.name, got, shown)
		}
		for _, row := range p.look(`{"view":"sessions"}`).Get("sessions").Items() {
			id := row.Get("id").Text()
			if got, want := p.transcript(id), transcripts[id]; row.Get("followed").True() && got != want {
				w.failf("%s shows of %s\n%s\nwhere a fresh client shows\n%s", p.name, id, got, want)
			}
		}
		for _, c := range p.look(`{"view":"cards"}`).Get("cards").Items() {
			if busy := c.Get("busy").Text(); busy != "" && c.Get("group").Text() != "answered" {
				w.failf("%s: card %s is %s and nothing comes of it", p.name, c.Get("key").Text(), busy)
			}
		}
		p.mu.Unlock()
	}
	fresh.close()
}

// revisions counts what a view has drawn, which differs by history.
var revisions = regexp.MustCompile(`"(rev|reset)":[0-9a-z]+,?`)

// transcript is the transcript of a session that the page follows. Rows of
// asks name no cards here: keys of unkeyed ones and actions depend on the page.
func (p *page) transcript(id string) string {
	v := p.look(fmt.Sprintf(`{"view":"transcript","sessionId":%q}`, id))
	return revisions.ReplaceAllString(string(v.Bytes()), "")
}

// nothingForgotten checks that no message waits for a turn that nothing keeps from starting.
func (w *World) nothingForgotten() {
	for _, a := range w.host.agents.Live() {
		if a.Passive() != nil {
			continue
		}
		a.Log().View(func(s *session.State) {
			if !s.TurnOpen && s.Inbox.Len() > 0 && agent.Resumes(s.Ended) {
				w.failf("%s: %d messages wait, the last turn ended as %q, and none starts", a.ID(), s.Inbox.Len(), s.Ended)
			}
		})
	}
}

// shown is the live cards of a page: key and group.
func (p *page) shown() string {
	var b strings.Builder
	rows := map[string]string{}
	for _, c := range p.look(`{"view":"cards"}`).Get("cards").Items() {
		if g := c.Get("group").Text(); g == "needs" || g == "late" || g == "queued" {
			rows[c.Get("key").Text()] = g
		}
	}
	for _, k := range sortedKeys(rows) {
		fmt.Fprintln(&b, k, rows[k])
	}
	return b.String()
}

func keyedOnly(rows string) string {
	var b strings.Builder
	for _, line := range strings.SplitAfter(rows, "\n") {
		if strings.HasPrefix(line, "c:") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// folded is the same from a fresh fold of each log as it is on disk.
func (w *World) folded() string {
	rows := map[string]string{}
	for _, row := range w.host.store.List() {
		l, err := w.host.store.Open(context.Background(), row.ID)
		if err != nil {
			w.failf("open %s: %v", row.ID, err)
			continue
		}
		set := projection.NewSet(l.Header())
		events, err := w.host.events(row.ID)
		for _, e := range events {
			if err == nil {
				err = set.Apply(e, nil)
			}
		}
		if err != nil {
			w.failf("fold %s: %v", row.ID, err)
		}
		for a := range set.Questions.AllActive {
			group := "late"
			if _, queued := set.Inbox.Reply(a.CallID); queued {
				group = "queued"
			}
			if a.State == projection.Open {
				group = "needs"
			}
			rows["c:"+row.ID+":"+a.CallID] = group
		}
	}
	var b strings.Builder
	for _, k := range sortedKeys(rows) {
		fmt.Fprintln(&b, k, rows[k])
	}
	return b.String()
}

// leave has each agent ask once more, lets people look at it, and then every
// client goes: no claim may stay behind, so every timed ask ends at its own
// deadline, or shortly after a sleep.
func (w *World) leave() {
	for _, id := range w.sessions {
		if m := w.modelOf(id); !w.isOutside(id) {
			m.mu.Lock()
			m.final = true
			m.mu.Unlock()
			w.say(id)
		}
	}
	time.Sleep(5 * time.Second)
	for range 6 {
		w.pages[w.dice.pick(len(w.pages))].live()
	}
	w.notef("everybody leaves")
	left := time.Now()
	for _, p := range w.pages {
		if w.fault == GhostClients {
			p.mu.Lock()
			if p.line != nil {
				p.line.drop(0)
				p.line = nil // and the browser says no goodbye
			}
			p.mu.Unlock()
		}
		p.close()
	}
	time.Sleep(2 * time.Second)
	if w.steady {
		time.Sleep(finalWindow) // nobody asks for longer
	} else {
		w.notef("the host sleeps")
		w.mu.Lock()
		w.slept += time.Hour
		w.mu.Unlock()
		time.Sleep(10 * time.Second)
	}
	synctest.Wait()
	for _, row := range w.host.store.List() {
		l, err := w.host.store.Open(context.Background(), row.ID)
		if err != nil {
			continue
		}
		l.View(func(s *session.State) {
			for a := range s.Questions.AllActive {
				if a.State != projection.Open {
					continue
				}
				if q, ok := w.host.quest.Lookup(row.ID, a.CallID); ok && w.timed(row.ID, a.CallID, left) {
					w.failf("%s: %s is open with everybody gone and its time over by far (%v left)", row.ID, a.CallID, q.Remaining())
				}
			}
		})
	}
}

// timed reports whether the recorded call is from before and has a deadline.
func (w *World) timed(session, call string, before time.Time) bool {
	events, err := w.host.events(session)
	if err != nil {
		return false
	}
	r, _ := read(events)
	c := r.calls[call]
	if c == nil || c.at >= before.UnixMilli() {
		return false
	}
	ask, p := projection.ParseAsk(c.arguments)
	return p == nil && (ask.Timeout == nil || *ask.Timeout != projection.Blocks)
}

// finish ends what blocks, closes the host and reads the logs a last time.
func (w *World) finish() {
	for _, id := range w.sessions {
		if !w.isOutside(id) {
			if _, err := w.admin("session/cancel", map[string]any{"sessionId": id}); err != nil {
				w.failf("cancel %s: %v", id, err)
			}
		}
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	logs := w.audit(w.host, false)
	for _, id := range w.sessions {
		if r := logs[id]; r != nil && r.open && !w.isOutside(id) {
			w.failf("%s: the turn goes on after everything was cancelled", id)
		}
	}
	w.auditVanished(logs)
	w.auditHints(logs)
	h := w.host
	if s := h.quest.Stats(); s.Open > 0 && len(w.outside) == 0 {
		w.failf("%d asks are open after everything was cancelled", s.Open)
	}
	w.stop()
	w.boot()
	w.stop()
}
