package deadline

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const idle = 10 * time.Second

func watchdog(t *testing.T, parent context.Context) *Watchdog {
	t.Helper()
	w, err := NewWatchdog(parent, idle, "IDLE")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// forEnd waits like a stream does that stays silent.
func forEnd(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }

// after waits like a stream does whose next item comes after d.
func after(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func TestWatchdogNeedsAnInterval(t *testing.T) {
	for _, d := range []time.Duration{0, -1} {
		if _, err := NewWatchdog(t.Context(), d, "IDLE"); err == nil {
			t.Errorf("interval %v accepted", d)
		}
	}
}

func TestWatchdogOneTickEitherSide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchdog(t, t.Context())
		if err := w.Next(after(idle - 1)); err != nil {
			t.Fatalf("an item one tick in time: %v", err)
		}
		begin := time.Now()
		err := w.Next(forEnd)
		if r := Of(err, "IDLE"); r == nil || r.Timeout != idle {
			t.Fatalf("silence: %v", err)
		}
		if got := time.Since(begin); got != idle {
			t.Errorf("fired after %v, want %v", got, idle)
		}
	})
}

func TestWatchdogCountsOnlyOutstandingDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchdog(t, t.Context())
		for range 3 {
			if err := w.Next(after(idle / 2)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * idle) // the consumer thinks
		}
		synctest.Wait()
		if err := w.Context().Err(); err != nil {
			t.Fatalf("the consumer's time was counted: %v", err)
		}
	})
}

func TestWatchdogPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchdog(t, t.Context())
		w.Pulse() // nothing outstanding: arms nothing
		time.Sleep(2 * idle)
		begin := time.Now()
		done := make(chan error)
		go func() { done <- w.Next(forEnd) }()
		for range 5 {
			time.Sleep(idle - 1)
			w.Pulse()
		}
		if err := <-done; Of(err, "IDLE") == nil {
			t.Fatalf("got %v", err)
		}
		if got, want := time.Since(begin), 5*(idle-1)+idle; got != want {
			t.Errorf("fired after %v, want %v", got, want)
		}
		w.Pulse()
	})
}

func TestWatchdogMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchdog(t, t.Context())
		never := func(context.Context) error { t.Error("waited"); return nil }
		done := make(chan error)
		go func() { done <- w.Next(forEnd) }()
		synctest.Wait()
		if err := w.Next(never); !errors.Is(err, ErrBusy) {
			t.Errorf("concurrent next: %v, want %v", err, ErrBusy)
		}
		w.Stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the outstanding next ended with %v, want canceled", err)
		}
		if err := w.Next(never); !errors.Is(err, ErrStopped) {
			t.Errorf("next after stop: %v, want %v", err, ErrStopped)
		}
		w.Stop()
		time.Sleep(10 * idle)
		if Of(context.Cause(w.Context()), "IDLE") != nil {
			t.Error("stopped and timed out")
		}
	})
}

func TestWatchdogFirstCauseWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("user pressed stop")
		parent, stop := context.WithCancelCause(t.Context())
		w := watchdog(t, parent)
		time.AfterFunc(idle-1, func() { stop(why) })
		if err := w.Next(forEnd); err != why {
			t.Fatalf("got %v, want %v", err, why)
		}
		time.Sleep(idle)
		if got := context.Cause(w.Context()); got != why {
			t.Errorf("cause became %v", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		parent, stop := context.WithCancelCause(t.Context())
		w := watchdog(t, parent)
		ctx := w.Context()
		if err := w.Next(forEnd); Of(err, "IDLE") == nil {
			t.Fatal(err)
		}
		stop(errors.New("later"))
		w.Stop()
		if ctx != w.Context() || Of(context.Cause(ctx), "IDLE") == nil {
			t.Errorf("cause became %v", context.Cause(ctx))
		}
	})
}

// A next that comes back as the timer runs out: whatever order they take, an
// item delivered before the instant leaves the context alone.
func TestWatchdogStaleTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watchdog(t, t.Context())
		w.fire(w.turn + 1) // a timer of an arming that is over
		if err := w.Next(func(context.Context) error { w.fire(w.turn - 1); return nil }); err != nil {
			t.Fatal(err)
		}
		if err := w.Context().Err(); err != nil {
			t.Errorf("a stale timer ended the stream: %v", err)
		}
	})
}

// Everything at once, for the race detector: whatever the order, a next ends
// with its item, the timeout, the stop or a misuse, and the context ends.
func TestWatchdogHammer(t *testing.T) {
	for range 50 {
		w, err := NewWatchdog(t.Context(), 100*time.Microsecond, "IDLE")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					w.Pulse()
					err := w.Next(after(50 * time.Microsecond))
					if err != nil && Of(err, "IDLE") == nil && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrBusy) && !errors.Is(err, ErrStopped) {
						t.Errorf("next: %v", err)
					}
				}
			})
		}
		wg.Go(w.Stop)
		wg.Wait()
		<-w.Context().Done()
		if w.timer != nil {
			t.Error("a timer is left")
		}
	}
}
