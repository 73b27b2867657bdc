package quickjs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

var errString = fmt.Errorf("a string is over %d bytes", StringMax)

// Exception is what a program threw and did not catch.
type Exception struct {
	Text  string // as String() would give it, such as "TypeError: …"
	Stack string // where it came from, "" when unknown
}

func (e *Exception) Error() string { return e.Text }

// Host is what a program reaches of the world. An error is thrown in the program.
type Host func(args []string) (string, error)

// Value is a JavaScript value of one VM.
type Value struct{ ptr uint32 }

// VM is one machine with its own memory.
type VM struct {
	module api.Module
	host   Host
	used   map[string]api.Function
	free   func() // gives the engine's slot back, once
}

// vmKey finds the VM in the context of a call from inside.
type vmKey struct{}

// NewVM starts a machine whose global function host is h.
func (e *Engine) NewVM(ctx context.Context, h Host) (*VM, error) {
	runtime, compiled, err := e.ready()
	if err != nil {
		return nil, err
	}
	select {
	case e.slots <- struct{}{}:
	default:
		return nil, ErrBusy
	}
	free := sync.OnceFunc(func() { <-e.slots })
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").WithSysWalltime().WithSysNanotime()
	m, err := runtime.InstantiateModule(ctx, compiled, config)
	if err != nil {
		free()
		return nil, fmt.Errorf("JavaScript engine: start: %w", err)
	}
	vm := &VM{module: m, host: h, used: map[string]api.Function{}, free: free}
	if err := vm.setUp(ctx, e.options.Memory); err != nil {
		vm.Close()
		return nil, fmt.Errorf("JavaScript engine: start: %w", err)
	}
	return vm, nil
}

func (vm *VM) setUp(ctx context.Context, memory int64) error {
	if _, err := vm.call(ctx, "qjs_init"); err != nil {
		return err
	}
	if _, err := vm.call(ctx, "qjs_set_memory_limit", uint64(memory)); err != nil {
		return err
	}
	if _, err := vm.call(ctx, "qjs_set_max_stack_size", stackMax); err != nil {
		return err
	}
	name, err := vm.put(ctx, "host")
	if err != nil {
		return err
	}
	f, err := vm.value(ctx, "qjs_new_host_function", name, 4, 0)
	if err != nil {
		return err
	}
	global, err := vm.call(ctx, "qjs_get_global")
	if err != nil {
		return err
	}
	_, err = vm.call(ctx, "qjs_set_prop_string", global, name, uint64(f.ptr))
	return err
}

// Close frees the machine. It may be closed already.
func (vm *VM) Close() {
	vm.module.Close(context.Background())
	vm.free()
}

// Eval runs a script and then every job that it left ready, and returns the
// script's value.
func (vm *VM) Eval(ctx context.Context, source, name string) (Value, error) {
	if len(source) > StringMax {
		return Value{}, errString
	}
	src, err := vm.put(ctx, source)
	if err != nil {
		return Value{}, err
	}
	file, err := vm.put(ctx, name)
	if err != nil {
		return Value{}, err
	}
	v, err := vm.value(ctx, "qjs_eval", src, uint64(len(source)), file, 0)
	if err != nil {
		return Value{}, err
	}
	for _, p := range []uint64{src, file} {
		if _, err := vm.call(ctx, "wasm_free", p); err != nil {
			return Value{}, err
		}
	}
	return v, vm.jobs(ctx)
}

// Call calls a function with strings, and then runs every job that is ready.
func (vm *VM) Call(ctx context.Context, f Value, args ...string) error {
	list, err := vm.call(ctx, "wasm_malloc", uint64(4*len(args)+4))
	if err != nil {
		return err
	}
	values := make([]uint64, len(args))
	for i, a := range args {
		if len(a) > StringMax {
			return errString
		}
		s, err := vm.put(ctx, a)
		if err != nil {
			return err
		}
		v, err := vm.value(ctx, "qjs_new_string", s, uint64(len(a)))
		if err != nil {
			return err
		}
		if _, err := vm.call(ctx, "wasm_free", s); err != nil {
			return err
		}
		values[i] = uint64(v.ptr)
		if list == 0 || !vm.module.Memory().WriteUint32Le(uint32(list)+uint32(4*i), v.ptr) {
			return ErrMemory
		}
	}
	this, err := vm.call(ctx, "qjs_get_undefined")
	if err != nil {
		return err
	}
	v, err := vm.value(ctx, "qjs_call", uint64(f.ptr), this, uint64(len(args)), list)
	if err != nil {
		return err
	}
	for _, p := range append(values, uint64(v.ptr), this) {
		if _, err := vm.call(ctx, "qjs_free_value", p); err != nil {
			return err
		}
	}
	if _, err := vm.call(ctx, "wasm_free", list); err != nil {
		return err
	}
	return vm.jobs(ctx)
}

// jobs runs what promises have made ready.
func (vm *VM) jobs(ctx context.Context) error {
	for {
		more, err := vm.call(ctx, "qjs_is_job_pending")
		if err != nil || more == 0 {
			return err
		}
		n, err := vm.call(ctx, "qjs_execute_pending_job")
		if err != nil {
			return err
		}
		if int32(n) < 0 {
			return vm.exception(ctx)
		}
	}
}

// value calls an export that gives a value or throws.
func (vm *VM) value(ctx context.Context, name string, args ...uint64) (Value, error) {
	p, err := vm.call(ctx, name, args...)
	if err != nil {
		return Value{}, err
	}
	threw, err := vm.call(ctx, "qjs_is_exception", p)
	if err != nil {
		return Value{}, err
	}
	if p == 0 || threw != 0 {
		return Value{}, vm.exception(ctx)
	}
	return Value{uint32(p)}, nil
}

