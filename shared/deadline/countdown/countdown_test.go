package countdown

import (
	"testing"
)

// at is an instant at which both clocks agree.
func at(ms int64) Stamp { return Stamp{Wall: 1_700_000_000_000 + ms, Mono: ms} }

// in brings a fresh countdown into a state at instant 0 with 60 s known, where
// the state can know it.
func in(t *testing.T, s State) *Countdown {
	t.Helper()
	c := &Countdown{}
	if s != Blank {
		c.Frame(at(0), 60_000)
	}
	switch s {
	case Focused:
		c.Focus(at(0))
	case Editing:
		c.Edit(at(0))
	case Waiting:
		c.TakeTime(at(0))
	case Expired:
		c.Frame(at(-10), 10)
		if !c.Tick(at(0)) {
			t.Fatal("Tick did not expire a countdown of 10 ms after 10 ms")
		}
	case Submitted:
		c.Submit(at(0))
	case Continued:
		c.Continue(at(0))
	}
	if got := c.State(); got != s {
		t.Fatalf("set up state %v, want %v", got, s)
	}
	return c
}

// TestTransitions is the table of doc.go, cell by cell.
func TestTransitions(t *testing.T) {
	inputs := []struct {
		name string
		do   func(*Countdown)
		want map[State]State // what is not listed stays
	}{
		{
			name: "frame",
			do:   func(c *Countdown) { c.Frame(at(1), 5000) },
			want: map[State]State{Blank: Counting, Expired: Counting},
		},
		{
			name: "frame of zero",
			do:   func(c *Countdown) { c.Frame(at(1), 0) },
			want: map[State]State{Blank: Waiting, Counting: Waiting, Focused: Waiting, Expired: Waiting},
		},
		{
			name: "negative frame",
			do:   func(c *Countdown) { c.Frame(at(1), -5) },
			want: map[State]State{Blank: Waiting, Counting: Waiting, Focused: Waiting, Expired: Waiting},
		},
		{
			name: "focus",
			do:   func(c *Countdown) { c.Focus(at(1)) },
			want: map[State]State{Counting: Focused},
		},
		{
			name: "blur",
			do:   func(c *Countdown) { c.Blur(at(1)) },
			want: map[State]State{Focused: Counting},
		},
		{
			name: "edit",
			do:   func(c *Countdown) { c.Edit(at(1)) },
			want: map[State]State{Blank: Editing, Counting: Editing, Focused: Editing, Expired: Editing},
		},
		{
			name: "take time",
			do:   func(c *Countdown) { c.TakeTime(at(1)) },
			want: map[State]State{Blank: Waiting, Counting: Waiting, Focused: Waiting, Editing: Waiting, Expired: Waiting},
		},
		{
			name: "submit",
			do:   func(c *Countdown) { c.Submit(at(1)) },
			want: map[State]State{Blank: Submitted, Counting: Submitted, Focused: Submitted, Editing: Submitted, Waiting: Submitted, Expired: Submitted},
		},
		{
			name: "rearm",
			do:   func(c *Countdown) { c.Rearm(at(1)) },
			want: map[State]State{Submitted: Editing},
		},
		{
			name: "continue",
			do:   func(c *Countdown) { c.Continue(at(1)) },
			want: map[State]State{Blank: Continued, Counting: Continued, Focused: Continued, Editing: Continued, Waiting: Continued, Expired: Continued, Submitted: Continued},
		},
		{
			name: "restore editing",
			do:   func(c *Countdown) { c.Restore(at(1), KeepEditing) },
			want: map[State]State{Blank: Editing, Counting: Editing, Focused: Editing},
		},
		{
			name: "restore waiting",
			do:   func(c *Countdown) { c.Restore(at(1), KeepWaiting) },
			want: map[State]State{Blank: Waiting, Counting: Waiting, Focused: Waiting},
		},
		{
			name: "restore something unknown",
			do:   func(c *Countdown) { c.Restore(at(1), "asleep") },
		},
		{
			name: "tick",
			do:   func(c *Countdown) { c.Tick(at(1)) },
		},
		{
			name: "setting",
			do:   func(c *Countdown) { c.CarryOn(at(1), 1000) },
		},
	}
	for _, input := range inputs {
		t.Run(input.name, func(t *testing.T) {
			for s := Blank; s <= Continued; s++ {
				want, moves := input.want[s]
				if !moves {
					want = s
				}
				c := in(t, s)
				input.do(c)
				if got := c.State(); got != want {
					t.Errorf("%v: got %v, want %v", s, got, want)
				}
			}
		})
	}
}

