package bridge

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"meanwhile/shared/projection"
)

// Limits.
const (
	pagesMax     = 256                      // 16 MiB of memory for one instance
	documentMax  = projection.BatchMax + 64 // bytes of questions, and of an answer
	valuesMax    = 20_000                   // values in one of those; a lawful batch has some 5000
	FoldMax      = 2 << 20                  // bytes of a log given to Fold
	instancesMax = 16
	gcPercent    = "100" // a small heap would be collected hundreds of times in one fold
)

// ErrNotBuilt is New without the module, which is built and not committed.
var ErrNotBuilt = errors.New("client.wasm is missing from this build: run make build")

// Error is a failure of the module: the host's fault, never the caller's.
type Error struct {
	Op  string
	Err error
}

func (e *Error) Error() string { return "client module: " + e.Op + ": " + e.Err.Error() }

// Unwrap gives the failure itself.
func (e *Error) Unwrap() error { return e.Err }

//go:embed all:module
var files embed.FS

// Options of New. The zero value is what a host uses.
type Options struct {
	CacheDir  string // compiled code is kept here; empty: compiled anew at each start
	Instances int    // most instances at once; 0: one for each CPU
	Module    []byte // nil: the embedded one
	Pages     uint32 // memory limit of an instance; 0: pagesMax
}

// Bridge is the module, compiled once.
type Bridge struct {
	module   []byte
	sha256   string
	runtime  wazero.Runtime
	cache    wazero.CompilationCache
	compiled wazero.CompiledModule
	slots    chan *instance // a nil slot is an instance not made yet
	sick     atomic.Pointer[Error]
	close    sync.Once
}

// New compiles the module and starts one instance, so that a module that cannot
// run is known at once.
func New(ctx context.Context, o Options) (*Bridge, error) {
	b := &Bridge{module: o.Module}
	if b.module == nil {
		var err error
		if b.module, err = files.ReadFile("module/client.wasm"); err != nil {
			return nil, ErrNotBuilt
		}
	}
	sum := sha256.Sum256(b.module)
	b.sha256 = hex.EncodeToString(sum[:])
	if o.Pages == 0 {
		o.Pages = pagesMax
	}
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(o.Pages)
	if o.CacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(o.CacheDir)
		if err != nil {
			return nil, fmt.Errorf("client module: compilation cache %s: %w", o.CacheDir, err)
		}
		b.cache = cache
		config = config.WithCompilationCache(cache)
	}
	b.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if err := b.start(ctx, o); err != nil {
		b.Close(ctx)
		return nil, err
	}
	return b, nil
}

func (b *Bridge) start(ctx context.Context, o Options) error {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, b.runtime); err != nil {
		return &Error{"start", err}
	}
	var err error
	if b.compiled, err = b.runtime.CompileModule(ctx, b.module); err != nil {
		return &Error{"compile", err}
	}
	n := o.Instances
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	n = min(n, instancesMax)
	first, err := b.instance(ctx)
	if err != nil {
		return &Error{"start", err}
	}
	b.slots = make(chan *instance, n)
	b.slots <- first
	for range n - 1 {
		b.slots <- nil
	}
	return nil
}

// SHA256 is the module's hash in lower-case hex.
func (b *Bridge) SHA256() string { return b.sha256 }

// Bytes is the module itself, not to be changed.
func (b *Bridge) Bytes() []byte { return b.module }

// Healthy is the last failure, until a call succeeds again.
func (b *Bridge) Healthy() error {
	if e := b.sick.Load(); e != nil {
		return e
	}
	return nil
}

// CheckAsk judges an array of questions in the wire's spelling.
func (b *Bridge) CheckAsk(ctx context.Context, questions []byte) (*projection.Problem, error) {
	if p := bounded(projection.CodeBadQuestions, "questions", questions); p != nil {
		return p, nil
	}
	in := concat(`{"check":"ask","questions":`, questions, `}`)
	return b.check(ctx, in, projection.CodeBadQuestions, "questions")
}

// CheckAnswer judges an answer document, {"answers":[…]}, to questions that
// passed CheckAsk.
func (b *Bridge) CheckAnswer(ctx context.Context, questions, answer []byte) (*projection.Problem, error) {
	if p := bounded(projection.CodeBadQuestions, "questions", questions); p != nil {
		return p, nil
	}
	if p := bounded(projection.CodeBadAnswer, "answers", answer); p != nil {
		return p, nil
	}
	in := concat(`{"check":"answer","questions":`, questions, `,"answer":`)
	in = append(append(in, answer...), '}')
	return b.check(ctx, in, projection.CodeBadAnswer, "answers")
}

func concat(before string, doc []byte, after string) []byte {
	in := make([]byte, 0, len(before)+2*len(doc)+len(after))
	return append(append(append(in, before...), doc...), after...)
}

