package wasmtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// VM is one instance of the module, as a worker has one.
type VM struct {
	host    *Host
	index   int
	id      string // the vm_id
	config  string
	ctx     context.Context // leads hostcalls back to the VM
	module  api.Module
	exports map[string]api.Function
	err     error // why the VM is dead

	logs    []LogLine
	metrics metrics

	objects              map[uint32]*object
	plugins              []*Plugin // all that were ever started
	nextID               uint32    // of an object
	httpCalls, grpcCalls uint32    // the ids given last

	// current is whose callback runs, effective is the object that
	// proxy_set_effective_context has named (0: none), and callback is the
	// export that runs.
	current   *object
	effective uint32
	callback  string
	deferred  []func() // what is put off until the callback returns

	// yield lets other VMs run. It is set while Race runs a task on this VM.
	yield func()
}

// object is what proxy-wasm calls a context: the VM's own (neither plugin nor
// stream), a plugin's (no stream), or a stream's.
type object struct {
	id     uint32
	plugin *Plugin
	stream *Stream
}

// LogLine is one line that a module has logged.
type LogLine struct {
	Level   uint32 // 0 (trace) to 5 (critical)
	Message string
}

const (
	logInfo  = 2
	logError = 4
	lastLog  = 5
)

type vmKey struct{}

// NewVM starts a VM with the default vm_id.
func (h *Host) NewVM() *VM { return h.NewVMWithID(DefaultVMID) }

// NewVMWithID starts a VM. VMs with the same id share their data.
func (h *Host) NewVMWithID(id string) *VM {
	h.t.Helper()
	root := &object{}
	vm := &VM{
		host:    h,
		index:   len(h.vms),
		id:      id,
		exports: map[string]api.Function{},
		metrics: newMetrics(h.Metrics),
		config:  h.VMConfig,
		nextID:  1,
		objects: map[uint32]*object{0: root},
		current: root,
	}
	vm.ctx = context.WithValue(context.Background(), vmKey{}, vm)
	config := wazero.NewModuleConfig().
		WithName("").
		WithStartFunctions().
		WithStdout(logWriter{vm, logInfo}).
		WithStderr(logWriter{vm, logError}).
		WithRandSource(rand.New(rand.NewSource(int64(vm.index))))
	module, err := h.runtime.InstantiateModule(vm.ctx, h.compiled, config)
	if err != nil {
		h.t.Fatalf("the module cannot be started: %v", err)
	}
	vm.module = module
	h.vms = append(h.vms, vm)
	vm.call(root, "_initialize")
	return vm
}

// Index is the VM's number in its host, from 0.
func (vm *VM) Index() int { return vm.index }

// Err is why the VM is dead: it has trapped. A dead VM runs nothing any more.
func (vm *VM) Err() error { return vm.err }

// Logs are the lines that were logged by this VM, including what it wrote to
// its standard output and error.
func (vm *VM) Logs() []LogLine { return vm.logs }

// MemorySize is the size of the VM's linear memory in bytes. It never shrinks.
func (vm *VM) MemorySize() int { return int(vm.memory().Size()) }

// Kill makes the VM a dead one, as if it had trapped between two callbacks.
// Nothing that it has begun is ever ended.
func (vm *VM) Kill() { vm.err = errKilled }

var errKilled = errors.New("killed by the test")

// Close ends the VM without a word to the module.
func (vm *VM) Close() { _ = vm.module.Close(vm.ctx) }

func (vm *VM) memory() api.Memory { return vm.module.Memory() }

// function returns an export, nil if there is none.
func (vm *VM) function(name string) api.Function {
	f, known := vm.exports[name]
	if !known {
		f = vm.module.ExportedFunction(name)
		vm.exports[name] = f
	}
	return f
}

// Callback calls an export as Envoy never would, with any context ids and
// sizes. It returns false where there is no such export, or the VM is dead.
func (vm *VM) Callback(name string, arguments ...uint32) (result uint32, ok bool) {
	return vm.call(vm.objects[0], name, arguments...)
}

// call runs a callback of an object, and then what hostcalls have put off until
// it returns. It returns false if the module has no such callback, or if the
// VM is dead.
func (vm *VM) call(on *object, callback string, arguments ...uint32) (result uint32, ok bool) {
	f := vm.function(callback)
	if vm.err != nil || f == nil {
		return 0, false
	}
	result, err := vm.enter(on, callback, f, arguments)
	if err != nil {
		vm.err = fmt.Errorf("%s: %w", callback, err)
		vm.deferred = nil
		vm.host.OnTrap(vm, vm.err)
		return 0, false
	}
	for len(vm.deferred) > 0 {
		next := vm.deferred[0]
		vm.deferred = vm.deferred[1:]
		next()
	}
	return result, true
}

// enter calls into the module. Whatever was effective before is so again
// afterwards: calls nest when the module allocates memory for a result.
func (vm *VM) enter(on *object, callback string, f api.Function, arguments []uint32) (uint32, error) {
	current, effective, name := vm.current, vm.effective, vm.callback
	vm.current, vm.effective, vm.callback = on, 0, callback
	defer func() { vm.current, vm.effective, vm.callback = current, effective, name }()
	stack := make([]uint64, max(1, len(arguments)))
	for i, argument := range arguments {
		stack[i] = uint64(argument)
	}
	err := f.CallWithStack(vm.ctx, stack)
	return uint32(stack[0]), err
}

// allocate has the module allocate memory, for data that a hostcall returns.
func (vm *VM) allocate(size uint32) (address uint32, ok bool) {
	f := vm.function("malloc")
	if f == nil {
		f = vm.function("proxy_on_memory_allocate")
	}
	if f == nil {
		return 0, false
	}
	address, err := vm.enter(vm.objects[0], vm.callback, f, []uint32{size})
	return address, err == nil && address != 0
}

// effectiveObject is what a hostcall speaks of: the object named by
// proxy_set_effective_context while it exists, else the one whose callback runs.
func (vm *VM) effectiveObject() *object {
	if o, found := vm.objects[vm.effective]; found && vm.effective != 0 {
		return o
	}
	return vm.current
}

// newObject numbers a plugin or stream. Ids are not used again.
func (vm *VM) newObject(plugin *Plugin, stream *Stream) *object {
	o := &object{id: vm.nextID, plugin: plugin, stream: stream}
	vm.nextID++
	vm.objects[o.id] = o
	return o
}

// afterCallback puts something off until the callback that runs has returned.
func (vm *VM) afterCallback(f func()) { vm.deferred = append(vm.deferred, f) }

func (vm *VM) logText() string {
	var text strings.Builder
	for _, line := range vm.logs {
		fmt.Fprintf(&text, "  log %d: %s\n", line.Level, line.Message)
	}
	return text.String()
}

// logWriter is the module's standard output or error, which Envoy logs.
type logWriter struct {
	vm    *VM
	level uint32
}

func (w logWriter) Write(p []byte) (int, error) {
	w.vm.logs = append(w.vm.logs, LogLine{w.level, string(bytes.TrimSuffix(p, []byte("\n")))})
	return len(p), nil
}
