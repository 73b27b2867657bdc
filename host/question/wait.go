package question

import (
	"math"
	"time"
)

// Limits of one wait.
const (
	// TimeoutMax is the longest timeout of an ask: what a browser's timer can
	// hold in milliseconds.
	TimeoutMax = math.MaxInt32 * time.Millisecond
	// claimsMax is how many claims one wait takes. A person has a few screens; a
	// client that loops over attachWait must not grow the host.
	claimsMax = 256
	// gapMax is the longest gap between two readings of the clock that still
	// counts as running steadily; a longer one means that the machine slept.
	gapMax = 5 * time.Second
	// wakeGrace is how long after a sleep an overdue wait lives on, so that
	// clients that were cut by the sleep can come back to it.
	wakeGrace = 5 * time.Second
)

// Instant is one reading of the two clocks. Both are offsets from some fixed
// point. Mono never steps back; Wall may be set by anyone.
type Instant struct{ Wall, Mono time.Duration }

// phase is where a wait stands.
type phase uint8

const (
	// phaseOut: the event is with the gateway, whose first settlement wins.
	phaseOut phase = iota
	// phaseEnding: entered when the host wants an end (timeout, abort, withdrawal).
	// The gateway was told to cancel, but an answer that it accepted before still
	// wins: its word, not ours, leaves this phase.
	phaseEnding
	// phaseEnded: the outcome is known, or the host stops. Nothing leaves it.
	phaseEnded
)

// wait is the machine of one foreground ask, blocking or timed. It decides;
// the service acts on the effects it returns. Nothing in it is ever written to
// a log: after a restart the log alone says what became of the ask.
type wait struct {
	phase phase
	timed bool
	shown bool   // a client ever got the frame of a claim
	end   string // the code that the host wants to end with; set by stop

	due     time.Duration // the original deadline, on the monotonic clock
	dueWall time.Duration // the same on the wall clock; read only after a sleep
	grace   time.Duration // no expiry before this: set by a wake past the deadline
	hold    time.Duration // how far past due a claim may keep the wait; 0 = no bound

	claims []claim
}

// claim is one client's hold on a wait.
type claim struct {
	id     uint64
	client string
}

// effects are the service's duties after one input, in the order of the fields.
type effects struct {
	cancel   string   // tell the gateway to end the event with this code
	reemit   bool     // put the event out again, for clients still to come
	released []uint64 // claims whose streams end now
	verdict  *verdict // the one settlement
}

// verdict is how a foreground ask settled: with an answer, else with a code.
type verdict struct {
	answered bool
	code     string
}

// ending is what the gateway reports of the event.
type ending uint8

const (
	endResult    ending = iota // an answer passed the check and was taken
	endRejected                // a client ended it with a listed code
	endUnhandled               // every client that got it delegated
	endCancelled               // it was cancelled, by us unless in phaseOut
)

func blockingWait() wait { return wait{} }

func timedWait(now Instant, timeout, hold time.Duration) wait {
	return wait{timed: true, due: now.Mono + timeout, dueWall: now.Wall + timeout, hold: hold}
}

// expiry is when the wait ends if nobody holds it.
func (w *wait) expiry() time.Duration { return max(w.due, w.grace) }

// next is when tick must be called, if at all: the deadline while nobody holds
// the wait, the bound on holding while somebody does.
func (w *wait) next() (time.Duration, bool) {
	switch {
	case w.phase != phaseOut || !w.timed:
		return 0, false
	case len(w.claims) == 0:
		return w.expiry(), true
	case w.hold > 0:
		return max(w.due+w.hold, w.grace), true
	}
	return 0, false
}

// tick ends a wait whose time has come. A timer that fires early or late does
// no harm: the state is looked at now, not when the timer was set.
func (w *wait) tick(now Instant) effects {
	if at, ok := w.next(); ok && now.Mono >= at {
		return w.stop(CodeTimedOut)
	}
	return effects{}
}