func TestStateNames(t *testing.T) {
	seen := map[string]bool{}
	for s := Blank; s <= Continued; s++ {
		if n := s.String(); n == "invalid" || seen[n] {
			t.Errorf("state %d is named %q", s, n)
		} else {
			seen[n] = true
		}
	}
	if got := State(99).String(); got != "invalid" {
		t.Errorf("state 99 is named %q, want invalid", got)
	}
}

func TestExpiry(t *testing.T) {
	c := in(t, Counting)
	if c.Tick(at(4000)); c.State() != Counting {
		t.Fatal("not counting after 4 s of 60")
	}
	for ms := int64(8000); ms < 60_000; ms += 4000 {
		if c.Tick(at(ms)) {
			t.Fatalf("expired at %d ms of 60000", ms)
		}
	}
	if c.Tick(at(59_999)) {
		t.Fatal("expired one tick before zero")
	}
	if !c.Tick(at(60_000)) || c.State() != Expired {
		t.Fatalf("state at zero is %v, want an expiry", c.State())
	}
	if c.Tick(at(60_001)) || c.Tick(at(999_999)) {
		t.Fatal("expired twice")
	}
	if _, ok := c.Next(); ok {
		t.Fatal("an expired countdown asks to be woken")
	}
}

// The first thing a person does may be what tells the countdown that it is
// over: each input, one tick either side of zero.
func TestInputsAroundZero(t *testing.T) {
	inputs := map[string]func(*Countdown, Stamp) bool{
		"tick":      (*Countdown).Tick,
		"woke":      (*Countdown).Woke,
		"focus":     (*Countdown).Focus,
		"blur":      (*Countdown).Blur,
		"edit":      (*Countdown).Edit,
		"take time": (*Countdown).TakeTime,
		"submit":    (*Countdown).Submit,
		"setting":   func(c *Countdown, now Stamp) bool { return c.CarryOn(now, 1000) },
	}
	for name, input := range inputs {
		for _, tt := range []struct {
			at   int64
			want bool
		}{{2999, false}, {3000, true}, {3001, true}} {
			c := &Countdown{}
			c.Frame(at(0), 3000)
			if got := input(c, at(tt.at)); got != tt.want {
				t.Errorf("%s at %d ms of 3000: expired %v, want %v", name, tt.at, got, tt.want)
			}
		}
	}
	c := &Countdown{}
	c.Frame(at(0), 3000)
	c.Frame(at(3000), 500)
	if got := c.State(); got != Counting {
		t.Errorf("a newer frame at zero gives %v, want counting: the host knows better", got)
	}
}

func TestFocusKeepsTheRemainder(t *testing.T) {
	c := in(t, Counting)
	c.Focus(at(2000))
	wantLeft(t, c, at(900_000), 58_000)
	if _, ok := c.Next(); ok {
		t.Error("a paused countdown asks to be woken")
	}
	if c.Blur(at(900_000)) {
		t.Fatal("blur after a long pause expired the ask")
	}
	wantLeft(t, c, at(901_000), 57_000)
	if c.Tick(at(904_000)) || c.Tick(at(900_000+57_999)) {
		t.Fatal("expired before the remainder was used up")
	}
	if !c.Tick(at(900_000 + 58_000)) {
		t.Fatal("did not expire when the remainder was used up")
	}
}

func TestFocusBeforeTheFirstFrame(t *testing.T) {
	var c Countdown
	c.Focus(at(0))
	if _, ok := c.Remaining(at(0)); ok {
		t.Error("a remainder before any frame")
	}
	c.Frame(at(500), 60_000)
	if got := c.State(); got != Focused {
		t.Fatalf("state is %v, want focused", got)
	}
	wantLeft(t, &c, at(700_000), 60_000)
	c.Blur(at(700_000))
	wantLeft(t, &c, at(700_001), 59_999)
}

func TestBlurBeforeTheFirstFrameStartsNothing(t *testing.T) {
	var c Countdown
	c.Focus(at(0))
	c.Blur(at(100))
	if got := c.State(); got != Blank {
		t.Fatalf("state is %v, want blank", got)
	}
	if _, ok := c.Next(); ok {
		t.Error("a blank countdown asks to be woken")
	}
	if c.Tick(at(900_000)) {
		t.Error("a blank countdown expired")
	}
	c.Frame(at(900_000), 60_000)
	if got := c.State(); got != Counting {
		t.Fatalf("state is %v, want counting", got)
	}
}

