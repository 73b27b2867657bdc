package logstore

import (
	"fmt"
	"sync"
	"time"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/util"

	"meanwhile/host/session"
)

const (
	writeBuffer = 8 << 20  // memory table; a change of session is at most half of it
	groupMax    = 1 << 20  // a group takes no further batch beyond this
	queueMax    = 32 << 20 // Write blocks beyond this
	sweepMax    = 1024     // events of a dropped session removed per idle round
)

// group turns many small batches into few synced writes.
type group struct {
	db *leveldb.DB

	mu     sync.Mutex
	wake   *sync.Cond // something queued, or closing
	room   *sync.Cond // the queue shrank
	queue  []entry
	queued int
	doomed []string // dropped or abandoned sessions whose events are still there
	failed error
	closed bool
	ended  chan struct{}
	onFail func(error) // with onSync set before the first write
	onSync func(Sync)  // nil: nobody asks

	// Owned by the writer.
	held  map[string]int64 // events per session
	built map[string]int64 // the same for sessions being built
	tally tally
}

// Sync is one group of batches that reached the disk.
type Sync struct {
	Took    time.Duration // of the write and its fsync
	Batches int
	Bytes   int
}

type entry struct {
	batch session.Batch
	size  int
	done  func(error)
}

func newGroup(db *leveldb.DB, held map[string]int64, doomed []string, t tally) *group {
	g := &group{db: db, held: held, built: make(map[string]int64), doomed: doomed, tally: t, ended: make(chan struct{})}
	g.wake, g.room = sync.NewCond(&g.mu), sync.NewCond(&g.mu)
	go g.run()
	return g
}

func (g *group) put(b session.Batch, done func(error)) {
	size := b.Size()
	g.mu.Lock()
	for g.queued > 0 && g.queued+size > queueMax && g.failed == nil && !g.closed {
		g.room.Wait()
	}
	err := g.failed
	if err == nil && g.closed {
		err = session.ErrClosed
	}
	if err == nil && (len(b.Session) > maxID || b.Size() > writeBuffer/2+writeBuffer/4) {
		err = session.ErrTooLarge
	}
	if err == nil {
		g.queue = append(g.queue, entry{b, size, done})
		g.queued += size
		g.wake.Signal()
	}
	g.mu.Unlock()
	if err != nil {
		done(err)
	}
}

// close writes what is queued and stops the writer.
func (g *group) close() {
	g.mu.Lock()
	g.closed = true
	g.wake.Signal()
	g.room.Broadcast()
	g.mu.Unlock()
	<-g.ended
}

func (g *group) run() {
	defer close(g.ended)
	for {
		batch, sweep, ok := g.next()
		if !ok {
			return
		}
		if sweep != "" {
			g.sweep(sweep)
			continue
		}
		err := g.write(batch)
		if err != nil {
			g.fail(err)
		}
		for _, e := range batch {
			e.done(err)
		}
		if err != nil {
			g.refuseQueued()
		}
	}
}

// next waits for work: a group of batches, or else one sweep.
func (g *group) next() (batch []entry, sweep string, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.queue) == 0 {
		if g.closed {
			return nil, "", false
		}
		if len(g.doomed) > 0 && g.failed == nil {
			return nil, g.doomed[0], true
		}
		g.wake.Wait()
	}
	n, size := 0, 0
	for n < len(g.queue) && (n == 0 || size+g.queue[n].size <= groupMax) {
		size += g.queue[n].size
		n++
	}
	batch = append(batch, g.queue[:n]...)
	clear(g.queue[:n])
	g.queue = g.queue[n:]
	g.queued -= size
	g.room.Broadcast()
	return batch, "", true
}

func (g *group) write(batch []entry) error {
	var b leveldb.Batch
	var dropped []string
	for _, e := range batch {
		g.add(&b, &e.batch)
		if e.batch.Stage == session.StageDrop {
			dropped = append(dropped, e.batch.Session)
		}
	}
	key := []byte{kindTally}
	b.Put(key, seal(key, g.tally.append(nil)))
	start := time.Now()
	if err := g.db.Write(&b, synced()); err != nil {
		return fmt.Errorf("write sessions: %w", err)
	}
	if g.onSync != nil {
		s := Sync{Took: time.Since(start), Batches: len(batch)}
		for _, e := range batch {
			s.Bytes += e.size
		}
		g.onSync(s)
	}
	g.mu.Lock()
	g.doomed = append(g.doomed, dropped...)
	g.mu.Unlock()
	return nil
}

