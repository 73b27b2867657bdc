// Package question carries what an agent asks to people and their answers back.
//
// It owns: the foreground wait of an ask and its end, the claims that clients
// hold on it, the host's deadlines, the taking of late answers, withdrawals, and
// the error codes of all these with their texts for the model and the person.
//
// It does not own: what is asked and answered in the long run. That is in the
// session's log and folded by shared/projection; nothing here is stored. Nor
// delivery to clients (EmitFunc, the gateway), the checks (Validator, the client
// module), agents and their queues (host/agent), the recording of results (the
// loop, or host/outside), or wire names (host/remotes).
//
// # Two settlements
//
// In the foreground an ask is one event at the gateway, and the gateway's first
// settlement is the outcome. The host never ends an ask by itself: a deadline,
// an abort or a withdrawal cancels the event and takes the gateway's word, so an
// answer that was accepted a moment before is never lost to a timer.
//
//	out ──deadline, abort, withdrawal──▶ ending ──the gateway's word──▶ ended
//	out ──answer, rejection, nobody (blocking)─────────────────────────▶ ended
//	out ──nobody (timed)──▶ out, sent again to clients that connect later
//
// An ask that came out Unanswered is continued once its pending result is
// recorded. From then on Answer is the only way: it queues a user message whose
// id is the submission's. That message is the durable reply.
//
// # Reservation
//
// A continued ask takes one reply at a time. The reservation is the queued
// message itself, read from the staged folds under the lock under which the
// splice is decided (judge, agent.SteerIf): it spans queue, claim and
// admission, a failed steer leaves none, an admitted or discarded message ends
// it, and a claim that is not admitted never took the message out. A withdrawal
// holds the ask from its recorded withdraw_question call to that call's result;
// an Answer meanwhile waits for the log to say which.
//
// # Claims and clocks
//
// A timed wait has one timer: the deadline while no client holds a claim, the
// bound on holding (Options.MaxHold past the deadline) while one does. A claim
// ends with its stream, its client's delivery or the wait. The last one lost
// restores the original deadline, at once if it has passed.
//
// The monotonic clock decides. While timed waits are open the clocks are read
// every pulseEvery; after a gap over gapMax the machine slept, and only then the
// wall clock may end a wait sooner. An overdue wait gets wakeGrace from the wake
// on, in which it can be claimed again: its clients were cut by the same sleep.
// A wall clock that steps amid steady readings moves nothing.
//
// # Concurrency
//
// All state is behind update; effects run after unlock, so callbacks of the
// gateway may come at any time, also inside Emit, Cancel and Reemit. Effects of
// one wait may overtake each other; the machine asks again where that matters
// (wait.emitted). No goroutine per wait or claim: a timer and callbacks. One
// goroutine per late answer under way, waited for by Close. Outcomes are given
// exactly once and in no order between asks; after Close none is given.
//
// # Limits
//
// TimeoutMax, claimsMax per wait, flightsMax late answers under way. Open asks
// are bounded by the gateway's events; each costs under 1 KiB beyond its log and
// its questions.
package question
