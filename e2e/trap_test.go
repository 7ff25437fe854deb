package e2e

import (
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// The module of this test recurses without end for a request with the header
// "x-sluice-trap: recursion"; it is the filter in all else. No recover can catch
// that: the VM of the worker that serves the request is lost.
func TestAVMThatDiedComesBackToTheSameTable(t *testing.T) {
	const limit, connections = 5, 32
	envoy := envoytest.Start(t, envoytest.Options{
		Workers:  workers,
		Upstream: envoytest.NewUpstream(t),
		Listeners: []envoytest.Listener{{Filters: filters{envoytest.Wasm{
			Module: envoytest.Module(t, "sluice-trap.wasm"),
			Config: perIP(limit, ""),
		}.Filter()}}},
	})
	client := func(source string) *envoytest.Client {
		return envoytest.NewClient(t, envoy.Addr(t, "main"), envoytest.ClientOptions{Source: source, NewConnections: true})
	}
	spent, fresh := client("127.0.0.2"), client("127.0.0.3")
	for range limit {
		expectAdmitted(t, spent.Get(t, "/"))
	}
	expectRefused(t, spent.Get(t, "/"))

	// Enough connections to lose every worker's VM.
	tally, err := envoytest.AtOnce(connections, func(int) (envoytest.Response, error) {
		return spent.Send("GET", "/", "x-sluice-trap: recursion")
	})
	if err != nil {
		t.Fatal(err)
	}
	if tally[503] != connections {
		t.Fatalf("requests that lose a VM got answers by status %v, want %d of 503", tally, connections)
	}
	expectEveryWorkerBusy(t, envoy, "main")

	envoytest.Eventually(t, "every worker has a VM again", func() bool {
		tally, err := envoytest.AtOnce(connections, func(int) (envoytest.Response, error) {
			return spent.Send("GET", "/")
		})
		if err != nil {
			t.Fatal(err)
		}
		if tally[200] > 0 {
			t.Fatalf("the spent client got answers by status %v: it has its bucket back", tally)
		}
		return tally[429] == connections
	})
	tally, err = envoytest.AtOnce(connections, func(int) (envoytest.Response, error) {
		return fresh.Send("GET", "/")
	})
	if err != nil {
		t.Fatal(err)
	}
	if tally[200] != limit || tally[429] != connections-limit {
		t.Errorf("a fresh client got answers by status %v, want %d of 200 and %d of 429", tally, limit, connections-limit)
	}
}
