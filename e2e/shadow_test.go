package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

func TestAShadowLimitDecidesAndDoesNothingElse(t *testing.T) {
	site := serve(t, `{
		"limits": {
			"tried":    {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/d", "key": ["header:x-client"], "shadow": true, "missing": "deny"},
			"enforced": {"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/d", "key": ["header:x-client"]}
		},
		"rules": [
			{"match": {"path": "/tried"}, "limits": ["tried"]},
			{"match": {"path": "/enforced"}, "limits": ["enforced"]},
			{"limits": ["tried", "enforced"]}
		]
	}`, envoytest.Listener{})
	client := site.client(t)
	// It never refuses, shows in a header or keeps the other from its part.
	expectSpent(t, 5, func() envoytest.Response { return client.Get(t, "/", "x-client: a") })
	for range 5 {
		response := client.Get(t, "/tried", "x-client: b")
		expectAdmitted(t, response)
		expectNoLimit(t, response)
	}
	expectAdmitted(t, client.Get(t, "/tried")) // though it would deny whoever lacks the key
	if state := site.awaitLogged(t, "/tried").State; state != "allowed" {
		t.Errorf("the first request in shadow is logged as %q", state)
	}

	// What it took is given back when an enforced limit refuses the request.
	expectSpent(t, 5, func() envoytest.Response { return client.Get(t, "/enforced", "x-client: c") })
	for range 3 {
		expectRefused(t, client.Get(t, "/", "x-client: c"))
	}
	for i, state := range []string{"allowed", "allowed", "shadow:tried"} {
		path := fmt.Sprint("/tried?", i)
		client.Get(t, path, "x-client: c")
		if entry := site.awaitLogged(t, path); entry.State != state {
			t.Errorf("request %d in shadow is logged as %q, want %q", i, entry.State, state)
		}
	}
}

func TestAWholeConfigCanBeInShadow(t *testing.T) {
	site := serve(t, perIP(1, `, "shadow": true`), envoytest.Listener{})
	client := site.newcomer(t, "127.0.0.2")
	for i, state := range []string{"allowed", "shadow:per-ip", "shadow:per-ip"} {
		path := fmt.Sprint("/?", i)
		response := client.Get(t, path)
		expectAdmitted(t, response)
		expectNoLimit(t, response)
		if entry := site.awaitLogged(t, path); entry.State != state {
			t.Errorf("request %d is logged as %q, want %q", i, entry.State, state)
		}
	}
	site.expectReached(t, 3)
}

func TestAShareOfClientsIsRefusedAlwaysTheSameOnes(t *testing.T) {
	const clients = 100
	// refused returns which clients are refused, of a site whose workers share
	// nothing with another's, as if it were another Envoy.
	refused := func(percent int) []int {
		t.Helper()
		site := serveChain(t, envoytest.Listener{}, envoytest.Wasm{Name: newName(t), VMID: newName(t), Config: fmt.Sprintf(`{
			"limits": {"part": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["header:x-client"], "enforce_percent": %d}},
			"rules":  [{"limits": ["part"]}]
		}`, percent)})
		client := site.newcomer(t, "127.0.0.2") // meets every worker
		var refused []int
		for i := range clients {
			header := fmt.Sprint("x-client: ", i)
			first := client.Get(t, "/", header)
			expectAdmitted(t, first)
			times := 0
			for range 3 {
				response := client.Get(t, "/", header)
				if response.Status == 429 {
					times++
				} else {
					expectNoLimit(t, response)
				}
			}
			if shown := len(first.Header.Values("RateLimit-Limit")) > 0; times != 0 && times != 3 || shown != (times > 0) {
				t.Errorf("with %d %%, client %d was refused %d of 3 times, its first response has headers: %v", percent, i, times, shown)
			}
			if times > 0 {
				refused = append(refused, i)
			}
		}
		return refused
	}
	if n := len(refused(0)); n != 0 {
		t.Errorf("with 0 %%, %d clients were refused", n)
	}
	ten, forty, again := refused(10), refused(40), refused(40)
	// Which clients these are never changes, so neither does this test's result.
	if len(ten) < 3 || len(ten) > 20 || len(forty) < 25 || len(forty) > 55 {
		t.Errorf("of 100 clients, %d are refused with 10 %% and %d with 40 %%", len(ten), len(forty))
	}
	if !slices.Equal(forty, again) {
		t.Errorf("the same share is %v here and %v there", forty, again)
	}
	for _, i := range ten {
		if !slices.Contains(forty, i) {
			t.Errorf("client %d is refused with 10 %% and not with 40 %%", i)
		}
	}
}
