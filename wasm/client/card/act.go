package card

import (
	"meanwhile/shared/deadline/countdown"
	"meanwhile/shared/event/value"
	"meanwhile/shared/projection"
)

// Channel is how an answer can leave now: "ready" by the waterfall, "rpc" late,
// or "none".
func (c *Card) Channel(sh Shell) string {
	switch {
	case c.Ended != nil || !sh.Up():
	case c.Continued:
		return "rpc"
	case c.Delivery != "":
		return "ready"
	}
	return "none"
}

// Focus is the answer surface gaining the focus.
func (c *Card) Focus(now countdown.Stamp) {
	if c.Ended == nil && !c.Focused {
		c.Focused, c.Unread, c.Dirty = true, false, true
		c.Count.Focus(now)
	}
}

// Blur is the surface, the window or the page losing it.
func (c *Card) Blur(now countdown.Stamp) {
	if c.Focused {
		c.Focused, c.Dirty = false, true
		c.Count.Blur(now)
	}
}

// Edit applies one change of the draft: a choice, own words, a skip or a page.
// A click just after a page change was meant for the page before.
func (c *Card) Edit(now countdown.Stamp, sh Shell, act string, in value.Value) {
	if !c.Editable() || c.guarded(now, in) {
		return
	}
	q := index(in, "q")
	var changed, moved bool
	switch act {
	case "select":
		changed, moved = c.Draft.Choose(c.Questions, q, index(in, "o"))
	case "custom":
		changed = c.Draft.Write(c.Questions, q, in.Get("text").Text())
	case "skip":
		changed, moved = c.Draft.Skip(q, in.Get("on").True())
	case "page":
		moved = c.Draft.Show(index(in, "to"))
	}
	if moved {
		c.movedAt = now.Mono + 1
	}
	if changed {
		c.Count.Edit(now)
		c.Restored = false
		c.Refused, c.Hint = nil, Hint{}
		if c.Continued {
			c.looked = false
		}
	}
	if changed || moved {
		c.Dirty = true
		sh.Save(c)
	}
}

func (c *Card) guarded(now countdown.Stamp, in value.Value) bool {
	return in.Get("pointer").True() && c.movedAt > 0 && now.Mono-(c.movedAt-1) < clickGuard
}

func index(in value.Value, name string) int {
	n, ok := in.Get(name).Int()
	if !ok || n < 0 || n > projection.OptionsMax {
		return -1
	}
	return int(n)
}

// TakeTime freezes the countdown.
func (c *Card) TakeTime(now countdown.Stamp, sh Shell) {
	if c.Editable() && !c.Continued && c.Timed {
		c.Dirty = true
		c.Count.TakeTime(now)
		sh.Save(c)
	}
}

// Hide puts a keyed card away; nothing is sent.
func (c *Card) Hide(now countdown.Stamp) {
	if c.Keyed() && c.Ended == nil {
		c.Blur(now)
		c.Hidden, c.Dirty = true, true
	}
}

// Close closes the panel: a keyed card hides, an unkeyed ask is cancelled.
func (c *Card) Close(now countdown.Stamp, sh Shell) {
	if c.Keyed() {
		c.Hide(now)
	} else {
		c.cancel(now, sh)
	}
}

// cancel rejects the ask: the person's own refusal, sent once.
func (c *Card) cancel(now countdown.Stamp, sh Shell) {
	if c.Editable() && c.Channel(sh) == "ready" {
		c.Count.Submit(now)
		sh.Respond(c.Delivery, nil, CodeCancelled)
		c.dropDelivery()
		c.Busy, c.closing = Sent, true
	}
}

// Delegate hands the ask to the next answerer; the claim is released first.
func (c *Card) Delegate(sh Shell) {
	if c.Editable() && c.Channel(sh) == "ready" {
		if c.Claim != "" {
			sh.Abort(c.Claim)
			c.Claim = ""
		}
		sh.Respond(c.Delivery, nil, CodeNext)
		c.dropDelivery()
	}
}

