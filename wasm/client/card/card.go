package card

import (
	"strconv"
	"strings"

	"meanwhile/shared/deadline/countdown"
	"meanwhile/shared/projection"
	"meanwhile/wasm/client/draft"
)

// Waits of a card, in ms.
const (
	claimRetryMin = 1000
	claimRetryMax = 30_000
	settleAfter   = 3000 // from losing the connection to the first remote/settle by POST
	settleTries   = 3
	confirmAfter  = 10_000 // from an accepted reply to looking it up
	clickGuard    = 400    // after a page change, in which clicks are ignored
)

// Codes of outcomes that a client can send or be told.
const (
	CodeTimedOut  = "ASK_TIMED_OUT"
	CodeCancelled = "ASK_CANCELLED"
	CodeAborted   = "ASK_ABORTED"
	CodeWithdrawn = "ASK_WITHDRAWN"
	CodeNext      = "NEXT"
)

// Reasons of an ended card.
const (
	Answered    = "answered"
	Elsewhere   = "answered-elsewhere"
	Withdrawn   = "withdrawn"
	Cancelled   = "cancelled"
	Aborted     = "aborted"
	Closed      = "closed"
	SessionGone = "session-gone"
)

// Busy says what a card waits for.
type Busy string

// See doc.go.
const (
	Idle     Busy = ""
	Sent     Busy = "sent"
	Resend   Busy = "resend"
	RPC      Busy = "rpc"
	Settling Busy = "settling"
)

// Shell is what a card may ask of the machine around it.
type Shell interface {
	Up() bool // connected, so that calls can be made
	Respond(delivery string, answers []projection.Answer, code string)
	Attach(c *Card) (stream string)
	Abort(id string)
	Answer(c *Card) (call string) // userQuestions/answer with c.Press
	Settle(c *Card) (call string) // remote/settle by POST with c.Press
	Look(c *Card) (stream string) // read the session's record once
	SubmissionID() string
	Save(c *Card)
	Say(code string, c *Card)
}

// Press is one submit by the person.
type Press struct {
	ID    string // submission id of a late answer
	Batch []projection.Answer
	Late  bool
}

// Hint tells the person why the controls are back.
type Hint struct{ Code, Field, Error, Message string }

// Outcome is what remote/settled said.
type Outcome struct {
	Kind, Code, By, ByName string
	Mine                   bool
}

// Reply is a late answer that waits in the inbox.
type Reply struct {
	MessageID, By string
	Answers       []projection.Answer // nil: not known
}

// Known is what the session's projection says of one ask.
type Known struct {
	State  projection.State // "" when not listed
	Reply  *Reply
	Fate   projection.Fate // of the reply this card had accepted, "" when not known
	Fresh  bool            // a snapshot of this connection, not an increment
	Synced bool            // the list and all pending deliveries have come
	Full   bool            // the record is known: Settled and Code are decisive
	// Settled: answers are recorded, as Answers; By is the label of a late
	// reply. Code: why it went without.
	Settled  bool
	Answers  []projection.Answer
	By, Code string
}

// Card is one ask on this client.
type Card struct {
	Key, SessionID, CallID, EventID string
	Questions                       []projection.Question
	Timed                           bool // the ask has a window, so there is a claim
	Listed, Continued               bool
	Reply                           *Reply
	Accepted                        string // id of our reply that the host accepted

	Delivery string // the host's call that can be answered now
	Claim    string // our claim stream
	framed   bool   // the delivery's claim has had its frame

	Busy    Busy
	Press   *Press
	Call    string // our RPC, remote/settle or look under way
	Outcome *Outcome
	closing bool // what left was a rejection, which does not go again
	taken   bool // the host said it took our outcome
	old     bool // taken, or an Outcome that is ours, is from before this connection
	looked  bool
	stale   bool   // Accepted is older than this connection, so a fresh snapshot can deny it
	ours    string // id of the last reply of ours that was accepted

	Draft     draft.Draft
	Count     countdown.Countdown
	Hint      Hint
	Refused   *projection.Problem
	Restored  bool
	SentMark  bool // this draft was sent before a reload
	Hidden    bool
	Unread    bool
	Focused   bool // the surface has focus while the page is visible
	Plan      bool
	Since     int64
	CarriedAt int64 // wall ms when this page saw it carried on; 0: it was so already
	Total     int64 // the longest remainder seen
	Ended     *draft.Ended
	Mine      bool // ended by our own answer

	// Dirty: the view changed; Saved: what storage holds, for the machine.
	Dirty bool
	Saved string

	attachAt, attachWait int64 // mono; 0: none
	settleAt, settleLeft int64
	confirmAt            int64
	movedAt              int64 // mono of the last page change, plus 1
	spoken               int64 // the smallest threshold already told
	Reminded             bool
}

