package wasmtest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

var panics = wasmtest.Headers{{"x-sluice-trap", "panic"}}

// panicsLogged counts the panics that a VM's log tells of in a callback.
func panicsLogged(vm *wasmtest.VM, callback string) (n int) {
	for _, line := range vm.Logs() {
		if strings.HasPrefix(line.Message, "sluice: panic in "+callback+": ") {
			n++
		}
	}
	return n
}

func TestAPanicInARequestFollowsThePolicyAndChargesNothing(t *testing.T) {
	for policy, undecided := range undecidedStatus {
		host := wasmtest.New(t, wasmtest.TrapModule(t))
		worker := start(t, host, failing(policy))
		r := failingRequest(1)
		r.headers = slices.Concat(r.headers, panics)
		for range 5 {
			if got := ask(worker, r); got.status != undecided || got.limit != absent {
				t.Errorf("on_error %s: got %+v, want %d and nothing about a limit", policy, got, undecided)
			}
		}
		if n := panicsLogged(worker.VM(), "proxy_on_request_headers"); n != 5 || host.Metrics["sluice.panics"] != 5 {
			t.Errorf("on_error %s: %d panics logged and %d counted, want 5", policy, n, host.Metrics["sluice.panics"])
		}
		if got := ask(worker, failingRequest(1)); !got.admitted() || got.remaining != 2 {
			t.Errorf("on_error %s: the request after them got %+v", policy, got)
		}
	}
}

func TestAPanicInAResponseLeavesItAsItIs(t *testing.T) {
	host := wasmtest.New(t, wasmtest.TrapModule(t))
	worker := start(t, host, failing("deny"))
	stream := worker.NewStream(map[string]string{"source/address": client(1)})
	if got := stream.RequestHeaders(wasmtest.Headers{{":method", "GET"}, {":path", "/"}}); got.Action != wasmtest.Continue {
		t.Fatalf("got %+v", got)
	}
	upstream := wasmtest.Headers{{":status", "200"}, {"x-sluice-trap", "now"}, {"ratelimit-limit", "999"}}
	if got := stream.ResponseHeaders(upstream); !slices.Equal(got, upstream) {
		t.Errorf("the client gets %v, want what the upstream sent", got)
	}
	stream.End()
	if n := panicsLogged(worker.VM(), "proxy_on_response_headers"); n != 1 {
		t.Errorf("%d panics logged, want 1", n)
	}
	if got := ask(worker, failingRequest(1)); !got.admitted() || got.limit != 3 {
		t.Errorf("the request after it got %+v", got)
	}
}

// The SDK panics at the answer of a call that it does not know.
func TestAPanicOfTheSDKIsLoggedAndNoMore(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, failing("deny"))
	worker.VM().Callback("proxy_on_http_call_response", worker.ContextID(), 77, 0, 0, 0)
	if n := panicsLogged(worker.VM(), "proxy_on_http_call_response"); n != 1 || worker.VM().Err() != nil {
		t.Errorf("%d panics logged, want 1; the VM: %v", n, worker.VM().Err())
	}
	if got := ask(worker, failingRequest(1)); !got.admitted() {
		t.Errorf("the request after it got %+v", got)
	}
}
