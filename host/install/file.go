package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Apply writes a plan's changes, and returns at the first that fails.
func (p Plan) Apply() error {
	for _, c := range p.Changes {
		if err := c.apply(); err != nil {
			return fmt.Errorf("%s: %w", c.Path, err)
		}
	}
	return nil
}

func (c Change) apply() error {
	path := c.Path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	now, err := readFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, c.Before) || (now == nil) != (c.Before == nil) {
		return ErrChanged
	}
	if c.Backup {
		if err := write(c.Path+BackupSuffix, c.Before, modeOf(path)); err != nil {
			return fmt.Errorf("keep the text before: %w", err)
		}
	}
	if c.After == nil {
		err = os.Remove(path)
	} else {
		err = write(path, c.After, modeOf(path))
	}
	if err == nil && c.Forget {
		err = os.Remove(c.Path + BackupSuffix)
	}
	return err
}

// modeOf is the mode of a file, or the one that a new file gets.
func modeOf(path string) fs.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return 0o600
}

// write replaces a file in one step.
func write(path string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone once renamed
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// readFile is nil for a file that is not there, and not nil for an empty one.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, fileMax+1))
	switch {
	case err != nil:
		return nil, err
	case len(raw) > fileMax:
		return nil, fmt.Errorf("%s: over %d bytes", path, fileMax)
	case raw == nil:
		raw = []byte{}
	}
	return raw, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
