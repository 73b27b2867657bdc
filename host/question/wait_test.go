package question

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const ms = time.Millisecond

// at is steady time: both clocks moved alike.
func at(d time.Duration) Instant { return Instant{Wall: d, Mono: d} }

// script is a wait driven by hand, one tick a millisecond.
type script struct {
	t   *testing.T
	w   wait
	log []string
}

func (s *script) note(fx effects) {
	if fx.cancel != "" {
		s.log = append(s.log, "cancel "+fx.cancel)
	}
	if fx.reemit {
		s.log = append(s.log, "reemit")
	}
	for _, id := range fx.released {
		s.log = append(s.log, fmt.Sprintf("released %d", id))
	}
	switch v := fx.verdict; {
	case v != nil && v.answered:
		s.log = append(s.log, "answered")
	case v != nil:
		s.log = append(s.log, "ended "+v.code)
	}
}

func (s *script) attach(now Instant, id uint64, client string) {
	left, ok, fx := s.w.attach(now, claim{id, client})
	s.note(fx)
	if ok {
		s.log = append(s.log, fmt.Sprintf("claim %d for %v", id, left))
	} else {
		s.log = append(s.log, fmt.Sprintf("no claim %d", id))
	}
}

func (s *script) wake() {
	if next, ok := s.w.next(); ok {
		s.log = append(s.log, fmt.Sprintf("next %v", next))
	} else {
		s.log = append(s.log, "no timer")
	}
}

