package notify

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"meanwhile/host/question"
	"meanwhile/host/session"
)

// entry is one ask that is followed.
type entry struct {
	tag, key      string
	session, call string
	note          Note // what stays the same of its notes
	timed         bool
	deadline      time.Time
	timer         *time.Timer
	announced     bool
	continued     bool
	listed        bool // the list of sessions has shown it
	ended         bool
	recovered     bool
}

// Watch passes events on and notes the asks among them.
func (s *Service) Watch(next question.EmitFunc) question.EmitFunc {
	return func(ev question.Event) question.Pending {
		e := s.read(ev)
		if e == nil {
			return next(ev)
		}
		settled := ev.Settled
		ev.Settled = func(x question.Settlement) {
			settled(x)
			s.settle(e, x)
		}
		p := next(ev)
		if named, ok := p.(interface{ ID() string }); ok {
			e.note.EventID = named.ID()
		}
		s.arrive(e)
		return p
	}
}

// read takes from an event what notes need of it, nil if it is no ask.
func (s *Service) read(ev question.Event) *entry {
	if ev.Name != question.EventName {
		return nil
	}
	var p struct {
		SessionID string `json:"sessionId"`
		Request   struct {
			Questions []struct {
				ID, Question, Header string
				Detail               string
				MultiSelect          bool
				Options              []struct{ Label string }
				Intent               json.RawMessage
			}
			Wait struct {
				CallID string
				Timed  bool
			}
		}
	}
	if json.Unmarshal(ev.Params, &p) != nil || len(p.Request.Questions) == 0 {
		return nil
	}
	q := p.Request.Questions[0]
	e := &entry{session: p.SessionID, call: p.Request.Wait.CallID, timed: p.Request.Wait.Timed}
	e.note = Note{SessionID: e.session, CallID: e.call, Count: len(p.Request.Questions)}
	if row, ok := s.opt.Sessions.Row(e.session); ok {
		if row.Agent != nil {
			e.note.Agent = head(row.Agent.Name, 80)
		}
		if e.note.Agent == "" && s.opt.Text {
			e.note.Agent = head(row.Title, 80)
		}
	}
	if s.opt.Text {
		e.note.Header, e.note.Text = head(q.Header, 80), head(q.Question, headMax)
		if single := len(p.Request.Questions) == 1 && !q.MultiSelect && q.Intent == nil; single && len(q.Options) > 0 {
			// The button says all that it sends. The recommended option comes first.
			label := q.Options[0].Label
			for _, o := range q.Options {
				if strings.HasSuffix(o.Label, "(Recommended)") {
					label = o.Label
					break
				}
			}
			if len(label) <= labelMax {
				e.note.QuestionID, e.note.Send = q.ID, label
			}
		}
	}
	return e
}

// arrive follows an ask that has gone out.
func (s *Service) arrive(e *entry) {
	id := e.call
	e.key = "c:" + e.session + ":" + id // as the page names its cards
	if id == "" {
		id = e.note.EventID
		e.key = "e:" + e.session + ":" + id
	}
	e.tag = tagOf(e.session, id)
	now := time.Now()
	window := time.Duration(0)
	if e.timed {
		window = s.opt.Remaining(e.session, e.call)
		e.deadline = now.Add(window)
	}
	e.note.Tag, e.note.Key, e.note.Deadline = e.tag, e.key, e.deadline
	delay := s.opt.Delay
	if e.timed {
		delay = min(delay, window/4)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || e.ended {
		return
	}
	if old := s.asks[e.tag]; old != nil {
		// The same ask again, after a restart: it was announced, and once is enough.
		e.announced, e.note.recovered = old.announced, old.note.recovered
		s.forgetLocked(old)
	}
	if len(s.asks) >= trackedMax {
		s.dropped++
		e.ended = true
		return
	}
	s.keepLocked(e)
	if e.announced {
		s.remindLocked(e, now)
		return
	}
	e.timer = time.AfterFunc(delay, func() { s.announce(e) })
}

func (s *Service) keepLocked(e *entry) {
	s.asks[e.tag] = e
	if s.by[e.session] == nil {
		s.by[e.session] = map[string]*entry{}
	}
	s.by[e.session][e.tag] = e
}

// announce says for the first time that an agent asks.
func (s *Service) announce(e *entry) {
	s.mu.Lock()
	if s.closed || e.ended || e.continued {
		s.mu.Unlock()
		return
	}
	e.announced = true
	now := time.Now()
	s.remindLocked(e, now)
	save := e.call != "" && s.saved < announcedMax // an ask without a call does not outlive the host
	if save {
		s.saved++
	}
	s.tellLocked(e, Arrived, now, "")
	s.work.Add(1)
	s.mu.Unlock()
	defer s.work.Done()
	if !save {
		return
	}
	data, err := json.Marshal(map[string]string{"Session": e.session, "Call": e.call, "Key": e.key, "Agent": e.note.Agent})
	if err == nil {
		err = s.opt.Values.Put(announcedKind, e.tag, data)
	}
	if err != nil {
		s.opt.Log.Warn("announced ask not kept", "session", e.session, "error", err)
	}
	s.mu.Lock()
	ended := e.ended
	s.mu.Unlock()
	if ended {
		s.unsave(e.tag)
	}
}

func (s *Service) remindLocked(e *entry, now time.Time) {
	left := e.deadline.Sub(now)
	if !e.timed || left < reminderLeast {
		return
	}
	e.timer = time.AfterFunc(left-left/reminderAt, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed && !e.ended && !e.continued {
			s.tellLocked(e, Reminder, time.Now(), "")
		}
	})
}

