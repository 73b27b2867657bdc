package file

import (
	"path/filepath"
	"strings"
	"testing"
)

// Whatever path a model sends, what passes lies below the workspace.
func FuzzLocal(f *testing.F) {
	w := &Workspace{dir: "/some/dir", real: "/real/dir"}
	for _, s := range []string{"a", "../a", "/etc/passwd", "/some/dir/a", "/some/dir/../x", "/real/dir/b/../c", "a/../../b", "./.", "a//b/", "/some/dirx/a", "..\\a", "a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got, err := w.local(path)
		if err != nil {
			return
		}
		if !filepath.IsLocal(got) || got != filepath.Clean(got) || got == "." {
			t.Errorf("local(%q) = %q", path, got)
		}
		if filepath.IsAbs(path) && !strings.HasPrefix(filepath.Clean(path), "/some/dir/") && !strings.HasPrefix(filepath.Clean(path), "/real/dir/") {
			t.Errorf("%q is taken for %q", path, got)
		}
	})
}
