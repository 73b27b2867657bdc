package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"meanwhile/host/internal/id"
	"meanwhile/host/tool"
)

// Codes of the errors the model sees.
const (
	CodeArguments = "FILE_ARGUMENTS"
	CodePath      = "FILE_PATH"      // outside of the workspace, or no path
	CodeNotFound  = "FILE_NOT_FOUND" //
	CodeKind      = "FILE_KIND"      // a directory, a device, binary data
	CodeTooLarge  = "FILE_TOO_LARGE"
	CodeMatch     = "FILE_MATCH" // the text to replace occurs never, or more than once
	CodeFailed    = "FILE_FAILED"
)

// Limits.
const (
	pathMax   = 4096
	readMax   = 16 << 20
	writeMax  = 4 << 20
	linesMax  = 2000
	lineMax   = 2000 // bytes of one line shown
	outputMax = 100_000
	linksMax  = 16
)

// Workspace is the directory of one agent.
type Workspace struct {
	dir  string // absolute
	real string // without links

	writing sync.Mutex // one change at a time
}

// New returns the workspace in dir; empty is the host's directory.
func New(dir string) (*Workspace, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("workspace %s: not a directory", dir)
	}
	return &Workspace{dir: dir, real: real}, nil
}

// Tools returns read_file, write_file and edit_file.
func (w *Workspace) Tools() []tool.Tool {
	return []tool.Tool{readTool{w}, writeTool{w}, editTool{w}}
}

// open opens the directory for one call: it may be another by the next.
func (w *Workspace) open() (*os.Root, error) {
	root, err := os.OpenRoot(w.real)
	if err != nil {
		return nil, refuse(CodeFailed, "the workspace cannot be opened: %v", reason(err))
	}
	return root, nil
}

// local makes a path one below the workspace. The root has the last word; this
// tells early, and in words.
func (w *Workspace) local(path string) (string, error) {
	switch {
	case path == "":
		return "", refuse(CodeArguments, "path is empty; send the path of a file in the workspace")
	case len(path) > pathMax:
		return "", refuse(CodeArguments, "path has %d bytes, at most %d", len(path), pathMax)
	case strings.ContainsRune(path, 0):
		return "", refuse(CodeArguments, "path holds a zero byte; leave it out")
	}
	if filepath.IsAbs(path) {
		inside := false
		for _, dir := range []string{w.dir, w.real} {
			if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
				path, inside = rel, true
				break
			}
		}
		if !inside {
			return "", outside(path)
		}
	}
	clean := filepath.Clean(path)
	switch {
	case !filepath.IsLocal(clean):
		return "", outside(path)
	case clean == "." || strings.HasSuffix(path, "/"):
		return "", refuse(CodeKind, "%s is a directory; name a file", shown(path))
	}
	return clean, nil
}

func outside(path string) error {
	return refuse(CodePath, "%s is not inside of the workspace; send a path relative to it", shown(path))
}

// readAll reads a whole regular file.
func readAll(root *os.Root, path string) ([]byte, fs.FileInfo, error) {
	f, info, err := openRegular(root, path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Size() > readMax {
		return nil, nil, refuse(CodeTooLarge, "%s has %d bytes, more than the %d that are read; use bash to look at parts of it", shown(path), info.Size(), readMax)
	}
	b, err := io.ReadAll(io.LimitReader(f, readMax+1))
	switch {
	case err != nil:
		return nil, nil, failed("read", path, err)
	case len(b) > readMax: // it grew, or its size is a lie, as in /proc
		return nil, nil, refuse(CodeTooLarge, "%s has more than the %d bytes that are read", shown(path), readMax)
	case !utf8.Valid(b) || strings.ContainsRune(string(b[:min(len(b), 8192)]), 0):
		return nil, nil, refuse(CodeKind, "%s is no UTF-8 text; use bash for binary data", shown(path))
	}
	return b, info, nil
}

// openRegular opens a file without waiting for whoever is at its other end.
func openRegular(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, failed("open", path, err)
	}
	info, err := f.Stat()
	if err == nil {
		err = regular(path, info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func regular(path string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return refuse(CodeKind, "%s is a directory; name a file in it", shown(path))
	case !info.Mode().IsRegular():
		return refuse(CodeKind, "%s is no regular file", shown(path))
	}
	return nil
}

// replace writes a file whole. w.writing is held.
func (w *Workspace) replace(root *os.Root, path string, content []byte) (existed bool, err error) {
	path, info, err := follow(root, path)
	if err != nil {
		return false, err
	}
	mode := fs.FileMode(0o666) // the host's umask applies
	if info != nil {
		if err := regular(path, info); err != nil {
			return false, err
		}
		mode = info.Mode().Perm()
		if mode&0o200 == 0 {
			return true, refuse(CodeFailed, "%s may not be written: its permissions are %v", shown(path), mode)
		}
	} else if dir := filepath.Dir(path); dir != "." {
		if err := root.MkdirAll(dir, 0o777); err != nil {
			return false, failed("make the directory of", path, err)
		}
	}
	temp := filepath.Join(filepath.Dir(path), "."+id.New()+".tmp")
	if err := write(root, temp, content, mode, info != nil); err != nil {
		return info != nil, failed("write", path, err)
	}
	if err := root.Rename(temp, path); err != nil {
		root.Remove(temp)
		return info != nil, failed("write", path, err)
	}
	return info != nil, nil
}

// write makes a new file whose content is on disk when it returns.
func write(root *os.Root, path string, content []byte, mode fs.FileMode, exact bool) (err error) {
	f, err := root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			root.Remove(path)
		}
	}()
	_, err = f.Write(content)
	if err == nil && exact {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// follow finds what a path leads to, so that a rename replaces the file and not
// the link. The info is nil where there is no file yet.
func follow(root *os.Root, path string) (string, fs.FileInfo, error) {
	for range linksMax {
		info, err := root.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return path, nil, nil
		case err != nil:
			return "", nil, failed("open", path, err)
		case info.Mode()&fs.ModeSymlink == 0:
			return path, info, nil
		}
		to, err := root.Readlink(path)
		if err != nil {
			return "", nil, failed("open", path, err)
		}
		if filepath.IsAbs(to) {
			return "", nil, outside(path)
		}
		// Joined by text, "dir/../x" is x even where dir is a link to elsewhere;
		// the root still keeps whatever it names inside.
		path = filepath.Join(filepath.Dir(path), to)
		if !filepath.IsLocal(path) {
			return "", nil, outside(path)
		}
	}
	return "", nil, refuse(CodePath, "%s is a link to a link to a link without end", shown(path))
}

// failed is an error of the file system in the model's words.
func failed(what, path string, err error) error {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse(CodeNotFound, "there is no file %s in the workspace", shown(path))
	case escapes(err):
		return refuse(CodePath, "%s leads out of the workspace", shown(path))
	}
	return refuse(CodeFailed, "could not %s %s: %v", what, shown(path), reason(err))
}

// escapes recognises the error of os.Root, which has no name.
func escapes(err error) bool {
	return strings.Contains(err.Error(), "path escapes from parent")
}

// reason is an error without the host's paths in it.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// shown is a path in a message.
func shown(path string) string {
	if len(path) > 200 {
		path = path[:200] + "…"
	}
	return fmt.Sprintf("%q", path)
}

func refuse(code, format string, args ...any) *tool.Error {
	return &tool.Error{Name: "FileError", Code: code, Message: fmt.Sprintf(format, args...)}
}