func TestRedelivery(t *testing.T) {
	t.Run("focused takes the new remainder, paused", func(t *testing.T) {
		c := in(t, Focused)
		c.Frame(at(10_000), 20_000)
		wantLeft(t, c, at(50_000), 20_000)
		c.Blur(at(50_000))
		if c.Tick(at(52_000)); c.State() != Counting {
			t.Fatalf("state is %v, want counting", c.State())
		}
		wantLeft(t, c, at(52_000), 18_000)
	})
	for _, s := range []State{Editing, Waiting} {
		t.Run(s.String()+" is not restarted", func(t *testing.T) {
			c := in(t, s)
			c.Frame(at(10_000), 20_000)
			if _, ok := c.Next(); ok {
				t.Error("asks to be woken")
			}
			if c.Tick(at(14_000)) || c.Tick(at(31_000)) || c.State() != s {
				t.Errorf("state is %v, want %v", c.State(), s)
			}
		})
	}
	t.Run("focus of an expired card counts when it is delivered again", func(t *testing.T) {
		c := in(t, Expired)
		c.Focus(at(1))
		c.Frame(at(2), 9000)
		if got := c.State(); got != Focused {
			t.Errorf("state is %v, want focused", got)
		}
	})
}

func TestDisposition(t *testing.T) {
	want := map[State]Disposition{Editing: KeepEditing, Submitted: KeepEditing, Waiting: KeepWaiting}
	for s := Blank; s <= Continued; s++ {
		if got := in(t, s).Disposition(); got != want[s] {
			t.Errorf("%v: disposition %q, want %q", s, got, want[s])
		}
	}
	for _, d := range []Disposition{KeepEditing, KeepWaiting} {
		for _, frameFirst := range []bool{false, true} {
			var c Countdown
			if frameFirst {
				c.Frame(at(0), 1000)
			}
			c.Restore(at(10), d)
			if !frameFirst {
				c.Frame(at(20), 1000)
			}
			if c.Tick(at(5000)) || c.Tick(at(10_000)) || c.Disposition() != d {
				t.Errorf("restored %q (frame first %v) became %q", d, frameFirst, c.Disposition())
			}
		}
	}
}

// A restore of nothing must not swallow time.
func TestRestoreOfNothingLetsTimeBe(t *testing.T) {
	c := in(t, Counting)
	c.Restore(at(3000), NoDisposition)
	c.Rearm(at(4000))
	if c.Tick(at(5000)); c.State() != Counting {
		t.Fatalf("state is %v", c.State())
	}
	wantLeft(t, c, at(5000), 55_000)
}

func TestTwoClocks(t *testing.T) {
	const hour = 3_600_000
	shift := func(mono, wall int64) Stamp { return Stamp{Wall: at(0).Wall + wall, Mono: mono} }
	tests := []struct {
		name string
		left int64
		run  func(c *Countdown) bool // the last input's answer
		want bool
	}{
		{
			name: "forward wall step amid steady ticks",
			left: 60_000,
			run:  func(c *Countdown) bool { c.Tick(at(1000)); return c.Tick(shift(2000, hour)) },
		},
		{
			name: "forward wall step, then a gap that does not reach the end",
			left: 60_000,
			run:  func(c *Countdown) bool { c.Tick(shift(1000, hour)); return c.Tick(shift(7000, hour+6000)) },
		},
		{
			name: "step within a distance of exactly GapMs is still steady",
			left: 60_000,
			run:  func(c *Countdown) bool { return c.Tick(shift(GapMs, hour)) },
		},
		{
			name: "the same one tick later is a gap",
			left: 60_000,
			run:  func(c *Countdown) bool { return c.Tick(shift(GapMs+1, hour)) },
			want: true,
		},
		{
			name: "suspend short of the end by one tick",
			left: hour,
			run:  func(c *Countdown) bool { return c.Tick(shift(6000, hour-1)) },
		},
		{
			name: "suspend to the end",
			left: hour,
			run:  func(c *Countdown) bool { return c.Tick(shift(6000, hour)) },
			want: true,
		},
		{
			name: "suspend with evidence, monotonic clock stopped",
			left: hour,
			run:  func(c *Countdown) bool { return c.Woke(shift(10, hour)) },
			want: true,
		},
		{
			name: "evidence without a jump",
			left: hour,
			run:  func(c *Countdown) bool { return c.Woke(shift(10, 10)) },
		},
		{
			name: "what was slept through counts later on",
			left: hour,
			run: func(c *Countdown) bool {
				c.Tick(shift(6000, hour-1000))
				return c.Tick(shift(7000, hour))
			},
			want: true,
		},
		{
			name: "wall clock set back in a gap: the monotonic clock decides",
			left: 10_000,
			run:  func(c *Countdown) bool { return c.Tick(shift(10_000, -hour)) },
			want: true,
		},
		{
			name: "wall clock set back amid steady ticks revives nothing",
			left: 6000,
			run:  func(c *Countdown) bool { c.Tick(shift(3000, -hour)); return c.Tick(shift(6000, -hour)) },
			want: true,
		},
		{
			name: "monotonic clock going back counts as standing still",
			left: 2000,
			run:  func(c *Countdown) bool { c.Tick(at(1000)); c.Tick(at(0)); return c.Tick(at(999)) },
		},
		{
			name: "wake on a focused card",
			left: 60_000,
			run: func(c *Countdown) bool {
				c.Focus(at(1000))
				return c.Woke(shift(9000, hour)) || c.Blur(shift(9000, hour))
			},
		},
		{
			name: "wake on an edited card",
			left: 60_000,
			run:  func(c *Countdown) bool { c.Edit(at(1000)); return c.Woke(shift(9000, hour)) },
		},
		{
			name: "wake on an edited card with the setting on",
			left: 1000,
			run: func(c *Countdown) bool {
				c.CarryOn(at(0), 600_000)
				c.Edit(at(500))
				return c.Woke(shift(1000, hour))
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c Countdown
			c.Frame(at(0), tt.left)
			if got := tt.run(&c); got != tt.want {
				t.Errorf("expired %v, want %v", got, tt.want)
			}
		})
	}
}

