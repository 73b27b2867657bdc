package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxLines is where a file has become two.
const maxLines = 600

// Words a package does not say.
var silent = []struct {
	in  []string
	not *regexp.Regexp
	why string
}{
	{
		in:  []string{"host/gateway", "host/jsonrpc"},
		not: regexp.MustCompile(`(?i)question|inbox|\bagents?\b|\bsessions?\b|ask_user|callId|\bcards?\b`),
		why: "the transport holds no word of the business it carries",
	},
	{
		in:  []string{"host/agent/loop", "host/agent/inbox"},
		not: regexp.MustCompile(`(?i)question|ask_user|askuser`),
		why: "the loop does not know that questions exist",
	},
}

func TestSilentPackages(t *testing.T) {
	for _, p := range packages(t) {
		for _, rule := range silent {
			if !withinAny(p.path(), rule.in) {
				continue
			}
			for _, name := range p.source() {
				if name == "doc.go" {
					continue // says what the package does not own
				}
				for i, line := range strings.Split(read(t, p, name), "\n") {
					if word := rule.not.FindString(line); word != "" {
						t.Errorf("%s/%s:%d says %q: %s", p.path(), name, i+1, word, rule.why)
					}
				}
			}
		}
	}
}

func TestEveryPackageIsDocumented(t *testing.T) {
	for _, p := range packages(t) {
		files := p.source()
		if len(files) == 0 {
			continue // tests only
		}
		home := "doc.go"
		if len(files) == 1 {
			home = files[0]
		}
		if p.Name == "main" && !slices.Contains(files, home) {
			home = "main.go"
		}
		if !slices.Contains(files, home) {
			t.Errorf("%s has no doc.go: say what it owns and does not own, its states, concurrency and limits", p.path())
			continue
		}
		f := parse(t, p, home, parser.PackageClauseOnly|parser.ParseComments)
		if f.Doc == nil || len(f.Doc.Text()) < 40 {
			t.Errorf("%s/%s has no package comment", p.path(), home)
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	for _, p := range packages(t) {
		for _, name := range slices.Concat(p.source(), p.tests()) {
			if n := strings.Count(read(t, p, name), "\n"); n > maxLines {
				t.Errorf("%s/%s has %d lines, more than %d: it holds more than one noun", p.path(), name, n, maxLines)
			}
		}
	}
}

// A package that keeps state, or runs code on import, cannot be started twice
// in one test process.
func TestNoPackageState(t *testing.T) {
	// What a module keeps between two calls of its exports has no other place.
	allowed := []string{"wasm/client/exports_wasip1.go"}
	for _, p := range packages(t) {
		for _, name := range p.source() {
			f := parse(t, p, name, parser.ParseComments)
			for _, decl := range f.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					if d.Recv == nil && d.Name.Name == "init" {
						t.Errorf("%s/%s has an init function", p.path(), name)
					}
				case *ast.GenDecl:
					if d.Tok != token.VAR {
						continue
					}
					for _, spec := range d.Specs {
						v := spec.(*ast.ValueSpec)
						for i, ident := range v.Names {
							if slices.Contains(allowed, p.path()+"/"+name) {
								continue
							}
							if !constantLike(d, v, i) {
								t.Errorf("%s/%s: package variable %s may change: keep it in a struct", p.path(), name, ident.Name)
							}
						}
					}
				}
			}
		}
	}
}

// constantLike recognises the variables that stand for constants: sentinel
// errors, compiled patterns, read-only tables, embedded files and interface
// assertions.
func constantLike(d *ast.GenDecl, v *ast.ValueSpec, i int) bool {
	if v.Names[i].Name == "_" {
		return true
	}
	for _, doc := range []*ast.CommentGroup{d.Doc, v.Doc} {
		if doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") }) {
			return true
		}
	}
	if i >= len(v.Values) {
		return false
	}
	switch e := v.Values[i].(type) {
	case *ast.CompositeLit, *ast.BasicLit:
		return true
	case *ast.UnaryExpr:
		_, literal := e.X.(*ast.CompositeLit)
		return e.Op == token.AND && literal
	case *ast.CallExpr:
		called := e.Fun
		if generic, ok := called.(*ast.IndexExpr); ok {
			called = generic.X
		}
		switch fun := called.(type) {
		case *ast.SelectorExpr:
			pkg, ok := fun.X.(*ast.Ident)
			return ok && slices.Contains([]string{"errors.New", "fmt.Errorf", "regexp.MustCompile", "strings.NewReplacer", "sync.OnceValue", "sync.OnceValues", "crc32.MakeTable", "reflect.TypeFor", "netip.MustParsePrefix", "netip.MustParseAddr"}, pkg.Name+"."+fun.Sel.Name)
		case *ast.ArrayType: // []byte("…")
			return true
		case *ast.Ident: // a function of this package that builds a table or a sentinel
			return fun.Name != "make" && fun.Name != "new"
		}
	}
	return false
}

func TestNoSleepInTests(t *testing.T) {
	for _, p := range packages(t) {
		// In a bubble a sleep takes no time; its helpers may stand in other files.
		if slices.Contains(p.TestImports, "testing/synctest") || slices.Contains(p.XTestImports, "testing/synctest") || p.path() == "host/internal/archtest" {
			continue
		}
		for _, name := range p.tests() {
			if strings.Contains(read(t, p, name), "time.Sleep(") {
				t.Errorf("%s/%s sleeps: wait for what it waits for, or use testing/synctest", p.path(), name)
			}
		}
	}
}

func read(t *testing.T, p *pkg, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(p.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func parse(t *testing.T, p *pkg, name string, mode parser.Mode) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, mode)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
