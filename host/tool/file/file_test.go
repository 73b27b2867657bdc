package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"meanwhile/host/tool"
)

type args map[string]any

// place is a workspace with a secret beside it.
type place struct {
	t      *testing.T
	dir    string
	beside string
	w      *Workspace
}

func newPlace(t *testing.T) *place {
	t.Helper()
	top := t.TempDir()
	p := &place{t: t, dir: filepath.Join(top, "work"), beside: filepath.Join(top, "secret")}
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.beside, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.w, err = New(p.dir); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) put(name, content string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(p.dir, name)), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) link(to, name string) {
	p.t.Helper()
	if err := os.Symlink(to, filepath.Join(p.dir, name)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) content(name string) string {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

// call runs a tool by its name, arguments as a value or as raw text.
func (p *place) call(name string, arguments any) (string, error) {
	raw, ok := arguments.(string)
	if !ok {
		b, err := json.Marshal(arguments)
		if err != nil {
			panic(err)
		}
		raw = string(b)
	}
	for _, tl := range p.w.Tools() {
		if tl.Spec().Name == name {
			r, err := tl.Run(p.t.Context(), tool.Call{Name: name, Arguments: raw})
			return r.Text, err
		}
	}
	panic("no tool " + name)
}

func wantCode(t *testing.T, err error, code string) *tool.Error {
	t.Helper()
	e, ok := errors.AsType[*tool.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return e
}

func TestSpecs(t *testing.T) {
	if _, err := tool.NewRegistry(newPlace(t).w.Tools()...); err != nil {
		t.Error(err)
	}
}

func TestRead(t *testing.T) {
	p := newPlace(t)
	p.put("a.txt", "one\ntwo\nthree")
	p.put("sub/b.txt", "ä\n")
	p.put("empty", "")
	p.put("long", strings.Repeat("ü", 2000)+"\nend\n")
	p.put("lines", strings.Repeat("x\n", 3000))
	p.put("wide", strings.Repeat(strings.Repeat("y", 1900)+"\n", 100))
	p.link("sub", "inside")
	for _, tt := range []struct {
		name string
		args args
		want string
	}{
		{"whole", args{"path": "a.txt"}, "1\tone\n2\ttwo\n3\tthree\n"},
		{"below", args{"path": "./sub/../sub/b.txt"}, "1\tä\n"},
		{"absolute and inside", args{"path": p.dir + "/a.txt", "limit": 1}, "1\tone\n[lines 1 to 1 of 3]"},
		{"by a link that stays inside", args{"path": "inside/b.txt"}, "1\tä\n"},
		{"from a line on", args{"path": "a.txt", "offset": 2}, "2\ttwo\n3\tthree\n[lines 2 to 3 of 3]"},
		{"some lines", args{"path": "a.txt", "offset": 2, "limit": 1}, "2\ttwo\n[lines 2 to 2 of 3]"},
		{"empty", args{"path": "empty"}, "[the file is empty]"},
		{"a long line", args{"path": "long"}, "1\t" + strings.Repeat("ü", 1000) + " [2000 more bytes]\n2\tend\n"},
		{"an enormous limit", args{"path": "a.txt", "limit": int64(1) << 62, "offset": 3}, "3\tthree\n[lines 3 to 3 of 3]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := p.call("read_file", tt.args)
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	if got, err := p.call("read_file", args{"path": "lines"}); err != nil || !strings.HasSuffix(got, "2000\tx\n[lines 1 to 2000 of 3000]") {
		t.Errorf("many lines: %v, …%q", err, got[len(got)-50:])
	}
	if got, err := p.call("read_file", args{"path": "wide"}); err != nil || len(got) > outputMax+3000 || !strings.HasSuffix(got, " of 100]") {
		t.Errorf("many long lines: %v, %d bytes", err, len(got))
	}
}

func TestReadRefused(t *testing.T) {
	p := newPlace(t)
	p.put("binary", "a\x00b")
	p.put("latin", "\xe4")
	p.put("a.txt", "one\n")
	if err := syscall.Mkfifo(filepath.Join(p.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	big, err := os.Create(filepath.Join(p.dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(big.Truncate(readMax+1), big.Close()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args any
		code string
	}{
		{"missing", args{"path": "none"}, CodeNotFound},
		{"a directory", args{"path": "."}, CodeKind},
		{"a directory by its slash", args{"path": "a.txt/"}, CodeKind},
		{"binary", args{"path": "binary"}, CodeKind},
		{"not utf-8", args{"path": "latin"}, CodeKind},
		{"a pipe nobody writes to", args{"path": "fifo"}, CodeKind},
		{"too large", args{"path": "big"}, CodeTooLarge},
		{"past the end", args{"path": "a.txt", "offset": 5}, CodeArguments},
		{"line 0", args{"path": "a.txt", "offset": 0}, CodeArguments},
		{"no lines", args{"path": "a.txt", "limit": -1}, CodeArguments},
		{"no path", args{}, CodeArguments},
		{"zero byte", args{"path": "a\x00b"}, CodeArguments},
		{"long path", args{"path": strings.Repeat("x/", 4000)}, CodeArguments},
		{"long name", args{"path": strings.Repeat("x", 300)}, CodeFailed},
		{"not json", "{", CodeArguments},
		{"text after", `{"path":"a.txt"} x`, CodeArguments},
		{"unknown field", args{"path": "a.txt", "lines": 1}, CodeArguments},
		{"wrong type", args{"path": 1}, CodeArguments},
		{"a file as a directory", args{"path": "a.txt/b"}, CodeFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := p.call("read_file", tt.args)
			if e := wantCode(t, err, tt.code); strings.Contains(e.Message, filepath.Dir(p.dir)) {
				t.Errorf("the message tells the host's paths: %s", e.Message)
			}
		})
	}
}

// No path and no link leads out of the workspace, with any of the tools.
func TestNothingLeadsOut(t *testing.T) {
	p := newPlace(t)
	p.put("a.txt", "one\n")
	p.link(p.beside, "absolute")
	p.link("../secret", "relative")
	p.link("..", "up")
	p.link("up", "twice")
	p.link("/", "root")
	p.link("loop", "loop")
	p.link("/etc/passwd", "passwd")
	p.link("../made", "dangling")
	for _, path := range []string{
		"../secret", "a/../../secret", p.beside, "/etc/passwd", "absolute", "relative", "up/secret", "twice/secret",
		"root/etc/passwd", "passwd", "dangling", "loop", "..", "/", "up/made", "root" + p.beside, p.dir + "/../secret", "./../secret", "sub/../up/secret",
	} {
		for name, a := range map[string]args{
			"read_file":  {"path": path},
			"write_file": {"path": path, "content": "changed"},
			"edit_file":  {"path": path, "old": "secret", "new": "changed"},
		} {
			got, err := p.call(name, a)
			if err == nil && name == "write_file" {
				// Written inside, if anywhere: "dangling" and the like may not.
				t.Errorf("%s %s: wrote", name, path)
			} else if err == nil {
				t.Errorf("%s %s: %q", name, path, got)
			} else if _, ok := errors.AsType[*tool.Error](err); !ok {
				t.Errorf("%s %s: %v is not for the model", name, path, err)
			}
		}
	}
	if b, err := os.ReadFile(p.beside); err != nil || string(b) != "secret" {
		t.Errorf("the file beside holds %q, %v", b, err)
	}
	entries, err := os.ReadDir(filepath.Dir(p.dir))
	if err != nil || len(entries) != 2 {
		t.Errorf("beside the workspace: %v, %v", entries, err)
	}
}

// A directory that becomes a link while calls run leads nowhere either.
func TestLinksThatChange(t *testing.T) {
	p := newPlace(t)
	outside := filepath.Dir(p.dir)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		dir := filepath.Join(p.dir, "d")
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.RemoveAll(dir)
			os.Mkdir(dir, 0o755)
			os.WriteFile(filepath.Join(dir, "secret"), []byte("inside"), 0o644)
			os.RemoveAll(dir)
			os.Symlink(outside, dir)
		}
	})
	for range 300 {
		if got, err := p.call("read_file", args{"path": "d/secret"}); err == nil && strings.Contains(got, "secret") {
			t.Errorf("read %q", got)
		}
		p.call("write_file", args{"path": "d/secret", "content": "changed"})
		p.call("write_file", args{"path": "d/new", "content": "x"})
	}
	close(stop)
	wg.Wait()
	if b, err := os.ReadFile(p.beside); err != nil || string(b) != "secret" {
		t.Errorf("the file beside holds %q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made outside: %v", err)
	}
}

func TestWrite(t *testing.T) {
	p := newPlace(t)
	p.put("old.sh", "before")
	if err := os.Chmod(filepath.Join(p.dir, "old.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	p.put("kept/target", "before")
	p.link("kept/target", "link")
	p.put("locked", "before")
	if err := os.Chmod(filepath.Join(p.dir, "locked"), 0o444); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, content, want string }{
		{"new.txt", "ä\r\n", `created "new.txt", 4 bytes`},
		{"deep/er/new.txt", "", `created "deep/er/new.txt", 0 bytes`},
		{"old.sh", "after", `replaced "old.sh", 5 bytes`},
		{"link", "through", `replaced "link", 7 bytes`},
	} {
		got, err := p.call("write_file", args{"path": tt.path, "content": tt.content})
		if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.path, got, err, tt.want)
		}
		if got := p.content(tt.path); got != tt.content {
			t.Errorf("%s holds %q", tt.path, got)
		}
	}
	if info, err := os.Stat(filepath.Join(p.dir, "old.sh")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("permissions %v, %v", info.Mode(), err)
	}
	if info, err := os.Lstat(filepath.Join(p.dir, "link")); err != nil || info.Mode()&fs.ModeSymlink == 0 || p.content("kept/target") != "through" {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	for _, tt := range []struct {
		name string
		args any
		code string
	}{
		{"no content", args{"path": "x"}, CodeArguments},
		{"a directory", args{"path": "kept", "content": "x"}, CodeKind},
		{"too large", args{"path": "x", "content": strings.Repeat("x", writeMax+1)}, CodeTooLarge},
		{"not to be written", args{"path": "locked", "content": "x"}, CodeFailed},
		{"below a file", args{"path": "new.txt/x", "content": "x"}, CodeFailed},
	} {
		_, err := p.call("write_file", tt.args)
		if e, ok := errors.AsType[*tool.Error](err); !ok || e.Code != tt.code {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.code)
		}
	}
	// Nothing half-written is left.
	err := filepath.WalkDir(p.dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".tmp") {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestEdit(t *testing.T) {
	for _, tt := range []struct {
		name, before string
		args         args
		after, code  string
		says         string
	}{
		{name: "once", before: "a b c", args: args{"old": "b", "new": "x"}, after: "a x c", says: "replaced 1 occurrence"},
		{name: "lines", before: "a\n  b\nc\n", args: args{"old": "a\n  b\n", "new": ""}, after: "c\n"},
		{name: "what looks like a pattern", before: "a.c abc $1", args: args{"old": "a.c", "new": "$1\\1"}, after: "$1\\1 abc $1"},
		{name: "windows lines stay", before: "a\r\nb\r\n", args: args{"old": "a\r\n", "new": "x\r\n"}, after: "x\r\nb\r\n"},
		{name: "all", before: "a a a", args: args{"old": "a", "new": "bb", "all": true}, after: "bb bb bb", says: "replaced 3 occurrences"},
		{name: "twice", before: "a a", args: args{"old": "a", "new": "b"}, code: CodeMatch, says: "more than once"},
		{name: "twice, overlapping", before: "aaa", args: args{"old": "aa", "new": "b"}, code: CodeMatch, says: "more than once"},
		{name: "never", before: "a", args: args{"old": "b", "new": "c"}, code: CodeMatch, says: "does not occur"},
		{name: "other lines", before: "a\r\nb", args: args{"old": "a\nb", "new": "c"}, code: CodeMatch, says: `end in \r\n`},
		{name: "other spaces", before: "a\n\tb", args: args{"old": "a\n    b", "new": "c"}, code: CodeMatch, says: "with these spaces"},
		{name: "empty", before: "a", args: args{"old": "", "new": "c"}, code: CodeArguments, says: "write_file"},
		{name: "no new", before: "a", args: args{"old": "a"}, code: CodeArguments, says: "new is missing"},
		{name: "the same", before: "a", args: args{"old": "a", "new": "a"}, code: CodeArguments, says: "the same"},
		{name: "too large", before: strings.Repeat("a", 1000), args: args{"old": "a", "new": strings.Repeat("b", 10_000), "all": true}, code: CodeTooLarge},
		{name: "binary", before: "a\x00", args: args{"old": "a", "new": "b"}, code: CodeKind},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			p.put("f", tt.before)
			tt.args["path"] = "f"
			got, err := p.call("edit_file", tt.args)
			if tt.code == "" {
				if err != nil || !strings.Contains(got, tt.says) || p.content("f") != tt.after {
					t.Errorf("got %q, %v; the file holds %q, want %q", got, err, p.content("f"), tt.after)
				}
				return
			}
			if e := wantCode(t, err, tt.code); !strings.Contains(e.Message, tt.says) || p.content("f") != tt.before {
				t.Errorf("message %q; the file holds %.50q", e.Message, p.content("f"))
			}
		})
	}
	_, err := newPlace(t).call("edit_file", args{"path": "none", "old": "a", "new": "b"})
	wantCode(t, err, CodeNotFound)
}

// Edits at once: none is lost, and a reader never sees half a file.
func TestEditsAtOnce(t *testing.T) {
	p := newPlace(t)
	var all strings.Builder
	for i := range 20 {
		fmt.Fprintf(&all, "<%d>\n", i)
	}
	p.put("f", all.String())
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := p.call("edit_file", args{"path": "f", "old": fmt.Sprintf("<%d>", i), "new": fmt.Sprintf("[%d]", i)}); err != nil {
				t.Error(err)
			}
			if got := p.content("f"); strings.Count(got, "\n") != 20 {
				t.Errorf("half a file: %q", got)
			}
		})
	}
	wg.Wait()
	if got, want := p.content("f"), strings.NewReplacer("<", "[", ">", "]").Replace(all.String()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNew(t *testing.T) {
	p := newPlace(t)
	for _, dir := range []string{p.dir + "/none", p.beside} {
		if _, err := New(dir); err == nil {
			t.Errorf("%s is a workspace", dir)
		}
	}
	// A workspace given by a link is known by both names.
	p.put("a.txt", "x")
	alias := filepath.Join(filepath.Dir(p.dir), "alias")
	if err := os.Symlink(p.dir, alias); err != nil {
		t.Fatal(err)
	}
	w, err := New(alias)
	if err != nil {
		t.Fatal(err)
	}
	p.w = w
	for _, path := range []string{alias + "/a.txt", p.dir + "/a.txt", "a.txt"} {
		if got, err := p.call("read_file", args{"path": path}); err != nil || got != "1\tx\n" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}
