package wasmtest_test

import (
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// wantDepartures checks that requests which wait, 100 ms after each other, are
// resumed one by one.
func wantDepartures(t *testing.T, host *wasmtest.Host, waiters []*wasmtest.Stream) {
	t.Helper()
	for i, s := range waiters {
		if !s.Paused() {
			t.Errorf("request %d is resumed early", i)
		}
		host.Advance(100 * time.Millisecond)
		if s.Paused() {
			t.Errorf("request %d is not resumed", i)
		}
	}
}

func TestAPanicInAnotherRequestKeepsNobodyWaiting(t *testing.T) {
	for policy, undecided := range undecidedStatus {
		host := wasmtest.New(t, wasmtest.TrapModule(t))
		plugin := start(t, host, waiting(policy))
		streams := arriveAll(t, plugin, 1, 4)
		if got := status(arrive(plugin, 1, panics[0])); got != undecided {
			t.Errorf("on_error %s: the request that panics got %d, want %d", policy, got, undecided)
		}
		streams[0].ResponseHeaders(wasmtest.Headers{{":status", "200"}, panics[0]})
		if n := panicsLogged(plugin.VM(), "proxy_on_response_headers"); n != 1 {
			t.Errorf("%d panics in a response, want 1", n)
		}
		streams[0].End()
		wantDepartures(t, host, streams[1:])
		if plugin.TickPeriod() != 0 {
			t.Errorf("on_error %s: ticks go on", policy)
		}
	}
}

// A stack overflow is what recover does not help against. It takes the worker's
// waiters with it, but nobody else's, and their places pass unused.
func TestAVMThatDiesTakesNoOthersWaitersWithIt(t *testing.T) {
	host := wasmtest.New(t, wasmtest.TrapModule(t))
	host.OnTrap = func(*wasmtest.VM, error) {}
	workers := startWorkers(t, host, 2, waiting("allow"))
	var waiters []*wasmtest.Stream
	for i := range 6 {
		waiters = append(waiters, arrive(workers[i%2], 1))
	}
	arrive(workers[1], 2, [2]string{"x-sluice-trap", "recursion"})
	if workers[1].VM().Err() == nil {
		t.Fatal("the VM lives")
	}
	host.Advance(199 * time.Millisecond)
	if !waiters[2].Paused() {
		t.Error("the place of a request whose worker has died is taken by one behind it")
	}
	host.Advance(201 * time.Millisecond)
	for i, s := range waiters[1:] {
		if died := (i+1)%2 == 1; s.Paused() != died {
			t.Errorf("request %d waits: %t, and its worker died: %t", i+1, s.Paused(), died)
		}
	}
	again := start(t, host, waiting("allow"))
	host.Advance(200 * time.Millisecond) // the last place is over
	arriveAll(t, again, 1, 6)
}