// New makes a card for an ask that was listed or forwarded.
func New(key, sessionID, callID, eventID string, qs []projection.Question, now countdown.Stamp) *Card {
	return &Card{Key: key, SessionID: sessionID, CallID: callID, EventID: eventID, Questions: qs,
		Draft: draft.New(qs), Plan: projection.PlanReview(qs), Since: now.Wall, Dirty: true}
}

// Keyed reports whether the ask has a callId.
func (c *Card) Keyed() bool { return c.CallID != "" }

// Queued reports whether a reply waits, or was accepted and is not listed yet.
func (c *Card) Queued() bool { return c.Ended == nil && (c.Reply != nil || c.Accepted != "") }

// Editable reports whether the controls work.
func (c *Card) Editable() bool { return c.Busy == Idle && c.Ended == nil && !c.Queued() }

// Edited reports whether the draft holds anything of the person's.
func (c *Card) Edited() bool { return !c.Draft.Pristine(c.Questions) }

// Kept reports whether an ended card stays until it is dismissed.
func (c *Card) Kept() bool { return c.Ended != nil && !c.Mine && c.Edited() }

// InFlight reports whether a reload would lose track of an outcome.
func (c *Card) InFlight() bool { return c.Ended == nil && c.Busy != Idle }

// Deliver takes the host's call: the ask was forwarded, again after a
// reconnect, or again because our answer was refused.
func (c *Card) Deliver(now countdown.Stamp, sh Shell, id, eventID string, timed bool, refused *projection.Problem) {
	c.Dirty = true
	if c.Continued {
		sh.Respond(id, nil, CodeNext)
		return
	}
	if c.Ended != nil { // it is pending after all
		c.Ended, c.Mine = nil, false
		sh.Save(c)
	}
	if c.Busy == Settling {
		c.Busy = Idle
	}
	c.EventID, c.Timed, c.Delivery, c.Outcome, c.old = eventID, timed, id, nil, false
	c.attachWait = 0
	if c.Claim == "" {
		c.framed = false
		c.attach(sh)
	}
	switch {
	case refused != nil:
		c.refuse(now, sh, *refused)
	case c.closing:
		c.rearm(now, sh, Hint{})
	case c.Press != nil && !c.Press.Late: // sent on a delivery that is over
		c.send(now, sh)
	}
}

// attach opens the claim; a blocking or unkeyed ask has none.
func (c *Card) attach(sh Shell) {
	c.attachAt = 0
	if c.Timed && c.Keyed() && c.Delivery != "" {
		c.Claim = sh.Attach(c)
	}
}

// Frame takes the claim's one item.
func (c *Card) Frame(now countdown.Stamp, remainingMs int64) {
	c.framed, c.attachWait, c.Dirty = true, 0, true
	c.Count.Frame(now, remainingMs)
	c.Total = max(c.Total, remainingMs)
	c.spoken = threshold(remainingMs)
}

// ClaimEnded is the claim stream over, well or not. While the delivery is
// pending it is opened again, after a while; the host's own deadline runs meanwhile.
func (c *Card) ClaimEnded(now countdown.Stamp) {
	c.Claim = ""
	if c.Delivery != "" {
		c.attachWait = min(max(2*c.attachWait, claimRetryMin), claimRetryMax)
		c.attachAt = now.Mono + c.attachWait
	}
}

// dropDelivery forgets the channel. The claim is the host's to end: it holds
// until the outcome was accepted.
func (c *Card) dropDelivery() { c.Delivery, c.attachAt, c.Dirty = "", 0, true }

