package machine

import (
	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
	"meanwhile/wasm/client/card"
	"meanwhile/wasm/client/transcript"
)

// session is what is known of one: its row in the list, and its log while it
// is followed.
type session struct {
	id      string
	row     value.Value
	rowSeq  int64
	listed  bool
	partial bool
	active  []projection.Active
	queued  map[string]*card.Reply // by call id

	follow  bool
	stream  stream
	log     *transcript.Log
	catchUp int64 // seq of the stream's first item
	live    bool  // the log has caught up
	state   string
	problem string
	rev     int64 // of the last log, so that a new one's are higher
	preview [2]int64
	text    string
}

func (s *session) down() {
	s.stream, s.live = stream{}, false
	if s.state == "live" {
		s.state = "stale"
	}
}

// readRow reads a row of the session list.
func (s *session) readRow(row value.Value) {
	s.row, s.listed = row, true
	s.rowSeq, _ = row.Get("seq").Int()
	s.partial = row.Get("partial").True()
	s.active, s.queued = nil, nil
	for _, a := range row.Get("active").Items() {
		qs, p := projection.QuestionsOfWire(a.Get("questions"))
		if id := a.Get("callId").Text(); p == nil && id != "" {
			s.active = append(s.active, projection.Active{CallID: id, Questions: qs, State: projection.State(a.Get("state").Text())})
		} else {
			s.partial = true // an entry that this build cannot read is not one that is absent
		}
	}
	for _, q := range row.Get("queued").Items() {
		if id := q.Get("callId").Text(); id != "" {
			if s.queued == nil {
				s.queued = map[string]*card.Reply{}
			}
			s.queued[id] = &card.Reply{MessageID: q.Get("id").Text(), Answers: answersIn(q.Get("text").Text())}
		}
	}
}

// answersIn reads the batch in a reply's text, nil when there is none.
func answersIn(text string) []projection.Answer {
	v, err := value.ParseString(text)
	if err != nil {
		return nil
	}
	answers, _ := projection.AnswersOf(v.Get("answers"))
	return answers
}

// knownOf says what the session's projection has of one ask; ok is false when
// nothing is known.
func (m *Machine) knownOf(s *session, c *card.Card) (k card.Known, ok bool) {
	k.Synced = m.settledDown()
	switch {
	case s != nil && s.live:
		set := s.log.Set
		if a, listed := set.Questions.Active(c.CallID); listed {
			k.State = a.State
		}
		if r, queued := set.Inbox.Reply(c.CallID); queued {
			k.Reply = &card.Reply{MessageID: r.ID, By: r.Source.By, Answers: answersIn(r.Text)}
		}
		if r, had := set.Replies.Get(c.Accepted); had {
			k.Fate = r.Fate
		}
		k.Full = true
		if k.State == "" {
			k.Answers, k.Settled = set.Questions.Settled(c.CallID)
			k.By, k.Code = s.log.ReplyBy(c.CallID), s.log.CodeOf(c.CallID)
		}
		return k, true
	case !m.known && m.read:
		return k, false
	case s != nil && s.listed:
		for _, a := range s.active {
			if a.CallID == c.CallID {
				k.State = a.State
			}
		}
		k.Reply = s.queued[c.CallID]
		return k, k.State != "" || !s.partial
	}
	return k, true // the session is not in the list
}

// settledDown reports whether the list and the deliveries of this connection
// have all come, as far as this client may see them.
func (m *Machine) settledDown() bool {
	return m.conn == "up" && (m.known || !m.read) && (m.synced || !m.answer)
}

// project tells a card what is known of it now.
func (m *Machine) project(c *card.Card) { m.projectAs(c, false) }

func (m *Machine) projectAs(c *card.Card, fresh bool) {
	if !c.Keyed() || m.conn != "up" {
		return
	}
	if _, orphan := m.orphans[c.Key]; orphan {
		return
	}
	s := m.byID[c.SessionID]
	k, ok := m.knownOf(s, c)
	if !ok {
		return
	}
	// A session that the list has not come to yet is not one that is gone.
	absent := m.read && m.settledDown() && (s == nil || !s.listed && !s.live)
	if absent && (c.Listed || fresh) && c.Delivery == "" && c.Ended == nil && c.Call == "" {
		c.End(m.now, m, card.SessionGone)
		return
	}
	k.Fresh = fresh
	c.Project(m.now, m, k)
}

// projectSession brings the session's cards up to what is known.
func (m *Machine) projectSession(s *session, fresh bool) {
	for _, c := range m.cards {
		if c.SessionID == s.id {
			m.projectAs(c, fresh)
		}
	}
	m.makeCards(s, fresh)
}

