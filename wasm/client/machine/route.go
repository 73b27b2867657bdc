package machine

import (
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
	"meanwhile/wasm/client/card"
	"meanwhile/wasm/client/draft"
)

// request is the host forwarding an ask.
func (m *Machine) request(id, method string, p value.Value) {
	if method != "user-questions/request" {
		m.respond(id, nil, "UNKNOWN_METHOD", method)
		return
	}
	sid, eventID := p.Get("sessionId").Text(), p.Get("eventId").Text()
	qs, problem := projection.QuestionsOfWire(p.Get("request").Get("questions"))
	if problem != nil || len(qs) == 0 || sid == "" || eventID == "" {
		// Not a code that settles: to the gateway this client has left.
		m.respond(id, nil, "UNREADABLE_REQUEST", "this client cannot show the ask")
		return
	}
	wait := p.Get("request").Get("wait")
	callID := wait.Get("callId").Text()
	key := keyedKey(sid, callID)
	if callID == "" {
		key = unkeyedKey(sid, eventID)
	}
	had := m.byKey[key] != nil && m.orphans[key] == ""
	c := m.ensure(key, sid, callID, eventID, qs)
	if c == nil {
		m.respond(id, nil, "CLIENT_FULL", "this client shows too many asks")
		return
	}
	m.project(c) // a continued ask delegates what reaches it
	m.deliveries[id] = c
	var refused *projection.Problem
	if r := p.Get("refused"); r.Kind() == value.Object {
		refused = problemOf(r)
	}
	c.Deliver(m.now, m, id, eventID, wait.Get("timed").True(), refused)
	if !had {
		m.arrived(c)
	}
}

func problemOf(v value.Value) *projection.Problem {
	return &projection.Problem{Code: v.Get("code").Text(), Field: v.Get("field").Text(), Message: v.Get("message").Text()}
}

// ensure finds or makes a card. An ended one that was made from storage gives
// way: now there are the real questions.
func (m *Machine) ensure(key, sid, callID, eventID string, qs []projection.Question) *card.Card {
	if c := m.byKey[key]; c != nil {
		if _, orphan := m.orphans[key]; !orphan {
			return c
		}
		m.drop(c)
	}
	if len(m.cards) >= CardsMax {
		m.over++
		m.mark("cards")
		return nil
	}
	c := card.New(key, sid, callID, eventID, qs, m.now)
	c.Count.CarryOn(m.now, m.carryOn)
	m.restore(c)
	m.cards = append(m.cards, c)
	m.byKey[key] = c
	m.touchAsk(c)
	return c
}

// arrived tells of a new ask, once. What was open before this page came to know
// the host is counted in the announcement, but is not marked as new.
func (m *Machine) arrived(c *card.Card) {
	if c.Ended != nil || c.Continued {
		return
	}
	c.Unread = m.settledDown()
	m.arrivals++
	if m.notify && !m.visible {
		m.notice(c, "arrived")
	}
}

// touchAsk redraws the transcript row of a card that came or went.
func (m *Machine) touchAsk(c *card.Card) {
	if s := m.byID[c.SessionID]; s != nil && s.log != nil {
		s.log.Touch(c.CallID)
		m.mark("transcript:" + s.id)
	}
}

func (m *Machine) settled(p value.Value) {
	o := card.Outcome{Kind: p.Get("kind").Text(), Code: p.Get("code").Text(), By: p.Get("by").Text(), ByName: p.Get("byName").Text()}
	for _, id := range m.own {
		o.Mine = o.Mine || id == o.By
	}
	if c := m.byEvent(p.Get("eventId").Text()); c != nil {
		delete(m.deliveries, c.Delivery)
		c.Settle(m.now, m, o)
		if o.Kind == "result" && c.Keyed() && c.Ended != nil {
			m.bury(c.Key)
		}
		m.project(c)
		return
	}
	for _, c := range m.answered { // put away already; its row may learn by whom
		if c.Keyed() && c.EventID != "" && c.EventID == p.Get("eventId").Text() {
			c.Settle(m.now, m, o)
			m.mark("cards")
		}
	}
}

