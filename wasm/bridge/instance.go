package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// instance is one running module with its own memory. It has one owner.
type instance struct {
	module  api.Module
	alloc   api.Function
	exports map[string]api.Function
	stack   [4]uint64
	room    uint32 // the module's buffer when it is of roomKept bytes; else 0
}

// roomKept is the buffer that most calls share: the module keeps the one that
// alloc gave until another is asked for, and entering it costs as much as a check.
const roomKept = 64 << 10

var errMemory = errors.New("the module gave an address outside its memory")

func (b *Bridge) instance(ctx context.Context) (*instance, error) {
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").WithEnv("GOGC", gcPercent)
	m, err := b.runtime.InstantiateModule(ctx, b.compiled, config)
	if err != nil {
		return nil, err
	}
	i := &instance{module: m, exports: map[string]api.Function{}}
	for _, name := range []string{"abi", "alloc", "step", "view", "check", "fold"} {
		f := m.ExportedFunction(name)
		if f == nil {
			m.Close(ctx)
			return nil, fmt.Errorf("the module has no export %s", name)
		}
		i.exports[name] = f
	}
	i.alloc = i.exports["alloc"]
	if err := i.exports["abi"].CallWithStack(ctx, i.stack[:]); err != nil || i.stack[0] != abiVersion {
		m.Close(ctx)
		return nil, errors.Join(err, fmt.Errorf("the module's abi is %d, not %d", i.stack[0], abiVersion))
	}
	return i, nil
}

// abiVersion is wasm/client/abi's Version; the bridge meets that package only
// in its tests.
const abiVersion = 1

// call runs an export on the input. args come before the buffer's two. The
// module bounds itself, so no context ends a call.
func (i *instance) call(name string, in []byte, args ...uint64) ([]byte, error) {
	ctx := context.Background()
	ptr := i.room
	if len(in) > roomKept || ptr == 0 {
		i.stack[0] = uint64(max(len(in), roomKept))
		if err := i.alloc.CallWithStack(ctx, i.stack[:]); err != nil {
			return nil, err
		}
		if ptr = uint32(i.stack[0]); ptr == 0 {
			return nil, fmt.Errorf("no buffer for %d bytes", len(in))
		}
		if i.room = ptr; len(in) > roomKept {
			i.room = 0
		}
	}
	if !i.module.Memory().Write(ptr, in) {
		return nil, errMemory
	}
	n := copy(i.stack[:2], args)
	i.stack[n], i.stack[n+1] = uint64(ptr), uint64(len(in))
	if err := i.exports[name].CallWithStack(ctx, i.stack[:]); err != nil {
		return nil, err
	}
	at, size := uint32(i.stack[0]>>32), uint32(i.stack[0])
	out, ok := i.module.Memory().Read(at, size)
	if !ok {
		return nil, errMemory
	}
	return append([]byte(nil), out...), nil
}