// CancelDelivery is the host cancelling its call. It says nothing of an answer.
func (c *Card) CancelDelivery(now countdown.Stamp, sh Shell) {
	c.dropDelivery()
	if !c.Keyed() && c.Busy == Idle {
		c.unkeyedEnd(now, sh)
	}
}

// Settle is remote/settled.
func (c *Card) Settle(now countdown.Stamp, sh Shell, o Outcome) {
	c.dropDelivery()
	if c.Keyed() && c.Continued { // the list was faster; only whose the queued reply is may be news
		if c.Reply != nil && o.Kind == "result" && o.Mine {
			c.accept(sh, c.Reply.MessageID)
		}
		return
	}
	c.Outcome, c.old = &o, false
	if c.Ended != nil {
		c.settleEnded(now, sh, o)
		return
	}
	switch {
	case !c.Keyed():
		c.unkeyedEnd(now, sh)
	case !c.Listed:
		c.unlisted(now, sh, Known{})
	case o.Kind == "result" && !o.Mine:
		if c.Busy != Settling {
			sh.Say("answered-elsewhere", c)
		}
		c.Busy = Settling
	}
}

// settleEnded learns who or why when the record was faster than the hint.
func (c *Card) settleEnded(now countdown.Stamp, sh Shell, o Outcome) {
	switch e := c.Ended; {
	case e.Reason == Closed && !c.Keyed(): // the cancel frame came first
		c.Ended = nil
		c.unkeyedEnd(now, sh)
		return
	case e.Reason == Elsewhere && o.Kind == "result" && o.Mine:
		e.Reason, c.Mine = Answered, true
	case e.Reason == Elsewhere && o.Kind == "result":
		e.By, e.ByName = o.By, o.ByName
	case e.Reason == Closed && o.Kind != "result":
		e.Code, e.Reason = o.Code, reasonOf(o.Code)
	default:
		return
	}
	sh.Save(c)
}

func (c *Card) unkeyedEnd(now countdown.Stamp, sh Shell) {
	k := Known{Full: true}
	if c.closing && c.Outcome == nil {
		k.Code = CodeCancelled
	}
	c.gone(now, sh, k)
}

// SyncedWithout is remote/synced without this card's event: the channel, if it
// thought to have one, is gone.
func (c *Card) SyncedWithout(now countdown.Stamp, sh Shell) {
	if c.Delivery != "" {
		c.dropDelivery()
	}
	if c.Claim != "" {
		sh.Abort(c.Claim)
		c.Claim = ""
	}
	if !c.Keyed() && c.Ended == nil {
		c.unkeyedEnd(now, sh)
	}
}

// Down is the connection lost: the delivery and the claim went with it.
func (c *Card) Down(now countdown.Stamp, sh Shell) {
	c.dropDelivery()
	c.Claim, c.framed = "", false
	c.old = c.taken || c.Outcome != nil && c.Outcome.Kind == "result" && c.Outcome.Mine
	switch {
	case c.Busy == Sent && c.closing:
		c.rearm(now, sh, Hint{})
	case c.Busy == Sent && !c.taken && (c.Outcome == nil || !c.Outcome.Mine):
		c.Busy, c.Call = Resend, ""
		c.settleAt, c.settleLeft = now.Mono+settleAfter, settleTries
	case c.Busy == Settling:
		c.Busy, c.Call, c.looked = Idle, "", false
	case c.Busy == RPC:
		c.Call = ""
	}
}

// UpAgain is a new connection: a late answer whose response was lost goes again
// under its own id.
func (c *Card) UpAgain(sh Shell) {
	c.settleAt, c.Dirty = 0, true
	c.stale = c.Accepted != ""
	c.old = c.old || c.taken
	if c.Busy == RPC && c.Call == "" {
		c.Call = sh.Answer(c)
	}
}

// Project is what the projection says now.
func (c *Card) Project(now countdown.Stamp, sh Shell, k Known) {
	if k.State != "" && c.Ended != nil && c.Keyed() {
		c.Ended, c.Mine, c.Dirty = nil, false, true
		sh.Save(c)
	}
	switch {
	case c.Ended != nil:
	case k.State == projection.Open:
		c.Listed = true
		if c.Continued { // asked again under the same id
			c.Continued, c.Reply, c.Accepted, c.Dirty = false, nil, "", true
		}
	case k.State == projection.Continued:
		c.projectContinued(now, sh, k)
	case !c.Listed:
		c.unlisted(now, sh, k)
	case c.Delivery == "" && k.Synced && c.Call == "" || k.Full && c.Delivery == "" && c.Busy == Settling:
		c.gone(now, sh, k)
	}
}

