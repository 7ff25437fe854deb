package e2e

import (
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

func TestWhatARequestCosts(t *testing.T) {
	const limit = 1000
	site := serve(t, `{
		"limits": {
			"own":   {"algorithm": "token_bucket", "capacity": 1000, "refill_rate": "1/d", "key": ["path"]},
			"every": {"algorithm": "token_bucket", "capacity": 1000000, "refill_rate": "1/d", "key": []}
		},
		"always": ["every"],
		"rules": [
			{"match": {"path": "/five"}, "limits": ["own"], "cost": 5},
			{"match": {"path": "/entry"}, "limits": [{"limit": "own", "cost": 7}], "cost": 5},
			{"match": {"path": "/header"}, "limits": ["own"], "cost": {"header": "x-cost", "default": 2, "max": 100}},
			{"match": {"path": "/plain-header"}, "limits": [{"limit": "own", "cost": {"header": "x-cost", "max": 100}}]},
			{"match": {"path": "/every"}, "limits": []},
			{"limits": ["own"]}
		]
	}`, envoytest.Listener{})
	client := site.client(t)
	left, requests := map[string]int{}, 0
	for _, c := range []struct {
		path    string
		headers []string
		cost    int
	}{
		{"/", nil, 1},
		{"/five", nil, 5},
		{"/five", []string{"x-cost: 50"}, 5},
		{"/entry", nil, 7},
		{"/header", []string{"x-cost: 30"}, 30},
		{"/header", []string{"x-cost: 100"}, 100},
		{"/header", []string{"x-cost: 101"}, 100},
		{"/header", []string{"x-cost: 99999999999999999999999"}, 100},
		{"/header", []string{"x-cost: 0"}, 0},
		{"/header", nil, 2},
		{"/header", []string{"x-cost: 30", "x-cost: 30"}, 2},
		{"/header", []string{"x-cost: 30,30"}, 2},
		{"/header", []string{"x-cost: "}, 2},
		{"/header", []string{"x-cost: -1"}, 2},
		{"/header", []string{"x-cost: 1.5"}, 2},
		{"/header", []string{"x-cost: 3e1"}, 2},
		{"/header", []string{"x-cost: 0x1e"}, 2},
		{"/header", []string{"x-cost: thirty"}, 2},
		{"/plain-header", []string{"x-cost: 30"}, 30},
		{"/plain-header", nil, 1},
	} {
		before, known := left[c.path]
		if !known {
			before = limit
		}
		response := client.Get(t, c.path, c.headers...)
		expectAdmitted(t, response)
		requests++
		left[c.path] = number(t, response, "RateLimit-Remaining")
		if cost := before - left[c.path]; cost != c.cost {
			t.Errorf("%s with %q cost %d, want %d", c.path, c.headers, cost, c.cost)
		}
	}
	// What always applies takes one unit of every request, whatever its rule says.
	expectLimit(t, client.Get(t, "/every"), 1000000, 1000000-requests-1)
}
