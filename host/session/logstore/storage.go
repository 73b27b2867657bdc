package logstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/syndtr/goleveldb/leveldb/storage"
)

// syncedStorage adds what goleveldb's file storage leaves out: after a file is
// created or renamed, its name is only on disk once the directory is synced.
// Without it a power cut can take a whole journal of acknowledged writes.
type syncedStorage struct {
	storage.Storage
	sync func() error // of the directory
}

func (s *syncedStorage) Create(fd storage.FileDesc) (storage.Writer, error) {
	w, err := s.Storage.Create(fd)
	if err != nil {
		return nil, err
	}
	if err := s.sync(); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (s *syncedStorage) Rename(from, to storage.FileDesc) error {
	if err := s.Storage.Rename(from, to); err != nil {
		return err
	}
	return s.sync()
}

func (s *syncedStorage) SetMeta(fd storage.FileDesc) error {
	if err := s.Storage.SetMeta(fd); err != nil {
		return err
	}
	return s.sync()
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	return errors.Join(err, d.Close())
}

// LockedError says that another process has the data directory.
type LockedError struct {
	Dir string
	PID int // 0 when the lock file does not say
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = "process " + strconv.Itoa(e.PID)
	}
	return fmt.Sprintf("data directory %s is in use by %s: stop it first, or use another directory", e.Dir, who)
}

// lockDir takes the directory for this process. The kernel drops the lock with
// the process, so a stale file never blocks.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		buf := make([]byte, 32)
		n, _ := f.Read(buf)
		pid, _ := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
		return nil, &LockedError{Dir: dir, PID: pid}
	}
	// The pid is a courtesy to whoever is refused; failing to write it is not
	// a reason to refuse ourselves.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}