// makeCards makes the cards of asks that have none.
func (m *Machine) makeCards(s *session, fresh bool) {
	each := func(a *projection.Active) bool {
		key := keyedKey(s.id, a.CallID)
		if c := m.byKey[key]; c != nil && m.orphans[key] == "" {
			return true
		}
		if a.State == projection.Open && m.isTomb(key) {
			return true
		}
		if c := m.ensure(key, s.id, a.CallID, "", a.Questions); c != nil {
			m.projectAs(c, fresh)
			if a.State == projection.Open {
				m.arrived(c)
			}
		}
		return true
	}
	switch {
	case s.live:
		s.log.Set.Questions.AllActive(each)
	case s.listed && (m.known || !m.read):
		for i := range s.active {
			each(&s.active[i])
		}
	}
	m.mark("sessions")
}

// projectAll is projectSession for all, once everything of this connection has come.
func (m *Machine) projectAll() {
	if !m.settledDown() {
		return
	}
	m.projectEach(true)
	m.adopt()
}

// projectEach is projectSession for all, in one pass over the cards.
func (m *Machine) projectEach(fresh bool) {
	for _, c := range m.cards {
		m.projectAs(c, fresh)
	}
	for _, s := range m.sessions {
		m.makeCards(s, fresh)
	}
}

func (m *Machine) openList() {
	if m.conn == "up" && m.read {
		m.list.id = m.open("stream", "host/follow", call{kind: callList})
		m.opened()
	}
}

// listItem is one item of host/follow.
func (m *Machine) listItem(v value.Value) {
	m.list.wait = 0
	if first := v.Get("sessions"); first.Kind() == value.Array {
		for _, s := range m.sessions {
			s.listed = false
		}
		for _, row := range first.Items() {
			if s := m.session(row.Get("id").Text()); s != nil {
				s.readRow(row)
			}
		}
		m.known = true
		m.forgetSessions()
		if m.settledDown() {
			m.projectAll()
		} else {
			m.projectEach(false)
		}
	}
	for _, row := range v.Get("upsert").Items() {
		if s := m.session(row.Get("id").Text()); s != nil {
			s.readRow(row)
			m.projectSession(s, false)
		}
	}
	for _, id := range v.Get("removed").Items() {
		if s := m.byID[id.Text()]; s != nil {
			s.listed, s.live = false, false
			for _, c := range m.cards {
				if c.SessionID == s.id {
					m.projectAs(c, true)
				}
			}
		}
	}
	m.forgetSessions()
	m.mark("sessions")
	m.mark("cards")
}

// session finds or adds one; nil when there are too many, or no id.
func (m *Machine) session(id string) *session {
	s := m.byID[id]
	if s == nil && id != "" && len(m.sessions) < SessionsMax {
		s = &session{id: id, rowSeq: -1, state: "loading"}
		m.byID[id] = s
		m.sessions = append(m.sessions, s)
	}
	return s
}

// forgetSessions drops those that are neither listed nor followed.
func (m *Machine) forgetSessions() {
	kept := m.sessions[:0]
	for _, s := range m.sessions {
		if s.listed || s.follow {
			kept = append(kept, s)
		} else {
			delete(m.byID, s.id)
		}
	}
	clear(m.sessions[len(kept):])
	m.sessions = kept
}

func (m *Machine) follow(id string) {
	s := m.session(id)
	if s == nil || s.follow {
		return
	}
	count := 0
	var oldest *session
	for _, o := range m.sessions {
		if o.follow {
			count++
			if oldest == nil {
				oldest = o
			}
		}
	}
	if count >= FollowsMax {
		m.unfollow(oldest.id)
	}
	// Followed sessions stand in the order in which they were asked for.
	for i, o := range m.sessions {
		if o == s {
			m.sessions = append(append(m.sessions[:i], m.sessions[i+1:]...), s)
			break
		}
	}
	s.follow, s.state = true, "loading"
	m.openFollow(s)
	m.mark("transcript:" + id)
	m.mark("sessions")
}

func (m *Machine) unfollow(id string) {
	s := m.byID[id]
	if s == nil || !s.follow {
		return
	}
	m.Abort(s.stream.id)
	s.dropLog()
	s.follow, s.stream = false, stream{}
	m.forgetSessions()
	m.mark("transcript:" + id)
	m.mark("sessions")
}

func (s *session) dropLog() {
	if s.log != nil {
		s.rev = s.log.Rev()
	}
	s.log, s.live, s.text = nil, false, ""
}

func (m *Machine) openFollow(s *session) {
	if m.conn != "up" || !s.follow || !m.read || s.stream.id != "" {
		return
	}
	s.stream.id = m.open("stream", "session/follow", call{kind: callFollow, key: s.id, session: s.id})
	m.fx.StrField("sessionId", s.id)
	if s.log != nil {
		m.fx.IntField("after", s.log.Seq)
	}
	m.opened()
}

