package question

import (
	"sync/atomic"
	"time"
)

// Clock reads both clocks. It is called from many goroutines.
type Clock func() Instant

// SystemClock reads the machine's clocks. Go's monotonic clock stands still
// while Linux sleeps, so the time asleep is added to it, in steps of at least a
// second: below that it is the noise of reading two clocks one after the other,
// which must not make time run backwards.
func SystemClock() Clock { return systemClock(asleep) }

func systemClock(asleep func() time.Duration) Clock {
	var slept atomic.Int64
	start, before := time.Now(), asleep()
	return func() Instant {
		total, old := asleep()-before, slept.Load()
		if total-time.Duration(old) >= time.Second && slept.CompareAndSwap(old, int64(total)) {
			old = int64(total)
		}
		now := time.Now()
		return Instant{Wall: time.Duration(now.UnixNano()), Mono: now.Sub(start) + time.Duration(old)}
	}
}
