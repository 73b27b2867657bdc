package countdown

const (
	// SliceMs is the longest Next asks to sleep: half of GapMs, so that one
	// late timer is not taken for a suspend, and far below the 2³¹ ms at which
	// a browser's timer fires at once.
	SliceMs = 2500
	// GapMs is the longest steady distance of two inputs while counting.
	GapMs = 5000
	// MaxMs caps a remainder, the longest timeout an ask may have.
	MaxMs = 1<<31 - 1
)

// Stamp is one instant on both clocks, in milliseconds. Only differences are
// used, so the origins do not matter.
type Stamp struct{ Wall, Mono int64 }

// State is a state of the countdown; doc.go has the table.
type State uint8

// The states.
const (
	Blank State = iota
	Counting
	Focused
	Editing
	Waiting
	Expired
	Submitted
	Continued
)

// String names the state.
func (s State) String() string {
	names := [...]string{"blank", "counting", "focused", "editing", "waiting", "expired", "submitted", "continued"}
	if int(s) < len(names) {
		return names[s]
	}
	return "invalid"
}

// Disposition is the part of the state that is saved beside the draft.
type Disposition string

// The dispositions. Any other text restores nothing.
const (
	NoDisposition Disposition = ""
	KeepEditing   Disposition = "editing"
	KeepWaiting   Disposition = "waiting"
)

// Countdown is the countdown of one card. The zero value is Blank.
type Countdown struct {
	state   State
	focused bool // the answer surface has focus, whatever the state
	window  bool // the host gave a remainder above zero: this client may end the ask
	left    int64
	idle    int64 // in Editing: time since the last touch
	framed  int64 // idle when left was last given: left runs from there
	carryOn int64
	last    Stamp
}

// State returns the state as of the last input.
func (c *Countdown) State() State { return c.state }

// Frame takes the host's remainder, from the first claim frame or a
// re-delivered one. It is newer than what was counted here, so nothing expires
// by it; zero means that another client holds an overdue ask open.
func (c *Countdown) Frame(now Stamp, remainingMs int64) {
	c.advanceIdle(now)
	switch c.state {
	case Continued:
		return
	case Blank, Counting, Focused, Expired:
		switch {
		case remainingMs <= 0:
			c.state = Waiting
		case c.focused:
			c.state = Focused
		default:
			c.state = Counting
		}
	}
	c.window = remainingMs > 0
	c.left, c.framed = min(max(remainingMs, 0), MaxMs), c.idle
}

// Tick lets time pass.
func (c *Countdown) Tick(now Stamp) (expired bool) { return c.advance(now, false) }

// Woke lets time pass when the driver knows that the machine or the page slept
// since the last input, so that the wall clock counts.
func (c *Countdown) Woke(now Stamp) (expired bool) { return c.advance(now, true) }

// Focus is the answer surface gaining the focus.
func (c *Countdown) Focus(now Stamp) (expired bool) {
	expired = c.advance(now, false)
	c.focused = true
	c.touch()
	if c.state == Counting {
		c.state = Focused
	}
	return expired
}

// Blur is the answer surface, the window or the page losing the focus.
func (c *Countdown) Blur(now Stamp) (expired bool) {
	expired = c.advance(now, false)
	c.focused = false
	c.touch()
	if c.state == Focused {
		c.state = Counting
	}
	return expired
}

// Edit is a change of the answer by the person. A preselected option is not.
func (c *Countdown) Edit(now Stamp) (expired bool) {
	expired = c.advance(now, false)
	c.touch()
	switch c.state {
	case Blank, Counting, Focused, Expired:
		c.state = Editing
	}
	return expired
}

// TakeTime is the person asking for all the time there is.
func (c *Countdown) TakeTime(now Stamp) (expired bool) {
	expired = c.advance(now, false)
	switch c.state {
	case Blank, Counting, Focused, Editing, Expired:
		c.state = Waiting
	}
	return expired
}

// Submit is an answer leaving: the countdown ends.
func (c *Countdown) Submit(now Stamp) (expired bool) {
	expired = c.advance(now, false)
	if c.state != Continued {
		c.state = Submitted
	}
	return expired
}

