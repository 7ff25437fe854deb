// Package plugin is the filter as Envoy runs it: it owns the contexts, reads
// requests, asks the policy for a verdict and answers. One request goes
// host → plugin → policy (rules, keys) → table → algorithms → response.
package plugin

import (
	"errors"
	"strings"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/fleet"
	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/policy"
	"github.com/sluice-proxy/sluice/filter/table"
)

// Plugin is one filter instance in one worker's VM: one config, and the requests
// that it applies to. After a config push the old instance lives on beside the
// new one until its last stream has ended.
type Plugin struct {
	types.DefaultPluginContext

	vm      *VM
	id      uint32
	config  *config.Config
	policy  *policy.Policy
	table   *table.Table // nil until the first request
	routes  *routes      // nil where routes have no say
	plain   bool         // there is a table, and nothing but the policy's rules has a say
	request request
	metrics metrics

	circuit fleet.Circuit // of calls to the service

	queue   queue                    // the requests that wait
	steps   steps                    // of the clock that ticks go by
	flights map[table.Bucket]*flight // the requests in flight
	renewAt int64                    // when their leases are renewed; the next tick comes at wakeAt
	wakeAt  int64
	period  uint32 // of ticks, in ms; 0 while there are none

	text  []byte // scratch for filter state
	now   int64  // the last reading of the monotonic clock
	asked int64  // when the log's level was asked for
	logs  bool   // whether debug lines are logged, as of then
}

// OnPluginStart compiles the config and does nothing else. It also runs on the
// main thread and in a trial VM that is thrown away; what workers share is
// touched by the first request.
func (p *Plugin) OnPluginStart(int) types.OnPluginStartStatus {
	document, err := proxywasm.GetPluginConfiguration()
	if err != nil && !errors.Is(err, types.ErrorStatusNotFound) {
		host.Log(host.Error, "sluice: the plugin's configuration could not be read: "+err.Error())
		return types.OnPluginStartStatusFailed
	}
	// One that is left out is an empty document, which has a mistake.
	c, err := config.Parse(document)
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			host.Log(host.Error, "sluice: config: "+line)
		}
		return types.OnPluginStartStatusFailed
	}
	if c.Namespace == nil {
		name, err := proxywasm.GetProperty([]string{"plugin_name"})
		if err != nil {
			host.Log(host.Error, "sluice: the plugin's name could not be read: "+err.Error())
			return types.OnPluginStartStatusFailed
		}
		namespace := string(name)
		c.Namespace = &namespace
	}
	// Nothing has changed so far: a config that is refused leaves the old one.
	p.config, p.policy, p.table, p.routes, p.metrics = c, policy.New(c), nil, nil, metrics{}
	p.plain = false
	if c.RouteMetadata {
		p.routes = newRoutes()
	}
	p.request = request{clientIP: c.ClientIP}
	return types.OnPluginStartStatusOK
}

// NewHttpContext serves the SDK's emulator, in native builds: the module's own
// exports go to VM at once.
func (p *Plugin) NewHttpContext(id uint32) types.HttpContext {
	p.vm.Create(id, p.id)
	return &httpContext{vm: p.vm, id: id}
}

// attach opens the table.
func (p *Plugin) attach() bool {
	t, ok := table.Open(&sharedData{}, *p.config.Namespace, p.config.MaxBuckets, host.Random)
	if !ok {
		return false
	}
	p.table = t
	p.policy.Attach(t)
	p.plain = p.routes == nil && !p.policy.HasExemptions()
	return true
}

// sharedData is Envoy's map that all workers share.
type sharedData struct{}

func (*sharedData) Get(key []byte) (value []byte, version uint32, found, ok bool) {
	value, version, status := host.SharedData(key)
	return value, version, status == host.OK, status == host.OK || status == host.NotFound
}

func (*sharedData) Set(key, value []byte, version uint32) (stored, ok bool) {
	status := host.SetSharedData(key, value, version)
	return status == host.OK, status == host.OK || status == host.CASMismatch
}

// time reads the monotonic clock, and the wall clock if asked to. ok is false
// where there is none.
func (p *Plugin) time(wall bool) (t algorithms.Time, ok bool) {
	if t.Mono, ok = host.Monotonic(); ok && wall {
		t.Wall, ok = host.Wall()
	}
	p.now = t.Mono
	return t, ok
}
