package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

func TestOneBucketAdmitsExactlyItsCapacityToManyRequestsAtOnce(t *testing.T) {
	const (
		capacity    = 1000
		requests    = 20_000
		connections = 200
	)
	site := serve(t, fmt.Sprintf(`{
		"limits": {"all": {"algorithm": "token_bucket", "capacity": %d, "refill_rate": "1/d", "key": []}},
		"rules":  [{"match": {"path": "/limited"}, "limits": ["all"]}]
	}`, capacity), envoytest.Listener{})

	// Each client makes its connection ahead of the burst, by a request that no
	// rule holds for, so that the burst meets them all in place.
	clients := make([]*envoytest.Client, connections)
	for i := range clients {
		clients[i] = envoytest.NewClient(t, site.addr, envoytest.ClientOptions{HTTP2: true})
		expectNoLimit(t, clients[i].Get(t, "/free"))
	}
	expectEveryWorkerBusy(t, site.envoy, site.listener.Name)

	tally, err := envoytest.AtOnce(requests, func(i int) (envoytest.Response, error) {
		return clients[i%connections].Send("GET", "/limited")
	})
	if err != nil {
		t.Fatal(err)
	}
	if tally[200] != capacity || tally[429] != requests-capacity {
		t.Errorf("got answers by status %v, want %d of 200 and %d of 429", tally, capacity, requests-capacity)
	}
	site.expectReached(t, connections+capacity)
}

func TestEveryClientGetsExactlyItsLimitWhateverOthersDo(t *testing.T) {
	const (
		clients  = 500
		limit    = 5
		attempts = 8
		others   = 50_000
	)
	site := serve(t, fmt.Sprintf(`{
		"limits": {"each": {"algorithm": "token_bucket", "capacity": %d, "refill_rate": "1/d", "key": ["header:x-client|ip"]}},
		"rules":  [{"limits": ["each"]}]
	}`, limit), envoytest.Listener{})

	client := make([]*envoytest.Client, clients)
	for i := range client {
		client[i] = site.newcomer(t, fmt.Sprintf("127.1.%d.%d", i/200, 1+i%200))
	}
	admitted := make([]int, clients)
	everyClientSends := func() {
		t.Helper()
		_, err := envoytest.AtOnce(clients, func(i int) (envoytest.Response, error) {
			response, err := client[i].Send("GET", "/")
			if response.Status == 200 {
				admitted[i]++
			}
			return response, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	expectExact := func(when string) {
		t.Helper()
		for i, n := range admitted {
			if n != limit {
				t.Errorf("%s, client %d has been admitted %d times, want %d", when, i, n, limit)
			}
		}
	}

	for range attempts {
		everyClientSends()
	}
	expectEveryWorkerBusy(t, site.envoy, site.listener.Name)
	expectExact(fmt.Sprintf("after %d attempts", attempts))

	tally, err := envoytest.Flood(site.addr, others, func(i int) string { return fmt.Sprintf("x-client: other-%d", i) })
	if err != nil || tally[200] != others {
		t.Fatalf("the other clients got answers by status %v (error: %v), want %d of 200", tally, err, others)
	}
	everyClientSends()
	expectExact("after many others have been by")
}

func TestMoreClientsThanAnyCacheHoldsKeepTheirLimits(t *testing.T) {
	const clients, limit, rounds = 21, 2, 5
	site := serve(t, `{
		"limits": {"each": {"algorithm": "fixed_window", "limit": 2, "window": "1m", "key": ["header:x-client"]}},
		"rules":  [{"limits": ["each"]}]
	}`, envoytest.Listener{})
	client := site.newcomer(t, "127.0.0.2")
	admitted := inOneMinute(t, func(attempt int) []int {
		admitted := make([]int, clients)
		for range rounds {
			for i := range clients {
				if client.Get(t, "/", fmt.Sprintf("x-client: %d-%d", attempt, i)).Status == 200 {
					admitted[i]++
				}
			}
		}
		return admitted
	})
	for i, n := range admitted {
		if n != limit {
			t.Errorf("client %d was admitted %d times, want %d", i, n, limit)
		}
	}
}

func TestBurstsInOneWindowShareItsLimit(t *testing.T) {
	const limit, burst, bursts = 5, 50, 3
	site := serve(t, `{
		"limits": {"each": {"algorithm": "fixed_window", "limit": 5, "window": "1m", "key": ["header:x-client"]}},
		"rules":  [{"limits": ["each"]}]
	}`, envoytest.Listener{})
	client := site.newcomer(t, "127.0.0.2")
	admitted := inOneMinute(t, func(attempt int) int {
		admitted := 0
		for range bursts {
			tally, err := envoytest.AtOnce(burst, func(int) (envoytest.Response, error) {
				return client.Send("GET", "/", fmt.Sprintf("x-client: %d", attempt))
			})
			if err != nil {
				t.Fatal(err)
			}
			admitted += tally[200]
		}
		return admitted
	})
	expectEveryWorkerBusy(t, site.envoy, site.listener.Name)
	if admitted != limit {
		t.Errorf("%d bursts of %d requests in one window: %d admitted, want %d", bursts, burst, admitted, limit)
	}
}

// inOneMinute returns what run returns when it has begun and ended within one
// minute of the calendar, which is a window of these tests. A run that the end
// of a minute fell into is repeated; attempt tells run to use other clients.
func inOneMinute[T any](t *testing.T, run func(attempt int) T) T {
	t.Helper()
	for attempt := range 3 {
		began := time.Now().Truncate(time.Minute)
		result := run(attempt)
		if time.Now().Truncate(time.Minute).Equal(began) {
			return result
		}
	}
	t.Fatal("no run fitted into a minute")
	return *new(T)
}
