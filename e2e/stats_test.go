package e2e

import (
	"fmt"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
	"github.com/sluice-proxy/sluice/filter/table"
)

// All sites' stats are those of one Envoy, so the limits of these tests have
// names of their own, and the table's stats are looked at for what they change by.

func limitStat(limit, name string) string { return "wasmcustom.sluice.limit." + limit + "." + name }

func TestEveryLimitIsCountedByWhatItDecided(t *testing.T) {
	site := serve(t, `{
		"limits": {
			"counted":         {"algorithm": "token_bucket", "capacity": 4, "refill_rate": "1/d", "key": []},
			"counted-beside":  {"algorithm": "token_bucket", "capacity": 100, "refill_rate": "1/d", "key": []},
			"counted-shadow":  {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": [], "shadow": true},
			"counted-missing": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["header:x-key"], "missing": "deny"},
			"counted-skipped": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["header:x-key"], "missing": "skip"},
			"counted-freed":   {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": [],
			                    "overrides": [{"match": {"method": "GET"}, "unlimited": true}]}
		},
		"exempt": [{"path": "/exempt"}],
		"rules":  [
			{"match": {"path": "/missing"}, "limits": ["counted-missing"]},
			{"limits": ["counted", "counted-beside", "counted-shadow", "counted-skipped", "counted-freed"]}
		]
	}`, envoytest.Listener{})
	client := site.newcomer(t, "127.0.0.2") // meets every worker
	for range 10 {
		client.Get(t, "/")
		client.Get(t, "/exempt")
	}
	for range 3 {
		expectRefused(t, client.Get(t, "/missing"))
	}
	for stat, want := range map[string]int64{
		limitStat("counted", "allowed"):               4,
		limitStat("counted", "refused"):               6,
		limitStat("counted", "shadow_refused"):        0,
		limitStat("counted-beside", "allowed"):        4, // what another limit refused it did not allow
		limitStat("counted-beside", "refused"):        0,
		limitStat("counted-shadow", "allowed"):        1,
		limitStat("counted-shadow", "refused"):        0,
		limitStat("counted-shadow", "shadow_refused"): 9, // of the 6 refused as well
		limitStat("counted-missing", "refused"):       3,
		limitStat("counted-missing", "allowed"):       0,
		limitStat("counted-skipped", "allowed"):       0,
		limitStat("counted-freed", "allowed"):         0,
		limitStat("counted-freed", "shadow_refused"):  0,
		limitStat("counted", "errors"):                0,
	} {
		var got int64
		envoytest.Eventually(t, fmt.Sprintf("%s is %d", stat, want), func() bool {
			got = site.envoy.Stat(t, stat)
			return got >= want
		})
		if got != want {
			t.Errorf("%s is %d, want %d", stat, got, want)
		}
	}
}

func TestTheTableSaysHowFullItIsAndWhenItEvictsTheLiving(t *testing.T) {
	const buckets, clients = 1000, 4000
	site := serve(t, `{
		"limits": {"evicted": {"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/d", "key": ["header:x-client"]}},
		"rules":  [{"limits": ["evicted"]}],
		"state":  {"max_buckets": 1000}
	}`, envoytest.Listener{})
	const fill, evictions = "wasmcustom.sluice.table.fill", "wasmcustom.sluice.table.evictions"
	fillBefore, evictionsBefore := site.envoy.Stat(t, fill), site.envoy.Stat(t, evictions)
	flood := func(from, to int) {
		t.Helper()
		tally, err := envoytest.Flood(site.addr, to-from, func(i int) string { return fmt.Sprintf("x-client: %d", from+i) })
		if err != nil || tally[200] != to-from {
			t.Fatalf("the clients got answers by status %v (error: %v)", tally, err)
		}
	}
	filled := func() int64 { return site.envoy.Stat(t, fill) - fillBefore }
	evicted := func() int64 { return site.envoy.Stat(t, evictions) - evictionsBefore }

	flood(0, 100)
	envoytest.Eventually(t, "the table holds a bucket for each client", func() bool { return filled() == 100 })
	flood(0, 100) // which are known
	flood(100, clients)
	// Every client has either added a place or taken another's.
	envoytest.Eventually(t, "every client is accounted for", func() bool { return filled()+evicted() == clients })
	entries := table.MaxBytes(buckets) / 56 // bytes of an entry
	if filled() < buckets || filled() > entries {
		t.Errorf("the table of %d buckets says it holds %d", buckets, filled())
	}
}

func TestLostCompareAndSwapsAreCounted(t *testing.T) {
	site := serve(t, `{
		"limits": {"contended": {"algorithm": "token_bucket", "capacity": 1000000, "refill_rate": "1/d", "key": []}},
		"rules":  [{"limits": ["contended"]}]
	}`, envoytest.Listener{Routes: []envoytest.Object{envoytest.Direct("all", "/")}})
	const retries = "wasmcustom.sluice.table.cas_retries"
	before := site.envoy.Stat(t, retries)
	envoytest.Eventually(t, "two workers have met at one bucket", func() bool {
		if _, err := envoytest.Flood(site.addr, 2000, func(int) string { return "x-any: thing" }); err != nil {
			t.Fatal(err)
		}
		return site.envoy.Stat(t, retries) > before
	})
}
