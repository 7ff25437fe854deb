//go:build wasip1

// Command probe is a module for tests: it makes the hostcalls and receives the
// callbacks that the filter's host layer offers, so that a test on a real Envoy
// can see each of them work. A request's path says what to do; what came of it
// is told in response headers x-probe-….
package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/sluice-proxy/sluice/filter/bridge"
	"github.com/sluice-proxy/sluice/filter/host"
)

func init() {
	vm := &vm{plugins: map[uint32]*plugin{}, streams: map[uint32]*stream{}}
	bridge.Run(vm, vm)
}

func main() {}

type vm struct {
	types.DefaultVMContext
	plugins map[uint32]*plugin
	streams map[uint32]*stream
}

// plugin resumes the streams that wait for its tick, and looks after those that
// are held until their client goes.
type plugin struct {
	types.DefaultPluginContext
	vm            *vm
	id            uint32
	waiting, held []uint32
}

type stream struct {
	plugin *plugin
	result string // for the response's x-probe header
}

func (v *vm) NewPluginContext(id uint32) types.PluginContext {
	v.plugins[id] = &plugin{vm: v, id: id}
	return v.plugins[id]
}

func (v *vm) Create(id, plugin uint32) { v.streams[id] = &stream{plugin: v.plugins[plugin]} }

func (v *vm) Delete(id uint32) bridge.Deletion {
	if _, known := v.streams[id]; !known {
		return bridge.NoStream
	}
	return bridge.NotYet // so that End is called on every host
}

func (v *vm) End(id uint32) { delete(v.streams, id) }

func (v *vm) DeletePlugin(uint32) {}

func (v *vm) RequestHeaders(id uint32) uint32 {
	s := v.streams[id]
	path, _ := host.RequestHeader(":path")
	switch what, argument, _ := strings.Cut(strings.TrimPrefix(string(path), "/"), "/"); what {
	case "property":
		source, status := host.Property("source\x00address")
		s.result = fmt.Sprintf("%d %s", status, source)
		host.SetProperty("probe", []byte("written"))
	case "headers":
		s.result = allHeaders()
	case "clock":
		mono, monoOK := host.Monotonic()
		wall, wallOK := host.Wall()
		s.result = fmt.Sprintf("%v %v %d %d", monoOK, wallOK, mono, wall)
	case "shared":
		s.result = sharedData(argument)
	case "spoil":
		s.result = fmt.Sprint(host.SetSharedData([]byte(argument), []byte("spoilt"), 0))
	case "metric":
		s.result = metrics()
	case "tick":
		s.plugin.waiting = append(s.plugin.waiting, id)
		host.SetTickPeriod(10)
		return uint32(host.Pause)
	case "hold":
		s.plugin.held = append(s.plugin.held, id)
		held, _ := host.DefineMetric(host.Gauge, "probe.held")
		host.AddMetric(held, 1)
		host.SetTickPeriod(10)
		return uint32(host.Pause)
	case "http":
		return v.http(id, argument)
	case "grpc":
		return v.grpc(id, argument)
	case "local":
		host.SendLocalResponse(418, "probe_details", []byte("short and stout"),
			host.AppendPairs(nil, [][2]string{{"x-probe", "local"}}), host.NoGRPCStatus)
		return uint32(host.Pause)
	case "panic":
		panic("asked for")
	}
	return uint32(host.Continue)
}

func (v *vm) RequestHeadersFailed(id uint32) uint32 {
	v.streams[id].result = "recovered"
	return uint32(host.Continue)
}

func (v *vm) ResponseTrailers(uint32) {}

func (v *vm) ResponseHeaders(id uint32, _ bool) {
	if s := v.streams[id]; s != nil && s.result != "" {
		host.ReplaceResponseHeader("x-probe", []byte(s.result))
	}
}

// OnTick resumes every stream that waits, and stops when none is held.
func (p *plugin) OnTick() {
	for _, id := range p.waiting {
		p.vm.resume(id, "ticked")
	}
	p.waiting = nil
	still := p.held[:0]
	for _, id := range p.held {
		if status := host.SetEffectiveContext(id); status != host.OK {
			host.Log(host.Warn, fmt.Sprintf("probe: stream is gone: status %d", status))
			continue
		}
		still = append(still, id)
	}
	p.held = still
	if len(p.held) == 0 {
		host.SetEffectiveContext(p.id)
		host.SetTickPeriod(0)
	}
}

func allHeaders() string {
	pairs, status := host.RequestHeaders()
	var all []string
	for {
		name, value, rest, ok := pairs.Next()
		if !ok {
			return fmt.Sprintf("%d %s", status, strings.Join(all, "; "))
		}
		all = append(all, string(name)+"="+string(value))
		pairs = rest
	}
}

// sharedData walks through create, read, a lost and a won compare-and-swap.
func sharedData(name string) string {
	const never = 0xFFFFFFFF
	key := []byte("probe-" + name)
	created := host.SetSharedData(key, []byte("one"), never)
	again := host.SetSharedData(key, []byte("two"), never)
	value, cas, read := host.SharedData(key)
	first := string(value)
	won := host.SetSharedData(key, []byte("three"), cas)
	lost := host.SetSharedData(key, []byte("four"), cas)
	value, _, _ = host.SharedData(key)
	_, _, missing := host.SharedData([]byte("probe-missing"))
	return fmt.Sprintf("%d %d %d %s %d %d %s %d", created, again, read, first, won, lost, value, missing)
}

func metrics() string {
	counter, a := host.DefineMetric(host.Counter, "probe.counter")
	gauge, b := host.DefineMetric(host.Gauge, "probe.gauge")
	histogram, c := host.DefineMetric(host.Histogram, "probe.histogram")
	return fmt.Sprint(a, b, c, host.AddMetric(counter, 3), host.RecordMetric(gauge, 7), host.RecordMetric(histogram, 11))
}

// http asks the named cluster and waits for its answer.
func (v *vm) http(id uint32, cluster string) uint32 {
	err := bridge.HTTPCall(v.streams[id].plugin.id, cluster,
		[][2]string{{":method", "GET"}, {":path", "/answer"}, {":authority", "probe"}}, nil, time.Second,
		func(_, bodySize, _ int) {
			body, err := proxywasm.GetHttpCallResponseBody(0, bodySize)
			v.resume(id, fmt.Sprintf("%s %v", body, err))
		})
	if err != nil {
		v.streams[id].result = err.Error()
		return uint32(host.Continue)
	}
	return uint32(host.Pause)
}

// grpc asks the named cluster and waits for its answer.
func (v *vm) grpc(id uint32, cluster string) uint32 {
	status := host.GRPCCall(v.streams[id].plugin.id, cluster, "probe.Service", "Method", []byte("question"), time.Second, func(status int, message []byte) {
		v.resume(id, fmt.Sprintf("%d %s", status, message))
	})
	if status != host.OK {
		v.streams[id].result = fmt.Sprintf("call %d", status)
		return uint32(host.Continue)
	}
	return uint32(host.Pause)
}

func (v *vm) resume(id uint32, result string) {
	if host.SetEffectiveContext(id) != host.OK {
		return
	}
	v.streams[id].result = result
	host.ResumeRequest()
}
