package wasmtest

import (
	"context"

	"github.com/tetratelabs/wazero/api"
)

// hostcall is one function that modules import.
type hostcall struct {
	name string
	// params has a letter for each parameter: d for data (an address and a
	// size), i for a word of 32 bits, I for one of 64, and r for the address of
	// a result.
	params string
	// races says whether the call sees or changes what VMs have in common, so
	// that Race may let other VMs run before it.
	races bool
	serve func(*invocation) Status
}

var statusResult = []api.ValueType{api.ValueTypeI32}

func (h *hostcall) parameters() []api.ValueType {
	var types []api.ValueType
	for _, letter := range h.params {
		switch letter {
		case 'd':
			types = append(types, api.ValueTypeI32, api.ValueTypeI32)
		case 'I':
			types = append(types, api.ValueTypeI64)
		default:
			types = append(types, api.ValueTypeI32)
		}
	}
	return types
}

// readsWall tells the reading of the wall clock, before which nobody else runs:
// a request reads both clocks one after the other, and to stand still in between
// would be the same as a step of the wall clock, which tests make on purpose.
func (h *hostcall) readsWall(arguments []uint64) bool {
	return h == &clockTimeGet && arguments[0] == clockWall
}

// invocation is a hostcall being served.
type invocation struct {
	vm *VM
	// on is the context that the call speaks of.
	on *object
	// data are the data parameters and words all others, each in order.
	data  []string
	words []uint64
	call  *Call
}

// Call implements api.GoModuleFunction. ctx says which VM calls.
func (h *hostcall) Call(ctx context.Context, _ api.Module, stack []uint64) {
	vm := ctx.Value(vmKey{}).(*VM)
	if h.ofGoRuntime(stack) {
		in := invocation{vm: vm, words: stack, call: &Call{}}
		stack[0] = uint64(h.serve(&in))
		return
	}
	stack[0] = uint64(vm.serve(h, stack))
}

// ofGoRuntime tells the clock readings of Go's runtime from those of the
// filter: the runtime asks for precision 0. It does so when its collector
// happens to run, which must neither decide an interleaving nor show in a
// trace.
func (h *hostcall) ofGoRuntime(arguments []uint64) bool {
	return h == &clockTimeGet && arguments[1] == 0
}

func (vm *VM) serve(h *hostcall, arguments []uint64) Status {
	call := Call{VM: vm.index, Context: vm.current.id, Callback: vm.callback, Name: h.name}
	in := invocation{vm: vm, on: vm.effectiveObject(), call: &call}
	status := in.read(h.params, arguments)
	if len(in.data) > 0 {
		call.Subject = in.data[0]
	}
	if h.races && vm.yield != nil && !h.readsWall(arguments) {
		vm.yield()
	}
	host := vm.host
	host.counts[h.name]++
	if status == OK {
		var failed bool
		if host.Fail != nil {
			status, failed = host.Fail(&call)
		}
		if !failed {
			status = h.serve(&in)
		}
	}
	call.Status = status
	if host.Recording {
		host.Calls = append(host.Calls, call)
	}
	return status
}

// read splits a call's arguments and copies the data they point to.
func (in *invocation) read(params string, arguments []uint64) Status {
	for _, letter := range params {
		if letter != 'd' {
			in.words = append(in.words, arguments[0])
			arguments = arguments[1:]
			continue
		}
		data, ok := in.vm.memory().Read(uint32(arguments[0]), uint32(arguments[1]))
		if !ok {
			return InvalidMemoryAccess
		}
		in.data = append(in.data, string(data))
		arguments = arguments[2:]
	}
	return OK
}

// word is a parameter of 32 bits that is no data.
func (in *invocation) word(i int) uint32 { return uint32(in.words[i]) }

// returnData copies data into memory that the module allocates for it, and
// writes its address and size to where the words i and i+1 point.
func (in *invocation) returnData(data string, i int) Status {
	address := uint32(0)
	if data != "" {
		var ok bool
		if address, ok = in.vm.allocate(uint32(len(data))); !ok || !in.vm.memory().WriteString(address, data) {
			return InvalidMemoryAccess
		}
	}
	if status := in.returnWord(address, i); status != OK {
		return status
	}
	return in.returnWord(uint32(len(data)), i+1)
}

// returnWord writes 32 bits to where the word i points.
func (in *invocation) returnWord(value uint32, i int) Status {
	if !in.vm.memory().WriteUint32Le(in.word(i), value) {
		return InvalidMemoryAccess
	}
	return OK
}

// returnLong writes 64 bits to where the word i points.
func (in *invocation) returnLong(value uint64, i int) Status {
	if !in.vm.memory().WriteUint64Le(in.word(i), value) {
		return InvalidMemoryAccess
	}
	return OK
}
