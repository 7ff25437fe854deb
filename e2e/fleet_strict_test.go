package e2e

import (
	"fmt"
	"testing"
	"time"

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

// These names are such that Envoy, given them bare, would take them for a message.
func TestAServicesClusterMayHaveAnyName(t *testing.T) {
	server := rateLimitServer(t)
	names := []string{"model", "envoy", "xa"}
	o := envoytest.Options{Upstream: envoytest.NewUpstream(t)}
	for _, name := range names {
		o.Clusters = append(o.Clusters, envoytest.HTTP2Cluster(name, server.Addr()))
		o.Listeners = append(o.Listeners, envoytest.Listener{Name: name, Filters: filters{envoytest.Wasm{
			Name:   name,
			Module: envoytest.Module(t, "sluice.wasm"),
			Config: fmt.Sprintf(`{
				"global": {"cluster": %q, "protocol": "rls", "timeout": "5s", "on_failure": "deny"},
				"limits": {%[1]q: {"algorithm": "fixed_window", "limit": 2, "window": "1d", "key": ["client=header:x-client"], "scope": "global"}},
				"rules":  [{"limits": [%[1]q]}]}`, name),
		}.Filter()}})
	}
	envoy := envoytest.Start(t, o)
	for _, name := range names {
		client := envoytest.NewClient(t, envoy.Addr(t, name), envoytest.ClientOptions{})
		onOneDay(func(key string) {
			header := "x-client: " + key
			for remaining := 1; remaining >= 0; remaining-- {
				response := client.Get(t, "/", header)
				expectAdmitted(t, response)
				expectLimit(t, response, 2, remaining)
			}
			response := client.Get(t, "/", header)
			expectRefused(t, response)
			reset, retry := number(t, response, "RateLimit-Reset"), number(t, response, "Retry-After")
			if untilMidnight := int(24*time.Hour/time.Second) - int(time.Now().UTC().Unix()%86_400); reset < untilMidnight-5 || reset > untilMidnight+5 || retry < reset {
				t.Errorf("cluster %s: Reset is %d and Retry-After %d, want the %d s until midnight", name, reset, retry, untilMidnight)
			}
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
