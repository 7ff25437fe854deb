package e2e

import (
	"fmt"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
	"github.com/sluice-proxy/sluice/filter/table"
)

// A million clients that nobody has seen before send one request each, and then
// another million. With one shared-data value per client, as limiters in
// WebAssembly usually have it, Envoy would grow by at least 150 MB a million: the
// key, the value and the map's node.
func TestAFloodOfMadeUpKeysCostsNoMemoryAndFreesNobody(t *testing.T) {
	const (
		maxBuckets = 100_000
		million    = 1_000_000
		// allowance is what a process's memory may move by though nothing is
		// kept: buffers and free lists of the allocator, and garbage in the heaps
		// of the workers' VMs. It is far below what a million keys would take.
		allowance = 20 << 20
	)
	tableSize := table.MaxBytes(maxBuckets)
	envoy := envoytest.Start(t, envoytest.Options{
		Workers: workers,
		Listeners: []envoytest.Listener{{
			Routes: []envoytest.Object{envoytest.Direct("all", "/")},
			Filters: filters{envoytest.Wasm{
				Module: envoytest.Module(t, "sluice.wasm"),
				Config: fmt.Sprintf(`{
					"limits": {"each": {"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/d", "key": ["header:x-client"]}},
					"rules":  [{"limits": ["each"]}],
					"state":  {"max_buckets": %d}
				}`, maxBuckets),
			}.Filter()},
		}},
	})
	addr := envoy.Addr(t, "main")
	client := envoytest.NewClient(t, addr, envoytest.ClientOptions{NewConnections: true})
	for range 5 {
		expectAdmitted(t, client.Get(t, "/", "x-client: spent"))
	}
	expectRefused(t, client.Get(t, "/", "x-client: spent"))

	// flood sends requests of that many new clients, and returns by how much
	// Envoy has grown.
	seen := 0
	flood := func(clients int) int64 {
		t.Helper()
		before := envoy.RSS(t)
		tally, err := envoytest.Flood(addr, clients, func(i int) string {
			return fmt.Sprintf("x-client: made-up-%d", seen+i)
		})
		if err != nil || tally[200] != clients {
			t.Fatalf("the flood got answers by status %v (error: %v), want %d of 200", tally, err, clients)
		}
		seen += clients
		return envoy.RSS(t) - before
	}

	// One request for each connection and worker, so that what Envoy and the
	// workers' VMs set up once is not counted as growth.
	flood(1000)
	expectEveryWorkerBusy(t, envoy, "main")

	grown := flood(million)
	t.Logf("Envoy grew by %d KiB with the first million of keys; the table is at most %d KiB", grown>>10, tableSize>>10)
	if grown > tableSize+allowance {
		t.Errorf("that is more than the table and %d KiB for the allocator", allowance>>10)
	}
	expectRefused(t, client.Get(t, "/", "x-client: spent"))

	// The table is full now, so that whatever comes on top would be a leak.
	grown = flood(million)
	t.Logf("Envoy grew by %d KiB with the second million of keys", grown>>10)
	if grown > allowance {
		t.Errorf("that is more than %d KiB for the allocator", allowance>>10)
	}
	expectRefused(t, client.Get(t, "/", "x-client: spent"))
}
