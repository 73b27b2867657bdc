package quickjs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// compiled is where the engine is kept between the tests, which each have one of
// their own.
var compiled string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "quickjs")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	compiled = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func open(t *testing.T, o Options) *Engine {
	t.Helper()
	o.CacheDir = compiled
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

func start(t *testing.T, e *Engine, h Host) *VM {
	t.Helper()
	vm, err := e.NewVM(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(vm.Close)
	return vm
}

func TestStringsCross(t *testing.T) {
	e := open(t, Options{})
	var got [][]string
	vm := start(t, e, func(args []string) (string, error) {
		got = append(got, args)
		if args[0] == "fail" {
			return "", errors.New("refused: ü")
		}
		return "→" + args[0] + "\x00", nil
	})
	_, err := vm.Eval(t.Context(), `
		host("ä\0b\ud800", 1.5, null, [1, 2]);
		host(host("x"));
		try { host("fail") } catch (e) { host(typeof e, e) }
		Promise.resolve().then(() => host("a job"));
		host("before the job");
	`, "test")
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"ä\x00b\ufffd", "1.5", "null", "1,2"}, {"x"}, {"→x\x00"}, {"fail"}, {"string", "refused: ü"}, {"before the job"}, {"a job"},
	}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %q, want %q", got, want)
	}

	got = nil
	f, err := vm.Eval(t.Context(), `(...all) => host(...all, all.length)`, "test")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // its arguments and its result are freed
		if err := vm.Call(t.Context(), f, "one", "", "dr\x00ei"); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range got {
		if !slices.Equal(args, []string{"one", "", "dr\x00ei", "3"}) {
			t.Errorf("got %q", args)
		}
	}
	if len(got) != 3 {
		t.Errorf("%d calls", len(got))
	}
}

func TestExceptions(t *testing.T) {
	e := open(t, Options{})
	for _, tt := range []struct{ name, code, want string }{
		{"an error", `throw new RangeError("no")`, "RangeError: no"},
		{"a string", `throw "no"`, "no"},
		{"not JavaScript", `let = = 1`, "SyntaxError"},
		{"one that throws when shown", `throw {toString() { throw 1 }}`, "cannot be shown"},
		{"out of a function given to the host", `host({toString() { throw new Error("inside") }})`, "a value that cannot be shown"},
		{"no memory", `new Uint8Array(1e9)`, "InternalError: out of memory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			vm := start(t, e, func([]string) (string, error) { return "", nil })
			_, err := vm.Eval(t.Context(), tt.code, "test")
			x, ok := errors.AsType[*Exception](err)
			if !ok || !strings.Contains(x.Text, tt.want) {
				t.Fatalf("got %v, want %s", err, tt.want)
			}
			// The machine goes on after an exception.
			if _, err := vm.Eval(t.Context(), `1`, "test"); err != nil {
				t.Error(err)
			}
		})
	}
}

// The one thing that must hold whatever a program does: it ends when its context
// does, with the context's cause.
func TestContextEndsEveryLoop(t *testing.T) {
	e := open(t, Options{})
	cause := errors.New("enough")
	for _, code := range []string{
		`for (;;);`,
		`for (;;) try { for (;;); } finally { continue; }`,
		`(function f() { Promise.resolve().then(f) })()`,
		`Array.prototype.lastIndexOf.call({length: 2 ** 53 - 1}, 1)`,
		`new Array(4294967295).sort()`,
		`/(a+)+$/.test("a".repeat(40) + "b")`,
		`Array.from({length: 1e9})`,
		`new Array(1e8).join("aaaaaaaaaaaaaaaa")`,
		`host({toString() { for (;;); }})`,
	} {
		t.Run(code, func(t *testing.T) {
			vm := start(t, e, func([]string) (string, error) { return "", nil })
			ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, cause)
			defer cancel()
			if _, err := vm.Eval(ctx, code, "test"); err != cause {
				t.Errorf("got %v, want the cause", err)
			}
			if _, err := vm.Eval(t.Context(), "1", "test"); err == nil {
				t.Error("the machine goes on")
			}
		})
	}
}

// A program in a loop inside the engine must not hold up the collector, and with
// it every goroutine of the host.
func TestHostGoesOnBesideALoop(t *testing.T) {
	e := open(t, Options{})
	entered := make(chan struct{})
	vm := start(t, e, func([]string) (string, error) { close(entered); return "", nil })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := vm.Eval(ctx, `host(); Array.prototype.lastIndexOf.call({length: 2 ** 53 - 1}, 1)`, "test")
		ended <- err
	}()
	<-entered
	for range 3 {
		runtime.GC() // stops the world, and so returns only if it can
	}
	select {
	case err := <-ended:
		t.Errorf("the loop ended by itself: %v", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestMachinesAreApartAndBounded(t *testing.T) {
	e := open(t, Options{})
	host := func([]string) (string, error) { return "", nil }
	var all []*VM
	for i := range machinesMax {
		vm := start(t, e, host)
		if _, err := vm.Eval(t.Context(), fmt.Sprintf(`if (typeof mine !== "undefined") throw mine; var mine = %d`, i), "test"); err != nil {
			t.Errorf("machine %d sees another: %v", i, err)
		}
		all = append(all, vm)
	}
	if _, err := e.NewVM(t.Context(), host); !errors.Is(err, ErrBusy) {
		t.Errorf("one more machine: %v, want ErrBusy", err)
	}
	all[0].Close()
	all[0].Close() // gives its place back once
	start(t, e, host)
	if _, err := e.NewVM(t.Context(), host); !errors.Is(err, ErrBusy) {
		t.Errorf("one more machine: %v, want ErrBusy", err)
	}
}

func TestEngineClosed(t *testing.T) {
	e := open(t, Options{})
	vm := start(t, e, nil)
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := vm.Eval(t.Context(), "1", "test"); err == nil {
		t.Error("a machine outlives its engine")
	}
	if _, err := e.NewVM(t.Context(), nil); !errors.Is(err, errClosed) {
		t.Errorf("got %v, want errClosed", err)
	}
}
