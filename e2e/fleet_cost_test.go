package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// costing is one of the chains whose cost is compared.
type costing struct {
	name    string
	filters filters
	cpu     []time.Duration // of Envoy, a request, by turn
	waits   []time.Duration // of a client, a request
}

// costings are Envoy without a filter, and with a limit that is counted in the
// process, by lease, strictly, and by Envoy's own ratelimit filter.
func costings(b *testing.B) []*costing {
	sluice := func(name, global, scope string) *costing {
		return &costing{name: name, filters: filters{envoytest.Wasm{
			Name:   name,
			Module: envoytest.Module(b, "sluice.wasm"),
			Config: fmt.Sprintf(`{
				%s
				"limits": {%q: {"algorithm": "fixed_window", "limit": 60000, "window": "1m", "key": ["client=header:x-client"]%s}},
				"rules":  [{"limits": [%q]}]}`, global, name, scope, name),
		}.Filter()}}
	}
	service := `"global": {"cluster": "service", "protocol": "rls", "timeout": "5s", "mode": %q},`
	return []*costing{
		{name: "none"},
		sluice("process", "", ""),
		sluice("lease", fmt.Sprintf(service, "lease"), `, "scope": "global"`),
		sluice("strict", fmt.Sprintf(service, "strict"), `, "scope": "global"`),
		{name: "ratelimit", filters: filters{envoytest.LimitMetadata(60_000, "MINUTE"), envoytest.RateLimit("service", "sluice", "5s")}},
	}
}

// BenchmarkFleetCost shows what a fleet-wide limit adds to a request, in one run
// side by side with a limit of the process and with Envoy's own ratelimit filter,
// which asks the same server: CPU of Envoy, time that a client waits, and calls.
// Nothing is refused. They take turns, and the median counts. It is worth something
// on a quiet machine only.
func BenchmarkFleetCost(b *testing.B) {
	const (
		rounds   = 7
		requests = 20_000 // a turn
		clients  = 32     // with a limit each
		alone    = 200    // requests a turn that are alone, for their time
	)
	all := costings(b)
	var listeners []envoytest.Listener
	for _, c := range all {
		route := envoytest.DescribeLimit(envoytest.ToUpstream("all", "/"), "x-client", "client")
		listeners = append(listeners, envoytest.Listener{Name: c.name, Filters: c.filters, Routes: []envoytest.Object{route}})
	}
	envoy := envoytest.Start(b, envoytest.Options{
		Workers:   1,
		Upstream:  envoytest.NewUpstream(b),
		Listeners: listeners,
		Clusters:  []envoytest.Object{envoytest.HTTP2Cluster("service", rateLimitServer(b).Addr())},
	})
	header := func(i int) string { return fmt.Sprintf("x-client: %d", i%clients) }
	for b.Loop() {
		for round := range 1 + rounds { // the first warms up
			for _, c := range all {
				addr := envoy.Addr(b, c.name)
				before := envoy.CPU(b)
				tally, err := envoytest.Flood(addr, requests, header)
				if err != nil || tally[200] != requests {
					b.Fatalf("%s: got answers by status %v (error: %v), want all admitted", c.name, tally, err)
				}
				spent := (envoy.CPU(b) - before) / requests
				client := envoytest.NewClient(b, addr, envoytest.ClientOptions{})
				for i := range alone {
					sent := time.Now()
					expectAdmitted(b, client.Get(b, "/", header(i)))
					if round > 0 {
						c.waits = append(c.waits, time.Since(sent))
					}
				}
				if round > 0 {
					c.cpu = append(c.cpu, spent)
				}
			}
		}
	}
	b.ReportMetric(0, "ns/op") // which would be how long all of it takes
	for _, c := range all {
		slices.Sort(c.cpu)
		slices.Sort(c.waits)
		b.ReportMetric(us(percentile(c.cpu, 50)-percentile(all[0].cpu, 50)), c.name+"-us-cpu")
		b.ReportMetric(us(percentile(c.waits, 50)), c.name+"-us-p50")
		b.ReportMetric(us(percentile(c.waits, 99)), c.name+"-us-p99")
	}
	for _, name := range []string{"lease", "strict"} {
		calls, allowed := envoy.Stat(b, limitStat(name, "calls")), envoy.Stat(b, limitStat(name, "allowed"))
		b.ReportMetric(100*float64(calls)/float64(allowed), name+"-%calls")
	}
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
