package question

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSystemClockNeverStepsBack(t *testing.T) {
	now := SystemClock()
	last := now()
	for range 10_000 {
		next := now()
		if next.Mono < last.Mono {
			t.Fatalf("Mono stepped back from %v to %v", last.Mono, next.Mono)
		}
		last = next
	}
}

func TestSystemClockCountsSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		total := 3 * time.Hour // slept before the clock was made: does not count
		now := systemClock(func() time.Duration { return total })
		for _, tc := range []struct {
			name string
			step func()
			want time.Duration
		}{
			{"start", func() {}, 0},
			{"awake", func() { time.Sleep(10 * time.Second) }, 10 * time.Second},
			{"asleep for an hour", func() { total += time.Hour }, time.Hour + 10*time.Second},
			{"the noise of reading two clocks", func() { total += time.Second - 1 }, time.Hour + 10*time.Second},
			{"and back", func() { total -= time.Second }, time.Hour + 10*time.Second},
			{"asleep again", func() { total += time.Minute }, time.Hour + time.Minute + 10*time.Second - 1},
		} {
			tc.step()
			if got := now().Mono; got != tc.want {
				t.Errorf("%s: Mono = %v, want %v", tc.name, got, tc.want)
			}
		}
	})
}
