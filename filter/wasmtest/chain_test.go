package wasmtest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// instance is the config of an instance with one limit by address, which it
// shares with the instances of its name.
func instance(name string, capacity int, families string) wasmtest.PluginConfig {
	return wasmtest.PluginConfig{Name: name, RootID: name, Config: fmt.Sprintf(
		`{"limits":{%q:{"algorithm":"token_bucket","capacity":%d,"refill_rate":"1/h","key":["ip"]}},
		"rules":[{"limits":[%q]}],"response":{"rate_limit_headers":[%s]},"state":{"max_buckets":1000}}`, name, capacity, name, families)}
}

// chain is several instances of the filter, one behind the other.
type chain []*wasmtest.Plugin

// send passes a request of a client through the chain, up to the instance that
// refuses it, and the response back through all. It returns what the client gets
// and what the access log would say of the decisions.
func (c chain) send(address string) (response wasmtest.Headers, state string) {
	first := c[0].NewStream(map[string]string{"source/address": address})
	streams := []*wasmtest.Stream{first}
	for _, p := range c[1:] {
		streams = append(streams, p.NewStreamBehind(first))
	}
	response = wasmtest.Headers{{":status", "200"}, {"ratelimit-remaining", "999"}}
	back := streams
	for i, s := range streams {
		if local := s.RequestHeaders(wasmtest.Headers{{":method", "GET"}, {":path", "/"}}).Local; local != nil {
			response, back = local.Sent, streams[:i] // it has seen its own response
			break
		}
	}
	for _, s := range slices.Backward(back) {
		response = s.ResponseHeaders(response)
	}
	for _, s := range streams {
		s.End()
	}
	state, _ = first.Property("sluice")
	return response, state
}

// placements are where the instances of a chain may run: in one VM, in a VM of
// their own under one vm_id, and apart.
var placements = map[string]func(host *wasmtest.Host) func(i int) *wasmtest.VM{
	"in one VM": func(host *wasmtest.Host) func(int) *wasmtest.VM {
		vm := host.NewVM()
		return func(int) *wasmtest.VM { return vm }
	},
	"in VMs of one vm_id": func(host *wasmtest.Host) func(int) *wasmtest.VM {
		return func(int) *wasmtest.VM { return host.NewVM() }
	},
	"in VMs of different vm_ids": func(host *wasmtest.Host) func(int) *wasmtest.VM {
		return func(i int) *wasmtest.VM { return host.NewVMWithID(fmt.Sprint(i)) }
	},
}

// eachPlacement runs f with a chain of these instances in every placement, and
// the placement's name.
func eachPlacement(t *testing.T, configs []wasmtest.PluginConfig, f func(t *testing.T, where string, c chain)) {
	for where, placement := range placements {
		t.Run(where, func(t *testing.T) {
			vmOf := placement(wasmtest.New(t, wasmtest.Module(t)))
			var c chain
			for i, config := range configs {
				vm := vmOf(i)
				p, ok := vm.StartPlugin(config)
				if !ok {
					t.Fatalf("instance %d is refused: %v", i, vm.Logs())
				}
				c = append(c, p)
			}
			f(t, where, c)
		})
	}
}

func expectHeaders(t *testing.T, got wasmtest.Headers, want map[string]string) {
	t.Helper()
	for name, value := range want {
		var wanted []string
		if value != "" {
			wanted = []string{value}
		}
		if values := got.Values(name); !slices.Equal(values, wanted) {
			t.Errorf("%s is %q, want %q", name, values, wanted)
		}
	}
}

func TestInstancesInAChainTellOfTheSmallestShareWhereverTheyRun(t *testing.T) {
	for _, configs := range [][]wasmtest.PluginConfig{
		{instance("small", 2, `"ratelimit"`), instance("large", 10, `"x-ratelimit"`)},
		{instance("large", 10, `"x-ratelimit"`), instance("small", 2, `"ratelimit"`)},
	} {
		eachPlacement(t, configs, func(t *testing.T, _ string, c chain) {
			for _, remaining := range []string{"1", "0"} {
				response, state := c.send(client(1))
				expectHeaders(t, response, map[string]string{":status": "200", "ratelimit-limit": "2", "ratelimit-remaining": remaining, "x-ratelimit-limit": ""})
				if state != "allowed,allowed" {
					t.Errorf("filter state %q", state)
				}
			}
			response, state := c.send(client(1))
			expectHeaders(t, response, map[string]string{":status": "429", "ratelimit-limit": "2", "retry-after": "3600", "x-ratelimit-limit": "", "x-ratelimit-remaining": ""})
			want := map[string]string{"small": "refused:small", "large": "allowed,refused:small"}[configs[0].Name]
			if state != want {
				t.Errorf("filter state %q, want %q", state, want)
			}
		})
	}
}

func TestAClientsBucketIsSharedByInstancesOfOneVMIDAndNamespaceOnly(t *testing.T) {
	same := instance("same", 10, `"ratelimit"`)
	want := map[string]string{"in one VM": "8", "in VMs of one vm_id": "8", "in VMs of different vm_ids": "9"}
	eachPlacement(t, []wasmtest.PluginConfig{same, same}, func(t *testing.T, where string, c chain) {
		response, _ := c.send(client(1))
		expectHeaders(t, response, map[string]string{"ratelimit-remaining": want[where]})
	})
}

// An instance may go while another of the same VM stays: its streams end first.
func TestAnInstanceThatGoesLeavesTheOthersAtWork(t *testing.T) {
	eachPlacement(t, []wasmtest.PluginConfig{instance("a", 5, `"ratelimit"`), instance("b", 9, `"ratelimit"`)}, func(t *testing.T, _ string, c chain) {
		c.send(client(1))
		if !c[0].Stop() {
			t.Fatal("the first instance does not end")
		}
		response, state := c[1:].send(client(1))
		expectHeaders(t, response, map[string]string{"ratelimit-limit": "9", "ratelimit-remaining": "7"})
		if state != "allowed" {
			t.Errorf("filter state %q, want allowed", state)
		}
	})
}