// followItem is one item of session/follow.
func (m *Machine) followItem(s *session, v value.Value) {
	s.stream.wait = 0
	defer m.mark("transcript:" + s.id)
	if p := v.Get("preview"); p.Kind() == value.Object {
		m.preview(s, p)
		return
	}
	if raw := v.Get("header"); raw.Kind() == value.Object {
		h, err := event.ParseHeader(raw.Bytes())
		if err != nil {
			m.refollow(s, err.Error())
			return
		}
		if s.log == nil {
			s.log = transcript.New(raw, h, s.rev)
		}
		s.log.Header, s.log.Title = raw, h.Title
		s.catchUp, _ = v.Get("seq").Int()
		s.text, s.live = "", false
	}
	if s.log == nil {
		return
	}
	for _, ev := range v.Get("events").Items() {
		e, err := event.ParseEvent(ev.Bytes())
		if err == nil && e.Seq <= s.log.Seq { // given twice
			continue
		}
		if err == nil {
			err = s.log.Apply(e)
		}
		if err != nil {
			m.refollow(s, err.Error())
			return
		}
	}
	if s.log.Seq >= s.catchUp {
		s.live, s.state, s.problem = true, "live", ""
		m.projectSession(s, false)
		m.mark("cards")
	}
}

// preview appends unfinished text: an item holds what came since the last one
// of its step.
func (m *Machine) preview(s *session, p value.Value) {
	turn, _ := p.Get("turn").Int()
	step, _ := p.Get("step").Int()
	if at := [2]int64{turn, step}; at != s.preview {
		s.preview, s.text = at, ""
	}
	s.text += p.Get("text").Text()
	if s.log != nil {
		s.text = s.log.Preview(s.text)
	}
}

// refollow throws the log away and reads it anew, after a while: something in
// it cannot be as it is.
func (m *Machine) refollow(s *session, why string) {
	m.Abort(s.stream.id)
	s.dropLog()
	s.stream.failed(m.now)
	s.state, s.problem = "error", why
}

// followEnded is the stream over, well (code "") or not.
func (m *Machine) followEnded(s *session, code string) {
	s.live = false
	s.stream.failed(m.now)
	switch code {
	case "NO_SESSION":
		s.stream.retryAt, s.state = 0, "gone"
	case "RESYNC":
		s.dropLog()
		s.stream = stream{}
		m.openFollow(s)
	case "SESSION_DAMAGED":
		s.stream.retryAt, s.state, s.problem = 0, "error", code
	default:
		s.state, s.problem = "stale", code
	}
	m.mark("transcript:" + s.id)
}

// looked is the first item of a look: the record of one ask, once.
func (m *Machine) looked(c *card.Card, v value.Value) {
	c.Call = ""
	p := v.Get("projections")
	k := card.Known{Fresh: true, Synced: true, Full: true}
	for _, a := range p.Get("userQuestions").Get("active").Items() {
		if a.Get("callId").Text() == c.CallID {
			k.State = projection.State(a.Get("state").Text())
		}
	}
	for _, a := range p.Get("userQuestions").Get("settled").Items() {
		if a.Get("callId").Text() == c.CallID {
			k.Answers, k.Settled = projection.AnswersOf(a.Get("answers"))
			k.Settled = true
		}
	}
	for _, r := range p.Get("replies").Items() {
		if r.Get("id").Text() == c.Accepted && c.Accepted != "" {
			k.Fate = projection.Fate(r.Get("fate").Text())
		}
	}
	for _, target := range p.Get("inbox").Members() {
		for _, raw := range target.Value.Items() {
			if r, err := event.MessageOf(raw); err == nil && r.Source.Kind == event.SourceReply && r.Source.CallID == c.CallID {
				k.Reply = &card.Reply{MessageID: r.ID, By: r.Source.By, Answers: answersIn(r.Text)}
			}
		}
	}
	if _, orphan := m.orphans[c.Key]; orphan {
		if k.State != "" { // listed after all: the list will bring its card
			m.drop(c)
			return
		}
		c.Recorded(m.now, m, k)
		return
	}
	c.Project(m.now, m, k)
}

func keyedKey(sessionID, callID string) string { return "c:" + sessionID + ":" + callID }

func unkeyedKey(sessionID, eventID string) string { return "e:" + sessionID + ":" + eventID }

func (m *Machine) title(sessionID string) string {
	if s := m.byID[sessionID]; s != nil {
		return s.row.Get("title").Text()
	}
	return ""
}

// counts are the session's asks by state.
func (s *session) counts() (open, late, queued int64) {
	for _, a := range s.active {
		switch {
		case a.State == projection.Open:
			open++
		case s.queued[a.CallID] != nil:
			queued++
		default:
			late++
		}
	}
	return open, late, queued
}
