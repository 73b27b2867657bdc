package logstore

import (
	"errors"
	"sync"

	"github.com/syndtr/goleveldb/leveldb/storage"
)

// overlay lets a database that may not be changed be opened like any other: what
// an open writes (recovered journals, a manifest) goes to memory and is gone with
// it. goleveldb's own read-only open refuses the two journals that a process
// leaves when it ends during an open.
type overlay struct {
	storage.Storage // the files, opened to be read
	mem             storage.Storage

	mu   sync.Mutex
	gone map[storage.FileDesc]bool // removed here, still there
	meta bool                      // SetMeta was called
}

func newOverlay(files storage.Storage) *overlay {
	return &overlay{Storage: files, mem: storage.NewMemStorage(), gone: map[storage.FileDesc]bool{}}
}

func (o *overlay) SetMeta(fd storage.FileDesc) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.meta = true
	return o.mem.SetMeta(fd)
}

func (o *overlay) GetMeta() (storage.FileDesc, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.meta {
		return o.mem.GetMeta()
	}
	return o.Storage.GetMeta()
}

func (o *overlay) List(ft storage.FileType) ([]storage.FileDesc, error) {
	own, err := o.mem.List(ft)
	if err != nil {
		return nil, err
	}
	theirs, err := o.Storage.List(ft)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	seen := map[storage.FileDesc]bool{}
	for _, fd := range own {
		seen[fd] = true
	}
	for _, fd := range theirs {
		if !seen[fd] && !o.gone[fd] {
			own = append(own, fd)
		}
	}
	return own, nil
}

func (o *overlay) Open(fd storage.FileDesc) (storage.Reader, error) {
	if r, err := o.mem.Open(fd); err == nil {
		return r, nil
	}
	o.mu.Lock()
	gone := o.gone[fd]
	o.mu.Unlock()
	if gone {
		return o.mem.Open(fd) // which says that it is not there
	}
	return o.Storage.Open(fd)
}

// Create hides a file of the same name: a number may be used again that an
// interrupted open used for nothing.
func (o *overlay) Create(fd storage.FileDesc) (storage.Writer, error) {
	o.hide(fd)
	return o.mem.Create(fd)
}

func (o *overlay) Remove(fd storage.FileDesc) error {
	o.hide(fd)
	_ = o.mem.Remove(fd) // it may be a file
	return nil
}

func (o *overlay) Rename(from, to storage.FileDesc) error {
	o.hide(from)
	o.hide(to)
	return o.mem.Rename(from, to)
}

func (o *overlay) hide(fd storage.FileDesc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone[fd] = true
}

func (o *overlay) Close() error { return errors.Join(o.mem.Close(), o.Storage.Close()) }
