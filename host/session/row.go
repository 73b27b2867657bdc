package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"meanwhile/shared/event"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

const (
	maxTitle     = 200      // characters of a title
	maxHeader    = 64 << 10 // bytes of an encoded header
	maxSessionID = 128
	firstWords   = 80        // characters of a title taken from the first message
	rowEntries   = 64        // active asks, and queued messages, in one row
	rowBytes     = 256 << 10 // of both together

	// pendingEvery of a row's entries change before they are written again: else
	// each of many asks would write all the others once more.
	pendingEvery = 8
)

// The statuses of a row beside the kinds of a turn's end.
const (
	StatusNew     = "new"
	StatusRunning = "running"
	StatusDamaged = "damaged"
)

// Row is one session in the list; doc.go has its JSON.
type Row struct {
	ID            string            `json:"id"`
	Title         string            `json:"title"`
	Status        string            `json:"status"`
	Agent         *RowAgent         `json:"agent"`
	Active        []json.RawMessage `json:"active"`
	Queued        []Queued          `json:"queued"`
	Seq           int64             `json:"seq"`
	CreatedAt     int64             `json:"createdAt"`
	UpdatedAt     int64             `json:"updatedAt"`
	Archived      bool              `json:"archived,omitempty"`
	ParentSession string            `json:"parentSession,omitempty"`
	Partial       bool              `json:"partial,omitempty"`
	Note          string            `json:"note,omitempty"`

	Owner string `json:"-"`
	key   string
	open  bool                 // the last turn has not ended
	stale bool                 // the lists are behind the log
	shown []*projection.Active // what Active was made of, with its state then
	state []projection.State
}

// RowAgent says who drives the session.
type RowAgent struct {
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	CWD  string `json:"cwd,omitempty"`
}

// Queued is one message that the agent has not read. CallID and Text are set
// for replies alone: other messages may be long, and the list does not need them.
type Queued struct {
	ID     string `json:"id"`
	Target string `json:"target"`
	CallID string `json:"callId,omitempty"`
	Text   string `json:"text,omitempty"`
}

// kindBuiltin is the agent of a session that names none.
const kindBuiltin = "builtin"

// summary is the small record rewritten with every batch. Stale: the pending
// record is older, and what is pending is read from the log.
type summary struct {
	Version   int    `json:"version"`
	Title     string `json:"title"`
	Status    string `json:"status"`
	Open      bool   `json:"open"`
	UpdatedAt int64  `json:"updatedAt"`
	Stale     bool   `json:"stale,omitempty"`
}

const summaryVersion = 1

// pending is the record rewritten as asks and the inbox change, at once while
// there are few.
type pending struct {
	Active  []json.RawMessage `json:"active"`
	Queued  []Queued          `json:"queued"`
	Partial bool              `json:"partial,omitempty"`
}

func (r *Row) setHeader(h event.Header, title string) {
	r.ID, r.CreatedAt, r.Archived, r.ParentSession = h.ID, h.CreatedAt, h.Archived, h.ParentSession
	r.Owner, r.key = h.Owner, h.Key
	r.Title = h.Title
	if r.Title == "" {
		r.Title = title
	}
	r.Agent = &RowAgent{Kind: kindBuiltin}
	if a := h.Agent; a != nil {
		r.Agent = &RowAgent{Kind: a.Kind, Name: a.Name, CWD: a.CWD}
	}
}

// refresh brings the row up to the state. Lists are made anew only when
// pendingChanged, and never changed in place: older rows share them.
func (r *Row) refresh(s *State, pendingChanged bool) {
	r.setHeader(s.Header, s.Balance.Title)
	r.Seq = s.Next - 1
	r.open = s.TurnOpen
	r.UpdatedAt = max(s.lastTime, s.Header.CreatedAt)
	switch {
	case s.TurnOpen:
		r.Status = StatusRunning
	case s.Ended != "":
		r.Status = s.Ended
	default:
		r.Status = StatusNew
	}
	if pendingChanged {
		r.list(s.Set)
	}
}

// Continued counts the listed asks that wait for a late answer.
func (r *Row) Continued() (n int) {
	for _, a := range r.Active {
		// encodeActive writes the state last.
		if bytes.HasSuffix(a, []byte(`"state":"`+string(projection.Continued)+`"}`)) {
			n++
		}
	}
	return n
}

