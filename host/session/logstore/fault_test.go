package logstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"

	"github.com/syndtr/goleveldb/leveldb/storage"

	"meanwhile/host/session"
)

// faultStorage fails its n-th write operation and all later ones.
type faultStorage struct {
	storage.Storage
	mu   sync.Mutex
	left int // operations until the fault; negative: never
}

var errDisk = errors.New("disk says no")

func (f *faultStorage) step() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 {
		return errDisk
	}
	if f.left > 0 {
		f.left--
	}
	return nil
}

func (f *faultStorage) arm(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = n
}

func (f *faultStorage) Create(fd storage.FileDesc) (storage.Writer, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	w, err := f.Storage.Create(fd)
	return &faultWriter{w, f}, err
}

type faultWriter struct {
	storage.Writer
	f *faultStorage
}

func (w *faultWriter) Write(b []byte) (int, error) {
	if err := w.f.step(); err != nil {
		return 0, err
	}
	return w.Writer.Write(b)
}

func (w *faultWriter) Sync() error {
	if err := w.f.step(); err != nil {
		return err
	}
	return w.Writer.Sync()
}

// Whichever write or sync fails: no acknowledged event is lost, and nothing is
// acknowledged afterwards.
func TestEveryWriteFails(t *testing.T) {
	for n := 0; n < 60; n += 1 + n/10 {
		dir := t.TempDir()
		f := &faultStorage{left: -1}
		o := quiet()
		o.wrap = func(s storage.Storage) storage.Storage { f.Storage = s; return f }
		s := mustOpen(t, dir, o)
		fill(t, s, 1, 10)
		f.arm(n)
		acked, failed := 10, false
		for i := 10; i < 40; i++ {
			err := tryPut(s, session.Batch{Session: "s0", First: int64(i), Events: bodies("s0", i, 1), Summary: []byte("s")})
			switch {
			case err == nil && failed:
				t.Fatalf("fault at %d: event %d was acknowledged after a failed write", n, i)
			case err == nil:
				acked++
			default:
				failed = true
			}
		}
		if !failed {
			t.Fatalf("fault at %d: never came", n)
		}
		s.Close()
		s = mustOpen(t, dir, quiet())
		if r := s.Report(); r != nil && !r.Intact() {
			t.Errorf("fault at %d: %v", n, r)
		}
		got, err := s.Events("s0", 0, 100)
		// The failed write is unknown: it may be there.
		if err != nil || len(got) < acked || len(got) > acked+1 {
			t.Errorf("fault at %d: %d events (%v), %d were acknowledged", n, len(got), err, acked)
		}
		s.Close()
	}
}

// powerStorage keeps apart what is on disk and what only the kernel has: names
// are on disk after the directory is synced, bytes after the file is.
type powerStorage struct {
	mu    sync.Mutex
	files map[storage.FileDesc]*powerFile
	names map[storage.FileDesc]bool // durable names
	meta  storage.FileDesc
	lazy  bool // the sync of a file is a lie: the control that must fail

	// Tables are held up while this is locked: their manifest would sync the
	// directory soon after a journal was begun, and hide that nothing else did.
	tables sync.RWMutex
}

type powerFile struct {
	data   []byte
	synced int
}

func newPower() *powerStorage {
	return &powerStorage{files: make(map[storage.FileDesc]*powerFile), names: make(map[storage.FileDesc]bool)}
}

// cut is the disk after a power cut: synced bytes of files with durable names.
func (p *powerStorage) cut() *powerStorage {
	p.mu.Lock()
	defer p.mu.Unlock()
	after := newPower()
	after.meta = p.meta
	for fd := range p.names {
		if f := p.files[fd]; f != nil {
			after.names[fd] = true
			after.files[fd] = &powerFile{data: append([]byte(nil), f.data[:f.synced]...), synced: f.synced}
		}
	}
	return after
}

// syncNames is fsync of the directory. goleveldb's own file storage does it for
// a manifest alone.
func (p *powerStorage) syncNames() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.names)
	for fd := range p.files {
		p.names[fd] = true
	}
	return nil
}

type nopLock struct{}

func (nopLock) Unlock() {}

func (p *powerStorage) Lock() (storage.Locker, error) { return nopLock{}, nil }
func (p *powerStorage) Log(string)                    {}
func (p *powerStorage) Close() error                  { return nil }

func (p *powerStorage) SetMeta(fd storage.FileDesc) error {
	p.mu.Lock()
	p.meta = fd
	p.mu.Unlock()
	return p.syncNames()
}

func (p *powerStorage) GetMeta() (storage.FileDesc, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.meta.Zero() || p.files[p.meta] == nil {
		return storage.FileDesc{}, os.ErrNotExist
	}
	return p.meta, nil
}

func (p *powerStorage) List(ft storage.FileType) ([]storage.FileDesc, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var fds []storage.FileDesc
	for fd := range p.files {
		if fd.Type&ft != 0 {
			fds = append(fds, fd)
		}
	}
	return fds, nil
}

