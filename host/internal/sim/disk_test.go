package sim

import (
	"errors"
	"sync"
	"syscall"
	"time"

	"meanwhile/host/session"
	"meanwhile/host/session/sessiontest"
)

// media is what the sessions are on, for one life of the process.
type media interface {
	session.Backend
	// failSoon makes the n-th write from now fail; 0: none.
	failSoon(n int)
	// crash ends this life and gives what the next one finds.
	crash(next *dice) (media, error)
}

// disk is a backend whose syncs take time and may fail, over a Mem that keeps
// what is synced. One disk is one life of the process; crash gives the next.
type disk struct {
	*sessiontest.Mem
	dice  *dice
	fault Fault

	order sync.Mutex // all and Mem have the batches in one order

	mu      sync.Mutex
	all     []session.Batch // taken; the first of them are synced
	syncing bool
	failIn  int // batches until a write fails; 0: none will
	failed  bool
	dead    bool
	waiting map[int]func(error) // who has not been told, by place in all
}

func newDisk(r *dice, f Fault, batches ...session.Batch) *disk {
	d := &disk{Mem: sessiontest.NewMem(batches...), dice: r, fault: f, all: batches, waiting: map[int]func(error){}}
	d.Mem.Hold()
	d.Mem.FailWhen(func(session.Batch) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.failIn == 0 {
			return nil
		}
		if d.failIn--; d.failIn > 0 {
			return nil
		}
		d.failed = true
		return []error{syscall.EIO, syscall.ENOSPC}[len(d.all)%2]
	})
	return d
}

// Write queues a batch for the next sync.
func (d *disk) Write(b session.Batch, done func(error)) {
	d.order.Lock()
	defer d.order.Unlock()
	d.mu.Lock()
	if d.dead {
		d.mu.Unlock()
		done(sessiontest.ErrCrashed)
		return
	}
	n := len(d.all)
	d.all = append(d.all, b)
	d.waiting[n] = done
	start := !d.syncing
	d.syncing = true
	d.mu.Unlock()
	if d.fault == AckBeforeSync && len(b.Events) > 0 {
		d.tell(n, nil)
	}
	d.Mem.Write(b, func(err error) { d.tell(n, err) })
	if start {
		time.AfterFunc(d.dice.upTo(20*time.Millisecond), d.sync)
	}
}

// tell tells a writer once.
func (d *disk) tell(n int, err error) {
	d.mu.Lock()
	done := d.waiting[n]
	delete(d.waiting, n)
	d.mu.Unlock()
	if done != nil {
		done(err)
	}
}

// sync makes what waits durable: one fsync for all of it.
func (d *disk) sync() {
	d.mu.Lock()
	d.syncing = false
	d.mu.Unlock()
	d.Mem.Sync(d.Mem.Waiting())
}

// failSoon makes the n-th batch from now fail.
func (d *disk) failSoon(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failIn = n
}

// crash ends this life. What was synced stays; of what was under way, a
// beginning may be there, too: an atomic batch is there whole or not at all. A
// failed write may have reached the disk, but nothing was written past it.
func (d *disk) crash(next *dice) (media, error) {
	d.mu.Lock()
	d.dead = true
	all, failed := d.all, d.failed
	d.mu.Unlock()
	kept := d.Mem.Crash().Batches()
	// In a process that ended nobody waits any more; here they must go away.
	for n := range len(all) {
		d.tell(n, sessiontest.ErrCrashed)
	}
	more := len(all) - len(kept)
	if failed {
		more = min(more, 1)
	}
	if more > 0 {
		kept = append(kept, all[len(kept):len(kept)+d.dice.pick(more+1)]...)
	}
	if d.fault == LostBatch && len(kept) > 0 {
		// What a store without directory sync does: an early file is gone.
		for i := len(kept) - 1; i >= 0; i-- {
			if kept[i].Stage == session.StageAppend && len(kept[i].Events) > 0 {
				kept = append(kept[:i:i], kept[i+1:]...)
				break
			}
		}
	}
	return newDisk(next, d.fault, kept...), nil
}

// Close writes what waits, unless the process has ended.
func (d *disk) Close() error {
	d.mu.Lock()
	dead := d.dead
	d.mu.Unlock()
	if dead {
		return nil
	}
	err := d.Mem.Close()
	if errors.Is(err, session.ErrClosed) {
		return nil
	}
	return err
}
