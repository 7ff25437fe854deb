package wasmtest

import "time"

// PluginConfig is a filter instance in Envoy's configuration.
type PluginConfig struct {
	Name   string
	RootID string
	Config string
}

// Plugin is a filter instance in one VM.
type Plugin struct {
	vm     *VM
	config PluginConfig
	object *object

	configuring bool
	stopping    bool   // on_done has asked for time
	tickPeriod  uint32 // ms, 0: none
	tickDue     int64  // when the next one comes by the monotonic clock, if any does

	httpCalls  []HTTPCall
	httpAnswer *httpAnswer // while it is being delivered
	grpcCalls  []GRPCCall
	grpcAnswer *string // likewise
}

// StartPlugin gives a VM another filter instance: its context is created, the
// VM is started (Envoy does so for every instance), and the configuration is
// handed over. It returns false if the module refuses, upon which Envoy would
// keep the listener that it had, or if the VM is dead.
func (vm *VM) StartPlugin(config PluginConfig) (*Plugin, bool) {
	p := &Plugin{vm: vm, config: config}
	vm.plugins = append(vm.plugins, p)
	p.object = vm.newObject(p, nil)
	vm.call(p.object, "proxy_on_context_create", p.object.id, 0)
	if started, ok := vm.call(p.object, "proxy_on_vm_start", p.object.id, uint32(len(vm.config))); ok && started == 0 {
		return p, false
	}
	p.configuring = true
	configured, ok := vm.call(p.object, "proxy_on_configure", p.object.id, uint32(len(config.Config)))
	p.configuring = false
	return p, vm.err == nil && (!ok || configured != 0)
}

// VM is the VM that the plugin runs in.
func (p *Plugin) VM() *VM { return p.vm }

// ContextID is the plugin's context id.
func (p *Plugin) ContextID() uint32 { return p.object.id }

// TickPeriod is the time between ticks in ms; 0 means that there are none.
func (p *Plugin) TickPeriod() uint32 { return p.tickPeriod }

// setTickPeriod starts the timer anew, or stops it, as Envoy's
// Wasm::setTimerPeriod does.
func (p *Plugin) setTickPeriod(ms uint32) {
	p.tickPeriod = ms
	p.tickDue = p.vm.host.Clock.Mono + int64(ms)*int64(time.Millisecond)
}

// Tick is one tick of the plugin's timer, which starts it anew. Nothing happens
// where it is off. Host.Advance is for ticks that come when they are due.
//
// A timer outlives its plugin: its ticks then reach nobody, and go on. So it is
// in Envoy, whose timers belong to the VM.
func (p *Plugin) Tick() {
	if p.tickPeriod == 0 || p.vm.err != nil {
		return
	}
	if p.vm.objects[p.object.id] == nil {
		p.vm.host.StrayTicks++
	} else {
		p.vm.call(p.object, "proxy_on_tick", p.object.id)
	}
	p.setTickPeriod(p.tickPeriod)
}

// Stop is the end of the plugin, as after a config push when its last stream
// is gone. It returns false if the plugin wants to live until it calls
// proxy_done.
func (p *Plugin) Stop() bool {
	done, ok := p.vm.call(p.object, "proxy_on_done", p.object.id)
	if ok && done == 0 {
		p.stopping = true
		return false
	}
	p.delete()
	return true
}

func (p *Plugin) delete() {
	p.vm.call(p.object, "proxy_on_delete", p.object.id)
	delete(p.vm.objects, p.object.id)
}
