// Package wasmtest is a proxy-wasm host for tests: it runs the built filter
// module on wazero, behaves towards it as Envoy 1.40 does, and lets a test
// decide everything that Envoy leaves to chance.
//
// A Host stands for one Envoy process: the shared data, the metrics and the
// clocks that all its VMs see. A VM stands for one worker. A Plugin is one
// filter configuration in a VM, and a Stream is one request that passes it:
//
//	host := wasmtest.New(t, wasmtest.Module(t))
//	plugin, ok := host.NewVM().StartPlugin(wasmtest.PluginConfig{Name: "sluice", Config: config})
//	stream := plugin.NewStream(map[string]string{"source/address": "203.0.113.10:4711"})
//	result := stream.RequestHeaders(wasmtest.Headers{{":path", "/"}, {":method", "GET"}})
//	headers := stream.ResponseHeaders(wasmtest.Headers{{":status", "200"}})
//	stream.End()
//
// The clocks stand still unless the test moves them. Every hostcall is counted,
// can be recorded, and can be made to fail. Host.Race runs requests on several
// VMs at once under a scheduler that takes its choices from a seeded random
// source, so that an interleaving that has failed once can be run again.
//
// What the host does is taken from Envoy's source (source/extensions/common/wasm)
// and from proxy-wasm-cpp-host (src/exports.cc, src/shared_data.cc,
// src/wasm.cc). Where it is simpler, the comment of the call says so.
//
// A Host and everything that belongs to it is used from one goroutine. Only
// tests may import this package.
package wasmtest
