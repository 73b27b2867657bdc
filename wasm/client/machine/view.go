package machine

import (
	"slices"

	"meanwhile/shared/deadline/countdown"
	"meanwhile/shared/event/value"
	"meanwhile/wasm/client/card"
	"meanwhile/wasm/client/draft"
	"meanwhile/wasm/client/transcript"
)

// View draws one view; it changes nothing.
func (m *Machine) View(now countdown.Stamp, request []byte) ([]byte, *Error) {
	in, err := value.Parse(request)
	if err != nil {
		return nil, badInput(err.Error())
	}
	if !m.ready {
		return nil, badInput("init comes first")
	}
	var w value.Writer
	w.Begin()
	switch in.Get("view").Text() {
	case "cards":
		m.viewCards(&w, now)
	case "card":
		m.viewCard(&w, now, in.Get("key").Text())
	case "sessions":
		m.viewSessions(&w)
	case "transcript":
		since, _ := in.Get("since").Int()
		m.viewTranscript(&w, in.Get("sessionId").Text(), since)
	case "record":
		m.viewRecord(&w, in.Get("sessionId").Text(), in.Get("callId").Text())
	default:
		return nil, badInput("view must be cards, card, sessions, transcript or record")
	}
	w.End()
	return w.Bytes(), nil
}

var groups = [...]string{"needs", "late", "queued", "ended"}

func (m *Machine) viewCards(w *value.Writer, now countdown.Stamp) {
	w.StrField("conn", m.conn)
	if m.stop != 0 {
		w.IntField("stop", m.stop)
	}
	w.BoolField("known", m.known)
	storage := "local"
	if m.memory {
		storage = "memory"
	}
	w.StrField("storage", storage)
	if m.otherBuild {
		w.StrField("build", "other")
	}
	if m.over > 0 {
		w.IntField("over", m.over)
	}
	for _, g := range groups {
		n := int64(0)
		for _, c := range m.cards {
			if c.Group() == g {
				n++
			}
		}
		w.IntField(g, n)
	}
	w.Name("cards")
	w.BeginArray()
	row := func(c *card.Card) {
		w.Begin()
		m.row(w, now, c)
		w.End()
	}
	for _, g := range groups {
		for _, c := range m.cards {
			if c.Group() == g {
				row(c)
			}
		}
	}
	for i := len(m.answered) - 1; i >= 0; i-- {
		row(m.answered[i])
	}
	w.EndArray()
}

func (m *Machine) row(w *value.Writer, now countdown.Stamp, c *card.Card) {
	c.AppendRow(w, now, func(w *value.Writer) {
		if s := m.byID[c.SessionID]; s != nil {
			s.about(w)
		} else if it := m.orphans[c.Key]; it != "" {
			for _, o := range m.items {
				if o.key == it {
					w.OptField("title", o.rec.Title)
				}
			}
		}
	})
}

// about writes what the list says of a session, as the host sent it.
func (s *session) about(w *value.Writer) {
	for _, name := range [...]string{"title", "agent", "status", "note", "archived"} {
		if v := s.row.Get(name); v.Kind() != value.Missing && v.Kind() != value.Null {
			w.Name(name)
			w.Value(v)
		}
	}
}

func (m *Machine) viewCard(w *value.Writer, now countdown.Stamp, key string) {
	c := m.byKey[key]
	if c == nil {
		for _, o := range m.answered {
			if o.Key == key {
				c = o
			}
		}
	}
	if c == nil {
		return
	}
	m.row(w, now, c)
	if m.memory {
		w.StrField("storage", "memory")
	}
	c.AppendView(w, m)
}

func (m *Machine) viewSessions(w *value.Writer) {
	w.BoolField("known", m.known)
	rows := slices.Clone(m.sessions)
	at := func(s *session) int64 { n, _ := s.row.Get("updatedAt").Int(); return n }
	slices.SortStableFunc(rows, func(a, b *session) int {
		switch x, y := at(a), at(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	w.Name("sessions")
	w.BeginArray()
	for _, s := range rows {
		if !s.listed {
			continue
		}
		w.Begin()
		w.StrField("id", s.id)
		s.about(w)
		w.IntField("seq", s.rowSeq)
		w.IntField("at", at(s))
		open, late, queued := s.counts()
		w.IntField("open", open)
		w.IntField("late", late)
		w.IntField("queued", queued)
		if s.follow {
			w.BoolField("followed", true)
		}
		w.End()
	}
	w.EndArray()
}

func (m *Machine) viewTranscript(w *value.Writer, id string, since int64) {
	s := m.byID[id]
	if s == nil || !s.follow {
		return
	}
	w.StrField("sessionId", id)
	w.StrField("state", s.state)
	w.OptField("error", s.problem)
	if s.log == nil {
		w.IntField("rev", s.rev)
		w.IntField("total", 0)
		w.IntField("base", 0)
		w.BoolField("reset", true)
		w.Name("turns")
		w.BeginArray()
		w.EndArray()
		return
	}
	w.Name("header")
	w.Value(s.log.Header)
	title := s.log.Title
	if title == "" {
		title = m.title(id)
	}
	w.OptField("title", title)
	s.log.AppendTurns(w, since, func(callID string) (string, bool) { return m.cardOf(id, callID) })
}

// cardOf is the card that an ask row opens; for "" the one unkeyed card.
func (m *Machine) cardOf(sessionID, callID string) (string, bool) {
	found := ""
	for _, c := range m.cards {
		if c.SessionID != sessionID || c.CallID != callID || c.Ended != nil {
			continue
		}
		if found != "" {
			return "", false
		}
		found = c.Key
	}
	return found, found != ""
}

// viewRecord is the read-only panel of a settled or queued ask.
func (m *Machine) viewRecord(w *value.Writer, id, callID string) {
	s := m.byID[id]
	if s == nil || s.log == nil {
		return
	}
	a, ok := s.log.Ask(callID)
	if !ok || a.Answers == nil || a.State != transcript.Answered && a.State != transcript.Queued {
		return
	}
	w.StrField("sessionId", id)
	w.StrField("callId", callID)
	w.StrField("state", a.State)
	w.Name("questions")
	w.BeginArray()
	for _, q := range a.Questions {
		for _, x := range a.Answers {
			if x.ID == q.ID {
				it := draft.Item{Selected: x.Selected, Skipped: x.Skipped()}
				if x.Custom != nil {
					it.Custom = *x.Custom
				}
				card.AppendQuestion(w, q, it)
			}
		}
	}
	w.EndArray()
}
