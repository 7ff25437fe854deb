package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// Every kind of client sends its requests all at once. All come through, none
// before its turn.
func TestABurstLeavesOneByOne(t *testing.T) {
	const burst, every = 60, time.Second / 30
	grpc := []string{"te: trailers", "content-type: application/grpc"}
	for _, kind := range []struct {
		name    string
		limit   string
		options envoytest.ClientOptions
		method  string
		headers []string
		status  string // of a gRPC call
	}{
		{name: "HTTP/1.1", limit: "waiting-burst-h1", options: envoytest.ClientOptions{NewConnections: true}, method: "GET"},
		{name: "HTTP/2, all on one connection", limit: "waiting-burst-h2", options: envoytest.ClientOptions{HTTP2: true}, method: "GET"},
		{name: "gRPC", limit: "waiting-burst-grpc", options: envoytest.ClientOptions{HTTP2: true}, method: "POST", headers: grpc, status: "0"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			site := serve(t, queue(kind.limit, 100, "30/s", ""), envoytest.Listener{})
			client := envoytest.NewClient(t, site.addr, kind.options)
			expectNoLimit(t, client.Get(t, "/free")) // the connection is there
			arrivals := site.watch()
			sent := time.Now()
			tally, err := envoytest.AtOnce(burst, func(i int) (envoytest.Response, error) {
				response, err := client.Send(kind.method, fmt.Sprintf("%s?%d", site.path(), i), kind.headers...)
				if got := response.Trailer.Get("Grpc-Status"); err == nil && got != kind.status {
					t.Errorf("the call ended with grpc-status %q, want %q", got, kind.status)
				}
				return response, err
			})
			if err != nil || tally[200] != burst {
				t.Fatalf("got answers by status %v (error: %v), want %d of 200", tally, err, burst)
			}
			all := arrivals.All()
			if len(all) != burst {
				t.Fatalf("%d requests reached the upstream, want %d", len(all), burst)
			}
			expectNoneEarly(t, sent, every, all)
			site.awaitStat(t, kind.limit, "allowed", burst)
			site.awaitStat(t, kind.limit, "waiting", 0)
			site.awaitStat(t, kind.limit, "given_up", 0)
			connections := site.envoy.Stat(t, "listener."+site.listener.Name+".downstream_cx_total")
			if kind.options.HTTP2 && connections != 1 {
				t.Errorf("the requests came on %d connections, want one", connections)
			}
			for i := range burst {
				entry := site.awaitLogged(t, fmt.Sprintf("%s?%d", site.path(), i))
				if entry.Status != 200 || entry.Details != "via_upstream" {
					t.Errorf("the access log has %+v, want status 200 via the upstream", entry)
				}
			}
		})
	}
}

// One worker keeps the order by itself; over several it is the departures that
// are reserved which keep it.
func TestWhoCameFirstLeavesFirstOverAllWorkers(t *testing.T) {
	const limit, each = "waiting-order", 8
	site := serve(t, queue(limit, 20, "3/s", ""), envoytest.Listener{})
	arrivals, waiting := site.watch(), &line{site: site, limit: limit}
	clients := []string{"a", "b", "c"}
	path := func(client string, i int) string { return fmt.Sprintf("%s/%s/%d", site.path(), client, i) }
	newcomer := site.newcomer(t, "127.0.0.2")
	for range 32 {
		newcomer.Get(t, "/free")
	}
	expectEveryWorkerBusy(t, site.envoy, site.listener.Name)

	sent := time.Now()
	var all []*envoytest.Pending
	for i := range each {
		for _, client := range clients {
			header := "x-client: " + client
			all = append(all, newcomer.Begin(t, "GET", path(client, i), nil, header))
			// The next one is sent when this one has been decided about.
			waiting.site.awaitStat(t, limit, "allowed", int64(len(all)))
		}
	}
	for _, pending := range all {
		expectAdmitted(t, pending.Await(t))
	}
	for _, client := range clients {
		var got []envoytest.Arrival
		var paths, want []string
		for _, arrival := range arrivals.All() {
			if strings.HasPrefix(arrival.Path, site.path()+"/"+client+"/") {
				got, paths = append(got, arrival), append(paths, arrival.Path)
			}
		}
		for i := range each {
			want = append(want, path(client, i))
		}
		if !slices.Equal(paths, want) {
			t.Errorf("client %s left in the order %q, want %q", client, paths, want)
		}
		expectNoneEarly(t, sent, time.Second/3, got)
	}
}

// Many keys, each with more requests than may wait, over all workers at once.
func TestNoMoreWaitThanTheCapacityOverAllWorkers(t *testing.T) {
	const limit, clients, capacity, each = "waiting-exact", 10, 4, 12
	site := serve(t, queue(limit, capacity, "1/m", ""), envoytest.Listener{})
	arrivals, newcomer := site.watch(), site.newcomer(t, "127.0.0.2")
	var all []*envoytest.Pending
	for i := range each * clients {
		all = append(all, newcomer.Begin(t, "GET", site.path(), nil, fmt.Sprintf("x-client: %d", i%clients)))
	}
	site.awaitStat(t, limit, "allowed", clients*(1+capacity))
	site.awaitStat(t, limit, "refused", clients*(each-1-capacity))
	site.awaitStat(t, limit, "waiting", clients*capacity)
	expectEveryWorkerBusy(t, site.envoy, site.listener.Name)
	for _, pending := range all {
		pending.GiveUp()
	}
	site.awaitStat(t, limit, "waiting", 0)
	site.awaitStat(t, limit, "given_up", clients*capacity)
	if n := len(arrivals.All()); n != clients {
		t.Errorf("%d requests reached the upstream, want the first of each of %d clients", n, clients)
	}
}
