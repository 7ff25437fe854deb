package wasmtest

import (
	"math"
	"testing"
)

// startPuppet starts one VM with one plugin.
func startPuppet(t *testing.T) (*puppet, *Plugin) {
	t.Helper()
	p := newPuppet(t, newPuppetHost(t))
	plugin, ok := p.vm.StartPlugin(PluginConfig{Name: "limits", RootID: "root", Config: "{}"})
	if !ok {
		t.Fatal("the plugin does not start")
	}
	return p, plugin
}

// during runs f in a callback of the plugin, where hostcalls may be made.
func (p *puppet) during(plugin *Plugin, f func()) {
	p.on["proxy_on_tick"] = func([]uint64) uint64 { f(); return 0 }
	plugin.tickPeriod = 1
	plugin.Tick()
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestSharedDataWritesOnlyOverTheVersionThatWasRead(t *testing.T) {
	p, plugin := startPuppet(t)
	p.during(plugin, func() {
		var value string
		var cas uint32
		want(t, "get of a missing key", p.call("proxy_get_shared_data", "k", &value, &cas), NotFound)
		want(t, "set of a missing key, whatever the cas", p.call("proxy_set_shared_data", "k", "one", math.MaxUint32), OK)
		want(t, "get", p.call("proxy_get_shared_data", "k", &value, &cas), OK)
		want(t, "value", value, "one")
		want(t, "the first version", cas, 1)
		want(t, "set with another cas", p.call("proxy_set_shared_data", "k", "two", math.MaxUint32), CASMismatch)
		want(t, "set with the right cas", p.call("proxy_set_shared_data", "k", "two", 1), OK)
		want(t, "set with a cas that is out of date", p.call("proxy_set_shared_data", "k", "three", 1), CASMismatch)
		want(t, "set with cas 0", p.call("proxy_set_shared_data", "k", "", 0), OK)
		want(t, "get of an empty value", p.call("proxy_get_shared_data", "k", &value, &cas), OK)
		want(t, "the empty value", value, "")
		want(t, "the third version", cas, 3)
	})
}

func TestVersionsOfSharedDataLeaveZeroOut(t *testing.T) {
	p, plugin := startPuppet(t)
	p.vm.host.Shared.cas = math.MaxUint32
	p.during(plugin, func() {
		var value string
		var cas uint32
		p.call("proxy_set_shared_data", "k", "v", 0)
		p.call("proxy_get_shared_data", "k", &value, &cas)
		want(t, "version after the largest", cas, 1)
	})
}

func TestVMsShareDataWithinTheirVMID(t *testing.T) {
	host := newPuppetHost(t)
	p, other := newPuppet(t, host), newPuppet(t, host)
	stranger := puppetOf(t, host.NewVMWithID("other"))
	var value string
	var cas uint32
	want(t, "set", p.call("proxy_set_shared_data", "k", "v", 0), OK)
	want(t, "get in a VM of the same id", other.call("proxy_get_shared_data", "k", &value, &cas), OK)
	want(t, "get in a VM of another id", stranger.call("proxy_get_shared_data", "k", &value, &cas), NotFound)
	want(t, "entries", host.Shared.Entries(), 1)
	want(t, "bytes", host.Shared.Bytes(), 2)
}

func TestMetricsOfOneNameAreOneMetric(t *testing.T) {
	host := newPuppetHost(t)
	for range 2 {
		p := newPuppet(t, host)
		var id uint32
		want(t, "define", p.call("proxy_define_metric", counter, "sluice.allowed", &id), OK)
		want(t, "increment", p.call("proxy_increment_metric", int(id), 2), OK)
		want(t, "a counter does not go down", p.call("proxy_increment_metric", int(id), -1), BadArgument)
		want(t, "an id that was never given", p.call("proxy_increment_metric", int(id)+idStep, 1), NotFound)
	}
	want(t, "sum over the VMs", host.Metrics["sluice.allowed"], 4)
}

func TestCallsOutAreAnsweredOnThePlugin(t *testing.T) {
	p, plugin := startPuppet(t)
	var id uint32
	p.during(plugin, func() {
		headers := string(Headers{{":path", "/"}, {":method", "GET"}, {":authority", "a"}}.serialize())
		want(t, "http", p.call("proxy_http_call", "cluster", headers, "", "", 100, &id), OK)
		want(t, "http without headers", p.call("proxy_http_call", "cluster", "", "", "", 100, &id), BadArgument)
	})
	var status, message string
	p.on["proxy_on_http_call_response"] = func([]uint64) uint64 {
		p.call("proxy_get_header_map_value", 6, ":status", &status)
		return 0
	}
	plugin.AnswerHTTP(plugin.HTTPCalls()[0].ID, Headers{{":status", "204"}}, "", nil)
	want(t, "http status", status, "204")

	p.during(plugin, func() {
		want(t, "grpc", p.call("proxy_grpc_call", "target", "service", "method", "", "question", 100, &id), OK)
	})
	p.on["proxy_on_grpc_receive"] = func(arguments []uint64) uint64 {
		want(t, "id", uint32(arguments[1]), id)
		p.call("proxy_get_buffer_bytes", 5, 0, int(arguments[2]), &message)
		return 0
	}
	want(t, "what was asked", plugin.GRPCCalls()[0].Message, "question")
	plugin.AnswerGRPC(id, "answer")
	want(t, "grpc message", message, "answer")
	want(t, "calls without an answer", len(plugin.HTTPCalls())+len(plugin.GRPCCalls()), 0)
}

func TestAPluginThatAsksForTimeLivesUntilItIsDone(t *testing.T) {
	p, plugin := startPuppet(t)
	deleted := false
	p.on["proxy_on_done"] = func([]uint64) uint64 { return 0 }
	p.on["proxy_on_delete"] = func([]uint64) uint64 { deleted = true; return 0 }
	p.during(plugin, func() { want(t, "done too early", p.call("proxy_done"), NotFound) })
	want(t, "stop", plugin.Stop(), false)
	p.during(plugin, func() { want(t, "done", p.call("proxy_done"), OK) })
	want(t, "deleted", deleted, true)
}

func TestClocksAreIndependentAndStandStill(t *testing.T) {
	p, plugin := startPuppet(t)
	host := p.vm.host
	host.Recording = true
	host.Clock = Clock{Mono: 5, Wall: 7}
	p.during(plugin, func() {
		var mono, wall, now uint64
		p.call("clock_time_get", 1, 1, &mono)
		p.call("clock_time_get", 0, 1, &wall)
		want(t, "monotonic", mono, 5)
		want(t, "wall", wall, 7)
		host.Clock.Wall -= 3
		p.call("clock_time_get", 0, 0, &now)
		want(t, "wall after a step", now, 4)
	})
	want(t, "readings that show, without that of precision 0", host.Count("clock_time_get"), 2)
	want(t, "recorded readings", len(host.Calls), 2)
}

func TestATestCanMakeHostcallsFail(t *testing.T) {
	p, plugin := startPuppet(t)
	host := p.vm.host
	host.Fail = func(c *Call) (Status, bool) { return InternalFailure, c.Subject == "k" }
	p.during(plugin, func() {
		want(t, "the call that fails", p.call("proxy_set_shared_data", "k", "v", 0), InternalFailure)
		want(t, "another", p.call("proxy_set_shared_data", "l", "v", 0), OK)
	})
	want(t, "entries", host.Shared.Entries(), 1)
}

func TestATrapKillsItsVMOnly(t *testing.T) {
	host := newPuppetHost(t)
	p, healthy := newPuppet(t, host), newPuppet(t, host)
	var reported error
	host.OnTrap = func(_ *VM, err error) { reported = err }
	plugin, _ := p.vm.StartPlugin(PluginConfig{})
	p.on["proxy_on_request_headers"] = func([]uint64) uint64 { panic("trap") }
	result := plugin.NewStream(nil).RequestHeaders(nil)
	if reported == nil || p.vm.Err() == nil {
		t.Fatal("the trap is not reported")
	}
	want(t, "the request that met it", result.Action, Pause)
	want(t, "the next request", plugin.NewStream(nil).RequestHeaders(nil).Action, Pause)
	if _, ok := healthy.vm.StartPlugin(PluginConfig{}); !ok {
		t.Error("the other VM is dead, too")
	}
}