// exception takes what was thrown last.
func (vm *VM) exception(ctx context.Context) error {
	p, err := vm.call(ctx, "qjs_get_exception")
	if err != nil {
		return err
	}
	e := &Exception{}
	// Reading it runs the program's toString, which may throw again.
	if e.Text, err = vm.text(ctx, p); err != nil {
		if _, thrown := errors.AsType[*Exception](err); !thrown {
			return err
		}
		e.Text = "an exception that cannot be shown"
	}
	e.Stack = vm.stack(ctx, p)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return e
}

// stack is where an exception came from, "" when it does not say.
func (vm *VM) stack(ctx context.Context, thrown uint64) string {
	name, err := vm.put(ctx, "stack")
	if err != nil {
		return ""
	}
	v, err := vm.call(ctx, "qjs_get_prop_string", thrown, name)
	if err != nil {
		return ""
	}
	if is, err := vm.call(ctx, "qjs_is_string", v); err != nil || is == 0 {
		return ""
	}
	s, err := vm.text(ctx, v)
	if err != nil {
		return ""
	}
	return s
}

// text converts a value to a string. Lone surrogates become U+FFFD.
func (vm *VM) text(ctx context.Context, v uint64) (string, error) {
	size, err := vm.call(ctx, "wasm_malloc", 4)
	if err != nil {
		return "", err
	}
	if size == 0 {
		return "", ErrMemory
	}
	at, err := vm.call(ctx, "qjs_get_string_len", v, size)
	if err != nil {
		return "", err
	}
	if at == 0 {
		// Its toString threw. What it threw is dropped unread: it could throw again.
		thrown, err := vm.call(ctx, "qjs_get_exception")
		if err == nil {
			_, err = vm.call(ctx, "qjs_free_value", thrown)
		}
		if err == nil {
			err = &Exception{Text: "a value that cannot be shown"}
		}
		return "", err
	}
	n, ok := vm.module.Memory().ReadUint32Le(uint32(size))
	if !ok {
		return "", ErrMemory
	}
	if n > StringMax {
		return "", errString
	}
	b, ok := vm.module.Memory().Read(uint32(at), n)
	if !ok {
		return "", ErrMemory
	}
	s := string(b)
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if _, err := vm.call(ctx, "qjs_free_cstring", at); err != nil {
		return "", err
	}
	_, err = vm.call(ctx, "wasm_free", size)
	return s, err
}

// put copies a string into the machine, with a zero byte behind it.
func (vm *VM) put(ctx context.Context, s string) (uint64, error) {
	p, err := vm.call(ctx, "wasm_malloc", uint64(len(s)+1))
	if err != nil {
		return 0, err
	}
	m := vm.module.Memory()
	if p == 0 || !m.WriteString(uint32(p), s) || !m.WriteByte(uint32(p)+uint32(len(s)), 0) {
		return 0, ErrMemory
	}
	return p, nil
}

// call calls an export. When ctx has ended, so has the machine.
func (vm *VM) call(ctx context.Context, name string, args ...uint64) (uint64, error) {
	f := vm.used[name]
	if f == nil {
		if f = vm.module.ExportedFunction(name); f == nil {
			return 0, fmt.Errorf("the JavaScript engine has no export %s", name)
		}
		vm.used[name] = f
	}
	out, err := f.Call(context.WithValue(ctx, vmKey{}, vm), args...)
	if err != nil {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return 0, fmt.Errorf("JavaScript engine: %w", err)
	}
	if len(out) == 0 {
		return 0, nil
	}
	return out[0], nil
}

// hostCall is every call of a host function by a program: name, its length,
// this, and the arguments.
func hostCall(ctx context.Context, stack []uint64) {
	vm := ctx.Value(vmKey{}).(*VM)
	out, err := vm.answer(ctx, uint32(stack[3]), uint32(stack[4]))
	if err != nil {
		panic(err) // the runtime makes it the error of the call from outside
	}
	stack[0] = out
}

func (vm *VM) answer(ctx context.Context, count, list uint32) (uint64, error) {
	args := make([]string, min(count, 8))
	for i := range args {
		raw, ok := vm.module.Memory().Read(list+uint32(4*i), 4)
		if !ok {
			return 0, ErrMemory
		}
		var err error
		if args[i], err = vm.text(ctx, uint64(binary.LittleEndian.Uint32(raw))); err != nil {
			return vm.throw(ctx, err)
		}
	}
	said, err := vm.host(args)
	if err != nil {
		return vm.throw(ctx, err)
	}
	s, err := vm.put(ctx, said)
	if err != nil {
		return 0, err
	}
	v, err := vm.value(ctx, "qjs_new_string", s, uint64(len(said)))
	if err != nil {
		return 0, err
	}
	_, err = vm.call(ctx, "wasm_free", s)
	return uint64(v.ptr), err
}

// throw throws an error's text inside the program.
func (vm *VM) throw(ctx context.Context, reason error) (uint64, error) {
	text := reason.Error()
	s, err := vm.put(ctx, text)
	if err != nil {
		return 0, err
	}
	v, err := vm.value(ctx, "qjs_new_string", s, uint64(len(text)))
	if err != nil {
		return 0, err
	}
	return vm.call(ctx, "qjs_throw", uint64(v.ptr))
}