// bounded refuses what is no document of a size that the module can hold.
func bounded(code, field string, doc []byte) *projection.Problem {
	switch {
	case len(doc) > documentMax:
		return &projection.Problem{Code: code, Field: field, Message: fmt.Sprintf("is over %d bytes: shorten it", documentMax)}
	case !json.Valid(doc):
		return &projection.Problem{Code: code, Field: field, Message: "is not a JSON document"}
	case values(doc) > valuesMax:
		return &projection.Problem{Code: code, Field: field, Message: fmt.Sprintf("holds over %d values", valuesMax)}
	}
	return nil
}

// values counts what a valid document makes the reader allocate.
func values(doc []byte) (n int) {
	text, escaped := false, false
	for _, c := range doc {
		switch {
		case escaped:
			escaped = false
		case text:
			escaped = c == '\\'
			text = c != '"'
		case c == '"':
			text = true
		case c == ',' || c == '[' || c == '{':
			n++
		}
	}
	return n
}

type reply struct {
	OK      bool                            `json:"ok"`
	Problem *problem                        `json:"problem"`
	Error   *struct{ Code, Message string } `json:"error"`
	View    json.RawMessage                 `json:"view"`
	Seq     int64                           `json:"seq"`
}

type problem struct{ Code, Field, Message string }

func (p *problem) is() *projection.Problem {
	return &projection.Problem{Code: p.Code, Field: p.Field, Message: p.Message}
}

func (b *Bridge) check(ctx context.Context, in []byte, code, field string) (*projection.Problem, error) {
	r, err := b.call(ctx, "check", in)
	switch {
	case err != nil:
		return nil, err
	case r.Error != nil: // BAD_INPUT: strict JSON it is not
		return &projection.Problem{Code: code, Field: field, Message: r.Error.Message}, nil
	case r.Problem != nil:
		return r.Problem.is(), nil
	}
	return nil, nil
}

// Fold gives a projection ("userQuestions", "inbox" or "replies") of a log in
// JSON lines, header first, and the seq of its last event. A log that does not
// hold together is a *projection.Problem as error.
func (b *Bridge) Fold(ctx context.Context, view string, jsonl []byte) (json.RawMessage, int64, error) {
	if len(jsonl) > FoldMax {
		return nil, 0, &projection.Problem{Code: "TOO_LARGE", Message: fmt.Sprintf("the log is over %d bytes", FoldMax)}
	}
	first, err := json.Marshal(map[string]string{"view": view})
	if err != nil {
		return nil, 0, err
	}
	r, err := b.call(ctx, "fold", append(append(first, '\n'), jsonl...))
	switch {
	case err != nil:
		return nil, 0, err
	case r.Error != nil:
		return nil, 0, &projection.Problem{Code: r.Error.Code, Message: r.Error.Message}
	case r.Problem != nil:
		return nil, 0, r.Problem.is()
	}
	return r.View, r.Seq, nil
}

// call runs one stateless export, a second time on a fresh instance if the
// first fails.
func (b *Bridge) call(ctx context.Context, name string, in []byte) (*reply, error) {
	var last error
	for range 2 {
		r, err := b.once(ctx, name, in)
		switch {
		case errors.Is(err, errNoSlot):
			return nil, context.Cause(ctx)
		case err == nil:
			b.sick.Store(nil)
			return r, nil
		}
		last = err
	}
	e := &Error{name, last}
	b.sick.Store(e)
	return nil, e
}

var errNoSlot = errors.New("no instance came free")

func (b *Bridge) once(ctx context.Context, name string, in []byte) (r *reply, err error) {
	i, err := b.take(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && i != nil {
			i.module.Close(context.Background())
			i = nil
		}
		b.slots <- i
	}()
	if i == nil {
		if i, err = b.instance(context.Background()); err != nil {
			return nil, err
		}
	}
	out, err := i.call(name, in)
	if err != nil {
		return nil, err
	}
	r = new(reply)
	if err := json.Unmarshal(out, r); err != nil {
		return nil, err
	}
	switch {
	case r.Error != nil && r.Error.Code == "BAD_INPUT":
	case r.Error != nil:
		return nil, errors.New(r.Error.Code + ": " + r.Error.Message)
	case !r.OK && r.Problem == nil && r.View == nil:
		return nil, errors.New("the module's answer says nothing")
	}
	return r, nil
}

// take waits for a slot; a ready one wins over a context that is over.
func (b *Bridge) take(ctx context.Context) (*instance, error) {
	select {
	case i := <-b.slots:
		return i, nil
	default:
	}
	select {
	case i := <-b.slots:
		return i, nil
	case <-ctx.Done():
		return nil, errNoSlot
	}
}

// Close frees everything; no call may be under way.
func (b *Bridge) Close(ctx context.Context) (err error) {
	b.close.Do(func() {
		err = b.runtime.Close(ctx)
		if b.cache != nil {
			err = errors.Join(err, b.cache.Close(ctx))
		}
	})
	return err
}
