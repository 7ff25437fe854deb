package plugin

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/sluice-proxy/sluice/filter/bridge"
	"github.com/sluice-proxy/sluice/filter/host"
)

// VM is one worker's module: its plugins and all their streams. It implements
// types.VMContext and bridge.Streams.
type VM struct {
	types.DefaultVMContext

	plugins map[uint32]*Plugin
	last    *Plugin // the one that had the last stream, for which plugins need not be asked
	streams streamTable

	// The limit that was told last, as text: most requests share a few.
	limit     int64
	limitText []byte
	number    decimal
}

// New returns the VM of a worker.
func New() *VM {
	return &VM{
		plugins: map[uint32]*Plugin{},
		streams: streamTable{overflow: map[uint32]*stream{}},
	}
}

// NewPluginContext implements types.VMContext.
func (vm *VM) NewPluginContext(id uint32) types.PluginContext {
	p := &Plugin{vm: vm, id: id}
	vm.plugins[id] = p
	return p
}

// Create implements bridge.Streams.
func (vm *VM) Create(id, plugin uint32) {
	if vm.last == nil || vm.last.id != plugin {
		vm.last = vm.plugins[plugin]
	}
	if vm.last != nil {
		vm.streams.create(id, vm.last)
	}
}

// RequestHeaders implements bridge.Streams: it decides about a request.
func (vm *VM) RequestHeaders(id uint32) uint32 {
	s := vm.streams.find(id)
	if s == nil || s.plugin.policy == nil {
		return uint32(host.Continue)
	}
	testTrap()
	return s.plugin.decide(s)
}

// RequestHeadersFailed implements bridge.Streams: after a panic the request goes
// on or is denied as the config says.
func (vm *VM) RequestHeadersFailed(id uint32) uint32 {
	s := vm.streams.find(id)
	if s == nil || s.plugin.policy == nil {
		return uint32(host.Continue)
	}
	s.plugin.metrics.add("sluice.panics", 1)
	if s.lasting != nil {
		s.plugin.end(s)
	}
	return s.plugin.failed()
}

// ResponseHeaders implements bridge.Streams: it tells a client what it has left.
// A refusal of the filter's own comes by here too, after Envoy has added the
// route's headers.
func (vm *VM) ResponseHeaders(id uint32, end bool) {
	s := vm.streams.find(id)
	if s == nil {
		return
	}
	if s.lasting != nil {
		s.plugin.settle(s, end)
	}
	if len(s.removes) > 0 { // after all limits have read them
		for _, header := range s.removes {
			host.RemoveResponseHeader(header)
		}
	}
	if !s.told {
		return
	}
	s.told = false // headers come once; trailers-only answers are headers too
	testTrap()
	vm.tell(s)
}

// ResponseTrailers implements bridge.Streams.
func (vm *VM) ResponseTrailers(id uint32) {
	if s := vm.streams.find(id); s != nil && s.lasting != nil {
		s.plugin.settleTrailers(s)
	}
}

// Delete implements bridge.Streams.
func (vm *VM) Delete(id uint32) bridge.Deletion {
	s := vm.streams.find(id)
	switch {
	case s == nil:
		return bridge.NoStream
	case s.lasting != nil:
		return bridge.NotYet
	}
	vm.streams.remove(s)
	return bridge.Deleted
}

// End implements bridge.Streams.
func (vm *VM) End(id uint32) {
	s := vm.streams.find(id)
	p := s.plugin
	vm.streams.remove(s)
	p.end(s)
}

// DeletePlugin implements bridge.Streams. Its last stream has ended, but a tick
// may still be set, and would come for ever, and calls may be in flight.
func (vm *VM) DeletePlugin(id uint32) {
	if p := vm.plugins[id]; p != nil {
		p.setPeriod(0)
		host.ForgetGRPCCalls(id)
	}
	delete(vm.plugins, id)
	vm.last = nil
}
