package wasmtest

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero/api"
)

// puppet is the script of a VM whose module does nothing of its own: it passes
// every callback on to Go, and Go makes hostcalls through it. So the host can
// be tested call by call, and without the filter.
type puppet struct {
	t  *testing.T
	vm *VM
	// on holds what callbacks do; the rest return 1, which is "done" and "good".
	on map[string]func(arguments []uint64) uint64
	// used is how much of the memory is taken.
	used uint32
}

// puppetCallbacks are the module's exports and how many parameters they have.
var puppetCallbacks = []struct {
	name       string
	parameters int
}{
	{"proxy_on_memory_allocate", 1},
	{"proxy_on_context_create", 2},
	{"proxy_on_vm_start", 2},
	{"proxy_on_configure", 2},
	{"proxy_on_request_headers", 3},
	{"proxy_on_request_body", 3},
	{"proxy_on_response_headers", 3},
	{"proxy_on_response_body", 3},
	{"proxy_on_log", 1},
	{"proxy_on_done", 1},
	{"proxy_on_delete", 1},
	{"proxy_on_tick", 1},
	{"proxy_on_http_call_response", 5},
	{"proxy_on_grpc_receive", 3},
	{"proxy_on_grpc_close", 3},
}

// newPuppet starts a VM and its script.
func newPuppet(t *testing.T, host *Host) *puppet { return puppetOf(t, host.NewVM()) }

// puppetOf gives a VM its script.
func puppetOf(t *testing.T, vm *VM) *puppet {
	p := &puppet{t: t, vm: vm, on: map[string]func([]uint64) uint64{}}
	puppets[vm] = p
	t.Cleanup(func() { delete(puppets, vm) })
	return p
}

// puppets leads callbacks to their script.
var puppets = map[*VM]*puppet{}

func newPuppetHost(t *testing.T) *Host {
	loadPuppetModule(t)
	return New(t, puppetModule())
}

// loadPuppetModule defines what the puppet's callbacks import, once for all tests.
func loadPuppetModule(t *testing.T) {
	puppetModuleLoaded.Do(func() {
		runtime, _, err := compile(puppetModule())
		if err != nil {
			t.Fatal(err)
		}
		module := runtime.NewHostModuleBuilder("puppet")
		for _, callback := range puppetCallbacks {
			run := func(ctx context.Context, stack []uint64) {
				p := puppets[ctx.Value(vmKey{}).(*VM)]
				stack[0] = p.callback(callback.name, stack[:callback.parameters])
			}
			module.NewFunctionBuilder().WithGoFunction(api.GoFunc(run), words(callback.parameters), statusResult).Export(callback.name)
		}
		if _, err := module.Instantiate(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}

var puppetModuleLoaded sync.Once

func (p *puppet) callback(name string, arguments []uint64) uint64 {
	if name == "proxy_on_memory_allocate" {
		return uint64(p.allocate(uint32(arguments[0])))
	}
	if f := p.on[name]; f != nil {
		return f(append([]uint64(nil), arguments...))
	}
	return 1
}

// allocate never frees, and never returns address 0.
func (p *puppet) allocate(size uint32) uint32 {
	address := p.used + 8
	p.used = address + size
	return address
}

// call makes a hostcall. Strings are passed as data, *string and *uint32 and
// *uint64 receive results, and the rest are words.
func (p *puppet) call(name string, arguments ...any) Status {
	p.t.Helper()
	var stack []uint64
	var results []func()
	memory := p.vm.memory()
	out := func(read func(address uint32)) {
		address := p.allocate(8)
		memory.WriteUint64Le(address, 0xAAAAAAAA_AAAAAAAA)
		stack = append(stack, uint64(address))
		results = append(results, func() { read(address) })
	}
	for _, argument := range arguments {
		switch a := argument.(type) {
		case string:
			address := p.allocate(uint32(len(a)))
			memory.WriteString(address, a)
			stack = append(stack, uint64(address), uint64(len(a)))
		case *string:
			var data uint32
			out(func(address uint32) { data, _ = memory.ReadUint32Le(address) })
			out(func(address uint32) {
				size, _ := memory.ReadUint32Le(address)
				text, _ := memory.Read(data, size)
				*a = string(text)
			})
		case *uint32:
			out(func(address uint32) { *a, _ = memory.ReadUint32Le(address) })
		case *uint64:
			out(func(address uint32) { *a, _ = memory.ReadUint64Le(address) })
		case int:
			stack = append(stack, uint64(a))
		}
	}
	stack = append(stack, 0)
	f := p.vm.module.ExportedFunction("call " + name)
	if err := f.CallWithStack(p.vm.ctx, stack); err != nil {
		panic(err)
	}
	if status := Status(stack[0]); status != OK {
		return status
	}
	for _, read := range results {
		read()
	}
	return OK
}

// puppetModule writes the module in WebAssembly's binary format
// (https://webassembly.github.io/spec/core/binary/): for every callback a
// function that calls the import of the same name, and for every hostcall an
// exported "call NAME" that calls it.
func puppetModule() []byte {
	type function struct {
		module, name, export string
		parameters           []api.ValueType
	}
	var all []function
	for _, c := range puppetCallbacks {
		all = append(all, function{"puppet", c.name, c.name, words(c.parameters)})
	}
	for i := range hostcalls {
		h := &hostcalls[i]
		all = append(all, function{"env", h.name, "call " + h.name, h.parameters()})
	}
	all = append(all, function{"wasi_snapshot_preview1", clockTimeGet.name, "call " + clockTimeGet.name, clockTimeGet.parameters()})

	const functionType, functionKind, memoryKind, localGet, call, end = 0x60, 0x00, 0x02, 0x20, 0x10, 0x0b
	var types, imports, functions, exports, code [][]byte
	for i, f := range all {
		types = append(types, join([]byte{functionType}, vector(f.parameters), vector(statusResult)))
		imports = append(imports, join(text(f.module), text(f.name), []byte{functionKind}, number(i)))
		functions = append(functions, number(i))
		exports = append(exports, join(text(f.export), []byte{functionKind}, number(len(all)+i)))
		body := number(0) // no local variables
		for p := range f.parameters {
			body = join(body, []byte{localGet}, number(p))
		}
		body = join(body, []byte{call}, number(i), []byte{end})
		code = append(code, join(number(len(body)), body))
	}
	exports = append(exports, join(text("memory"), []byte{memoryKind}, number(0)))
	memory := join([]byte{0x00}, number(puppetPages)) // no maximum

	module := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []struct {
		id      byte
		content [][]byte
	}{{1, types}, {2, imports}, {3, functions}, {5, [][]byte{memory}}, {7, exports}, {10, code}} {
		content := join(number(len(s.content)), join(s.content...))
		module = join(module, []byte{s.id}, number(len(content)), content)
	}
	return module
}

// puppetPages is the module's memory, 64 KiB each.
const puppetPages = 4

func join(parts ...[]byte) []byte { return slices.Concat(parts...) }

func text(s string) []byte { return join(number(len(s)), []byte(s)) }

func vector(types []api.ValueType) []byte { return join(number(len(types)), types) }

func number(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func words(n int) []api.ValueType {
	types := make([]api.ValueType, n)
	for i := range types {
		types[i] = api.ValueTypeI32
	}
	return types
}
