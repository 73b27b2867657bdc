// Package countdown is the answering client's countdown of one timed ask.
//
// It is a package of its own, apart from shared/deadline, because the client
// module links it: context and time would add a fifth to the module's size.
// It imports nothing.
//
// It owns: how much time is left, what runs, pauses, freezes and ends it, and
// when to wake next. It does not own: cards, drafts, channels (whoever gets
// expired==true sends the rejection, if a channel is there), or any text.
//
// # States
//
//	Blank      no deadline known yet, nothing changed
//	Counting   deadline known, pristine: runs, and at zero expires once
//	Focused    the pristine answer surface has focus: paused, remainder kept
//	Editing    the answer was changed: frozen
//	Waiting    "Take time", or a deadline that passed beside another client's
//	           claim: frozen
//	Expired    ran out here; the card stays
//	Submitted  an answer is on its way: no countdown
//	Continued  the projection says so: no countdown, final
//
//	           Frame>0    Frame=0  Focus    Blur      Edit     TakeTime  Submit     Restored
//	Blank      Counting*  Waiting  Blank    Blank     Editing  Waiting   Submitted  Blank
//	Counting   Counting*  Waiting  Focused  Counting  Editing  Waiting   Submitted  Counting
//	Focused    Focused    Waiting  Focused  Counting  Editing  Waiting   Submitted  Focused
//	Editing    Editing    Editing  Editing  Editing   Editing  Waiting   Submitted  Editing
//	Waiting    Waiting    Waiting  Waiting  Waiting   Waiting  Waiting   Submitted  Waiting
//	Expired    Counting*  Waiting  Expired  Expired   Editing  Waiting   Submitted  Expired
//	Submitted  Submitted … until Rearm, which gives Editing
//	Continued  Continued … for good
//
// * Focused when the focus came first. Restored is Rearm outside Submitted:
// nothing. Continue leads from everywhere to Continued.
//
// A blur is also the window losing focus and the page being hidden; when the
// window comes back to a surface that still has the focus, that is a Focus.
//
// # Two clocks
//
// Every input carries a Stamp and first lets the time up to it pass, so an
// edit that comes after zero comes after the expiry. The monotonic clock
// decides. Only when more than GapMs went by on it since the last input (timers
// are armed at most SliceMs apart, so the page or machine slept), or when the
// driver has other evidence and calls Woke, does the wall clock have a say: the
// longer of the two elapsed times counts. Time is taken off between inputs, not
// compared with a date, so a wall step amid steady inputs moves nothing, then
// or at a later gap. A machine that stops its monotonic clock in suspend and
// sends no evidence of it leaves the rest of the countdown to run after the
// wake; the host's own deadline, free of this client's lost claim, is the
// bound then.
//
// # Carry on if untouched
//
// The user's own setting (0 = off) is the one way out of Editing without the
// person: when the card was not touched for that long, and never sooner than
// the frozen remainder would have run out, the ask expires. The monotonic clock
// alone counts here, so no sleep ends an edited card. Waiting has no way out.
// A client that was told 0 by the host holds no right to end the ask.
//
// Concurrency: none; a Countdown is a value owned by one machine.
//
// Limits: a remainder is capped at MaxMs.
package countdown