// wake is told of every reading of the clocks that follows a gap over gapMax.
// Only then does the wall clock count, and only to end a wait sooner: a
// monotonic clock may stand still while the machine sleeps. An overdue wait
// gets a grace from now on.
func (w *wait) wake(now Instant) {
	if w.phase != phaseOut || !w.timed {
		return
	}
	w.due = min(w.due, now.Mono+w.dueWall-now.Wall)
	if now.Mono >= w.due {
		w.grace = now.Mono + wakeGrace
	}
}

// remaining is the time left on the original deadline, never below zero.
func (w *wait) remaining(now Instant) time.Duration {
	if w.phase != phaseOut || !w.timed {
		return 0
	}
	return max(0, w.expiry()-now.Mono)
}

// attach takes a claim and says how long the client may count. A wait that is
// blocking, ending, ended or unheld past its deadline takes none. Past the
// deadline beside a live claim the remainder is zero.
func (w *wait) attach(now Instant, c claim) (left time.Duration, ok bool, fx effects) {
	if fx = w.tick(now); fx.cancel != "" {
		return 0, false, fx
	}
	if w.phase != phaseOut || !w.timed || len(w.claims) >= claimsMax {
		return 0, false, fx
	}
	w.claims = append(w.claims, c)
	return w.remaining(now), true, fx
}

// detach ends one claim: its stream ended or failed. The last one gone, the
// original deadline counts again, at once if it has passed.
func (w *wait) detach(now Instant, id uint64) effects {
	return w.drop(now, func(c claim) bool { return c.id == id })
}

// left ends all claims of a client whose delivery ended without an outcome.
func (w *wait) left(now Instant, client string) effects {
	return w.drop(now, func(c claim) bool { return c.client == client })
}

func (w *wait) drop(now Instant, gone func(claim) bool) effects {
	var released []uint64
	kept := w.claims[:0]
	for _, c := range w.claims {
		if gone(c) {
			released = append(released, c.id)
		} else {
			kept = append(kept, c)
		}
	}
	if w.claims = kept; len(kept) == 0 {
		w.claims = nil
	}
	if released == nil {
		return effects{}
	}
	fx := w.tick(now)
	fx.released = released
	return fx
}

// stop asks for an end with code. The claims stay: an answer on its way may
// still be the one that counts, and its client must not see its claim end first.
func (w *wait) stop(code string) effects {
	if w.phase != phaseOut {
		return effects{}
	}
	w.phase, w.end = phaseEnding, code
	return effects{cancel: code}
}

// emitted is told each time the event has gone out, first or again. An end that
// was wanted meanwhile found no event to cancel, or a settled one: it is asked
// for again.
func (w *wait) emitted() effects { return effects{cancel: w.end} }

// settle takes the gateway's word. It is the only way to a verdict.
func (w *wait) settle(how ending, code string) effects {
	if w.phase == phaseEnded {
		return effects{}
	}
	v := verdict{code: code}
	switch how {
	case endResult:
		v = verdict{answered: true}
	case endRejected:
	case endUnhandled:
		if w.phase == phaseOut && w.timed {
			// Nobody there now; the deadline still holds and somebody may come.
			return effects{reemit: true}
		}
		v.code = CodeNoProvider
	case endCancelled: // in phaseOut the gateway's own doing: it did not take the event
	}
	if w.phase == phaseEnding && (how == endUnhandled || how == endCancelled) {
		v.code = w.end
	}
	fx := w.discard()
	fx.verdict = &v
	return fx
}

// discard ends the wait without a verdict: the host stops and records nothing.
func (w *wait) discard() effects {
	if w.phase == phaseEnded {
		return effects{}
	}
	var fx effects
	for _, c := range w.claims {
		fx.released = append(fx.released, c.id)
	}
	w.phase, w.claims = phaseEnded, nil
	return fx
}
