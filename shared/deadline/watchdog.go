package deadline

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Errors of Watchdog.Next for a caller that broke its contract.
var (
	ErrBusy    = errors.New("watchdog: a next is outstanding already")
	ErrStopped = errors.New("watchdog: stopped")
)

// Watchdog ends one stream's context when the stream is waited for and stays
// silent too long. Time between two Nexts is the consumer's and is not counted.
type Watchdog struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	interval time.Duration
	code     string

	mu      sync.Mutex
	busy    bool
	stopped bool
	timer   *time.Timer
	turn    uint64 // counts armings, so that a timer that lost the race to a disarm ends nothing
}

// NewWatchdog returns a watchdog over parent. The interval must be positive.
func NewWatchdog(parent context.Context, interval time.Duration, code string) (*Watchdog, error) {
	if interval <= 0 {
		return nil, &RangeError{Name: "watchdog interval", Value: interval}
	}
	w := &Watchdog{interval: interval, code: code}
	w.ctx, w.cancel = context.WithCancelCause(parent)
	return w, nil
}

// Context is the one context of the whole stream. It ends with the parent, by
// Stop, or by silence, and then its cause is a *Reason with the code.
func (w *Watchdog) Context() context.Context { return w.ctx }

// Next runs wait, which waits for the stream's next item, with the timer armed,
// and returns what wait returns. An item that is there counts, even if the
// timer ran out at that moment: the context says what happened. It is an error
// to call Next while another is outstanding, or after Stop.
func (w *Watchdog) Next(wait func(context.Context) error) error {
	if err := w.arm(); err != nil {
		return err
	}
	defer w.disarm()
	return wait(w.ctx)
}

// Pulse starts the timer over for the outstanding Next: the stream showed a
// sign of life that is not an item. Otherwise it does nothing.
func (w *Watchdog) Pulse() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy && !w.stopped {
		w.start()
	}
}

// Stop ends the context and frees the timer. It may be called again.
func (w *Watchdog) Stop() {
	w.mu.Lock()
	w.stopped = true
	w.stop()
	w.mu.Unlock()
	w.cancel(context.Canceled)
}

func (w *Watchdog) arm() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.stopped:
		return ErrStopped
	case w.busy:
		return ErrBusy
	}
	w.busy = true
	w.start()
	return nil
}

func (w *Watchdog) disarm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
	w.stop()
}

// start and stop are called with the lock held.

func (w *Watchdog) start() {
	w.stop()
	turn := w.turn
	w.timer = time.AfterFunc(w.interval, func() { w.fire(turn) })
}

func (w *Watchdog) stop() {
	w.turn++
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

func (w *Watchdog) fire(turn uint64) {
	w.mu.Lock()
	current := turn == w.turn
	w.mu.Unlock()
	if current {
		w.cancel(&Reason{Code: w.code, Timeout: w.interval})
	}
}