func TestWait(t *testing.T) {
	const timeout, hold = 100 * ms, 1000 * ms
	timed := func() wait { return timedWait(at(0), timeout, hold) }
	for _, tc := range []struct {
		name string
		wait wait
		do   func(*script)
		want []string
	}{
		{"unclaimed, a tick before the deadline", timed(), func(s *script) {
			s.note(s.w.tick(at(timeout - ms)))
			s.wake()
		}, []string{"next 100ms"}},
		{"unclaimed, at the deadline", timed(), func(s *script) {
			s.note(s.w.tick(at(timeout)))
			s.wake()
			s.note(s.w.settle(endCancelled, CodeTimedOut))
		}, []string{"cancel ASK_TIMED_OUT", "no timer", "ended ASK_TIMED_OUT"}},
		{"claimed, past the deadline", timed(), func(s *script) {
			s.attach(at(30*ms), 1, "a")
			s.note(s.w.tick(at(timeout + ms)))
			s.wake()
		}, []string{"claim 1 for 70ms", "next 1.1s"}},
		{"last claim lost a tick before the deadline", timed(), func(s *script) {
			s.attach(at(0), 1, "a")
			s.note(s.w.detach(at(timeout-ms), 1))
			s.wake()
			s.note(s.w.tick(at(timeout)))
		}, []string{"claim 1 for 100ms", "released 1", "next 100ms", "cancel ASK_TIMED_OUT"}},
		{"last claim lost at the deadline", timed(), func(s *script) {
			s.attach(at(0), 1, "a")
			s.note(s.w.detach(at(timeout), 1))
		}, []string{"claim 1 for 100ms", "cancel ASK_TIMED_OUT", "released 1"}},
		{"two claims, one lost past the deadline", timed(), func(s *script) {
			s.attach(at(0), 1, "a")
			s.attach(at(0), 2, "b")
			s.note(s.w.detach(at(timeout+ms), 1))
			s.note(s.w.left(at(timeout+2*ms), "b"))
		}, []string{"claim 1 for 100ms", "claim 2 for 100ms", "released 1", "cancel ASK_TIMED_OUT", "released 2"}},
		{"a client leaves with all its claims and no other's", timed(), func(s *script) {
			s.attach(at(0), 1, "a")
			s.attach(at(0), 2, "b")
			s.attach(at(0), 3, "a")
			s.note(s.w.left(at(0), "a"))
			s.note(s.w.left(at(0), "nobody"))
			s.wake()
		}, []string{"claim 1 for 100ms", "claim 2 for 100ms", "claim 3 for 100ms", "released 1", "released 3", "next 1.1s"}},
		{"attach beside a live claim past the deadline", timed(), func(s *script) {
			s.attach(at(0), 1, "a")
			s.attach(at(timeout), 2, "b")
		}, []string{"claim 1 for 100ms", "claim 2 for 0s"}},
		{"attach to an overdue wait nobody holds", timed(), func(s *script) {
			s.attach(at(timeout), 1, "a")
		}, []string{"cancel ASK_TIMED_OUT", "no claim 1"}},
		{"attach to an ended wait", timed(), func(s *script) {
			s.note(s.w.settle(endResult, ""))
			s.attach(at(0), 1, "a")
			s.wake()
		}, []string{"answered", "no claim 1", "no timer"}},
		{"attach to a cancelled wait", timed(), func(s *script) {
			s.note(s.w.stop(CodeAborted))
			s.attach(at(0), 1, "a")
		}, []string{"cancel ASK_ABORTED", "no claim 1"}},
		{"a blocking wait takes no claim and has no timer", blockingWait(), func(s *script) {
			s.attach(at(0), 1, "a")
			s.wake()
			s.note(s.w.tick(at(time.Hour)))
		}, []string{"no claim 1", "no timer"}},
		{"a claim is held until the host took the outcome", timed(), func(s *script) {
			s.attach(at(0), 1, "a")
			s.note(s.w.tick(at(timeout)))
			s.note(s.w.settle(endResult, ""))
		}, []string{"claim 1 for 100ms", "released 1", "answered"}},
		{"an answer taken before our end counts", timed(), func(s *script) {
			s.note(s.w.tick(at(timeout)))
			s.note(s.w.settle(endResult, ""))
			s.note(s.w.settle(endCancelled, CodeTimedOut))
		}, []string{"cancel ASK_TIMED_OUT", "answered"}},
		{"a client's countdown ends it for all", timed(), func(s *script) {
			s.attach(at(0), 1, "a")
			s.attach(at(0), 2, "b")
			s.note(s.w.settle(endRejected, CodeTimedOut))
		}, []string{"claim 1 for 100ms", "claim 2 for 100ms", "released 1", "released 2", "ended ASK_TIMED_OUT"}},
		{"max hold, a tick before and at its end", timed(), func(s *script) {
			s.attach(at(0), 1, "a")
			s.note(s.w.tick(at(timeout + hold - ms)))
			s.note(s.w.tick(at(timeout + hold)))
			s.note(s.w.settle(endCancelled, CodeTimedOut))
		}, []string{"claim 1 for 100ms", "cancel ASK_TIMED_OUT", "released 1", "ended ASK_TIMED_OUT"}},
		{"no max hold", timedWait(at(0), timeout, 0), func(s *script) {
			s.attach(at(0), 1, "a")
			s.wake()
			s.note(s.w.tick(at(1000 * time.Hour)))
		}, []string{"claim 1 for 100ms", "no timer"}},
		{"nobody took a timed ask: it lives on", timed(), func(s *script) {
			s.note(s.w.settle(endUnhandled, ""))
			s.note(s.w.emitted())
			s.note(s.w.tick(at(timeout - ms)))
			s.note(s.w.tick(at(timeout)))
		}, []string{"reemit", "cancel ASK_TIMED_OUT"}},
		{"nobody took a blocking ask: it fails", blockingWait(), func(s *script) {
			s.note(s.w.settle(endUnhandled, ""))
		}, []string{"ended NO_PROVIDER"}},
		{"an end wanted before the event was out again is repeated", timed(), func(s *script) {
			s.note(s.w.settle(endUnhandled, ""))
			s.note(s.w.stop(CodeWithdrawn))
			s.note(s.w.emitted())
			s.note(s.w.settle(endCancelled, CodeWithdrawn))
		}, []string{"reemit", "cancel ASK_WITHDRAWN", "cancel ASK_WITHDRAWN", "ended ASK_WITHDRAWN"}},
		{"the last delegation crosses our end", timed(), func(s *script) {
			s.note(s.w.stop(CodeAborted))
			s.note(s.w.settle(endUnhandled, ""))
		}, []string{"cancel ASK_ABORTED", "ended ASK_ABORTED"}},
		{"the first end stays", timed(), func(s *script) {
			s.note(s.w.stop(CodeAborted))
			s.note(s.w.stop(CodeWithdrawn))
			s.note(s.w.tick(at(timeout)))
			s.note(s.w.settle(endCancelled, CodeAborted))
		}, []string{"cancel ASK_ABORTED", "ended ASK_ABORTED"}},
		{"a stopping host ends claims and says nothing", timed(), func(s *script) {
			s.attach(at(0), 1, "a")
			s.note(s.w.discard())
			s.wake()
			s.note(s.w.settle(endResult, ""))
			s.note(s.w.emitted())
		}, []string{"claim 1 for 100ms", "released 1", "no timer"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &script{t: t, w: tc.wait}
			tc.do(s)
			if diff := cmp.Diff(tc.want, s.log); diff != "" {
				t.Errorf("effects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWaitSleep(t *testing.T) {
	const timeout, hold = time.Minute, time.Hour
	for _, tc := range []struct {
		name string
		do   func(*script)
		want []string
	}{
		{"overdue after a sleep that the clock counted", func(s *script) {
			woke := at(timeout + time.Hour)
			s.w.wake(woke)
			s.note(s.w.tick(woke))
			s.note(s.w.tick(at(woke.Mono + wakeGrace - ms)))
			s.note(s.w.tick(at(woke.Mono + wakeGrace)))
		}, []string{"cancel ASK_TIMED_OUT"}},
		{"overdue only by the wall clock, because the other slept", func(s *script) {
			woke := Instant{Wall: time.Hour, Mono: 10 * time.Second}
			s.w.wake(woke)
			s.wake()
		}, []string{"next 15s"}},
		{"not overdue: the deadline stays", func(s *script) {
			s.w.wake(at(timeout - ms))
			s.wake()
		}, []string{"next 1m0s"}},
		{"the wall clock stepped back during the sleep", func(s *script) {
			s.w.wake(Instant{Wall: -time.Hour, Mono: 20 * time.Second})
			s.wake()
		}, []string{"next 1m0s"}},
		{"the wall clock stepped amid steady ticks", func(s *script) {
			s.note(s.w.tick(Instant{Wall: time.Hour, Mono: timeout - ms}))
			s.wake()
		}, []string{"next 1m0s"}},
		{"a claim that the sleep cut may come back within the grace", func(s *script) {
			s.attach(at(0), 1, "a")
			woke := at(timeout + time.Hour/2)
			s.w.wake(woke)
			s.note(s.w.detach(woke, 1))
			s.attach(at(woke.Mono+wakeGrace-ms), 2, "b")
			s.note(s.w.tick(at(woke.Mono + wakeGrace)))
			s.note(s.w.detach(at(woke.Mono+wakeGrace), 2))
		}, []string{"claim 1 for 1m0s", "released 1", "claim 2 for 1ms", "cancel ASK_TIMED_OUT", "released 2"}},
		{"a hold whose bound passed in the sleep gets the grace too", func(s *script) {
			s.attach(at(0), 1, "a")
			woke := at(timeout + hold + time.Minute)
			s.w.wake(woke)
			s.note(s.w.tick(at(woke.Mono + wakeGrace - ms)))
			s.note(s.w.tick(at(woke.Mono + wakeGrace)))
		}, []string{"claim 1 for 1m0s", "cancel ASK_TIMED_OUT"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &script{t: t, w: timedWait(at(0), timeout, hold)}
			tc.do(s)
			if diff := cmp.Diff(tc.want, s.log); diff != "" {
				t.Errorf("effects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWaitClaimsAreBounded(t *testing.T) {
	w := timedWait(at(0), time.Second, 0)
	for i := range claimsMax {
		if _, ok, _ := w.attach(at(0), claim{uint64(i), "a"}); !ok {
			t.Fatalf("claim %d refused, want %d taken", i, claimsMax)
		}
	}
	if _, ok, _ := w.attach(at(0), claim{claimsMax, "a"}); ok {
		t.Errorf("claim %d taken, want it refused", claimsMax)
	}
}

// world is a wait, and a gateway that may act on it in any order: what we asked
// of it (cancel, reemit) it does when its turn comes.
type world struct {
	w        wait
	now      time.Duration
	gone     bool // the event has settled at the gateway
	dormant  bool
	duties   []string // "cancel CODE" or "reemit", not yet done
	verdicts []verdict
	ids      uint64
}

func (x *world) take(fx effects) {
	if fx.cancel != "" {
		x.duties = append(x.duties, "cancel "+fx.cancel)
	}
	if fx.reemit {
		x.duties = append(x.duties, "reemit")
	}
	if fx.verdict != nil {
		x.verdicts = append(x.verdicts, *fx.verdict)
	}
}

func (x *world) settle(how ending, code string) {
	if x.gone || x.dormant {
		return
	}
	x.dormant, x.gone = how == endUnhandled, how != endUnhandled
	x.take(x.w.settle(how, code))
}

// duty does the i-th thing that we asked of the gateway. They may overtake each
// other: each is called after its own unlock.
func (x *world) duty(i int) {
	d := x.duties[i]
	x.duties = slices.Delete(slices.Clone(x.duties), i, i+1)
	if d == "reemit" {
		x.dormant = false
		x.take(x.w.emitted())
		return
	}
	x.settle(endCancelled, d[len("cancel "):])
}

var worldInputs = map[string]func(*world){
	"answer":    func(x *world) { x.settle(endResult, "") },
	"countdown": func(x *world) { x.settle(endRejected, CodeTimedOut) },
	"delegate":  func(x *world) { x.settle(endUnhandled, "") },
	"attach": func(x *world) {
		x.ids++
		_, _, fx := x.w.attach(at(x.now), claim{x.ids, "a"})
		x.take(fx)
	},
	"claim lost": func(x *world) { x.take(x.w.left(at(x.now), "a")) },
	"deadline": func(x *world) {
		x.now = max(x.now, 100*ms)
		x.take(x.w.tick(at(x.now)))
	},
	"abort":    func(x *world) { x.take(x.w.stop(CodeAborted)) },
	"withdraw": func(x *world) { x.take(x.w.stop(CodeWithdrawn)) },
	"sleep": func(x *world) {
		x.now += 50 * ms
		x.w.wake(at(x.now))
	},
}

// Every order of the inputs, each at most once, with the gateway's doing of what
// it was told anywhere in between: one settlement, no timer, no claim left.
func TestWaitEveryOrder(t *testing.T) {
	for _, names := range [][]string{
		{"answer", "delegate", "attach", "claim lost", "deadline", "abort", "withdraw"},
		{"answer", "countdown", "delegate", "attach", "claim lost", "deadline", "sleep"},
		{"countdown", "delegate", "attach", "claim lost", "sleep", "deadline", "abort"},
	} {
		t.Run(strings.Join(names, ","), func(t *testing.T) { everyOrder(t, names) })
	}
}

func everyOrder(t *testing.T, names []string) {
	count := 0
	var explore func(x world, left []string, path []string)
	finish := func(x world, path []string) {
		count++
		for len(x.duties) > 0 {
			x.duty(0)
		}
		// Whatever is left, the last claim's end and time bring it down.
		x.take(x.w.left(at(x.now), "a"))
		x.take(x.w.tick(at(time.Hour)))
		for len(x.duties) > 0 {
			x.duty(0)
		}
		if len(x.verdicts) != 1 {
			t.Fatalf("%v: %d settlements %v, want 1", path, len(x.verdicts), x.verdicts)
		}
		if _, armed := x.w.next(); armed || len(x.w.claims) != 0 || x.w.phase != phaseEnded {
			t.Fatalf("%v: a timer or a claim is left: %+v", path, x.w)
		}
		if !x.gone && !x.dormant {
			t.Fatalf("%v: the event is still out", path)
		}
	}
	explore = func(x world, left []string, path []string) {
		if len(left) == 0 {
			finish(x, path)
			return
		}
		for i := range x.duties {
			y := x
			y.w.claims = slices.Clone(x.w.claims)
			y.verdicts = slices.Clone(x.verdicts)
			y.duties = slices.Clone(x.duties)
			y.duty(i)
			explore(y, left, append(slices.Clone(path), "gateway"))
		}
		for i, name := range left {
			y := x
			y.w.claims = slices.Clone(x.w.claims)
			y.verdicts = slices.Clone(x.verdicts)
			y.duties = slices.Clone(x.duties)
			worldInputs[name](&y)
			explore(y, slices.Delete(slices.Clone(left), i, i+1), append(slices.Clone(path), name))
		}
	}
	explore(world{w: timedWait(at(0), 100*ms, time.Hour)}, names, nil)
	if want := 5040; count < want { // 7!
		t.Errorf("explored %d orders, want at least %d", count, want)
	}
}

// Long random lives: inputs repeat, several clients claim, the machine sleeps.
// At every moment the timer is the one that the claims call for, and in the end
// there is one settlement.
func TestWaitRandomLives(t *testing.T) {
	const timeout, hold, moves = 100 * ms, 300 * ms, 40
	for seed := range uint64(5000) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		x := world{w: timedWait(at(0), timeout, hold)}
		check := func(did string) {
			next, armed := x.w.next()
			switch {
			case len(x.verdicts) > 1:
				t.Fatalf("seed %d, after %s: settled %v", seed, did, x.verdicts)
			case x.w.phase != phaseOut && armed:
				t.Fatalf("seed %d, after %s: a timer in phase %d", seed, did, x.w.phase)
			case x.w.phase == phaseOut && len(x.w.claims) == 0 && next != max(x.w.due, x.w.grace):
				t.Fatalf("seed %d, after %s: unclaimed, next %v, want the deadline %v", seed, did, next, x.w.due)
			case x.w.phase == phaseOut && len(x.w.claims) > 0 && next != max(x.w.due+hold, x.w.grace):
				t.Fatalf("seed %d, after %s: claimed, next %v, want the bound %v", seed, did, next, x.w.due+hold)
			case x.w.due > timeout:
				t.Fatalf("seed %d, after %s: the deadline moved away to %v", seed, did, x.w.due)
			case x.w.phase == phaseEnded && len(x.verdicts) == 0:
				t.Fatalf("seed %d, after %s: ended without a verdict", seed, did)
			}
		}
		for range moves {
			client := string(rune('a' + rnd.IntN(3)))
			did := ""
			switch rnd.IntN(12) {
			case 0, 1, 2:
				did = "attach " + client
				x.ids++
				_, _, fx := x.w.attach(at(x.now), claim{x.ids, client})
				x.take(fx)
			case 3, 4:
				did = "left " + client
				x.take(x.w.left(at(x.now), client))
			case 5:
				did = "detach"
				x.take(x.w.detach(at(x.now), rnd.Uint64N(x.ids+1)))
			case 6, 7:
				did = "time passes"
				x.now += time.Duration(rnd.IntN(20)) * ms
				x.take(x.w.tick(at(x.now)))
			case 8:
				did = "delegate"
				x.settle(endUnhandled, "")
			case 9:
				did = "sleep"
				if rnd.IntN(4) == 0 {
					x.now += 50 * ms
					x.w.wake(at(x.now))
				}
			case 10:
				did = "gateway"
				if len(x.duties) > 0 {
					x.duty(rnd.IntN(len(x.duties)))
				}
			case 11:
				did = "end"
				if rnd.IntN(6) == 0 {
					x.take(x.w.stop(CodeAborted))
				} else if rnd.IntN(6) == 0 {
					x.settle(endResult, "")
				}
			}
			check(did)
		}
		for len(x.duties) > 0 {
			x.duty(0)
		}
		x.take(x.w.tick(at(time.Hour)))
		for len(x.duties) > 0 {
			x.duty(0)
		}
		check("the end")
		if len(x.verdicts) != 1 || len(x.w.claims) != 0 {
			t.Fatalf("seed %d: %d settlements and %d claims at the end", seed, len(x.verdicts), len(x.w.claims))
		}
	}
}
