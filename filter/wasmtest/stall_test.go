package wasmtest_test

import (
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// TestARequestThatStallsIsNotForgiven has a worker stand still between its
// reading of the clock and its reading of the table, for so long that the
// client's bucket becomes whole and its place on the page goes to another
// client. With the time that it has read the request must not find a bucket
// that nobody has used: by any clock, two of the three requests are all that
// the limit allows.
func TestARequestThatStallsIsNotForgiven(t *testing.T) {
	for name, limit := range map[string]string{
		"token_bucket":   `"algorithm":"token_bucket","capacity":1,"refill_rate":"1/10s"`,
		"gcra":           `"algorithm":"gcra","rate":"1/10s","burst":1`,
		"leaky_bucket":   `"algorithm":"leaky_bucket","mode":"meter","capacity":1,"leak_rate":"1/10s"`,
		"fixed_window":   `"algorithm":"fixed_window","limit":1,"window":"10s"`,
		"sliding_window": `"algorithm":"sliding_window","limit":1,"window":"10s"`,
	} {
		t.Run(name, func(t *testing.T) {
			host := wasmtest.New(t, wasmtest.Module(t))
			config := `{"limits":{"x":{` + limit + `,"key":["ip"]}},
				"rules":[{"match":{"path":"/look"},"limits":[{"limit":"x","cost":0}]},{"limits":["x"]}],
				"state":{"max_buckets":1000}}`
			workers := startWorkers(t, host, 2, config)
			neighbour := client(neighbourOf(host, workers[0], 0))
			second := host.Clock // where every window begins
			at := func(s int) {
				host.Clock = second
				host.Clock.Advance(time.Duration(s) * time.Second)
			}

			admitted := 0
			count := func(a answer) {
				if a.admitted() {
					admitted++
				}
			}
			at(5)
			count(ask(workers[0], request{address: client(0)}))
			at(9)
			host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) {
				if c.Name == "proxy_get_shared_data" && c.VM == 0 {
					host.Fail = nil
					at(16)
					ask(workers[1], request{address: neighbour})
				}
				return wasmtest.OK, false
			}
			count(ask(workers[0], request{address: client(0)}))
			at(19)
			count(ask(workers[0], request{address: client(0)}))
			if admitted > 2 {
				t.Error("all three requests were admitted")
			}
		})
	}
}

// neighbourOf finds another client whose bucket lies on the same page.
func neighbourOf(host *wasmtest.Host, worker *wasmtest.Plugin, n int) int {
	pageOf := func(n int) (page string) {
		host.Recording, host.Calls = true, nil
		ask(worker, request{address: client(n), path: "/look"})
		host.Recording = false
		for _, c := range host.Calls {
			if c.Name == "proxy_get_shared_data" {
				page = c.Subject
			}
		}
		return page
	}
	page := pageOf(n)
	for other := n + 1; ; other++ {
		if pageOf(other) == page {
			return other
		}
	}
}
