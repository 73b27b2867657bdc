package logstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/storage"
)

// Disk is what a store asks of a file system: one directory of files. It lets
// tests show what a disk may do to a store; Open uses the real one.
type Disk interface {
	// Create opens an empty file for writing, in place of one of that name.
	Create(name string) (File, error)
	// ReadFile returns a file's bytes; os.ErrNotExist when there is none.
	ReadFile(name string) ([]byte, error)
	List() ([]string, error)
	Remove(name string) error
	Rename(from, to string) error
	// SyncDir makes the names durable, as File.Sync does the bytes.
	SyncDir() error
}

// File is one file being written.
type File interface {
	io.WriteCloser
	Sync() error
}

// OpenOn is Open on a disk of the caller's. It makes no copy aside and leaves no
// mark for the next open: a store that does not open with full checks is
// verified, and Report says what is missing.
func OpenOn(d Disk, o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s, err := openOn(d, o, opt.StrictAll, nil)
	if err == nil || !corrupted(err) {
		return s, err
	}
	return openOn(d, o, lenient, &Report{Cause: err.Error()})
}

func openOn(d Disk, o Options, strict opt.Strict, report *Report) (*Store, error) {
	var stor storage.Storage = &syncedStorage{Storage: diskStorage{d}, sync: d.SyncDir}
	db, err := openStorage(stor, strict, o.ReadOnly)
	if err != nil {
		return nil, fmt.Errorf("open on a disk: %w", err)
	}
	s, err := finishOn(db, stor, o, report)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

func finishOn(db *leveldb.DB, stor storage.Storage, o Options, report *Report) (*Store, error) {
	if report != nil {
		if err := report.verify(db); err != nil {
			return nil, err
		}
	}
	s, err := opener{o: o}.finish(db, stor, report == nil)
	if err != nil {
		return nil, err
	}
	s.report, s.groups.onFail = report, nil
	return s, nil
}

// currentName is the file that names the manifest.
const currentName = "CURRENT"

// diskStorage is a Disk as goleveldb sees it.
type diskStorage struct{ d Disk }

type unlocked struct{}

func (unlocked) Unlock() {}

func (s diskStorage) Lock() (storage.Locker, error) { return unlocked{}, nil }
func (s diskStorage) Log(string)                    {}
func (s diskStorage) Close() error                  { return nil }

func nameOf(fd storage.FileDesc) string { return fmt.Sprintf("%d-%06d", fd.Type, fd.Num) }

func descOf(name string) (fd storage.FileDesc, ok bool) {
	n, err := fmt.Sscanf(name, "%d-%d", &fd.Type, &fd.Num)
	return fd, err == nil && n == 2 && name == nameOf(fd)
}

// SetMeta writes the new name beside the old one and renames it; the directory
// is synced by who wraps this.
func (s diskStorage) SetMeta(fd storage.FileDesc) error {
	f, err := s.d.Create(currentName + ".new")
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, nameOf(fd)+"\n")
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return s.d.Rename(currentName+".new", currentName)
}

func (s diskStorage) GetMeta() (storage.FileDesc, error) {
	b, err := s.d.ReadFile(currentName)
	if err != nil {
		return storage.FileDesc{}, err
	}
	name, whole := bytes.CutSuffix(b, []byte("\n"))
	fd, ok := descOf(string(name))
	if !whole || !ok {
		return fd, &storage.ErrCorrupted{Err: fmt.Errorf("%s is %q", currentName, b)}
	}
	_, err = s.d.ReadFile(nameOf(fd))
	return fd, err
}

func (s diskStorage) List(ft storage.FileType) ([]storage.FileDesc, error) {
	names, err := s.d.List()
	if err != nil {
		return nil, err
	}
	var fds []storage.FileDesc
	for _, name := range names {
		if fd, ok := descOf(name); ok && fd.Type&ft != 0 {
			fds = append(fds, fd)
		}
	}
	return fds, nil
}

type diskReader struct{ *bytes.Reader }

func (diskReader) Close() error { return nil }

func (s diskStorage) Open(fd storage.FileDesc) (storage.Reader, error) {
	b, err := s.d.ReadFile(nameOf(fd))
	if err != nil {
		return nil, err
	}
	return diskReader{bytes.NewReader(b)}, nil
}

// Create syncs the names after a manifest's bytes, as goleveldb's own file
// storage does: its first record is written before CURRENT names it.
func (s diskStorage) Create(fd storage.FileDesc) (storage.Writer, error) {
	f, err := s.d.Create(nameOf(fd))
	if err != nil || fd.Type != storage.TypeManifest {
		return f, err
	}
	return manifest{f, s.d}, nil
}

type manifest struct {
	File
	d Disk
}

func (m manifest) Sync() error {
	if err := m.File.Sync(); err != nil {
		return err
	}
	return m.d.SyncDir()
}

func (s diskStorage) Remove(fd storage.FileDesc) error { return s.d.Remove(nameOf(fd)) }

func (s diskStorage) Rename(from, to storage.FileDesc) error {
	return s.d.Rename(nameOf(from), nameOf(to))
}
