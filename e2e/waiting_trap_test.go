package e2e

import (
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// Nobody can resume what waits in a VM that has died: the host's handle of a
// stream goes with it. Envoy ends it when it has been idle too long: with its own
// 504, which the filter's failure policy then makes a 503 on the way back.
func TestWhoWaitsInAVMThatDiesIsTimedOutAndTheNextOnesAreServed(t *testing.T) {
	const limit = "waiting-trap"
	site := alone(t, envoytest.Options{Workers: 1}, envoytest.Listener{
		Manager: envoytest.Object{"stream_idle_timeout": "3s"},
	}, envoytest.Wasm{Module: envoytest.Module(t, "sluice-trap.wasm"), Config: queue(limit, 10, "1/m", "")})
	arrivals, client := site.watch(), site.newcomer(t, "127.0.0.2")
	waiting := &line{site: site, limit: limit}
	expectAdmitted(t, client.Get(t, site.path()))
	first := waiting.join(t, client, "GET", site.path()+"?first", nil)
	second := waiting.join(t, client, "GET", site.path()+"?second", nil)

	if lost := client.Get(t, "/", "x-sluice-trap: recursion"); lost.Status != 503 {
		t.Fatalf("the request that loses the VM got status %d, want 503", lost.Status)
	}
	for _, pending := range []*envoytest.Pending{first, second} {
		if response := pending.Await(t); response.Status != 503 {
			t.Errorf("a request that waited in the lost VM got status %d, want 503", response.Status)
		}
	}
	for _, path := range []string{site.path() + "?first", site.path() + "?second"} {
		if entry := site.awaitLogged(t, path); entry.Details != "wasm_fail_stream" {
			t.Errorf("the access log has the details %s, want wasm_fail_stream", entry.Details)
		}
	}

	envoytest.Eventually(t, "the worker has a VM again", func() bool { return client.Get(t, "/free").Status == 200 })
	expectAdmitted(t, client.Get(t, site.path()+"?other", "x-client: other"))
	// The line is as it was: the places of the lost pass unused.
	ended := client.Get(t, site.path()+"?behind")
	if ended.Status != 504 {
		t.Errorf("a request behind the lost ones got status %d, want 504", ended.Status)
	}
	site.expectDelayed(t, limit, site.path()+"?behind", 2*time.Minute, 3*time.Minute)
	if n := len(arrivals.All()); n != 2 {
		t.Errorf("%d requests reached the upstream, want the two that did not wait", n)
	}
}

// Those who wait in the VMs of other workers leave when it is their turn, and so
// do those who come to the new one.
func TestAVMThatDiesTakesNobodyElsesWaitersWithIt(t *testing.T) {
	const limit, waiters = "waiting-trap-others", 12
	site := alone(t, envoytest.Options{Workers: workers}, envoytest.Listener{
		Manager: envoytest.Object{"stream_idle_timeout": "10s"},
	}, envoytest.Wasm{Module: envoytest.Module(t, "sluice-trap.wasm"), Config: queue(limit, 50, "3/s", "")})
	arrivals, client := site.watch(), site.newcomer(t, "127.0.0.2")
	sent := time.Now()
	var all []*envoytest.Pending
	for range 1 + waiters {
		all = append(all, client.Begin(t, "GET", site.path(), nil))
	}
	site.awaitStat(t, limit, "allowed", 1+waiters)
	if lost := client.Get(t, "/", "x-sluice-trap: recursion"); lost.Status != 503 {
		t.Fatalf("the request that loses a VM got status %d, want 503", lost.Status)
	}
	statuses := map[int]int{}
	for _, pending := range all {
		statuses[pending.Await(t).Status]++
	}
	if statuses[200]+statuses[503] != 1+waiters || statuses[200] == 0 {
		t.Errorf("got answers by status %v, want 503 of the lost VM's and 200 else", statuses)
	}
	got := arrivals.All()
	if len(got) != statuses[200] {
		t.Errorf("%d requests reached the upstream, want %d", len(got), statuses[200])
	}
	expectNoneEarly(t, sent, time.Second/3, got)

	// The new VM resumes what waits in it, on whichever worker that is.
	const burst = 16
	envoytest.Eventually(t, "every worker has a VM", func() bool {
		tally, err := envoytest.AtOnce(burst, func(int) (envoytest.Response, error) { return client.Send("GET", "/free") })
		return err == nil && tally[200] == burst
	})
	tally, err := envoytest.AtOnce(burst, func(int) (envoytest.Response, error) { return client.Send("GET", site.path(), "x-client: after") })
	if err != nil || tally[200] != burst {
		t.Errorf("got answers by status %v (error: %v), want %d of 200", tally, err, burst)
	}
}