// Rearm is the controls coming back after a submit that did not settle.
func (c *Countdown) Rearm(now Stamp) {
	if c.state == Submitted {
		c.state = Editing
		c.last = now
		c.touch()
	}
}

// Continue is the projection saying that the ask is continued.
func (c *Countdown) Continue(now Stamp) {
	c.advanceIdle(now)
	c.state = Continued
}

// CarryOn sets the user's "carry on if untouched for" time; 0 or less is off.
func (c *Countdown) CarryOn(now Stamp, ms int64) (expired bool) {
	expired = c.advance(now, false)
	c.carryOn = min(max(ms, 0), MaxMs)
	return expired
}

// Restore applies what Disposition gave before a reload. It holds against a
// frame that came first, and changes nothing once the person has acted.
func (c *Countdown) Restore(now Stamp, d Disposition) {
	to := Editing
	switch {
	case c.state != Blank && c.state != Counting && c.state != Focused:
		return
	case d == KeepWaiting:
		to = Waiting
	case d != KeepEditing:
		return
	}
	if c.state == Counting {
		c.left, _ = c.Remaining(now)
	}
	c.state = to
	c.last = now
	c.touch()
}

// Disposition is what to save beside the draft. A submit whose fate is unknown
// at a reload comes back as editing.
func (c *Countdown) Disposition() Disposition {
	switch c.state {
	case Editing, Submitted:
		return KeepEditing
	case Waiting:
		return KeepWaiting
	}
	return NoDisposition
}

// Remaining is the time left at now without letting it pass: running while
// counting, kept while focused, frozen while editing or waiting. It is not ok
// where there is no countdown to speak of.
func (c *Countdown) Remaining(now Stamp) (ms int64, ok bool) {
	switch c.state {
	case Counting:
		return max(c.left-c.elapsed(now, false), 0), true
	case Focused:
		return c.left, true
	case Editing, Waiting:
		return c.left, c.window
	}
	return 0, false
}

// Next is the monotonic time of the next Tick that is wanted, if any: the
// instant of the expiry, or a slice before it.
func (c *Countdown) Next() (mono int64, ok bool) {
	switch {
	case c.state == Counting:
		return c.last.Mono + min(c.left, SliceMs), true
	case c.carries():
		return c.last.Mono + min(max(c.patience()-c.idle, 0), SliceMs), true
	}
	return 0, false
}

// advance lets the time up to now pass and reports whether the ask expired by
// it. It is the only place that expires.
func (c *Countdown) advance(now Stamp, woke bool) (expired bool) {
	elapsed := c.elapsed(now, woke)
	c.advanceIdle(now)
	switch {
	case c.state == Counting:
		c.left = max(c.left-elapsed, 0)
		expired = c.left == 0
	case c.carries():
		expired = c.idle >= c.patience()
	}
	if expired {
		// The right to end the ask is used up until the host gives it again.
		c.state = Expired
		c.left, c.window = 0, false
	}
	return expired
}

// advanceIdle moves the clock without letting anything expire.
func (c *Countdown) advanceIdle(now Stamp) {
	if c.state == Editing {
		c.idle = min(c.idle+max(now.Mono-c.last.Mono, 0), MaxMs)
	}
	c.last = now
}

// elapsed is the time since the last input. A clock that went back counts as
// standing still.
func (c *Countdown) elapsed(now Stamp, woke bool) int64 {
	mono := max(now.Mono-c.last.Mono, 0)
	if woke || mono > GapMs {
		return max(mono, now.Wall-c.last.Wall)
	}
	return mono
}

// touch starts the time without a touch anew.
func (c *Countdown) touch() { c.idle, c.framed = 0, 0 }

// carries reports whether the user's own setting may end this edited ask.
func (c *Countdown) carries() bool { return c.state == Editing && c.window && c.carryOn > 0 }

// patience is how long an edited card may stay untouched: never shorter than
// the remainder that was frozen, counted from when it was given.
func (c *Countdown) patience() int64 { return max(c.carryOn, c.framed+c.left) }