// list makes the lists anew. An ask that is listed already, in the same state,
// is not encoded again; asks keep their order, so one walk finds those.
func (r *Row) list(s *projection.Set) {
	old := *r
	size := 0
	r.Active, r.Queued, r.Partial = make([]json.RawMessage, 0, len(old.Active)+1), []Queued{}, false
	r.shown, r.state = make([]*projection.Active, 0, len(old.Active)+1), make([]projection.State, 0, len(old.Active)+1)
	room := func(n int, held int) bool {
		size += n
		if held >= rowEntries || size > rowBytes {
			r.Partial = true
			return false
		}
		return true
	}
	at := 0
	s.Questions.AllActive(func(a *projection.Active) bool {
		if len(r.Active) == rowEntries {
			r.Partial = true
			return false
		}
		var raw json.RawMessage
		for i := at; i < len(old.shown); i++ {
			if old.shown[i] == a {
				if at = i + 1; old.state[i] == a.State {
					raw = old.Active[i]
				}
				break
			}
		}
		if raw == nil {
			raw = encodeActive(a)
		}
		if !room(len(raw), len(r.Active)) {
			return false
		}
		r.Active, r.shown, r.state = append(r.Active, raw), append(r.shown, a), append(r.state, a.State)
		return true
	})
	for _, target := range []string{event.NextStep, event.NextTurn} {
		for _, m := range s.Inbox.Queue(target) {
			q := Queued{ID: m.ID, Target: target}
			if m.Source.Kind == event.SourceReply {
				q.CallID, q.Text = m.Source.CallID, m.Text
			}
			if !room(len(q.ID)+len(q.Text), len(r.Queued)) {
				return
			}
			r.Queued = append(r.Queued, q)
		}
	}
}

func encodeActive(a *projection.Active) json.RawMessage {
	var w value.Writer
	w.Begin()
	w.StrField("callId", a.CallID)
	w.Name("questions")
	projection.AppendQuestions(&w, a.Questions)
	w.StrField("state", string(a.State))
	w.End()
	return w.Bytes()
}

func (r *Row) summary(s *State, stale bool) []byte {
	return mustJSON(summary{Version: summaryVersion, Title: s.Balance.Title, Status: r.Status, Open: r.open, UpdatedAt: r.UpdatedAt, Stale: stale})
}

// pending encodes the lists by hand: encoding/json would read every ask again.
func (r *Row) pending() []byte {
	var w value.Writer
	w.Begin()
	w.Name("active")
	w.BeginArray()
	for _, a := range r.Active {
		w.Raw(a)
	}
	w.EndArray()
	w.Name("queued")
	w.Raw(mustJSON(r.Queued))
	if r.Partial {
		w.BoolField("partial", true)
	}
	w.End()
	return w.Bytes()
}

// mustJSON encodes our own structs, which cannot fail.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("session: encode %T: %v", v, err))
	}
	return b
}

// rowFrom assembles a row from a backend's record without reading the log. ok
// is false when a record is missing, of another version or stale; the log can
// tell. A stale one whose turn is open will be read to repair it: its lists are
// partial until then.
func rowFrom(rec Record) (r Row, ok bool) {
	h, err := event.ParseHeader(rec.Header)
	if err != nil {
		return Row{}, false
	}
	var sum summary
	var p pending
	if !strictJSON(rec.Summary, &sum) || sum.Version != summaryVersion || !strictJSON(rec.Pending, &p) {
		return Row{}, false
	}
	r.setHeader(h, sum.Title)
	r.Seq, r.UpdatedAt, r.Status, r.open = rec.Events-1, sum.UpdatedAt, sum.Status, sum.Open
	r.Active, r.Queued, r.Partial, r.stale = p.Active, p.Queued, p.Partial || sum.Stale, sum.Stale
	return r, !sum.Stale || sum.Open
}

func strictJSON(b []byte, v any) bool {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v) == nil
}

// damagedRow lists a session whose log is unreadable, with what is known of it.
func damagedRow(id string, r Row) Row {
	r.ID, r.Status, r.open = id, StatusDamaged, false
	if r.Agent == nil {
		r.Agent = &RowAgent{Kind: kindBuiltin}
	}
	// Nothing in there can be answered or admitted.
	r.Active, r.Queued, r.Partial = []json.RawMessage{}, []Queued{}, false
	return r
}

// titleFrom takes the first line of a text, without control characters.
func titleFrom(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(strings.Map(printable, line))
	for i, n := range runeStarts(line) {
		if i == firstWords {
			return strings.TrimSpace(line[:n]) + "…"
		}
	}
	return line
}

func runeStarts(s string) []int {
	var at []int
	for i := range s {
		at = append(at, i)
		if len(at) > firstWords {
			break
		}
	}
	return at
}

func printable(r rune) rune {
	if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
		return -1
	}
	return r
}

func checkHeader(h event.Header) error {
	if len([]rune(h.Title)) > maxTitle || strings.Map(printable, h.Title) != h.Title {
		return ErrBadTitle
	}
	if len(h.ID) > maxSessionID || len(event.AppendHeader(nil, h)) > maxHeader {
		return fmt.Errorf("header over %d bytes or id over %d: %w", maxHeader, maxSessionID, ErrTooLarge)
	}
	return nil
}
