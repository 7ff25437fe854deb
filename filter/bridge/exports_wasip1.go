package bridge

import (
	"time"
	"unsafe"

	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

var (
	streams Streams
	// plugins are the context ids of the plugins that the SDK knows. It panics
	// on any other, so it is asked only about these.
	plugins = map[uint32]bool{}
)

// Run makes vm and s the receivers of the host's callbacks. It must be called
// from an init function: a module of this kind has no main that runs.
func Run(vm types.VMContext, s Streams) {
	streams = s
	registerHost(hostcalls{})
	proxywasm.SetVMContext(vm)
}

// HTTPCall sends an HTTP request to an Envoy cluster on behalf of a plugin. The
// SDK files the callback under the context whose callback came last, and it does
// not see those of streams, so proxywasm.DispatchHttpCall alone may file it
// under another plugin. done runs with the plugin effective, as the answer of
// host.GRPCCall does; the SDK gives it the number of headers, the size of the
// body and the number of trailers.
func HTTPCall(plugin uint32, cluster string, headers [][2]string, body []byte, timeout time.Duration, done func(numHeaders, bodySize, numTrailers int)) error {
	sdkSetActiveContext(plugin)
	_, err := proxywasm.DispatchHttpCall(cluster, headers, body, nil, uint32(timeout.Milliseconds()), done)
	return err
}

// recovered must be deferred by every export: a panic that left it would kill
// the worker's VM, and with it every request in flight. The callbacks of a stream
// ask recover only where they did not come to their end, since asking costs as
// much as all else that an empty callback does; two of them never panic (see
// Streams).
func recovered(callback string) {
	if r := recover(); r != nil {
		logPanic(callback, r)
	}
}

// logPanic does without package fmt, which would be a tenth of the module.
func logPanic(callback string, r any) {
	what := "of a type of its own"
	switch r := r.(type) {
	case error:
		what = r.Error()
	case string:
		what = r
	}
	host.Log(host.Error, "sluice: panic in "+callback+": "+what)
}

//go:wasmexport proxy_abi_version_0_2_1
func abiVersion() {}

//go:wasmexport proxy_on_memory_allocate
func onMemoryAllocate(size uint32) unsafe.Pointer { return host.Allocate(size) }

//go:wasmexport proxy_on_vm_start
func onVMStart(context, configurationSize uint32) (ok bool) {
	defer recovered("proxy_on_vm_start")
	host.BeginPluginCallback()
	return bool(sdkOnVMStart(context, int(configurationSize)))
}

//go:wasmexport proxy_on_configure
func onConfigure(plugin, configurationSize uint32) (ok bool) {
	defer recovered("proxy_on_configure")
	host.BeginPluginCallback()
	return plugins[plugin] && bool(sdkOnConfigure(plugin, int(configurationSize)))
}

//go:wasmexport proxy_on_context_create
func onContextCreate(context, plugin uint32) {
	if plugin != 0 {
		streams.Create(context, plugin)
		return
	}
	defer recovered("proxy_on_context_create")
	host.BeginPluginCallback()
	plugins[context] = true
	sdkOnContextCreate(context, 0)
}

//go:wasmexport proxy_on_request_headers
func onRequestHeaders(stream, _, _ uint32) (action uint32) {
	returned := false
	defer func() {
		if !returned {
			action = requestHeadersPanicked(stream, recover())
		}
	}()
	host.BeginStreamCallback()
	action = streams.RequestHeaders(stream)
	returned = true
	return action
}

func requestHeadersPanicked(stream uint32, r any) (action uint32) {
	defer recovered("proxy_on_request_headers, twice")
	logPanic("proxy_on_request_headers", r)
	return streams.RequestHeadersFailed(stream)
}

//go:wasmexport proxy_on_response_headers
func onResponseHeaders(stream, _, end uint32) uint32 {
	returned := false
	defer func() {
		if !returned {
			logPanic("proxy_on_response_headers", recover())
		}
	}()
	host.BeginStreamCallback()
	streams.ResponseHeaders(stream, end != 0)
	returned = true
	return uint32(host.Continue)
}

//go:wasmexport proxy_on_response_trailers
func onResponseTrailers(stream, _ uint32) uint32 {
	defer recovered("proxy_on_response_trailers")
	host.BeginStreamCallback()
	streams.ResponseTrailers(stream)
	return uint32(host.Continue)
}

// The end of a stream is told three times, by proxy_on_log, proxy_on_done and
// this. All come together, so one is enough.
//
//go:wasmexport proxy_on_delete
func onDelete(context uint32) {
	deletion := streams.Delete(context)
	if deletion == Deleted || deletion == NoStream && !plugins[context] {
		return
	}
	defer recovered("proxy_on_delete")
	if deletion == NotYet {
		host.BeginStreamCallback()
		streams.End(context)
		return
	}
	host.BeginPluginCallback()
	streams.DeletePlugin(context)
	delete(plugins, context)
	sdkOnDelete(context)
}

//go:wasmexport proxy_on_tick
func onTick(plugin uint32) {
	defer recovered("proxy_on_tick")
	host.BeginStreamCallback() // a tick keeps nothing
	if plugins[plugin] {
		sdkOnTick(plugin)
	}
}

//go:wasmexport proxy_on_http_call_response
func onHTTPCallResponse(plugin, call, numHeaders, bodySize, numTrailers uint32) {
	defer recovered("proxy_on_http_call_response")
	host.BeginPluginCallback()
	if plugins[plugin] {
		sdkOnHTTPCallResponse(plugin, call, int(numHeaders), int(bodySize), int(numTrailers))
	}
}

//go:wasmexport proxy_on_grpc_receive
func onGRPCReceive(_, call, size uint32) {
	defer recovered("proxy_on_grpc_receive")
	host.BeginPluginCallback()
	host.GRPCReceived(call, size)
}

//go:wasmexport proxy_on_grpc_close
func onGRPCClose(_, call, status uint32) {
	defer recovered("proxy_on_grpc_close")
	host.BeginPluginCallback()
	host.GRPCClosed(call, status)
}