// settle takes the end of an ask's event.
func (s *Service) settle(e *entry, x question.Settlement) {
	if x.Kind == question.Unhandled && e.timed {
		return // it goes out again when somebody comes
	}
	carriedOn := e.timed && x.Code == question.CodeTimedOut
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed || e.ended:
	case s.asks[e.tag] != e: // before arrive, or not followed
		e.ended = true
	case carriedOn:
		e.continued = true
		if e.timer != nil {
			e.timer.Stop()
		}
		if e.announced {
			s.tellLocked(e, Continued, time.Now(), "")
		}
	default:
		by := ""
		if x.Kind == question.Result {
			by = x.ClientName
		}
		s.endLocked(e, by)
	}
}

// endLocked withdraws what was said of an ask and forgets it.
func (s *Service) endLocked(e *entry, by string) {
	if e.announced {
		s.tellLocked(e, Settled, time.Now(), by)
	}
	s.forgetLocked(e)
	if e.announced && e.call != "" {
		s.work.Go(func() { s.unsave(e.tag) })
	}
}

func (s *Service) forgetLocked(e *entry) {
	e.ended = true
	if e.timer != nil {
		e.timer.Stop()
	}
	delete(s.asks, e.tag)
	delete(s.by[e.session], e.tag)
	if len(s.by[e.session]) == 0 {
		delete(s.by, e.session)
	}
}

func (s *Service) unsave(tag string) {
	if err := s.opt.Values.Delete(announcedKind, tag); err != nil {
		s.opt.Log.Warn("announced ask not forgotten", "error", err)
		return
	}
	s.mu.Lock()
	s.saved = max(0, s.saved-1)
	s.mu.Unlock()
}

func (s *Service) tellLocked(e *entry, kind Kind, now time.Time, by string) {
	n := e.note
	n.Kind, n.At, n.By, n.Link = kind, now, by, s.opt.Link(e.key)
	n.Until = now.Add(blockLife)
	if (kind == Arrived || kind == Reminder) && e.timed {
		n.Until = e.deadline
	}
	if kind == Continued || kind == Settled {
		n.Deadline, n.Send, n.QuestionID = time.Time{}, "", ""
	}
	for _, t := range s.targets {
		t.offer(n)
	}
}

// listed looks for continued asks that are over: answered late, withdrawn, or
// deleted with their session.
func (s *Service) listed(item session.ListItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for _, rows := range [][]session.Row{item.Sessions, item.Upsert} {
		for i := range rows {
			s.rowLocked(&rows[i])
		}
	}
	for _, id := range item.Removed {
		for _, e := range s.by[id] {
			s.endLocked(e, "")
		}
	}
	if item.Sessions == nil {
		return
	}
	// The first item holds every session: what is in none of them is gone.
	known := map[string]bool{}
	for i := range item.Sessions {
		known[item.Sessions[i].ID] = true
	}
	for _, e := range s.asks {
		if e.recovered && !known[e.session] {
			s.endLocked(e, "")
		}
	}
}

func (s *Service) rowLocked(row *session.Row) {
	mine := s.by[row.ID]
	if len(mine) == 0 || row.Partial {
		return
	}
	active := map[string]bool{}
	for _, raw := range row.Active {
		var a struct {
			CallID string `json:"callId"`
		}
		if json.Unmarshal(raw, &a) == nil {
			active[a.CallID] = true
		}
	}
	for _, e := range mine {
		if e.call == "" {
			continue
		}
		queued := slices.ContainsFunc(row.Queued, func(q session.Queued) bool { return q.CallID == e.call })
		switch {
		case active[e.call] && !queued:
			e.listed = true
		case e.continued && e.listed:
			s.endLocked(e, "")
		}
	}
}
