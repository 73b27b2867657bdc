package sessiontest

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"meanwhile/host/session"
)

// ErrCrashed refuses the writes of a backend after Crash or Close.
var ErrCrashed = errors.New("sessiontest: backend has crashed")

// readBytes is the rough size after which Events stops.
const readBytes = 1 << 20

// Mem is a session.Backend in memory.
type Mem struct {
	order sync.Mutex // held from taking a batch to the end of its done

	mu     sync.Mutex
	held   bool
	queue  []queued
	failed error
	fault  func(session.Batch) error
	synced []session.Batch
	logs   map[string]*memLog
	values map[string]map[string][]byte
	reads  int
}

type queued struct {
	batch session.Batch
	done  func(error)
}

type memLog struct {
	rec    session.Record
	events [][]byte
	hidden bool // being built
}

var _ session.Backend = (*Mem)(nil)

// NewMem returns an empty backend, or one with the given batches on disk.
func NewMem(batches ...session.Batch) *Mem {
	m := &Mem{logs: make(map[string]*memLog), values: make(map[string]map[string][]byte)}
	for _, b := range batches {
		m.apply(b)
	}
	// What was being built when the process ended is gone.
	maps.DeleteFunc(m.logs, func(_ string, l *memLog) bool { return l.hidden })
	return m
}

// Write takes a batch; see Hold.
func (m *Mem) Write(b session.Batch, done func(error)) {
	m.mu.Lock()
	if m.failed != nil {
		err := m.failed
		m.mu.Unlock()
		done(err)
		return
	}
	m.queue = append(m.queue, queued{clone(b), done})
	held := m.held
	m.mu.Unlock()
	if !held {
		m.Sync(1)
	}
}

// Hold makes writes wait for Sync or Release.
func (m *Mem) Hold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = true
}

// Release writes all that waits and makes writes immediate again.
func (m *Mem) Release() {
	m.mu.Lock()
	m.held = false
	n := len(m.queue)
	m.mu.Unlock()
	m.Sync(n)
}

// Waiting is the number of batches that wait.
func (m *Mem) Waiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.queue)
}

// Sync makes the next n waiting batches durable.
func (m *Mem) Sync(n int) {
	m.order.Lock()
	defer m.order.Unlock()
	for range n {
		m.mu.Lock()
		if len(m.queue) == 0 {
			m.mu.Unlock()
			return
		}
		q := m.queue[0]
		m.queue = m.queue[1:]
		err := m.failed
		if err == nil && m.fault != nil {
			err = m.fault(q.batch)
			m.failed = err
		}
		if err == nil {
			m.apply(q.batch)
		}
		m.mu.Unlock()
		q.done(err)
	}
}

// FailWhen makes the first batch for which fault gives an error fail with it,
// and every later one too. fault must not call the backend.
func (m *Mem) FailWhen(fault func(session.Batch) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = fault
}

// Crash returns a backend with what is synced, as a new process would find it.
// The old one refuses everything that still waits, without telling anybody.
func (m *Mem) Crash() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed, m.queue = ErrCrashed, nil
	return NewMem(m.synced...)
}

// Batches returns all durable batches in order. NewMem(batches[:n]...) is the
// disk after the n-th.
func (m *Mem) Batches() []session.Batch {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.synced)
}

// EventReads is how often Events was called.
func (m *Mem) EventReads() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reads
}

// Corrupt changes one stored record in place, to test how damage is met. The
// change gets nil for an event that is not there; nil as the result removes it
// together with the later ones.
func (m *Mem) Corrupt(id string, seq int64, change func([]byte) []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.logs[id]
	if b := change(l.events[seq]); b != nil {
		l.events[seq] = b
	} else {
		l.events = l.events[:seq]
	}
}

// CorruptRecord changes the small records of a session in place.
func (m *Mem) CorruptRecord(id string, change func(*session.Record)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.logs[id].rec)
}

// apply is the durable effect of a batch. m.mu is held or not needed yet.
func (m *Mem) apply(b session.Batch) {
	m.synced = append(m.synced, b)
	for _, v := range b.Values {
		if m.values[v.Kind] == nil {
			m.values[v.Kind] = make(map[string][]byte)
		}
		if v.Data == nil {
			delete(m.values[v.Kind], v.Key)
		} else {
			m.values[v.Kind][v.Key] = v.Data
		}
	}
	if b.Session == "" {
		return
	}
	if b.Stage == session.StageDrop {
		delete(m.logs, b.Session)
		return
	}
	l := m.logs[b.Session]
	if l == nil {
		l = &memLog{rec: session.Record{ID: b.Session}}
		m.logs[b.Session] = l
	}
	l.hidden = b.Stage == session.StageBuild
	if len(b.Events) > 0 {
		l.events = append(l.events[:b.First:b.First], b.Events...)
		l.rec.Events = int64(len(l.events))
	}
	for _, r := range []struct {
		to   *[]byte
		from []byte
	}{{&l.rec.Header, b.Header}, {&l.rec.Summary, b.Summary}, {&l.rec.Pending, b.Pending}, {&l.rec.Checkpoint, b.Checkpoint}} {
		if r.from != nil {
			*r.to = r.from
		}
	}
}

// Sessions lists the sessions.
func (m *Mem) Sessions(fn func(session.Record) error) error {
	m.mu.Lock()
	var recs []session.Record
	for _, l := range m.logs {
		if !l.hidden {
			rec := l.rec
			rec.Checkpoint = nil
			recs = append(recs, rec)
		}
	}
	m.mu.Unlock()
	slices.SortFunc(recs, func(a, b session.Record) int { return strings.Compare(a.ID, b.ID) })
	for _, r := range recs {
		if err := fn(r); err != nil {
			return err
		}
	}
	return nil
}

// Load reads one session's records.
func (m *Mem) Load(id string) (session.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.logs[id]
	if l == nil || l.hidden {
		return session.Record{}, session.ErrNoSession
	}
	return l.rec, nil
}

// Events reads events.
func (m *Mem) Events(id string, from int64, max int) ([][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	l := m.logs[id]
	if l == nil {
		return nil, nil
	}
	var out [][]byte
	for size := 0; from < int64(len(l.events)) && len(out) < max && size < readBytes; from++ {
		out = append(out, slices.Clone(l.events[from]))
		size += len(l.events[from])
	}
	return out, nil
}

// Get reads one value.
func (m *Mem) Get(kind, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.values[kind][key]), nil
}

// Each lists the values of a kind.
func (m *Mem) Each(kind string, fn func(string, []byte) error) error {
	m.mu.Lock()
	values := maps.Clone(m.values[kind])
	m.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(values)) {
		if err := fn(k, slices.Clone(values[k])); err != nil {
			return err
		}
	}
	return nil
}

// Close writes what waits and refuses what comes later.
func (m *Mem) Close() error {
	m.Release()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed == nil {
		m.failed = session.ErrClosed
	}
	return nil
}

// clone keeps a batch apart from its writer, as a disk would.
func clone(b session.Batch) session.Batch {
	b.Header, b.Summary, b.Pending, b.Checkpoint = slices.Clone(b.Header), slices.Clone(b.Summary), slices.Clone(b.Pending), slices.Clone(b.Checkpoint)
	events := make([][]byte, len(b.Events))
	for i, e := range b.Events {
		events[i] = slices.Clone(e)
	}
	b.Events = events
	b.Values = slices.Clone(b.Values)
	for i := range b.Values {
		b.Values[i].Data = slices.Clone(b.Values[i].Data)
	}
	return b
}
