package countdown

import (
	"testing"

	"pgregory.net/rapid"
)

// model is the countdown told a second time, without increments: it keeps the
// instant of the expiry on the monotonic clock and moves it where a sleep is
// seen.
type model struct {
	state   State
	focus   bool
	due     int64 // Counting: monotonic instant of the expiry
	left    int64 // Focused: what is kept
	last    Stamp
	expired int
}

func (m *model) pass(now Stamp) {
	if m.state == Counting {
		slept := int64(0)
		if mono := now.Mono - m.last.Mono; mono > 5000 {
			slept = max(0, now.Wall-m.last.Wall-mono)
		}
		m.due -= slept
		if now.Mono >= m.due {
			m.state = Expired
			m.expired++
		}
	}
	m.last = now
}

// TestAgainstModel drives both with random inputs, wall steps and sleeps.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Countdown
		var m model
		expired := 0
		now := Stamp{Wall: 1_700_000_000_000, Mono: rapid.Int64Range(0, 1<<40).Draw(t, "origin")}
		c.last, m.last = now, now
		note := func(e bool) {
			if e {
				expired++
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "inputs") {
			d := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 5000), rapid.Int64Range(4999, 5002), rapid.Int64Range(0, 100_000)).Draw(t, "mono")
			now.Mono += d
			now.Wall += d
			if rapid.IntRange(0, 4).Draw(t, "wall") == 0 {
				now.Wall += rapid.Int64Range(-50_000, 50_000).Draw(t, "step")
			}
			switch rapid.SampledFrom([]string{"tick", "tick", "tick", "frame", "focus", "blur", "edit", "take", "submit", "rearm", "continue", "restore"}).Draw(t, "input") {
			case "tick":
				note(c.Tick(now))
				m.pass(now)
			case "frame":
				ms := rapid.Int64Range(0, 60_000).Draw(t, "ms")
				c.Frame(now, ms)
				m.last = now
				switch m.state {
				case Blank, Counting, Focused, Expired:
					m.state, m.due, m.left = Counting, now.Mono+ms, ms
					if m.focus {
						m.state = Focused
					}
					if ms == 0 {
						m.state = Waiting
					}
				}
			case "focus":
				note(c.Focus(now))
				m.pass(now)
				if m.focus = true; m.state == Counting {
					m.state, m.left = Focused, m.due-now.Mono
				}
			case "blur":
				note(c.Blur(now))
				m.pass(now)
				if m.focus = false; m.state == Focused {
					m.state, m.due = Counting, now.Mono+m.left
				}
			case "edit":
				note(c.Edit(now))
				if m.pass(now); m.state != Submitted && m.state != Continued && m.state != Waiting {
					m.state = Editing
				}
			case "take":
				note(c.TakeTime(now))
				if m.pass(now); m.state != Submitted && m.state != Continued {
					m.state = Waiting
				}
			case "submit":
				note(c.Submit(now))
				if m.pass(now); m.state != Continued {
					m.state = Submitted
				}
			case "rearm":
				if c.Rearm(now); m.state == Submitted {
					m.state = Editing
				}
			case "continue":
				if rapid.IntRange(0, 5).Draw(t, "really") == 0 {
					c.Continue(now)
					m.state = Continued
				}
			case "restore":
				c.Restore(now, KeepEditing)
				switch m.state {
				case Blank, Counting, Focused:
					m.state, m.last = Editing, now
				}
			}
			if c.State() != m.state || expired != m.expired {
				t.Fatalf("state %v with %d expiries, want %v with %d", c.State(), expired, m.state, m.expired)
			}
			if next, ok := c.Next(); ok != (m.state == Counting) || ok && (next > m.due || next > m.last.Mono+SliceMs) {
				t.Fatalf("%v: next wake %d %v, due %d", m.state, next, ok, m.due)
			}
		}
	})
}

// TestSteadyTicksIgnoreTheWall: whatever the wall clock does, a countdown that
// is woken when it asked to be expires exactly at its monotonic instant.
func TestSteadyTicksIgnoreTheWall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left := rapid.Int64Range(1, 300_000).Draw(t, "left")
		var c Countdown
		now := Stamp{Wall: 1_700_000_000_000}
		c.Frame(now, left)
		for {
			next, ok := c.Next()
			if !ok {
				t.Fatal("no wake asked for")
			}
			now.Mono = next
			now.Wall += rapid.Int64Range(-1<<40, 1<<40).Draw(t, "step")
			if c.Tick(now) {
				break
			}
			if now.Mono >= left {
				t.Fatalf("still %v at %d of %d", c.State(), now.Mono, left)
			}
		}
		if now.Mono != left {
			t.Fatalf("expired at %d, want %d", now.Mono, left)
		}
	})
}
