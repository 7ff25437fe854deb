package e2e

import (
	"fmt"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
	"github.com/sluice-proxy/sluice/e2e/fleettest"
)

func TestAFleetAdmitsExactlyTheLimitWhenItAsksStrictly(t *testing.T) {
	for _, service := range []struct{ protocol, addr string }{
		{"rls", rateLimitServer(t).Addr()},
		{"gubernator", fleettest.StartGubernator(t).Addr()},
	} {
		t.Run(service.protocol, func(t *testing.T) {
			const limit, requests = 300, 1200
			sites := serveFleet(t, 3, windowed(limit, fmt.Sprintf(`"protocol": %q`, service.protocol)), service.addr)
			onOneDay(func(key string) {
				tally := sendSpread(t, sites, requests, key)
				if tally[200] != limit || tally[429] != requests-limit {
					t.Errorf("got answers by status %v, want %d of 200 and %d of 429", tally, limit, requests-limit)
				}
			})
		})
	}
}

// Requests stay with the instance of the filter that has asked about them.
func TestWhoWaitsForTheServiceDuringAPushGetsItsAnswer(t *testing.T) {
	const requests = 6
	server := rateLimitServer(t)
	listener := func(limit int) envoytest.Listener {
		return envoytest.Listener{Name: "pushed", Filters: filters{envoytest.Wasm{
			Name:   "pushed",
			Module: envoytest.Module(t, "sluice.wasm"),
			Config: windowed(limit, `"protocol": "rls", "on_failure": "deny"`),
		}.Filter()}}
	}
	envoy := envoytest.Start(t, envoytest.Options{
		Workers: workers, Dynamic: true, Upstream: envoytest.NewUpstream(t),
		Listeners: []envoytest.Listener{listener(10)},
		Clusters:  []envoytest.Object{envoytest.HTTP2Cluster("service", server.Addr())},
	})
	calls := limitStat("fleet", "calls")
	onOneDay(func(key string) {
		header, before := "x-client: "+key, envoy.Stat(t, calls)
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		var all []*envoytest.Pending
		for range requests {
			client := envoytest.NewClient(t, envoy.Addr(t, "pushed"), envoytest.ClientOptions{})
			all = append(all, client.Begin(t, "GET", "/", nil, header))
		}
		envoytest.Eventually(t, "all have asked", func() bool { return envoy.Stat(t, calls) == before+requests })
		envoy.Push(t, listener(20+len(key)))
		if err := server.Resume(); err != nil {
			t.Fatal(err)
		}
		for _, pending := range all {
			response := pending.Await(t)
			expectAdmitted(t, response)
			if got := number(t, response, "RateLimit-Limit"); got != 10 {
				t.Errorf("a request from before the push is told of a limit of %d, want 10", got)
			}
		}
		client := envoytest.NewClient(t, envoy.Addr(t, "pushed"), envoytest.ClientOptions{})
		expectLimit(t, client.Get(t, "/", header), 20+len(key), 20+len(key)-requests-1)
	})
}
