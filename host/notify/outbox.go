package notify

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	queueMax  = 256  // notes that wait for one target; the oldest goes
	sentMax   = 4096 // tags remembered as sent to one target
	maxTries  = 6
	retryMax  = 2 * time.Minute
	sendLimit = 15 * time.Second // of one attempt
)

// errQueueFull is kept in the status of a target that cannot keep up.
var errQueueFull = errors.New("too many notes wait: the oldest was dropped")

// sendError is an attempt that failed.
type sendError struct {
	text  string
	final bool          // trying again will not help
	gone  bool          // the target is no more
	after time.Duration // the target's own wish; 0 = none
}

func (e *sendError) Error() string { return e.text }

// Status is how a target does.
type Status struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`  // webhook, ntfy or push
	Where    string `json:"where"` // host of its address
	Label    string `json:"label,omitempty"`
	Sent     int64  `json:"sent"`
	Failed   int64  `json:"failed"` // notes given up
	Queued   int    `json:"queued"`
	SentAt   int64  `json:"sentAt,omitempty"`
	Error    string `json:"error,omitempty"` // since the last success
	FailedAt int64  `json:"failedAt,omitempty"`
}

// item is one note that waits.
type item struct {
	note  Note
	tries int
}

// outbox sends notes to one target, one at a time.
type outbox struct {
	ctx   context.Context
	work  *sync.WaitGroup
	log   *slog.Logger
	send  func(context.Context, Note) error
	gone  func()        // the target is no more; may be nil
	retry time.Duration // before the second attempt

	mu      sync.Mutex
	status  Status
	queue   []*item // oldest first, one for each tag
	sent    []string
	running bool
	closed  bool
}

// offer queues a note, in place of what waits under its tag. What nobody was
// shown needs no withdrawal.
func (o *outbox) offer(n Note) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	i := slices.IndexFunc(o.queue, func(it *item) bool { return it.note.Tag == n.Tag })
	shown := n.recovered || slices.Contains(o.sent, n.Tag)
	switch {
	case n.Kind == Settled && !shown:
		// An attempt under way may have arrived all the same: only the queue
		// behind it can be cut without a word.
		if i < 0 {
			return
		}
		if i > 0 || o.queue[i].tries == 0 && !o.running {
			o.queue = slices.Delete(o.queue, i, i+1)
			return
		}
		o.queue[i] = &item{note: n}
	case i >= 0:
		o.queue[i] = &item{note: n, tries: o.queue[i].tries}
	default:
		if len(o.queue) >= queueMax {
			o.queue = slices.Delete(o.queue, 1, 2) // the first may be under way
			o.status.Failed++
			o.failedLocked(errQueueFull)
		}
		o.queue = append(o.queue, &item{note: n})
	}
	if !o.running {
		o.running = true
		o.work.Go(o.run)
	}
}

// run sends until nothing waits.
func (o *outbox) run() {
	for {
		o.mu.Lock()
		if len(o.queue) == 0 || o.closed || o.ctx.Err() != nil {
			o.running = false
			o.mu.Unlock()
			return
		}
		it := o.queue[0]
		o.mu.Unlock()

		ctx, cancel := context.WithTimeout(o.ctx, sendLimit)
		err := o.send(ctx, it.note)
		cancel()
		if o.ctx.Err() != nil {
			continue
		}
		wait := o.record(it, err)
		if wait <= 0 {
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-o.ctx.Done():
			timer.Stop()
		}
	}
}

// record takes one attempt's end and says how long to wait before the next.
func (o *outbox) record(it *item, err error) time.Duration {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	done := func() {
		// A newer note may have taken the place meanwhile.
		if len(o.queue) > 0 && o.queue[0] == it {
			o.queue = slices.Delete(o.queue, 0, 1)
		}
	}
	if err == nil {
		o.status.Sent++
		o.status.SentAt, o.status.Error, o.status.FailedAt = now.UnixMilli(), "", 0
		if it.note.Kind == Settled {
			o.sent = slices.DeleteFunc(o.sent, func(tag string) bool { return tag == it.note.Tag })
		} else if !slices.Contains(o.sent, it.note.Tag) {
			if len(o.sent) >= sentMax {
				o.sent = slices.Delete(o.sent, 0, 1)
			}
			o.sent = append(o.sent, it.note.Tag)
		}
		done()
		return 0
	}
	it.tries++
	if len(o.queue) > 0 && o.queue[0] != it {
		o.queue[0].tries = max(o.queue[0].tries, it.tries)
	}
	wait := min(o.retry<<(it.tries-1), retryMax)
	var told *sendError
	if errors.As(err, &told) {
		wait = min(max(wait, told.after), retryMax)
	}
	o.failedLocked(err)
	final := told != nil && (told.final || told.gone)
	if final || it.tries >= maxTries || !it.note.Until.IsZero() && now.Add(wait).After(it.note.Until) {
		o.status.Failed++
		o.log.Warn("notification given up", "target", o.status.ID, "kind", it.note.Kind, "tries", it.tries, "error", err)
		done()
		wait = 0
	}
	if told != nil && told.gone && o.gone != nil {
		o.closed = true
		o.work.Go(o.gone)
	}
	return wait
}

func (o *outbox) failedLocked(err error) {
	o.status.Error, o.status.FailedAt = err.Error(), time.Now().UnixMilli()
	o.log.Info("notification not sent", "target", o.status.ID, "error", err)
}

func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed, o.queue = true, nil
}

func (o *outbox) report() Status {
	o.mu.Lock()
	defer o.mu.Unlock()
	st := o.status
	st.Queued = len(o.queue)
	return st
}
