package wasmtest

import (
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
)

// Host is one Envoy process. Its fields may be changed at any time.
type Host struct {
	// Clock is the time that the VMs see.
	Clock Clock
	// Shared is the shared data. A new one is what a new process begins with.
	Shared *SharedData
	// Metrics are the values of all metrics by name. A histogram counts the
	// values it was given.
	Metrics map[string]uint64
	// LogLevel is what the VMs are told is being logged: 0 (trace) to 5
	// (critical). Everything is captured whatever it is.
	LogLevel uint32
	// VMConfig is the configuration of VMs that are started from now on.
	VMConfig string
	// Foreign holds the functions of proxy_call_foreign_function by name.
	Foreign map[string]func(argument []byte) (Status, []byte)
	// Fail, if set, is asked before every hostcall. If it returns true, the
	// call has no effect and returns the status. It may move the clocks and use
	// other VMs.
	Fail func(c *Call) (Status, bool)
	// OnTrap is told about a VM that trapped. By default the test fails.
	OnTrap func(vm *VM, err error)
	// StrayTicks counts the ticks of plugins that are gone: a plugin that leaves
	// its timer set wakes its worker for ever.
	StrayTicks int
	// Recording makes Calls grow.
	Recording bool
	// Calls are the recorded hostcalls of all VMs in the order in which they
	// took effect.
	Calls []Call

	t        testing.TB
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	counts   map[string]int
	vms      []*VM
}

// DefaultVMID is the vm_id of VMs that are not given another.
const DefaultVMID = "sluice"

// New compiles a module (once for all hosts of a test binary) and returns a
// host that runs it. Its VMs are closed when the test ends.
func New(t testing.TB, module []byte) *Host {
	t.Helper()
	runtime, compiled, err := compile(module)
	if err != nil {
		t.Fatalf("the module cannot be compiled: %v", err)
	}
	return newHost(t, runtime, compiled)
}

// NewListening is New for a module with names: called is told of every call of
// one of its functions, as it begins.
func NewListening(t testing.TB, module []byte, called func(function string)) *Host {
	t.Helper()
	runtime, compiled, err := compileListening(module, called)
	if err != nil {
		t.Fatalf("the module cannot be compiled: %v", err)
	}
	return newHost(t, runtime, compiled)
}

func newHost(t testing.TB, runtime wazero.Runtime, compiled wazero.CompiledModule) *Host {
	h := &Host{
		// Any moments will do as long as neither looks like a duration.
		Clock:    Clock{Mono: 1_000_000_000_000, Wall: 1_700_000_000_000_000_000},
		Shared:   NewSharedData(),
		Metrics:  map[string]uint64{},
		LogLevel: logInfo,
		Foreign:  map[string]func([]byte) (Status, []byte){},
		t:        t,
		runtime:  runtime,
		compiled: compiled,
		counts:   map[string]int{},
	}
	h.OnTrap = func(vm *VM, err error) { t.Errorf("VM %d trapped: %v\n%s", vm.index, err, vm.logText()) }
	t.Cleanup(h.Close)
	return h
}

// Close closes all VMs.
func (h *Host) Close() {
	for _, vm := range h.vms {
		vm.Close()
	}
	h.vms = nil
}

// Advance moves both clocks. On the way it runs every tick that comes due, of all
// VMs, in order of time and each at its moment.
func (h *Host) Advance(d time.Duration) {
	end := h.Clock.Mono + int64(d)
	for {
		next := h.nextTicking()
		if next == nil || next.tickDue > end {
			break
		}
		h.advanceTo(next.tickDue)
		next.Tick()
	}
	h.advanceTo(end)
}

// advanceTo does nothing where the clock has passed the moment already: ticks may
// be late.
func (h *Host) advanceTo(mono int64) {
	h.Clock.Advance(time.Duration(max(0, mono-h.Clock.Mono)))
}

// nextTicking returns the plugin whose tick comes next, nil if none does.
func (h *Host) nextTicking() *Plugin {
	var next *Plugin
	for _, vm := range h.vms {
		for _, p := range vm.plugins {
			if vm.err == nil && p.tickPeriod > 0 && (next == nil || p.tickDue < next.tickDue) {
				next = p
			}
		}
	}
	return next
}

// Count is how often a hostcall was made, by all VMs and with any outcome.
func (h *Host) Count(name string) int { return h.counts[name] }