// Approve and Changes are the two buttons of a plan review.
func (c *Card) Approve(now countdown.Stamp, sh Shell) {
	if c.Plan {
		c.press(now, sh, []projection.Answer{{ID: c.Questions[0].ID, Selected: []string{c.Questions[0].Intent.Approve}}})
	}
}

// Changes sends the words as they stand, or refuses the plan without any.
func (c *Card) Changes(now countdown.Stamp, sh Shell) {
	if !c.Plan {
		return
	}
	words := c.Draft
	words.Answers = append(words.Answers[:0:0], words.Answers...)
	words.Answers[0].Selected, words.Answers[0].Skipped = nil, false
	if batch := words.Batch(c.Questions); batch[0].Custom != nil {
		c.press(now, sh, batch)
	} else {
		c.cancel(now, sh)
	}
}

// Submit is one press of the send button.
func (c *Card) Submit(now countdown.Stamp, sh Shell, in value.Value) {
	if !c.Editable() || c.guarded(now, in) {
		return
	}
	if q := c.Draft.Unanswered(); q >= 0 {
		c.Hint, c.Dirty = Hint{Code: "unanswered", Field: c.Questions[q].ID}, true
		if c.Draft.Show(q) {
			c.movedAt = now.Mono + 1
			sh.Save(c)
		}
		return
	}
	c.press(now, sh, c.Draft.Batch(c.Questions))
}

// press sends a batch by the channel there is; a batch that the host would
// refuse does not leave.
func (c *Card) press(now countdown.Stamp, sh Shell, batch []projection.Answer) {
	channel := c.Channel(sh)
	if !c.Editable() || channel == "none" {
		return
	}
	if p := check(c.Questions, batch); p != nil {
		c.refuse(now, sh, *p)
		return
	}
	c.Press = &Press{Batch: batch, Late: channel == "rpc"}
	c.Hint, c.Refused, c.Restored, c.SentMark, c.looked, c.Dirty = Hint{}, nil, false, true, false, true
	c.Count.Submit(now)
	if c.Press.Late {
		c.Press.ID = sh.SubmissionID()
		c.Busy, c.Call = RPC, sh.Answer(c)
	} else {
		c.send(now, sh)
		sh.Say("sent", c)
	}
	sh.Save(c)
}

func check(qs []projection.Question, batch []projection.Answer) *projection.Problem {
	var w value.Writer
	w.Begin()
	w.Name("answers")
	projection.AppendAnswers(&w, batch)
	w.End()
	v, err := value.Parse(w.Bytes())
	if err != nil {
		return &projection.Problem{Code: projection.CodeBadAnswer, Field: "answers", Message: err.Error()}
	}
	_, p := projection.CheckAnswer(qs, v)
	return p
}

func (c *Card) send(now countdown.Stamp, sh Shell) {
	sh.Respond(c.Delivery, c.Press.Batch, "")
	c.dropDelivery()
	c.Count.Submit(now)
	c.Busy, c.settleAt = Sent, 0
}

// AnswerResult is the response to userQuestions/answer.
func (c *Card) AnswerResult(now countdown.Stamp, sh Shell, accepted bool, messageID, state string) {
	c.Call = ""
	switch {
	case c.Busy != RPC: // the inbox was faster
	case accepted && state != string(projection.Discarded):
		if messageID == "" {
			messageID = c.Press.ID
		}
		c.accept(sh, messageID)
		if c.Reply == nil || c.Reply.MessageID != messageID {
			c.confirmAt = now.Mono + confirmAfter
		}
	case accepted:
		c.rearm(now, sh, Hint{Code: "discarded"})
	default:
		c.rearm(now, sh, Hint{Code: "not-accepted"})
	}
}

// AnswerError is userQuestions/answer failing.
func (c *Card) AnswerError(now countdown.Stamp, sh Shell, code, field, message string) {
	c.Call = ""
	switch {
	case c.Busy != RPC:
	case code == projection.CodeBadAnswer:
		c.refuse(now, sh, projection.Problem{Code: code, Field: field, Message: message})
	case code == "REPLY_QUEUED":
		c.rearm(now, sh, Hint{Code: "reply-queued"})
	default:
		c.rearm(now, sh, Hint{"failed", field, code, message})
	}
}