// add translates one batch and keeps the counts. After a failed write the
// counts are wrong, and nothing is written any more.
func (g *group) add(b *leveldb.Batch, s *session.Batch) {
	put := func(key []byte, payload ...[]byte) { b.Put(key, seal(key, payload...)) }
	for i, e := range s.Events {
		put(eventKey(s.Session, s.First+int64(i)), e)
	}
	n := s.First + int64(len(s.Events))
	switch s.Stage {
	case session.StageBuild:
		if g.built[s.Session] == 0 {
			put(idKey(kindDoomed, s.Session), nil)
		}
		g.built[s.Session] = max(n, 1)
		return
	case session.StageCreate:
		delete(g.built, s.Session)
		b.Delete(idKey(kindDoomed, s.Session))
		g.tally.sessions++
		g.tally.events += n
		g.held[s.Session] = n
	case session.StageDrop:
		if _, ok := g.built[s.Session]; ok {
			delete(g.built, s.Session) // never counted
		} else {
			g.tally.sessions--
			g.tally.events -= g.held[s.Session]
			delete(g.held, s.Session)
		}
		put(idKey(kindDoomed, s.Session), nil)
		for _, kind := range []byte{kindHeader, kindSummary, kindPending, kindCheckpoint, kindDamage} {
			b.Delete(idKey(kind, s.Session))
		}
	case session.StageAppend:
		if len(s.Events) > 0 {
			g.tally.events += n - g.held[s.Session]
			g.held[s.Session] = n
		}
	}
	if s.Stage != session.StageDrop {
		if s.Header != nil {
			put(idKey(kindHeader, s.Session), s.Header)
		}
		if s.Summary != nil {
			put(idKey(kindSummary, s.Session), countedSummary(g.held[s.Session], s.Summary)...)
		}
		if s.Pending != nil {
			put(idKey(kindPending, s.Session), s.Pending)
		}
		if s.Checkpoint != nil {
			put(idKey(kindCheckpoint, s.Session), s.Checkpoint)
		}
	}
	for _, v := range s.Values {
		if v.Data == nil {
			b.Delete(valueKey(v.Kind, v.Key))
		} else {
			put(valueKey(v.Kind, v.Key), v.Data)
		}
	}
}

// sweep removes some events of a dropped session, and its mark when none is
// left. It needs no sync: lost work is done again.
func (g *group) sweep(id string) {
	start, limit := eventRange(id, 0)
	var b leveldb.Batch
	it := g.db.NewIterator(&util.Range{Start: start, Limit: limit}, nil)
	for b.Len() < sweepMax && it.Next() {
		b.Delete(it.Key())
	}
	more := b.Len() == sweepMax
	err := it.Error()
	it.Release()
	if !more {
		b.Delete(idKey(kindDoomed, id))
	}
	if err == nil {
		err = g.db.Write(&b, nil)
	}
	if err != nil {
		g.fail(fmt.Errorf("remove events of dropped session: %w", err))
		return
	}
	if !more {
		g.mu.Lock()
		g.doomed = g.doomed[1:] // only the writer takes from the front
		g.mu.Unlock()
	}
}

func (g *group) fail(err error) {
	g.mu.Lock()
	first := g.failed == nil
	if first {
		g.failed = fmt.Errorf("storage failed earlier, nothing is written any more: %w", err)
	}
	g.room.Broadcast()
	g.mu.Unlock()
	if first && g.onFail != nil {
		g.onFail(err)
	}
}

func (g *group) refuseQueued() {
	g.mu.Lock()
	queue := g.queue
	g.queue, g.queued = nil, 0
	err := g.failed
	g.mu.Unlock()
	for _, e := range queue {
		e.done(err)
	}
}
