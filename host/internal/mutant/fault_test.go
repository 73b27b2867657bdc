package mutant

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fault is one thing broken on purpose.
type fault struct {
	name string
	why  string // what a person or an agent would suffer
	file string // below the module's root
	// old stands exactly once in the file; put replaces it.
	old, put string
	in       string   // the package whose tests must notice
	tests    []string // of that package
}

// all lists every fault. The order is that of the run: packages together, so
// that less is built anew.
func all() []fault {
	return slices.Concat(storeFaults, questionFaults, gatewayFaults, doorFaults, agentFaults, clientFaults)
}

// changed is the file with the fault in it.
func (f fault) changed(root string) ([]byte, error) {
	raw, err := os.ReadFile(filepath.Join(root, f.file))
	if err != nil {
		return nil, err
	}
	text := string(raw)
	switch n := strings.Count(text, f.old); {
	case f.old == f.put:
		return nil, fmt.Errorf("%s: the fault changes nothing", f.name)
	case n != 1:
		return nil, fmt.Errorf("%s: the snippet stands %d times in %s, not once: write it anew", f.name, n, f.file)
	}
	return []byte(strings.Replace(text, f.old, f.put, 1)), nil
}

// root is the module's root directory.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// faultsMin: with fewer the list says little.
const faultsMin = 22

func TestSnippets(t *testing.T) {
	root, faults := root(t), all()
	if len(faults) < faultsMin {
		t.Errorf("%d faults, fewer than %d", len(faults), faultsMin)
	}
	seen := map[string]bool{}
	for _, f := range faults {
		if f.name == "" || f.why == "" || seen[f.name] {
			t.Errorf("fault %q has no name and reason of its own", f.name)
		}
		seen[f.name] = true
		if _, err := f.changed(root); err != nil {
			t.Error(err)
		}
		have := testsOf(t, filepath.Join(root, f.in))
		if len(f.tests) == 0 {
			t.Errorf("%s: no test is named", f.name)
		}
		for _, name := range f.tests {
			if !slices.Contains(have, name) {
				t.Errorf("%s: %s has no test %s outside of files that use rapid", f.name, f.in, name)
			}
		}
	}
}

// testsOf lists the tests and fuzz targets of a package, but for those beside
// rapid's, which would leave what failed in the tree.
func testsOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	decl := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte(`"pgregory.net/rapid"`)) {
			continue
		}
		for _, m := range decl.FindAllSubmatch(raw, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

// A snippet that is gone, doubled or changes nothing is found.
func TestChanged(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, old, put, want string }{
		{name: "once", old: "one", put: "1", want: "1 two two"},
		{name: "twice", old: "two", put: "2"},
		{name: "gone", old: "three", put: "3"},
		{name: "no change", old: "one", put: "one"},
	} {
		got, err := fault{name: tc.name, file: "a.go", old: tc.old, put: tc.put}.changed(dir)
		if string(got) != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: got %q, %v; want %q", tc.name, got, err, tc.want)
		}
	}
}