// SettleResult is the response to remote/settle.
func (c *Card) SettleResult(now countdown.Stamp, sh Shell, taken bool, refused *projection.Problem) {
	c.Call = ""
	switch {
	case c.Busy != Resend:
	case taken:
		c.taken, c.Busy, c.settleAt, c.Dirty = true, Sent, 0, true
	case refused != nil:
		c.refuse(now, sh, *refused)
	default:
		c.settleLeft = 0 // not pending any more: the projection will tell
	}
}

// SettleError is remote/settle failing.
func (c *Card) SettleError(now countdown.Stamp) {
	c.Call = ""
	if c.Busy == Resend && c.settleLeft > 0 {
		c.settleAt = now.Mono + settleAfter<<(settleTries-c.settleLeft)
	}
}

// LookFailed is the record staying out of reach.
func (c *Card) LookFailed(now countdown.Stamp, sh Shell) {
	c.Call = ""
	if c.Busy == Settling {
		c.gone(now, sh, Known{Full: true})
	}
}

// thresholds of the status line, in ms of the remainder.
var thresholds = [...]int64{20_000, 60_000, 300_000}

// threshold is the smallest one that is at or over ms, else a large number.
func threshold(ms int64) int64 {
	for _, t := range thresholds {
		if ms <= t {
			return t
		}
	}
	return 1 << 40
}

// Tick lets time pass: expiry, retries, announcements.
func (c *Card) Tick(now countdown.Stamp, sh Shell, announce func(code string, ms int64)) {
	was := c.Count.State()
	if c.Count.Tick(now) && c.Delivery != "" {
		sh.Respond(c.Delivery, nil, CodeTimedOut)
		c.dropDelivery()
	}
	if is := c.Count.State(); is != was {
		c.Dirty = true
		if is == countdown.Expired {
			announce("carried-on", 0)
		}
	}
	if left, ok := c.Count.Remaining(now); ok && c.Count.State() == countdown.Counting {
		if t := threshold(left); t < c.spoken {
			c.spoken, c.Dirty = t, true
			if !c.Hidden {
				announce("left", t)
			}
		}
		if !c.Reminded && left <= c.Total/5 {
			c.Reminded, c.Dirty = true, true
			announce("reminder", 0)
		}
	}
	if c.attachAt > 0 && now.Mono >= c.attachAt {
		c.attach(sh)
	}
	if c.settleAt > 0 && now.Mono >= c.settleAt {
		c.settleAt = 0
		if c.Busy == Resend && c.settleLeft > 0 && c.Call == "" && c.EventID != "" && !sh.Up() {
			c.settleLeft--
			c.Call = sh.Settle(c)
		}
	}
	if c.confirmAt > 0 && now.Mono >= c.confirmAt {
		c.confirmAt = 0
		if c.Accepted != "" && c.Reply == nil && c.Call == "" && sh.Up() {
			c.stale = true
			c.Call = sh.Look(c)
		}
	}
}

// Next is the mono time of the next Tick that is wanted, 0 when none is.
func (c *Card) Next(now countdown.Stamp) int64 {
	next := int64(0)
	at := func(mono int64) {
		if mono > 0 && (next == 0 || mono < next) {
			next = mono
		}
	}
	if mono, ok := c.Count.Next(); ok {
		at(max(mono, 1))
	}
	if left, ok := c.Count.Remaining(now); ok && c.Count.State() == countdown.Counting {
		for _, t := range thresholds {
			if t < c.spoken && left > t {
				at(now.Mono + left - t)
			}
		}
		if warn := c.Total / 5; !c.Reminded && left > warn {
			at(now.Mono + left - warn)
		}
	}
	at(c.attachAt)
	at(c.settleAt)
	at(c.confirmAt)
	return next
}