func (c *Card) projectContinued(now countdown.Stamp, sh Shell, k Known) {
	first := !c.Continued
	if first && (c.Listed || c.EventID != "") {
		c.CarriedAt = now.Wall
		if c.Count.State() != countdown.Expired && c.Busy == Idle { // ended by the host or another client
			sh.Say("carried-on", c)
		}
	}
	c.Listed, c.Continued = true, true
	if first {
		c.Dirty = true
		c.Count.Continue(now)
		if c.Delivery != "" {
			if c.Claim != "" {
				sh.Abort(c.Claim)
				c.Claim = ""
			}
			sh.Respond(c.Delivery, nil, CodeNext)
			c.dropDelivery()
		}
		c.settleAt = 0
	}
	had := c.Reply
	c.Reply = k.Reply
	if k.Reply != nil {
		if had == nil || had.MessageID != k.Reply.MessageID {
			c.Dirty = true
			c.replyQueued(sh, *k.Reply)
		}
		c.Outcome = nil
		return
	}
	c.Outcome = nil
	seen := had != nil && had.MessageID == c.Accepted
	switch {
	case c.Accepted != "" && (seen || k.Fate == projection.Discarded || k.Fresh && c.stale && k.Fate == ""):
		c.rearm(now, sh, Hint{Code: "discarded"})
	case c.Busy == Sent || c.Busy == Resend:
		c.rearm(now, sh, Hint{Code: "submit-again"})
		sh.Say("submit-again", c)
	case c.Busy == Settling:
		c.rearm(now, sh, c.Hint)
	case had != nil:
		c.Dirty = true
	}
}

// replyQueued finds out whether a reply that turned up in the inbox is ours: by
// its id, or, for an answer that lost its waterfall and was queued by the host
// in its place, by who settled or by what it says.
func (c *Card) replyQueued(sh Shell, r Reply) {
	ours := r.MessageID == c.Accepted || r.MessageID == c.ours
	if c.Press != nil {
		ours = ours || r.MessageID == c.Press.ID && c.Press.Late
		if !c.Press.Late {
			ours = ours || c.Outcome != nil && c.Outcome.Kind == "result" && c.Outcome.Mine ||
				(c.Outcome == nil || c.Outcome.Kind != "result") && r.Answers != nil && draft.Same(r.Answers, c.Press.Batch)
		}
	}
	if ours {
		c.accept(sh, r.MessageID)
		c.confirmAt = 0
		return
	}
	if c.Busy != RPC { // that one still gets its own response
		c.unpress()
		c.Busy = Idle
	}
}

func (c *Card) accept(sh Shell, messageID string) {
	if c.Accepted != messageID {
		sh.Say("queued", c)
	}
	c.Accepted, c.ours, c.Busy, c.Call, c.stale = messageID, messageID, Idle, "", false
	c.unpress()
	c.Hint, c.Refused, c.Dirty = Hint{}, nil, true
}

func (c *Card) unpress() {
	c.Press, c.closing, c.taken, c.settleAt, c.Dirty = nil, false, false, 0, true
}

// rearm gives the controls back, with the draft.
func (c *Card) rearm(now countdown.Stamp, sh Shell, h Hint) {
	c.unpress()
	c.Busy, c.Call, c.Accepted, c.confirmAt, c.Hidden = Idle, "", "", 0, false
	c.Hint = h
	c.Count.Rearm(now)
	c.SentMark = false
	sh.Save(c)
}

func (c *Card) refuse(now countdown.Stamp, sh Shell, p projection.Problem) {
	c.rearm(now, sh, Hint{})
	c.Refused = &p
	if q, _ := RefusedAt(p.Field); q >= 0 && c.Draft.Show(q) {
		c.movedAt = now.Mono + 1
	}
	sh.Say("refused", c)
}

