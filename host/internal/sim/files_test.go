package sim

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"meanwhile/host/session"
	"meanwhile/host/session/logstore"
	"meanwhile/host/session/sessiontest"
)

// files is a disk of bytes and names: what is on it for sure is what was
// synced. It may fail at any operation, and lose or tear the rest.
type files struct {
	dice  *dice
	fault Fault

	mu      sync.Mutex
	names   map[string]*bytesFile // as the process sees them
	durable map[string]*bytesFile // as of the last sync of the directory
	changes []func(map[string]*bytesFile)
	failIn  int
	dead    bool
}

type bytesFile struct {
	data   []byte
	synced int
}

func newFiles(d *dice, f Fault) *files {
	return &files{dice: d, fault: f, names: map[string]*bytesFile{}, durable: map[string]*bytesFile{}}
}

var errDead = errors.New("sim: the process has ended")

// step is one operation that changes something. The lock is held.
func (f *files) step() error {
	if f.dead {
		return errDead
	}
	if f.failIn > 0 {
		if f.failIn--; f.failIn == 0 {
			return []error{syscall.EIO, syscall.ENOSPC}[f.dice.pick(2)]
		}
	}
	return nil
}

func (f *files) rename(change func(map[string]*bytesFile)) {
	change(f.names)
	f.changes = append(f.changes, change)
}

func (f *files) Create(name string) (logstore.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step(); err != nil {
		return nil, err
	}
	file := &bytesFile{}
	f.rename(func(m map[string]*bytesFile) { m[name] = file })
	return &openFile{f, file}, nil
}

func (f *files) ReadFile(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	file := f.names[name]
	if file == nil {
		return nil, os.ErrNotExist
	}
	return slices.Clone(file.data), nil
}

func (f *files) List() ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return sortedKeys(f.names), nil
}

func (f *files) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step(); err != nil {
		return err
	}
	f.rename(func(m map[string]*bytesFile) { delete(m, name) })
	return nil
}

func (f *files) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step(); err != nil {
		return err
	}
	file := f.names[from]
	f.rename(func(m map[string]*bytesFile) { delete(m, from); m[to] = file })
	return nil
}

func (f *files) SyncDir() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.step(); err != nil {
		return err
	}
	if f.fault == LyingDirSync {
		return nil
	}
	f.durable, f.changes = maps.Clone(f.names), nil
	return nil
}

type openFile struct {
	f    *files
	file *bytesFile
}

func (o *openFile) Write(b []byte) (int, error) {
	o.f.mu.Lock()
	defer o.f.mu.Unlock()
	if err := o.f.step(); err != nil {
		n := 0
		if !o.f.dead {
			n = o.f.dice.pick(len(b) + 1)
			o.file.data = append(o.file.data, b[:n]...)
		}
		return n, err
	}
	o.file.data = append(o.file.data, b...)
	return len(b), nil
}

func (o *openFile) Sync() error {
	o.f.mu.Lock()
	defer o.f.mu.Unlock()
	if err := o.f.step(); err != nil {
		return err
	}
	if o.f.fault == LyingSync {
		return nil
	}
	o.file.synced = len(o.file.data)
	return nil
}

func (o *openFile) Close() error { return nil }

// cut is the disk after the process or the power went. Names that were not
// synced are there up to some change; bytes that were not synced are there up
// to some byte, or as zeros.
func (f *files) cut(next *dice) *files {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead = true
	after := newFiles(next, f.fault)
	names := maps.Clone(f.durable)
	for _, change := range f.changes[:f.dice.pick(len(f.changes)+1)] {
		change(names)
	}
	for _, name := range sortedKeys(names) {
		file := names[name]
		if file == nil {
			continue
		}
		end := file.synced + f.dice.pick(len(file.data)-file.synced+1)
		data := slices.Clone(file.data[:end])
		if end > file.synced && f.dice.in(4) {
			clear(data[file.synced+f.dice.pick(end-file.synced):])
		}
		after.names[name] = &bytesFile{data: data, synced: len(data)}
	}
	after.durable = maps.Clone(after.names)
	return after
}

// shelf is a real store on files. What comes in waits for a moment, as it would
// behind other writers.
type shelf struct {
	*logstore.Store
	w    *World
	on   *files
	dice *dice

	mu      sync.Mutex
	queue   []func()      // writes that have not been passed on
	refuse  []func(error) // who to tell if they never are
	passing bool
	dead    bool
}

func openShelf(w *World, d *dice, on *files) (*shelf, error) {
	store, err := logstore.OpenOn(on, logstore.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if r := store.Report(); r != nil && !r.Intact() {
		w.failf("the store is damaged after a crash: %v", r)
	}
	return &shelf{Store: store, w: w, on: on, dice: d}, nil
}

func (s *shelf) Write(b session.Batch, done func(error)) {
	s.mu.Lock()
	if s.dead {
		s.mu.Unlock()
		done(sessiontest.ErrCrashed)
		return
	}
	s.queue = append(s.queue, func() { s.Store.Write(b, done) })
	s.refuse = append(s.refuse, done)
	start := !s.passing
	s.passing = true
	s.mu.Unlock()
	if start {
		time.AfterFunc(s.dice.upTo(20*time.Millisecond), s.pass)
	}
}

func (s *shelf) pass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passing = false
	for _, write := range s.queue {
		write()
	}
	s.queue, s.refuse = nil, nil
}

func (s *shelf) failSoon(n int) {
	s.on.mu.Lock()
	defer s.on.mu.Unlock()
	s.on.failIn = n * 2 // a batch is a write and a sync
	if n > 0 {
		s.on.failIn -= s.dice.pick(2)
	}
}

func (s *shelf) crash(next *dice) (media, error) {
	s.mu.Lock()
	s.dead = true
	refuse := s.refuse
	s.queue, s.refuse = nil, nil
	s.mu.Unlock()
	after := s.on.cut(next)
	for _, done := range refuse {
		done(sessiontest.ErrCrashed)
	}
	_ = s.Store.Close() // what is left of the old life
	return openShelf(s.w, next, after)
}

// Close writes what waits.
func (s *shelf) Close() error {
	s.mu.Lock()
	dead := s.dead
	s.mu.Unlock()
	if dead {
		return nil
	}
	s.pass()
	return s.Store.Close()
}
