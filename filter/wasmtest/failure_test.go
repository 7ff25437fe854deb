package wasmtest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// everyFailure are the statuses that a hostcall may return instead of OK.
var everyFailure = []wasmtest.Status{
	wasmtest.NotFound, wasmtest.BadArgument, wasmtest.SerializationFailure, wasmtest.ParseFailure,
	wasmtest.BadExpression, wasmtest.InvalidMemoryAccess, wasmtest.Empty, wasmtest.CASMismatch,
	wasmtest.ResultMismatch, wasmtest.InternalFailure, wasmtest.BrokenConnection, wasmtest.Unimplemented,
}

// failing is a config that needs properties, headers, the clock and shared data.
func failing(onError string) string {
	return `{"limits":{
		"a":{"algorithm":"token_bucket","capacity":3,"refill_rate":"1/h","key":["ip"]},
		"b":{"algorithm":"fixed_window","limit":3,"window":"1d","key":["header:x-user"]}},
	"rules":[{"match":{"path":"/"},"limits":["a","b"]}],
	"state":{"max_buckets":1000},"on_error":"` + onError + `"}`
}

func failingRequest(n int) request {
	return request{address: client(n), headers: wasmtest.Headers{{"x-user", fmt.Sprint(n)}}}
}

// failAt makes the nth hostcall from now on (from 0) fail. Afterwards it tells
// which that was; it has no name if there were not so many.
func failAt(host *wasmtest.Host, n int, status wasmtest.Status) *wasmtest.Call {
	failed := &wasmtest.Call{}
	made := 0
	host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) {
		made++
		if made != n+1 {
			return 0, false
		}
		*failed = *c
		return status, true
	}
	return failed
}

// decides says whether a limit can't be decided without this call. Properties
// and headers are not such calls: what can't be read is missing in the key.
func decides(c *wasmtest.Call, status wasmtest.Status) bool {
	switch c.Name {
	case "proxy_get_shared_data":
		return status != wasmtest.NotFound
	case "proxy_set_shared_data":
		return status != wasmtest.CASMismatch
	case "clock_time_get":
		return true
	}
	return false
}

// undecidedStatus is what a client gets under a policy when nothing can be
// decided.
var undecidedStatus = map[string]int{"allow": 200, "deny": 503}

// startAfresh starts a plugin that finds no shared data: its first request makes
// calls that no later one makes.
func startAfresh(t *testing.T, vm *wasmtest.VM, host *wasmtest.Host, config string) *wasmtest.Plugin {
	t.Helper()
	host.Fail, host.Shared = nil, wasmtest.NewSharedData()
	plugin, ok := vm.StartPlugin(wasmtest.PluginConfig{Name: "sluice", Config: config})
	if !ok {
		t.Fatalf("the config is refused: %v", vm.Logs())
	}
	return plugin
}

func TestAHostcallThatFailsOnceFollowsThePolicy(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	vm := host.NewVM()
	for policy, undecided := range undecidedStatus {
		for _, status := range everyFailure {
			for n := 0; ; n++ {
				plugin := startAfresh(t, vm, host, failing(policy))
				call := failAt(host, n, status)
				got := ask(plugin, failingRequest(1))
				host.Fail = nil
				if call.Name == "" {
					break // the request has fewer calls
				}
				where := fmt.Sprintf("on_error %s, call %d %s returns %d", policy, n, call, status)
				switch {
				case vm.Err() != nil:
					t.Fatalf("%s: the VM is dead", where)
				case decides(call, status) && got.status != undecided:
					t.Errorf("%s: got %+v, want %d", where, got, undecided)
				case !decides(call, status) && got.status != 200:
					t.Errorf("%s: got %+v, want 200", where, got)
				}
				if got.status == 503 {
					if again := ask(plugin, failingRequest(1)); again.remaining != 2 {
						t.Errorf("%s: the client was denied and charged, and now gets %+v", where, again)
					}
				}
				if after := ask(plugin, failingRequest(2)); !after.admitted() || after.remaining != 2 {
					t.Errorf("%s: the next client gets %+v", where, after)
				}
				plugin.Stop()
			}
		}
	}
}

