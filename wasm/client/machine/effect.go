package machine

import (
	"strconv"

	"meanwhile/shared/deadline/countdown"
	"meanwhile/shared/projection"
	"meanwhile/wasm/client/card"
	"meanwhile/wasm/client/draft"
)

// do begins an effect; the caller ends it.
func (m *Machine) do(what string) {
	m.fx.Begin()
	m.fx.StrField("do", what)
}

func (m *Machine) mark(view string) {
	for _, d := range m.dirty {
		if d == view {
			return
		}
	}
	m.dirty = append(m.dirty, view)
}

func (m *Machine) announce(code, key string, n int64) {
	m.do("announce")
	m.fx.StrField("code", code)
	m.fx.OptField("key", key)
	if n > 0 {
		m.fx.IntField("n", n)
	}
	m.fx.End()
}

func (m *Machine) notice(c *card.Card, kind string) {
	m.notified[c.Key] = true
	m.do("notify")
	m.fx.StrField("key", c.Key)
	m.fx.StrField("kind", kind)
	m.fx.End()
}

func (m *Machine) unnotice(c *card.Card) {
	if m.notified[c.Key] {
		delete(m.notified, c.Key)
		m.do("unnotify")
		m.fx.StrField("key", c.Key)
		m.fx.End()
	}
}

// open begins a call or stream and leaves its params open: the caller writes
// them and calls opened.
func (m *Machine) open(do, method string, c call) (id string) {
	m.serial++
	id = "m" + strconv.FormatInt(m.serial, 10)
	m.calls[id] = c
	m.do(do)
	m.fx.StrField("id", id)
	m.fx.StrField("method", method)
	if c.post {
		m.fx.BoolField("post", true)
	}
	m.fx.Name("params")
	m.fx.Begin()
	return id
}

func (m *Machine) opened() {
	m.fx.End()
	m.fx.End()
}

// Up implements card.Shell, as do the methods below.
func (m *Machine) Up() bool { return m.conn == "up" && m.answer }

// Respond answers the host's call: with answers, or with a code.
func (m *Machine) Respond(delivery string, answers []projection.Answer, code string) {
	delete(m.deliveries, delivery)
	m.respond(delivery, func() { m.outcome(answers) }, code, "")
}

func (m *Machine) respond(id string, result func(), code, message string) {
	m.do("respond")
	m.fx.StrField("id", id)
	if code == "" {
		result()
	} else {
		if message == "" {
			message = code
		}
		m.fx.Name("error")
		m.fx.Begin()
		m.fx.IntField("code", -32000)
		m.fx.StrField("message", message)
		m.fx.Name("data")
		m.fx.Begin()
		m.fx.StrField("name", "UserQuestionError")
		m.fx.StrField("code", code)
		m.fx.End()
		m.fx.End()
	}
	m.fx.End()
}

// outcome writes the member result of a waterfall outcome.
func (m *Machine) outcome(answers []projection.Answer) {
	m.fx.Name("result")
	m.answers(answers)
}

func (m *Machine) answers(answers []projection.Answer) {
	m.fx.Begin()
	m.fx.Name("answers")
	projection.AppendAnswers(&m.fx, answers)
	m.fx.End()
}

func (m *Machine) Attach(c *card.Card) string {
	id := m.open("stream", "userQuestions/attachWait", call{kind: callClaim, key: c.Key})
	m.fx.StrField("sessionId", c.SessionID)
	m.fx.StrField("callId", c.CallID)
	m.opened()
	return id
}

func (m *Machine) Abort(id string) {
	if _, ok := m.calls[id]; ok {
		delete(m.calls, id)
		m.do("abort")
		m.fx.StrField("id", id)
		m.fx.End()
	}
}

func (m *Machine) Answer(c *card.Card) string {
	id := m.open("call", "userQuestions/answer", call{kind: callAnswer, key: c.Key})
	m.fx.StrField("sessionId", c.SessionID)
	m.fx.StrField("callId", c.CallID)
	m.fx.Name("answer")
	m.answers(c.Press.Batch)
	m.fx.StrField("submissionId", c.Press.ID)
	m.opened()
	return id
}

func (m *Machine) Settle(c *card.Card) string {
	id := m.open("call", "remote/settle", call{kind: callSettle, key: c.Key, post: true})
	m.fx.StrField("eventId", c.EventID)
	m.outcome(c.Press.Batch)
	m.opened()
	return id
}

func (m *Machine) Look(c *card.Card) string {
	id := m.open("stream", "session/follow", call{kind: callLook, key: c.Key, session: c.SessionID})
	m.fx.StrField("sessionId", c.SessionID)
	if s := m.byID[c.SessionID]; s != nil && s.listed { // the first item has the record; no history is wanted
		m.fx.IntField("after", s.rowSeq)
	}
	m.opened()
	return id
}

func (m *Machine) SubmissionID() string {
	m.presses++
	return m.nonce + "-" + strconv.FormatInt(m.presses, 10)
}

func (m *Machine) Say(code string, c *card.Card) { m.announce(code, c.Key, 0) }

// Save stores a card's draft, or removes it when it holds nothing.
func (m *Machine) Save(c *card.Card) {
	key := itemPrefix + c.Key + "/" + m.tab
	if other, ok := m.orphans[c.Key]; ok {
		key = other
	}
	wait := c.Count.Disposition()
	if c.Ended != nil && !c.Kept() || c.Ended == nil && !c.Edited() && wait == countdown.NoDisposition {
		m.remove(key)
		return
	}
	d := draft.Draft{Index: c.Draft.Index, Answers: append([]draft.Item(nil), c.Draft.Answers...)}
	r := draft.Record{At: m.now.Wall, SessionID: c.SessionID, CallID: c.CallID, EventID: c.EventID, Title: m.title(c.SessionID),
		Draft: d, Wait: wait, Stubs: draft.StubsOf(c.Questions), Ended: c.Ended, Sent: c.SentMark && c.Ended == nil}
	m.store(key, r)
}
