package wasmtest

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const callbacksConfig = `{"limits": {
	"a": {"algorithm": "token_bucket", "capacity": 1000, "refill_rate": "1/s", "key": ["ip"]},
	"b": {"algorithm": "gcra", "burst": 1000, "rate": "1/s", "key": ["ip"]},
	"c": {"algorithm": "leaky_bucket", "mode": "meter", "capacity": 1000, "leak_rate": "1/s", "key": ["ip"]},
	"d": {"algorithm": "fixed_window", "limit": 1000, "window": "1h", "key": ["ip"]},
	"e": {"algorithm": "sliding_window", "limit": 1000, "window": "1h", "key": ["ip"]}},
	"rules": [{"limits": ["a", "b", "c", "d", "e"]}], "state": {"max_buckets": 1000}}`

func startCallbacks(t *testing.T, vm *VM) *Plugin {
	t.Helper()
	plugin, ok := vm.StartPlugin(PluginConfig{Name: "sluice", Config: callbacksConfig})
	if !ok {
		t.Fatalf("the plugin does not start: %v", vm.Logs())
	}
	return plugin
}

// serves asserts that a plugin lets a request go on.
func serves(t *testing.T, plugin *Plugin, what string) {
	t.Helper()
	stream := plugin.NewStream(map[string]string{"source/address": "192.0.2.1:80"})
	result := stream.RequestHeaders(Headers{{":method", "GET"}, {":path", "/"}})
	stream.ResponseHeaders(Headers{{":status", "200"}})
	stream.End()
	if plugin.vm.Err() != nil || result.Action != Continue {
		t.Fatalf("%s: a request gets %+v, and the VM: %v", what, result, plugin.vm.Err())
	}
}

// Envoy calls callbacks in no such order. Whatever comes, the VM lives.
func TestNoCallbackEndsTheVMWhateverItsArguments(t *testing.T) {
	host := New(t, Module(t))
	vm := host.NewVM()
	random := rand.New(rand.NewPCG(1, 0))
	var callbacks []string
	for name := range vm.module.ExportedFunctionDefinitions() {
		if strings.HasPrefix(name, "proxy_on_") && name != "proxy_on_memory_allocate" {
			callbacks = append(callbacks, name)
		}
	}
	slices.Sort(callbacks)
	if len(callbacks) < 10 {
		t.Fatalf("the module exports only %q", callbacks)
	}
	for range 30 {
		plugin := startCallbacks(t, vm)
		stream := plugin.NewStream(map[string]string{"source/address": "192.0.2.1:80"})
		stream.create()
		for range 20 {
			name := callbacks[random.IntN(len(callbacks))]
			var arguments []uint32
			for range vm.function(name).Definition().ParamTypes() {
				some := []uint32{0, 1, plugin.ContextID(), stream.ContextID(), 999, math.MaxUint32}
				arguments = append(arguments, some[random.IntN(len(some))])
			}
			vm.Callback(name, arguments...)
			if vm.Err() != nil {
				t.Fatalf("%s%v: %v", name, arguments, vm.Err())
			}
		}
		stream.End()
		plugin.Stop()
	}
	serves(t, startCallbacks(t, vm), "afterwards")
}

// Everything that runs under a vm_id can write to its shared data. What nobody of
// ours wrote may be taken for anything, but it ends no VM.
func TestForeignSharedDataEndsNoVM(t *testing.T) {
	host := New(t, Module(t))
	vm := host.NewVM()
	plugin := startCallbacks(t, vm)
	serves(t, plugin, "at first")
	random := rand.New(rand.NewPCG(1, 0))
	const word = 8
	extremes := []string{strings.Repeat("\x00", word), strings.Repeat("\xff", word), "\xff\xff\xff\xff\xff\xff\xff\x7f", "\x00\x00\x00\x00\x00\x00\x00\x80", "\x01\x00\x00\x00\x00\x00\x00\x00"}
	for round := range 400 {
		for key, value := range host.Shared.values {
			if strings.HasSuffix(key.key, "secret") {
				continue
			}
			words := []byte(value.value)
			// Most words of an entry are replaced, but seldom the one by which it is
			// found.
			for at := 0; at+word <= len(words); at += word {
				if fingerprint := at > 0 && (at/word-1)%7 == 0; fingerprint == (random.IntN(20) == 0) {
					copy(words[at:], extremes[random.IntN(len(extremes))])
					words[at+random.IntN(word)] ^= byte(random.Uint32())
				}
			}
			if random.IntN(10) == 0 {
				words = words[:random.IntN(len(words)+1)]
			}
			host.Shared.set(key, string(words), 0)
		}
		stream := plugin.NewStream(map[string]string{"source/address": "192.0.2.1:80"})
		result := stream.RequestHeaders(Headers{{":method", "GET"}, {":path", "/"}})
		if vm.Err() != nil {
			t.Fatalf("round %d: %v", round, vm.Err())
		}
		if result.Action == Continue {
			stream.ResponseHeaders(Headers{{":status", "200"}})
		}
		stream.End()
	}
	for _, line := range vm.Logs() {
		if strings.Contains(line.Message, "panic") {
			t.Error(line.Message)
		}
	}
	host.Shared.values = NewSharedData().values
	serves(t, startCallbacks(t, vm), "after a table of its own")
}
