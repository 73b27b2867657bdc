package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "meanwhile"

// pkg is what the go command knows of one package.
type pkg struct {
	Dir          string
	ImportPath   string
	Name         string
	GoFiles      []string
	IgnoredFiles []string `json:"IgnoredGoFiles"`
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// path is the import path below the module, "" for its root.
func (p *pkg) path() string { return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/") }

// source lists the files that are no tests, for any platform.
func (p *pkg) source() []string { return slices.Concat(p.GoFiles, p.IgnoredFiles) }

func (p *pkg) tests() []string { return slices.Concat(p.TestGoFiles, p.XTestGoFiles) }

// tree lists the packages of the module once for all tests of this package.
var tree = sync.OnceValues(func() ([]*pkg, error) {
	out, err := goCommand(nil, "list", "-e", "-json", "./...")
	if err != nil {
		return nil, err
	}
	var pkgs []*pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &pkg{}
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
})

func packages(t *testing.T) []*pkg {
	t.Helper()
	pkgs, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 10 {
		t.Fatalf("only %d packages found: the rules would check nothing", len(pkgs))
	}
	return pkgs
}

// goCommand runs the go command at the module's root.
func goCommand(env []string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join("..", "..", "..")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, errors.New("go " + strings.Join(args, " ") + ": " + string(exit.Stderr))
	}
	return out, err
}

// within tells whether an import path is root or lies below it.
func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

func withinAny(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return within(path, root) })
}

func local(path string) (string, bool) { return strings.CutPrefix(path, module+"/") }

func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && first != module
}
