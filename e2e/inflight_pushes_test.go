package e2e

import (
	"fmt"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// push gives the listener another config of the filter.
func (h *holding) push(t *testing.T, module, config string) {
	t.Helper()
	h.envoy.Push(t, envoytest.Listener{Filters: filters{
		envoytest.Wasm{Module: envoytest.Module(t, module), Config: config}.Filter(),
	}})
}

func TestAPushKeepsWhatIsInFlight(t *testing.T) {
	const client = "x-client: a"
	h := serveHolding(t, envoytest.Options{Dynamic: true}, envoytest.Wasm{Config: inFlightConfig(4, "")}, envoytest.Listener{})
	old := h.hold(t, h.newcomer(t), 3, client)
	old.expectHeld(t, 3)

	h.push(t, "sluice.wasm", inFlightConfig(4, `, "response": {"body": "pushed"}`))
	latest := h.hold(t, h.newcomer(t), 10, client)
	latest.expectHeld(t, 1)
	for _, refusal := range latest.refused() {
		if refusal.Body != "pushed" {
			t.Fatalf("a refusal is %q: it is not the pushed config's", refusal.Body)
		}
	}

	// A limit below what is in flight admits nobody before enough have left.
	h.push(t, "sluice.wasm", inFlightConfig(2, ""))
	h.expectExactly(t, 0, client)
	if tally := old.release(t); tally[200] != 3 {
		t.Fatalf("the old listener's requests got answers by status %v", tally)
	}
	h.awaitInFlight(t, 1)
	h.expectExactly(t, 1, client)

	h.push(t, "sluice.wasm", inFlightConfig(6, ""))
	h.expectExactly(t, 5, client)
	latest.release(t)
	h.awaitInFlight(t, 0)
	h.expectExactly(t, 6, client)
}

// onWorker returns a client with one HTTP/2 connection, and the number of the
// worker that serves it.
func (h *holding) onWorker(t *testing.T) (client *envoytest.Client, worker int) {
	t.Helper()
	connections := func() (n [workers]int64) {
		for w := range n {
			n[w] = h.envoy.Stat(t, fmt.Sprintf("listener.main.worker_%d.downstream_cx_total", w))
		}
		return n
	}
	before := connections()
	client = envoytest.NewClient(t, h.addr, envoytest.ClientOptions{HTTP2: true})
	expectAdmitted(t, client.Get(t, "/", "x-client: nobody"))
	for w, n := range connections() {
		if n > before[w] {
			return client, w
		}
	}
	t.Fatal("no worker has a new connection")
	return nil, 0
}

// onTwoWorkers returns clients that two workers serve.
func (h *holding) onTwoWorkers(t *testing.T) (a, b *envoytest.Client) {
	t.Helper()
	a, first := h.onWorker(t)
	envoytest.Eventually(t, "a connection is another worker's", func() bool {
		var second int
		b, second = h.onWorker(t)
		return second != first
	})
	return a, b
}

// The module of this test loses its VM as in TestAVMThatDiedComesBackToTheSameTable.
// Whoever lives has to renew what it holds, or loses it together with what the
// dead one held; with a push in between, that is up to an old plugin.
func TestWhatADeadVMHeldComesBackAndTheLivingKeepTheirs(t *testing.T) {
	const trap = "sluice-trap.wasm"
	h := serveHolding(t, envoytest.Options{Dynamic: true},
		envoytest.Wasm{Module: envoytest.Module(t, trap), Config: inFlightConfig(4, "")}, envoytest.Listener{})
	for _, pushed := range []bool{false, true} {
		t.Run(fmt.Sprintf("pushed %t", pushed), func(t *testing.T) {
			client := "x-client: " + t.Name()
			doomed, lives := h.onTwoWorkers(t)
			lost := h.hold(t, doomed, 2, client)
			lost.expectHeld(t, 2)
			kept := h.hold(t, lives, 2, client)
			kept.expectHeld(t, 2)
			if pushed {
				h.push(t, trap, inFlightConfig(4, `, "response": {"body": "pushed"}`))
			}
			h.expectExactly(t, 0, client)

			if response := doomed.Get(t, "/", client, "x-sluice-trap: recursion"); response.Status != 503 {
				t.Fatalf("a request that loses a VM got status %d, want 503", response.Status)
			}
			h.expectComeBack(t, "what the dead VM held has come back", 8, 2, client)
			h.expectExactly(t, 2, client)
			if tally := kept.release(t); tally[200] != 2 {
				t.Errorf("the living worker's requests got answers by status %v", tally)
			}
			lost.release(t)
			h.expectComeBack(t, "all have come back", 12, 4, client)
		})
	}
}

// expectComeBack checks that of so many requests as many as are wanted can in the
// end be in flight besides what is already, and never more.
func (h *holding) expectComeBack(t *testing.T, what string, requests, want int, headers ...string) {
	t.Helper()
	envoytest.Eventually(t, what, func() bool {
		b := h.hold(t, h.newcomer(t), requests, headers...)
		n := h.upstream.Held(b.name)
		b.release(t)
		if n > want {
			t.Fatalf("%d more are in flight, want %d at most", n, want)
		}
		return n == want
	})
}
