package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

func TestAQueueAndOtherLimitsAreDecidedAsOne(t *testing.T) {
	const limit, tokens = "waiting-with-tokens", 5
	site := serve(t, fmt.Sprintf(`{
		"limits": {
			%q:       {"algorithm": "leaky_bucket", "capacity": 2, "leak_rate": "1/m", "key": []},
			"tokens": {"algorithm": "token_bucket", "capacity": %d, "refill_rate": "1/d", "key": ["header:x-client"]}
		},
		"rules": [{"match": {"path_prefix": "/tokens"}, "limits": ["tokens"]}, {"limits": [%q, "tokens"]}]
	}`, limit, tokens, limit), envoytest.Listener{})
	client, waiting := site.newcomer(t, "127.0.0.2"), &line{site: site, limit: limit}
	expectAdmitted(t, client.Get(t, site.path(), "x-client: a"))

	// Whom another limit refuses, takes no place.
	for range tokens {
		expectAdmitted(t, client.Get(t, "/tokens", "x-client: spent"))
	}
	for range 3 {
		refused := client.Get(t, site.path(), "x-client: spent")
		expectRefused(t, refused)
		expectLimit(t, refused, tokens, 0)
	}
	first := waiting.join(t, client, "GET", site.path()+"?first", nil, "x-client: a")
	second := waiting.join(t, client, "GET", site.path()+"?second", nil, "x-client: b")

	// Whom the full queue refuses, pays nothing; who waits has paid on arrival.
	refused := client.Get(t, site.path(), "x-client: a")
	expectRefused(t, refused)
	expectLimit(t, refused, 2, 0)
	expectLimit(t, client.Get(t, "/tokens", "x-client: a"), tokens, tokens-3)
	expectLimit(t, client.Get(t, "/tokens", "x-client: b"), tokens, tokens-2)

	// Giving up brings only the place back.
	waiting.leave(t, second)
	waiting.leave(t, first)
	site.expectDelayed(t, limit, site.path()+"?first", 0, time.Minute)
	site.expectDelayed(t, limit, site.path()+"?second", time.Minute, 2*time.Minute)
	expectLimit(t, client.Get(t, "/tokens", "x-client: a"), tokens, tokens-4)
}

func TestAShadowQueueDelaysNobody(t *testing.T) {
	const limit, capacity, sent = "waiting-shadow", 3, 10
	site := serve(t, fmt.Sprintf(`{
		"limits": {%q: {"algorithm": "leaky_bucket", "capacity": %d, "leak_rate": "1/m", "key": [], "shadow": true}},
		"rules":  [{"limits": [%q]}]
	}`, limit, capacity, limit), envoytest.Listener{})
	client := site.newcomer(t, "127.0.0.2")
	for i := range sent {
		path := fmt.Sprintf("%s?%d", site.path(), i)
		response := client.Get(t, path)
		expectAdmitted(t, response)
		expectNoLimit(t, response)
		if entry := site.awaitLogged(t, path); strings.Contains(entry.State, "delayed") {
			t.Errorf("request %d has the filter state %q, want none delayed", i, entry.State)
		}
	}
	site.awaitStat(t, limit, "allowed", 1+capacity)
	site.awaitStat(t, limit, "shadow_refused", sent-1-capacity)
	for _, stat := range []string{"waiting", "given_up", "refused"} {
		site.awaitStat(t, limit, stat, 0)
	}
}

func TestACostTakesThatManyPlaces(t *testing.T) {
	const limit = "waiting-cost"
	site := serve(t, fmt.Sprintf(`{
		"limits": {%q: {"algorithm": "leaky_bucket", "capacity": 3, "leak_rate": "1/m", "max_wait": "4m", "key": []}},
		"rules":  [{"limits": [%q], "cost": {"header": "x-cost", "default": 1, "max": 10}}]
	}`, limit, limit), envoytest.Listener{})
	client, waiting := site.newcomer(t, "127.0.0.2"), &line{site: site, limit: limit}
	expectAdmitted(t, client.Get(t, site.path(), "x-cost: 2")) // leaves at once
	two := waiting.join(t, client, "GET", site.path()+"?two", nil, "x-cost: 2")
	expectRefused(t, client.Get(t, site.path(), "x-cost: 2"))
	one := waiting.join(t, client, "GET", site.path()+"?one", nil)
	refused := client.Get(t, site.path())
	expectRefused(t, refused)
	expectLimit(t, refused, 3, 0)
	free := client.Get(t, site.path(), "x-cost: 0") // looks, and never waits
	expectAdmitted(t, free)
	expectLimit(t, free, 3, 0)
	never := client.Get(t, site.path(), "x-cost: 4")
	expectRefused(t, never)
	if values := never.Header.Values("Retry-After"); len(values) != 0 {
		t.Errorf("what costs more than the capacity has Retry-After %q, want none", values)
	}

	waiting.leave(t, one)
	waiting.leave(t, two)
	site.expectDelayed(t, limit, site.path()+"?two", time.Minute, 2*time.Minute)
	site.expectDelayed(t, limit, site.path()+"?one", 3*time.Minute, 4*time.Minute)
	// Both places of the one that cost two are free again.
	next := waiting.join(t, client, "GET", site.path()+"?next", nil, "x-cost: 3")
	waiting.leave(t, next)
	site.expectDelayed(t, limit, site.path()+"?next", time.Minute, 2*time.Minute)
}

func TestAnOverrideOfAQueueHasALineOfItsOwn(t *testing.T) {
	const limit = "waiting-overrides"
	site := serve(t, fmt.Sprintf(`{
		"limits": {%q: {"algorithm": "leaky_bucket", "capacity": 5, "leak_rate": "1/m", "key": [], "overrides": [
			{"match": {"headers": {"x-plan": "gold"}}, "leak_rate": "10/s", "capacity": 50},
			{"match": {"headers": {"x-plan": "staff"}}, "unlimited": true}
		]}},
		"rules":  [{"limits": [%q]}]
	}`, limit, limit), envoytest.Listener{})
	arrivals := site.watch()
	client, waiting := site.newcomer(t, "127.0.0.2"), &line{site: site, limit: limit}
	expectAdmitted(t, client.Get(t, site.path()))
	waits := waiting.join(t, client, "GET", site.path()+"?plain", nil)

	const burst = 8
	sent := time.Now()
	tally, err := envoytest.AtOnce(burst, func(int) (envoytest.Response, error) {
		return client.Send("GET", site.path()+"/gold", "x-plan: gold")
	})
	if err != nil || tally[200] != burst {
		t.Fatalf("got answers by status %v (error: %v), want %d of 200", tally, err, burst)
	}
	for range 20 {
		expectAdmitted(t, client.Get(t, site.path()+"/staff", "x-plan: staff"))
	}
	var gold []envoytest.Arrival
	for _, arrival := range arrivals.All() {
		if arrival.Path == site.path()+"/gold" {
			gold = append(gold, arrival)
		}
	}
	if len(gold) != burst {
		t.Errorf("%d requests under the override reached the upstream, want %d", len(gold), burst)
	}
	expectNoneEarly(t, sent, time.Second/10, gold)
	waiting.leave(t, waits)
	site.expectDelayed(t, limit, site.path()+"?plain", 0, time.Minute)
}