func (m *Machine) byEvent(eventID string) *card.Card {
	for _, c := range m.cards {
		if eventID != "" && c.EventID == eventID {
			return c
		}
	}
	return nil
}

func (m *Machine) bury(key string) {
	m.tombs = append(m.tombs, key)
	if len(m.tombs) > tombsMax {
		m.tombs = m.tombs[1:]
	}
}

func (m *Machine) isTomb(key string) bool {
	for _, t := range m.tombs {
		if t == key {
			return true
		}
	}
	return false
}

// allCame is remote/synced: every pending delivery of this connection has come.
func (m *Machine) allCame(p value.Value) {
	pending := map[string]bool{}
	for _, id := range p.Get("eventIds").Items() {
		pending[id.Text()] = true
	}
	for _, c := range m.cards {
		if c.EventID != "" && !pending[c.EventID] {
			delete(m.deliveries, c.Delivery)
			c.SyncedWithout(m.now, m)
		}
	}
	m.synced = true
	m.projectAll()
}

func (m *Machine) take(id string) (call, *card.Card, bool) {
	c, ok := m.calls[id]
	if !ok {
		return call{}, nil, false
	}
	delete(m.calls, id)
	return c, m.byKey[c.key], true
}

func (m *Machine) result(id string, v value.Value) {
	k, c, ok := m.take(id)
	switch {
	case !ok:
	case k.kind == callList:
		m.list.failed(m.now)
	case k.kind == callFollow:
		if s := m.byID[k.session]; s != nil && s.stream.id == id {
			m.followEnded(s, "")
		}
	case k.kind == callClaim:
		m.claimEnded(id, c)
	case c == nil || c.Call != id:
	case k.kind == callAnswer:
		c.AnswerResult(m.now, m, v.Get("accepted").True(), v.Get("messageId").Text(), v.Get("state").Text())
		m.project(c)
	case k.kind == callSettle:
		var refused *projection.Problem
		if r := v.Get("refused"); r.Kind() == value.Object {
			refused = problemOf(r)
		}
		c.SettleResult(m.now, m, v.Get("taken").True(), refused)
		m.project(c)
	case k.kind == callLook:
		c.LookFailed(m.now, m)
	}
}

func (m *Machine) claimEnded(id string, c *card.Card) {
	if c != nil && c.Claim == id {
		c.ClaimEnded(m.now)
	}
}

func (m *Machine) failed(id string, e value.Value) {
	k, c, ok := m.take(id)
	code := e.Get("data").Get("code").Text()
	switch {
	case !ok:
	case k.kind == callList:
		m.list.failed(m.now)
	case k.kind == callFollow:
		if s := m.byID[k.session]; s != nil && s.stream.id == id {
			if code == "" {
				code = "FAILED"
			}
			m.followEnded(s, code)
		}
	case k.kind == callClaim:
		m.claimEnded(id, c)
	case c == nil:
	case k.kind == callRemove:
		c.Hint, c.Dirty = card.Hint{Code: "failed", Error: code, Message: e.Get("message").Text()}, true
	case c.Call != id:
	case k.kind == callAnswer:
		c.AnswerError(m.now, m, code, e.Get("data").Get("field").Text(), e.Get("message").Text())
		m.project(c)
	case k.kind == callSettle:
		c.SettleError(m.now)
	case k.kind == callLook:
		c.LookFailed(m.now, m)
	}
}

func (m *Machine) item(id string, v value.Value) {
	k, ok := m.calls[id]
	if !ok {
		return
	}
	c := m.byKey[k.key]
	switch k.kind {
	case callList:
		m.listItem(v)
	case callFollow:
		if s := m.byID[k.session]; s != nil && s.stream.id == id {
			m.followItem(s, v)
		}
	case callClaim:
		if ms, isInt := v.Get("remainingMs").Int(); isInt && c != nil && c.Claim == id {
			c.Frame(m.now, ms)
		}
	case callLook:
		m.Abort(id)
		if c != nil && c.Call == id {
			m.looked(c, v)
		}
	}
}

