package e2e

import (
	"fmt"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
	"github.com/sluice-proxy/sluice/e2e/fleettest"
)

// windowed is a config with one fleet-wide limit per client, so many a day, which
// a header names. The global object has further fields.
func windowed(limit int, global string) string {
	return fmt.Sprintf(`{
		"global": {"cluster": "service", "timeout": "10s", %s},
		"limits": {"fleet": {"algorithm": "fixed_window", "limit": %d, "window": "1d", "key": ["client=header:x-client"], "scope": "global"}},
		"rules":  [{"limits": ["fleet"]}]
	}`, global, limit)
}

// serveFleet starts so many Envoys of the filter with this config, in which the
// cluster "service" is the service of that address.
func serveFleet(t *testing.T, envoys int, config, service string, clusters ...envoytest.Object) []*site {
	t.Helper()
	upstream := envoytest.NewUpstream(t)
	listener := envoytest.Listener{Name: "main", Filters: filters{envoytest.Wasm{
		Module: envoytest.Module(t, "sluice.wasm"),
		Config: config,
	}.Filter()}}
	sites := make([]*site, envoys)
	for i := range sites {
		envoy := envoytest.Start(t, envoytest.Options{
			Workers:   workers,
			Upstream:  upstream,
			Listeners: []envoytest.Listener{listener},
			Clusters:  append([]envoytest.Object{envoytest.HTTP2Cluster("service", service)}, clusters...),
		})
		sites[i] = &site{envoy: envoy, upstream: upstream, listener: listener, addr: envoy.Addr(t, "main")}
	}
	return sites
}

// rateLimitServer starts Envoy's rate limit server on a Valkey of its own.
func rateLimitServer(t testing.TB) *fleettest.Server {
	t.Helper()
	return fleettest.StartRateLimit(t, fleettest.StartValkey(t))
}

// sendSpread sends so many requests of one client to the Envoys in turn, many at
// once, and returns the answers by status.
func sendSpread(t *testing.T, sites []*site, requests int, client string) map[int]int {
	t.Helper()
	const connections = 8 // to each Envoy
	clients := make([]*envoytest.Client, len(sites)*connections)
	for i := range clients {
		clients[i] = envoytest.NewClient(t, sites[i%len(sites)].addr, envoytest.ClientOptions{HTTP2: true})
	}
	tally, err := envoytest.AtOnce(requests, func(i int) (envoytest.Response, error) {
		return clients[i%len(clients)].Send("GET", "/", "x-client: "+client)
	})
	if err != nil {
		t.Fatal(err)
	}
	return tally
}