// RefusedAt reads the question and the part from a field of BAD_ANSWER, such as
// "answers[1].custom"; batches keep the order of the questions. q is -1 when it names none.
func RefusedAt(field string) (q int, part string) {
	rest, ok := strings.CutPrefix(field, "answers[")
	index, part, ok2 := strings.Cut(rest, "]")
	q, err := strconv.Atoi(index)
	if !ok || !ok2 || err != nil || q < 0 {
		return -1, ""
	}
	return q, strings.TrimPrefix(part, ".")
}

// unlisted decides on a card that no projection has listed.
func (c *Card) unlisted(now countdown.Stamp, sh Shell, k Known) {
	o := c.Outcome
	switch {
	case c.Delivery != "":
	case o != nil && o.Code != CodeTimedOut && !c.old:
		c.gone(now, sh, Known{Full: true})
	case k.Fresh && k.Synced:
		c.gone(now, sh, k)
	}
}

// gone ends the card: its ask is not listed any more.
func (c *Card) gone(now countdown.Stamp, sh Shell, k Known) {
	o, taken := c.Outcome, c.taken
	if c.old && c.Keyed() && c.Edited() {
		// What settled the waterfall is not on disk by that. A host that went
		// before it was may have lost it, so the record decides.
		o, taken = nil, false
	}
	result := o != nil && o.Kind == "result"
	ours := result && o.Mine || taken || c.Accepted != "" && k.Fate == projection.Admitted
	if !k.Full && !ours && c.Edited() && !c.looked && sh.Up() && c.Keyed() && (o == nil || o.Code == CodeTimedOut) {
		// The list only says that it is gone. Even an accepted reply may have been
		// discarded unseen and the ask withdrawn, so the record decides.
		c.looked = true
		c.Busy, c.Call, c.Dirty = Settling, sh.Look(c), true
		return
	}
	if c.Accepted != "" && k.Fate == "" {
		ours = !k.Settled || draft.Same(k.Answers, c.Draft.Batch(c.Questions))
	}
	if !ours && !result && k.Settled {
		ours = c.Press != nil && draft.Same(k.Answers, c.Press.Batch) ||
			c.SentMark && draft.Same(k.Answers, c.Draft.Batch(c.Questions))
	}
	e := draft.Ended{At: now.Wall}
	if k.Settled {
		e.Answers = k.Answers
	}
	switch {
	case ours:
		e.Reason = Answered
		if e.Answers == nil {
			e.Answers = c.Draft.Batch(c.Questions)
		}
	case result:
		e.Reason, e.By, e.ByName = Elsewhere, o.By, o.ByName
	case k.Settled:
		e.Reason, e.ByName = Elsewhere, k.By
	default:
		e.Code = k.Code
		if o != nil {
			e.Code, e.By, e.ByName = o.Code, o.By, o.ByName
		}
		e.Reason = reasonOf(e.Code)
	}
	c.end(sh, e, ours)
}

// Recorded tells a card that was made from a stored draft what became of its
// ask: its own submission before a reload may have been what was recorded.
func (c *Card) Recorded(now countdown.Stamp, sh Shell, k Known) {
	c.Ended, c.looked = nil, true
	c.gone(now, sh, k)
}

func reasonOf(code string) string {
	switch code {
	case CodeWithdrawn:
		return Withdrawn
	case CodeCancelled:
		return Cancelled
	case CodeAborted:
		return Aborted
	}
	return Closed
}

// End ends the card from outside: its session is gone.
func (c *Card) End(now countdown.Stamp, sh Shell, reason string) {
	c.end(sh, draft.Ended{Reason: reason, At: now.Wall}, c.Accepted != "")
}

func (c *Card) end(sh Shell, e draft.Ended, ours bool) {
	if c.Claim != "" {
		sh.Abort(c.Claim)
		c.Claim = ""
	}
	c.dropDelivery()
	c.unpress()
	c.Busy, c.Call, c.Accepted, c.Reply, c.confirmAt = Idle, "", "", nil, 0
	c.Hint, c.Refused, c.Focused, c.Hidden = Hint{}, nil, false, false
	c.Ended, c.Mine = &e, ours
	switch e.Reason {
	case Elsewhere, Withdrawn:
		sh.Say(e.Reason, c)
	}
	sh.Save(c)
}