func (m *Machine) act(in value.Value) {
	c := m.byKey[in.Get("key").Text()]
	if c == nil {
		return
	}
	switch act := in.Get("act").Text(); act {
	case "focus":
		m.focusKey = c.Key
		if m.visible {
			c.Focus(m.now)
			m.unnotice(c)
		}
	case "blur":
		if m.focusKey == c.Key {
			m.focusKey = ""
		}
		c.Blur(m.now)
	case "select", "custom", "skip", "page":
		c.Edit(m.now, m, act, in)
	case "submit":
		c.Submit(m.now, m, in)
	case "wait":
		c.TakeTime(m.now, m)
	case "hide":
		c.Hide(m.now)
	case "open":
		c.Hidden, c.Unread, c.Dirty = false, false, true
		m.unnotice(c)
		m.do("reveal")
		m.fx.StrField("key", c.Key)
		m.fx.End()
	case "close":
		c.Close(m.now, m)
	case "approve":
		c.Approve(m.now, m)
	case "changes":
		c.Changes(m.now, m)
	case "delegate":
		c.Delegate(m)
	case "seen":
		c.Unread, c.Dirty = false, true
		m.unnotice(c)
	case "cancelReply":
		m.cancelReply(c)
	case "dismiss":
		if c.Kept() {
			c.Mine = true // let go of the text
			m.Save(c)
		}
	}
}

// cancelReply takes the queued reply out of the inbox; the list says when it is.
func (m *Machine) cancelReply(c *card.Card) {
	id := c.Accepted
	if c.Reply != nil {
		id = c.Reply.MessageID
	}
	if !c.Queued() || !m.Up() || id == "" {
		return
	}
	for _, k := range m.calls {
		if k.kind == callRemove && k.key == c.Key {
			return
		}
	}
	m.open("call", "inbox/remove", call{kind: callRemove, key: c.Key})
	m.fx.StrField("sessionId", c.SessionID)
	m.fx.StrField("messageId", id)
	m.opened()
}

// sweep puts away cards that ended and hold nothing of the person's.
func (m *Machine) sweep() {
	for i := 0; i < len(m.cards); i++ {
		c := m.cards[i]
		if c.Ended == nil {
			if c.Queued() {
				m.unnotice(c)
			}
			continue
		}
		m.unnotice(c)
		if c.Kept() {
			continue
		}
		m.drop(c)
		i--
		if c.Ended.Reason == card.Answered || c.Ended.Reason == card.Elsewhere && !c.Edited() {
			m.answered = append(m.answered, c)
			if len(m.answered) > AnsweredMax {
				m.answered = m.answered[1:]
			}
		}
	}
	if m.over > 0 && len(m.cards) < CardsMax {
		m.over = 0
		m.projectEach(false)
	}
}

// drop takes a card out of the list.
func (m *Machine) drop(c *card.Card) {
	for i, o := range m.cards {
		if o == c {
			m.cards = append(m.cards[:i], m.cards[i+1:]...)
			break
		}
	}
	delete(m.byKey, c.Key)
	delete(m.orphans, c.Key)
	delete(m.deliveries, c.Delivery)
	if m.focusKey == c.Key {
		m.focusKey = ""
	}
	m.touchAsk(c)
	m.mark("cards")
	m.mark("card:" + c.Key)
}

// restore starts a card from its own stored draft, else from the newest one.
func (m *Machine) restore(c *card.Card) {
	own := itemPrefix + c.Key + "/" + m.tab
	best := -1
	for i, it := range m.items {
		if !it.ok || it.card != c.Key || !it.rec.Draft.Fits(c.Questions) {
			continue
		}
		if it.key == own {
			best = i
			break
		}
		if best < 0 || it.rec.At > m.items[best].rec.At {
			best = i
		}
	}
	if best < 0 {
		return
	}
	r := m.items[best].rec
	c.Draft = draft.Draft{Index: r.Draft.Index, Answers: append([]draft.Item(nil), r.Draft.Answers...)}
	c.Count.Restore(m.now, r.Wait)
	c.Restored = c.Edited()
	c.SentMark = r.Sent && m.items[best].key == own
}
