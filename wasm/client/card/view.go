package card

import (
	"strings"

	"meanwhile/shared/deadline/countdown"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
	"meanwhile/wasm/client/draft"
)

const (
	rowText  = 200    // characters of a question in a row
	warnLast = 60_000 // ms of a countdown that warn, or its last fifth
)

// Group is where the card stands in the list.
func (c *Card) Group() string {
	switch {
	case c.Kept():
		return "ended"
	case c.Ended != nil:
		return "answered"
	case c.Queued():
		return "queued"
	case c.Continued:
		return "late"
	}
	return "needs"
}

// State is the card's state in words.
func (c *Card) State() string {
	switch g := c.Group(); {
	case g == "needs":
		return "open"
	case g == "late":
		return "continued"
	default:
		return g
	}
}

// AppendRow writes the members of a list row. extra are the session's.
func (c *Card) AppendRow(w *value.Writer, now countdown.Stamp, extra func(*value.Writer)) {
	w.StrField("key", c.Key)
	w.StrField("group", c.Group())
	w.StrField("sessionId", c.SessionID)
	w.OptField("callId", c.CallID)
	extra(w)
	if len(c.Questions) > 0 {
		q := c.Questions[0]
		if q.Header != nil {
			w.OptField("header", *q.Header)
		}
		w.StrField("text", oneLine(q.Question))
	}
	w.IntField("n", int64(len(c.Questions)))
	if c.Ended == nil {
		w.Name("countdown")
		c.appendCountdown(w, now)
	}
	yes(w, "blocking", c.Delivery != "" && !c.Timed)
	w.OptField("busy", string(c.Busy))
	if h := c.hint(); h.Code != "" {
		w.Name("hint")
		w.Begin()
		w.StrField("code", h.Code)
		w.OptField("field", h.Field)
		w.OptField("error", h.Error)
		w.OptField("message", h.Message)
		w.End()
	}
	yes(w, "edited", c.Edited())
	yes(w, "unread", c.Unread)
	yes(w, "hidden", c.Hidden)
	w.IntField("since", c.Since)
	if c.Continued && c.CarriedAt != 0 {
		w.IntField("carriedAt", c.CarriedAt)
	}
	if c.Ended != nil {
		w.Name("ended")
		c.Ended.Append(w)
	}
}

func (c *Card) hint() Hint {
	if c.Queued() {
		return Hint{Code: "in-inbox"}
	}
	return c.Hint
}

func oneLine(s string) string {
	return draft.Cut(strings.Join(strings.Fields(draft.Cut(s, 4*rowText)), " "), rowText)
}

func (c *Card) appendCountdown(w *value.Writer, now countdown.Stamp) {
	state := c.Count.State()
	name := "none"
	switch state {
	case countdown.Counting, countdown.Focused, countdown.Editing, countdown.Waiting, countdown.Continued:
		name = state.String()
	case countdown.Expired:
		name = countdown.Counting.String()
	}
	w.Begin()
	w.StrField("state", name)
	if left, ok := c.Count.Remaining(now); ok || state == countdown.Expired {
		w.IntField("remainingMs", left)
		w.IntField("totalMs", c.Total)
		yes(w, "warn", left <= max(warnLast, c.Total/5))
	}
	w.End()
}

// AppendView writes the members of the whole card, after a row's.
func (c *Card) AppendView(w *value.Writer, sh Shell) {
	w.OptField("eventId", c.EventID)
	w.StrField("state", c.State())
	channel := c.Channel(sh)
	w.StrField("channel", channel)
	editable := c.Editable()
	yes(w, "submit", editable && channel != "none")
	yes(w, "locked", !editable)
	state := c.Count.State()
	yes(w, "focus", editable && channel != "none" && state != countdown.Counting && state != countdown.Focused &&
		(c.framed || !c.Timed || c.Continued))
	if p := c.Refused; p != nil {
		w.Name("refused")
		w.Begin()
		w.StrField("code", p.Code)
		w.OptField("field", p.Field)
		w.OptField("message", p.Message)
		if q, part := RefusedAt(p.Field); q >= 0 && q < len(c.Questions) {
			w.IntField("q", int64(q))
			w.OptField("part", part)
		}
		w.End()
	}
	w.IntField("page", int64(c.Draft.Index))
	yes(w, "restored", c.Restored)
	if c.Reply != nil {
		w.StrField("messageId", c.Reply.MessageID)
	} else {
		w.OptField("messageId", c.Accepted)
	}
	if c.Plan {
		c.appendPlan(w)
	}
	w.Name("questions")
	w.BeginArray()
	for i, q := range c.Questions {
		it := c.Draft.Answers[i]
		AppendQuestion(w, q, it)
	}
	w.EndArray()
}

func (c *Card) appendPlan(w *value.Writer) {
	q := c.Questions[0]
	w.Name("plan")
	w.Begin()
	w.IntField("q", 0)
	w.StrField("detail", *q.Detail)
	w.StrField("approve", q.Intent.Approve)
	for _, o := range q.Options {
		if o.Label != q.Intent.Approve {
			w.StrField("other", o.Label)
		}
	}
	w.End()
}

// AppendQuestion writes one question of a panel with its answer or draft.
func AppendQuestion(w *value.Writer, q projection.Question, it draft.Item) {
	opt := func(name string, s *string) {
		if s != nil {
			w.OptField(name, *s)
		}
	}
	w.Begin()
	w.StrField("id", q.ID)
	w.StrField("question", q.Question)
	opt("header", q.Header)
	opt("detail", q.Detail)
	yes(w, "multi", q.Multi())
	w.Name("options")
	w.BeginArray()
	for i, o := range q.Options {
		w.Begin()
		w.StrField("label", o.Label)
		opt("description", o.Description)
		yes(w, "recommended", i == 0 && draft.IsRecommended(o.Label))
		w.End()
	}
	w.EndArray()
	w.Name("selected")
	w.BeginArray()
	for i, o := range q.Options {
		for _, s := range it.Selected {
			if s == o.Label {
				w.Int(int64(i))
			}
		}
	}
	w.EndArray()
	w.OptField("custom", it.Custom)
	yes(w, "skipped", it.Skipped)
	yes(w, "answered", it.Answered())
	w.End()
}

func yes(w *value.Writer, name string, on bool) {
	if on {
		w.BoolField(name, true)
	}
}