func (p *powerStorage) Open(fd storage.FileDesc) (storage.Reader, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.files[fd]
	if f == nil {
		return nil, os.ErrNotExist
	}
	return struct {
		io.ReadSeeker
		io.ReaderAt
		io.Closer
	}{io.NewSectionReader(sliceReader(f.data), 0, int64(len(f.data))), sliceReader(f.data), io.NopCloser(nil)}, nil
}

type sliceReader []byte

func (s sliceReader) ReadAt(b []byte, off int64) (int, error) {
	if off >= int64(len(s)) {
		return 0, io.EOF
	}
	n := copy(b, s[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (p *powerStorage) Create(fd storage.FileDesc) (storage.Writer, error) {
	if fd.Type == storage.TypeTable {
		p.tables.RLock()
		defer p.tables.RUnlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &powerFile{}
	p.files[fd] = f
	return &powerWriter{p, f, fd}, nil
}

func (p *powerStorage) Remove(fd storage.FileDesc) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.files, fd)
	delete(p.names, fd)
	return nil
}

func (p *powerStorage) Rename(from, to storage.FileDesc) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files[to] = p.files[from]
	delete(p.files, from)
	return nil
}

type powerWriter struct {
	p  *powerStorage
	f  *powerFile
	fd storage.FileDesc
}

func (w *powerWriter) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	w.f.data = append(w.f.data, b...)
	return len(b), nil
}

func (w *powerWriter) Sync() error {
	w.p.mu.Lock()
	if !w.p.lazy {
		w.f.synced = len(w.f.data)
	}
	w.p.mu.Unlock()
	if w.fd.Type == storage.TypeManifest {
		return w.p.syncNames()
	}
	return nil
}

func (w *powerWriter) Close() error { return nil }

// A power cut after any acknowledged write loses none of them. The two
// controls take away what guards against it and must lose something.
func TestPowerCut(t *testing.T) {
	for _, tt := range []struct {
		name             string
		noNames, noBytes bool
		wantLost         bool
	}{
		{name: "as it is"},
		{name: "without directory sync", noNames: true, wantLost: true},
		{name: "without file sync", noBytes: true, wantLost: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lost := 0
			for cut := 3; cut <= 12; cut += 3 {
				lost += powerCut(t, cut, tt.noNames, tt.noBytes)
			}
			if (lost > 0) != tt.wantLost {
				t.Errorf("lost %d acknowledged events, want some: %v", lost, tt.wantLost)
			}
		})
	}
}

// powerCut writes some large events, so that the memory table turns over, cuts
// the power and counts what is missing.
func powerCut(t *testing.T, writes int, noNames, noBytes bool) (lost int) {
	t.Helper()
	disk := newPower()
	open := func(lazy bool) *Store {
		disk.lazy = lazy
		var stor storage.Storage = disk
		if !noNames {
			stor = &syncedStorage{Storage: disk, sync: disk.syncNames}
		}
		p := opener{dir: t.TempDir(), o: quiet()}
		db, err := openStorage(stor, 0, false)
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		s, err := p.finish(db, stor, true)
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		return s
	}
	s := open(false)
	fill(t, s, 1, 1)
	disk.mu.Lock()
	disk.lazy = noBytes
	disk.mu.Unlock()
	disk.tables.Lock()
	big := make([]byte, 1<<20)
	for i := range writes {
		copy(big, fmt.Sprint(i))
		put(t, s, session.Batch{Session: "s0", First: int64(1 + i), Events: [][]byte{big}, Summary: []byte("s")})
	}
	after := disk.cut()
	disk.tables.Unlock()
	s.Close()
	disk = after
	func() {
		defer func() {
			// Without its guards the database may not even open.
			if recover() != nil {
				lost = writes
			}
		}()
		s = open(false)
		defer s.Close()
		n := int64(0)
		for {
			got, err := s.Events("s0", n, 1000)
			n += int64(len(got))
			if len(got) == 0 || err != nil {
				break
			}
		}
		lost = writes + 1 - int(n)
	}()
	return lost
}

func BenchmarkSyncedAppend(b *testing.B) {
	event := make([]byte, 300)
	summary := make([]byte, 120)
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := mustOpen(b, b.TempDir(), quiet())
			var wg sync.WaitGroup
			b.ResetTimer()
			for w := range writers {
				wg.Go(func() {
					id := fmt.Sprint("w", w)
					put(b, s, session.Batch{Session: id, Stage: session.StageCreate, Header: summary, Summary: summary, Pending: summary})
					for i := w; i < b.N; i += writers {
						put(b, s, session.Batch{Session: id, First: int64(i / writers), Events: [][]byte{event}, Summary: summary})
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
		})
	}
	b.Run("bare put", func(b *testing.B) {
		s := mustOpen(b, b.TempDir(), quiet())
		b.ResetTimer()
		for i := range b.N {
			if err := s.db.Put(eventKey("x", int64(i)), event, synced()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
	})
}
