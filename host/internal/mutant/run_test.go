package mutant

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	runFlag  = flag.Bool("mutants", false, "put the faults in and run the tests that must notice; takes minutes")
	onlyFlag = flag.String("only", "", "with -mutants: only the faults whose name or file match this pattern")
)

// Limits of one go command.
const (
	testMax = 2 * time.Minute // for the tests
	runMax  = 8 * time.Minute // with building them
)

// TestMutants puts every fault in. It prints one line for each.
func TestMutants(t *testing.T) {
	if !*runFlag {
		t.Skip("takes minutes: make mutants")
	}
	only, err := regexp.Compile(*onlyFlag)
	if err != nil {
		t.Fatal(err)
	}
	faults := slices.DeleteFunc(all(), func(f fault) bool { return !only.MatchString(f.name) && !only.MatchString(f.file) })
	if len(faults) == 0 {
		t.Fatalf("no fault matches %q", *onlyFlag)
	}
	root, start, caught := root(t), time.Now(), 0
	sound := map[string]error{} // by package: its named tests pass without a fault
	for _, f := range faults {
		if _, known := sound[f.in]; !known {
			sound[f.in] = passes(root, f.in, faults)
		}
		var test string
		err := sound[f.in]
		if err == nil {
			test, err = f.run(t, root)
		}
		if err != nil {
			t.Errorf("%s: %v", f.name, err)
			fmt.Printf("SURVIVED %s (%s): %v\n", f.name, f.file, err)
			continue
		}
		caught++
		fmt.Printf("caught   %s (%s): %s %s\n", f.name, f.file, f.in, test)
	}
	fmt.Printf("%d of %d faults caught in %v\n", caught, len(faults), time.Since(start).Round(time.Second))
}

// passes runs all tests that the faults name in a package, as it is.
func passes(root, in string, faults []fault) error {
	var names []string
	for _, f := range faults {
		if f.in == in {
			names = append(names, f.tests...)
		}
	}
	slices.Sort(names)
	test, err := goTest(root, in, slices.Compact(names))
	switch {
	case errors.Is(err, errUnnoticed):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%s fails without the fault", test)
}

// run puts the fault in and returns the first test that fails by it.
func (f fault) run(t *testing.T, root string) (test string, err error) {
	changed, err := f.changed(root)
	if err != nil {
		return "", err
	}
	dir := t.TempDir()
	file, over := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, f.file): file}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(file, changed, 0o600), os.WriteFile(over, overlay, 0o600)); err != nil {
		return "", err
	}
	return goTest(root, f.in, f.tests, "-overlay", over, "-count", "1")
}

// errUnnoticed: every test passed.
var errUnnoticed = errors.New("no named test notices")

// goTest runs the named tests of a package and returns the first that fails.
func goTest(root, in string, names []string, flags ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), runMax)
	defer cancel()
	args := append([]string{"test", "-json", "-vet", "off", "-failfast", "-timeout", testMax.String()}, flags...)
	args = append(args, "-run", "^("+strings.Join(names, "|")+")$", "./"+in)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		return "", fmt.Errorf("go %s: %w", strings.Join(args, " "), errors.Join(err, ctx.Err()))
	}
	test, said := firstFailure(out)
	switch {
	case err == nil:
		return "", errUnnoticed
	case test == "":
		return "", fmt.Errorf("does not build, or did not run:\n%s%s", said, stderr.String())
	}
	return test, nil
}

// event is a line of go test -json.
type event struct{ Action, Test, Output string }

// firstFailure reads what go test -json wrote: the first test that failed, by
// its subtest, or the one that ran when the process went down. "" when none was
// begun; said is then what the build printed.
func firstFailure(out []byte) (test, said string) {
	var failed, running []string
	begun := false
	for scan := bufio.NewScanner(bytes.NewReader(out)); scan.Scan(); {
		var e event
		if json.Unmarshal(scan.Bytes(), &e) != nil {
			continue
		}
		switch e.Action {
		case "build-output", "output":
			if e.Test == "" {
				said += e.Output
			}
		case "run":
			begun = true
			running = append(running, e.Test)
		case "pass", "skip", "fail":
			running = slices.DeleteFunc(running, func(name string) bool { return name == e.Test })
			if e.Action == "fail" && e.Test != "" {
				failed = append(failed, e.Test)
			}
		}
	}
	switch {
	case len(failed) > 0:
		first := failed[0]
		// A parent that stands before its subtest says less.
		for _, name := range failed {
			if strings.HasPrefix(name, first+"/") {
				first = name
			}
		}
		return first, said
	case len(running) > 0:
		return running[len(running)-1] + " (went down)", said
	case begun:
		return "TestMain", said // what is left behind after the last test
	}
	return "", said
}

func TestFirstFailure(t *testing.T) {
	for _, tc := range []struct{ name, out, want string }{
		{name: "build", out: `{"Action":"build-output","Output":"x"}` + "\n" + `{"Action":"build-fail"}` + "\n" + `{"Action":"fail"}`},
		{name: "subtest", out: `{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/b"}
{"Action":"fail","Test":"TestA/b"}
{"Action":"fail","Test":"TestA"}
{"Action":"fail"}`, want: "TestA/b"},
		{name: "parent first", out: `{"Action":"run","Test":"TestA"}
{"Action":"fail","Test":"TestA"}
{"Action":"fail","Test":"TestA/b"}
{"Action":"fail"}`, want: "TestA/b"},
		{name: "panic", out: `{"Action":"run","Test":"TestA"}
{"Action":"pass","Test":"TestA"}
{"Action":"run","Test":"TestB"}
{"Action":"output","Output":"panic: x"}
{"Action":"fail"}`, want: "TestB (went down)"},
		{name: "leak", out: `{"Action":"run","Test":"TestA"}
{"Action":"pass","Test":"TestA"}
{"Action":"fail"}`, want: "TestMain"},
	} {
		if got, _ := firstFailure([]byte(tc.out)); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}