func TestAHostcallThatAlwaysFailsFollowsThePolicy(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	vm := host.NewVM()
	for policy, undecided := range undecidedStatus {
		for _, name := range []string{"proxy_get_shared_data", "proxy_set_shared_data", "clock_time_get"} {
			for _, status := range everyFailure {
				if name == "proxy_get_shared_data" && status == wasmtest.NotFound {
					continue // a table that is always empty, which no filter can tell from a new one
				}
				plugin := startAfresh(t, vm, host, failing(policy))
				host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) { return status, c.Name == name }
				for range 2 {
					if got := ask(plugin, failingRequest(1)); got.status != undecided {
						t.Errorf("on_error %s, %s returns %d: got %+v, want %d", policy, name, status, got, undecided)
					}
				}
				host.Fail = nil
				if got := ask(plugin, failingRequest(1)); !got.admitted() || got.remaining != 2 {
					t.Errorf("on_error %s, %s returned %d before: got %+v", policy, name, status, got)
				}
				plugin.Stop()
			}
		}
	}
}

// A write that is never the first to come stands for a host that is broken: the
// filter has to give up, and says which limit it could not decide.
func TestWhatCouldNotBeDecidedIsCounted(t *testing.T) {
	for policy, undecided := range undecidedStatus {
		host := wasmtest.New(t, wasmtest.Module(t))
		worker := start(t, host, failing(policy))
		ask(worker, failingRequest(1)) // makes the secret
		host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) {
			return wasmtest.CASMismatch, c.Name == "proxy_set_shared_data"
		}
		if got := ask(worker, failingRequest(2)); got.status != undecided {
			t.Errorf("on_error %s: got %+v, want %d", policy, got, undecided)
		}
		// The second limit is not tried where the first has denied the request.
		errors := map[string]uint64{"sluice.limit.a.errors": 1, "sluice.limit.b.errors": 0}
		if policy == "allow" {
			errors["sluice.limit.b.errors"] = 1
		}
		for name, want := range errors {
			if n := uint64(host.Metrics[name]); n != want {
				t.Errorf("on_error %s: %s is %d, want %d", policy, name, n, want)
			}
		}
		if host.Metrics["sluice.table.cas_retries"] == 0 {
			t.Errorf("on_error %s: no attempt was counted", policy)
		}
	}
}

func TestARefusalWhoseHostcallsFailNeverHangs(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, failing("allow"))
	for range 3 {
		ask(worker, failingRequest(1))
	}
	for _, status := range everyFailure {
		for n := 0; ; n++ {
			call := failAt(host, n, status)
			got := ask(worker, failingRequest(1))
			host.Fail = nil
			if call.Name == "" {
				break
			}
			if worker.VM().Err() != nil {
				t.Fatalf("call %s returns %d: the VM is dead", call, status)
			}
			if got.status != 200 && got.status != 429 {
				t.Errorf("call %s returns %d: got %+v", call, status, got)
			}
		}
	}
	if got := ask(worker, failingRequest(1)); got.status != 429 {
		t.Errorf("afterwards: got %+v, want 429", got)
	}
}

func TestAPluginWhoseHostcallsFailStartsOrIsRefused(t *testing.T) {
	config := wasmtest.PluginConfig{Name: "sluice", Config: failing("allow")}
	host := wasmtest.New(t, wasmtest.Module(t))
	vm := host.NewVM()
	for _, status := range everyFailure {
		for n := 0; ; n++ {
			host.Shared = wasmtest.NewSharedData()
			call := failAt(host, n, status)
			plugin, ok := vm.StartPlugin(config)
			host.Fail = nil
			if call.Name == "" {
				break
			}
			if vm.Err() != nil {
				t.Fatalf("call %s returns %d: the VM is dead", call, status)
			}
			if ok && !ask(plugin, failingRequest(1)).admitted() {
				t.Errorf("call %s returns %d: the plugin starts and refuses the first request", call, status)
			}
			plugin.Stop()
		}
	}
}

// TestEveryHostcallOfARequestIsTried guards the tests above: they mean little
// if a request makes none of the calls that they let fail.
func TestEveryHostcallOfARequestIsTried(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, failing("allow"))
	host.Recording = true
	ask(worker, failingRequest(1))
	var made []string
	for _, c := range host.Calls {
		made = append(made, c.Name)
	}
	for _, name := range []string{"proxy_get_property", "proxy_get_header_map_pairs", "clock_time_get", "proxy_get_shared_data", "proxy_set_shared_data", "proxy_replace_header_map_value"} {
		if !slices.Contains(made, name) {
			t.Errorf("%s is not called; these are: %q", name, made)
		}
	}
}
