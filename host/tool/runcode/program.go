package runcode

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"meanwhile/host/tool"
	"meanwhile/shared/deadline"
	"meanwhile/wasm/quickjs"
)

//go:embed prelude.js
var prelude string

// errEnded is why the calls of an ended program are cancelled.
var errEnded = errors.New("the program has ended")

// program is one run. All but what the calls' goroutines share belongs to run.
type program struct {
	tool    *Tool
	call    tool.Call
	timeout time.Duration
	left    time.Duration // of the running time
	began   time.Time

	vm   *quickjs.VM
	next quickjs.Value // the prelude's function

	turn     context.Context // of the program
	calls    context.Context // of its calls: ends with it
	stop     context.CancelCauseFunc
	working  sync.WaitGroup
	slots    chan struct{} // one for each call that runs
	finished chan answer   // has room for every call
	made     int
	open     int // made and not yet settled

	output  strings.Builder
	dropped int // bytes of output over the limit
	ended   bool
	failed  bool
	value   string // the program's, or its exception
}

func newProgram(t *Tool, c tool.Call, d time.Duration) *program {
	return &program{
		tool: t, call: c, timeout: d, left: d, began: time.Now(),
		slots: make(chan struct{}, parallelMax), finished: make(chan answer, callsMax),
	}
}

// run runs the program to its end and then waits for its calls.
func (p *program) run(ctx context.Context, code string) (tool.Result, error) {
	p.turn = ctx
	p.calls, p.stop = context.WithCancelCause(ctx)
	err := p.drive(ctx, code)
	p.stop(errEnded)
	if p.vm != nil {
		p.vm.Close()
	}
	p.working.Wait()
	return p.result(ctx, err)
}

// drive alternates between the program and its calls.
func (p *program) drive(ctx context.Context, code string) error {
	var err error
	// Outside of its time: the first machine of a host compiles the engine.
	if p.vm, err = p.tool.engine.NewVM(ctx, p.host); err != nil {
		return err
	}
	err = p.burst(ctx, func(ctx context.Context) (err error) {
		if p.next, err = p.vm.Eval(ctx, prelude, "prelude"); err != nil {
			return err
		}
		return p.vm.Call(ctx, p.next, "start", code)
	})
	for err == nil && !p.ended {
		if p.open == 0 {
			return refuse(CodeStuck, "the program waits for a promise that nothing will settle: await only tools, and promises that your code resolves")
		}
		select {
		case a := <-p.finished:
			p.open--
			if a.err != nil {
				return a.err
			}
			ok := ""
			if !a.isError {
				ok = "yes"
			}
			err = p.burst(ctx, func(ctx context.Context) error {
				return p.vm.Call(ctx, p.next, "settle", a.ref, ok, a.text, a.name, a.code)
			})
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return err
}

// burst runs the program until it waits, on what is left of its time.
func (p *program) burst(ctx context.Context, f func(context.Context) error) error {
	if p.left <= 0 {
		return &deadline.Reason{Code: CodeTimeout, Timeout: p.timeout}
	}
	start := time.Now() // before the timer: one that has run out leaves nothing
	dctx, cancel := deadline.New(ctx, p.left, CodeTimeout)
	defer cancel()
	err := f(dctx)
	p.left -= time.Since(start)
	return err
}

// host is what the prelude asks of us. It runs within a burst.
func (p *program) host(args []string) (string, error) {
	switch {
	case len(args) == 1 && args[0] == "tools":
		return strings.Join(p.tool.names(), " "), nil
	case len(args) == 2 && args[0] == "log":
		p.print(args[1])
	case len(args) == 2 && (args[0] == "done" || args[0] == "failed") && !p.ended:
		p.ended, p.failed, p.value = true, args[0] == "failed", args[1]
	case len(args) == 4 && args[0] == "call":
		return "", p.begin(args[1], args[2], args[3])
	default:
		return "", errors.New("not a call of the host")
	}
	return "", nil
}

func (p *program) print(line string) {
	if p.output.Len()+len(line)+1 > outputMax {
		p.dropped += len(line) + 1
		return
	}
	p.output.WriteString(line)
	p.output.WriteByte('\n')
}

// result is the one outcome.
func (p *program) result(ctx context.Context, err error) (tool.Result, error) {
	meta, _ := json.Marshal(map[string]int64{"calls": int64(p.made), "durationMs": time.Since(p.began).Milliseconds()})
	out := tool.Result{Meta: meta}
	printed := p.output.String()
	if p.dropped > 0 {
		printed += fmt.Sprintf("[%d more bytes of output were left out]\n", p.dropped)
	}
	told, isTold := errors.AsType[*tool.Error](err)
	threw, isThrown := errors.AsType[*quickjs.Exception](err)
	switch {
	case err == nil && !p.failed:
		out.Text = printed
		if printed != "" {
			out.Text += "[result]\n"
		}
		if p.value == "" {
			p.value = "[no result]"
		}
		out.Text += cut(p.value, resultMax)
		if p.open > 0 {
			out.Text += fmt.Sprintf("\n[%s the program did not wait for: cancelled]", calls(p.open))
		}
		return out, nil
	case err == nil:
		told = refuse(CodeFailed, "the program threw %s", cut(located(p.value), outputMax))
		if outOfMemory(p.value) {
			told = p.memory()
		}
	case isTold:
	case deadline.Of(err, CodeTimeout) != nil:
		told = refuse(CodeTimeout, "the program was ended after computing for %v (waiting for tools is not counted): give it a longer timeout, or less to do", p.timeout)
	case ctx.Err() != nil:
		if e, ok := errors.AsType[*tool.Error](aborted(ctx)); ok {
			told = e
			break
		}
		return out, aborted(ctx)
	case errors.Is(err, quickjs.ErrBusy):
		told = refuse(CodeTooMany, "too many programs run on this host: wait for some to end, then send this one again")
	case errors.Is(err, quickjs.ErrMemory) || isThrown && outOfMemory(threw.Text):
		told = p.memory()
	case isThrown:
		told = refuse(CodeFailed, "the program threw %s", cut(located(threw.Text+"\n"+threw.Stack), outputMax))
	default:
		return out, err
	}
	if printed != "" {
		told.Message += "\nIts output until then:\n" + printed
	}
	return out, told
}

func (p *program) memory() *tool.Error {
	return refuse(CodeMemory, "the program needed more than %d MiB: keep less at a time", p.tool.engine.Memory()>>20)
}

// where finds a place in the program, which the engine counts with the two lines
// before the body, and the prelude's own places.
var where = regexp.MustCompile(`<input>:(\d+)|\n[^\n]*\(prelude:[^\n]*`)

// located makes the places in an exception those of the code that was sent.
func located(thrown string) string {
	return strings.TrimSpace(where.ReplaceAllStringFunc(thrown, func(s string) string {
		line, err := strconv.Atoi(strings.TrimPrefix(s, "<input>:"))
		if err != nil {
			return ""
		}
		return "line " + strconv.Itoa(max(1, line-2))
	}))
}

// outOfMemory recognises the engine's own words.
func outOfMemory(thrown string) bool {
	return strings.HasPrefix(thrown, "InternalError: out of memory")
}

func calls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return strconv.Itoa(n) + " calls"
}

// cut bounds a text and says so.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + fmt.Sprintf("\n[%d more bytes were cut]", len(s)-n)
}
