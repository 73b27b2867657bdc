package quickjs

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// Limits.
const (
	MemoryDefault = 64 << 20
	overhead      = 8 << 20 // the engine's own data and stack, and what lies between
	pageSize      = 64 << 10
	stackMax      = 256 << 10 // of the 1 MiB that the engine was linked with
	StringMax     = 4 << 20
	machinesMax   = 16 // at once
)

// ErrNotBuilt: the engine is not in this build; it is fetched and not committed.
var ErrNotBuilt = errors.New("quickjs.wasm is missing from this build: run make build")

// ErrBusy: machinesMax machines run.
var ErrBusy = errors.New("too many programs run at once")

// ErrMemory: the machine has no more memory, not even for its own work.
var ErrMemory = errors.New("the JavaScript engine is out of memory")

// errClosed is a use of an engine after Close.
var errClosed = errors.New("the JavaScript engine is closed")

//go:embed all:module
var files embed.FS

// Options of an Engine. The zero value is what a host uses.
type Options struct {
	CacheDir string // compiled code is kept here; empty: compiled anew by each process
	Memory   int64  // bytes a program may take; 0: MemoryDefault
}

// Engine is QuickJS, compiled once for all machines.
type Engine struct {
	options Options
	module  []byte
	slots   chan struct{} // one for each machine

	mu       sync.Mutex
	closed   bool
	runtime  wazero.Runtime // nil until the first machine
	cache    wazero.CompilationCache
	compiled wazero.CompiledModule
}

// New returns an engine. It compiles nothing yet: most hosts that have it never
// run a program.
func New(o Options) (*Engine, error) {
	if o.Memory <= 0 {
		o.Memory = MemoryDefault
	}
	module, err := files.ReadFile("module/quickjs.wasm")
	if err != nil {
		return nil, ErrNotBuilt
	}
	return &Engine{options: o, module: module, slots: make(chan struct{}, machinesMax)}, nil
}

// Memory is what a program may take, in bytes.
func (e *Engine) Memory() int64 { return e.options.Memory }

// Close frees everything and ends the machines that still run.
func (e *Engine) Close(ctx context.Context) (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.runtime != nil {
		err = e.runtime.Close(ctx)
		e.runtime = nil
	}
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(ctx))
		e.cache = nil
	}
	return err
}

// ready compiles the engine at the first call; after a failure, at the next.
func (e *Engine) ready() (wazero.Runtime, wazero.CompiledModule, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, nil, errClosed
	}
	if e.runtime != nil {
		return e.runtime, e.compiled, nil
	}
	ctx := context.Background() // a caller that leaves must not undo it for the others
	pages := uint32((e.options.Memory + overhead) / pageSize)
	config := wazero.NewRuntimeConfig().WithCloseOnContextDone(true).WithMemoryLimitPages(pages)
	if e.options.CacheDir != "" && e.cache == nil {
		cache, err := wazero.NewCompilationCacheWithDir(e.options.CacheDir)
		if err != nil {
			return nil, nil, fmt.Errorf("JavaScript engine: compilation cache %s: %w", e.options.CacheDir, err)
		}
		e.cache = cache
	}
	if e.cache != nil {
		config = config.WithCompilationCache(e.cache)
	}
	r := wazero.NewRuntimeWithConfig(ctx, config)
	compiled, err := compile(ctx, r, e.module)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("JavaScript engine: compile: %w", err), r.Close(ctx))
	}
	e.runtime, e.compiled = r, compiled
	return r, compiled, nil
}

func compile(ctx context.Context, r wazero.Runtime, module []byte) (wazero.CompiledModule, error) {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return nil, err
	}
	if err := imports(ctx, r); err != nil {
		return nil, err
	}
	return r.CompileModule(ctx, module)
}

// imports are what the engine calls. Of these only host_call is ever used: no
// handler and no loader is set, and the time zone is UTC.
func imports(ctx context.Context, r wazero.Runtime) error {
	i32 := func(n int) []api.ValueType {
		t := make([]api.ValueType, n)
		for i := range t {
			t[i] = api.ValueTypeI32
		}
		return t
	}
	none := func(context.Context, []uint64) {}
	zero := func(_ context.Context, stack []uint64) { stack[0] = 0 }
	b := r.NewHostModuleBuilder("env")
	for _, f := range []struct {
		name            string
		params, results int
		do              api.GoFunc
	}{
		{"host_call", 5, 1, hostCall},
		{"host_get_timezone_offset", 2, 1, zero},
		{"host_interrupt", 0, 1, zero},
		{"host_promise_rejection", 3, 0, none},
		{"host_module_normalize", 2, 1, zero},
		{"host_module_load", 2, 1, zero},
	} {
		b.NewFunctionBuilder().WithGoFunction(f.do, i32(f.params), i32(f.results)).Export(f.name)
	}
	_, err := b.Instantiate(ctx)
	return err
}