func TestCarryOn(t *testing.T) {
	tests := []struct {
		name     string
		left, on int64
		edit     int64
		touch    func(*Countdown)
		want     int64 // when it expires; 0 never
	}{
		{name: "off", left: 10_000, edit: 1000},
		{name: "setting longer than the remainder", left: 10_000, on: 30_000, edit: 1000, want: 31_000},
		{name: "never sooner than the window", left: 50_000, on: 5000, edit: 1000, want: 50_000},
		{name: "delivered again: not sooner than the window either", left: 50_000, on: 5000, edit: 1000, touch: func(c *Countdown) { c.Frame(at(20_000), 30_000) }, want: 50_000},
		{name: "an edit starts over", left: 10_000, on: 30_000, edit: 1000, touch: func(c *Countdown) { c.Edit(at(20_000)) }, want: 50_000},
		{name: "a focus starts over", left: 10_000, on: 30_000, edit: 1000, touch: func(c *Countdown) { c.Focus(at(20_000)) }, want: 50_000},
		{name: "a blur starts over", left: 10_000, on: 30_000, edit: 1000, touch: func(c *Countdown) { c.Blur(at(20_000)) }, want: 50_000},
		{name: "take time has no end", left: 10_000, on: 30_000, edit: 1000, touch: func(c *Countdown) { c.TakeTime(at(20_000)) }},
		{name: "switched off in time", left: 10_000, on: 30_000, edit: 1000, touch: func(c *Countdown) { c.CarryOn(at(20_000), 0) }},
		{name: "host said zero: not ours to end", left: 10_000, on: 30_000, edit: 1000, touch: func(c *Countdown) { c.Frame(at(20_000), 0) }},
		{name: "controls that came back", left: 10_000, on: 30_000, edit: 1000, touch: func(c *Countdown) { c.Submit(at(2000)); c.Rearm(at(20_000)) }, want: 50_000},
		{name: "submitted", left: 10_000, on: 30_000, edit: 1000, touch: func(c *Countdown) { c.Submit(at(2000)) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c Countdown
			c.CarryOn(at(0), tt.on)
			c.Frame(at(0), tt.left)
			c.Edit(at(tt.edit))
			if tt.touch != nil {
				tt.touch(&c)
			}
			if tt.want == 0 {
				if _, ok := c.Next(); ok {
					t.Error("asks to be woken")
				}
				if c.Tick(at(10_000_000)) {
					t.Error("expired")
				}
				return
			}
			if c.Tick(at(tt.want - 1)) {
				t.Error("expired one tick early")
			}
			if next, ok := c.Next(); !ok || next != tt.want {
				t.Errorf("next wake %d %v, want %d", next, ok, tt.want)
			}
			if !c.Tick(at(tt.want)) {
				t.Error("did not expire")
			}
			if c.Tick(at(tt.want + 10_000_000)) {
				t.Error("expired twice")
			}
		})
	}
}

func TestNextSlices(t *testing.T) {
	var c Countdown
	c.Frame(at(0), MaxMs+5)
	wantLeft(t, &c, at(0), MaxMs)
	if next, ok := c.Next(); !ok || next != SliceMs {
		t.Errorf("next wake %d %v, want %d", next, ok, SliceMs)
	}
	c.Frame(at(0), 40)
	if next, ok := c.Next(); !ok || next != 40 {
		t.Errorf("next wake %d %v, want 40", next, ok)
	}
}

func wantLeft(t *testing.T, c *Countdown, now Stamp, want int64) {
	t.Helper()
	if got, ok := c.Remaining(now); !ok || got != want {
		t.Errorf("remaining %d %v, want %d", got, ok, want)
	}
}
