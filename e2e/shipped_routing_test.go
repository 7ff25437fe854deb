package e2e

import (
	"fmt"
	"net"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// One of the three Envoys behind is down from the start, so that this also shows
// what becomes of its clients.
func TestStableRoutingGivesEachClientOneBucketOverSeveralEnvoys(t *testing.T) {
	const clients, limit = 30, 10
	behind := make([]*envoytest.Envoy, 2)
	ports := make([]string, len(behind))
	for i := range behind {
		var addr string
		behind[i], _, addr = shipped(t, "behind-proxy.yaml", `"refill_rate": "10/m"`, `"refill_rate": "1/d"`)
		_, ports[i], _ = net.SplitHostPort(addr)
	}
	front := envoytest.Start(t, envoytest.Options{
		Workers: 2,
		Bootstrap: envoytest.ShippedBootstrap(t, "envoy/stable-routing.yaml",
			"port_value: 10001 ", "port_value: "+ports[0]+" ",
			"port_value: 10002 ", "port_value: "+ports[1]+" ",
			"port_value: 10003 ", "port_value: 1 "), // nobody listens on port 1
	})
	addr := front.Addr(t, "ingress")
	for i := range clients {
		client, sent := from(t, fmt.Sprintf("127.0.1.%d", 1+i), addr), 0
		expectSpent(t, limit, func() envoytest.Response {
			sent++ // the client tries to be many
			return client.Get(t, "/", fmt.Sprintf("x-forwarded-for: 198.51.100.%d", sent))
		})
	}
	for i, envoy := range behind {
		requests := envoy.Stat(t, "http.ingress.downstream_rq_total")
		if requests == 0 || requests == clients*(limit+1) {
			t.Errorf("of %d requests, %d reached Envoy %d: this shows nothing", clients*(limit+1), requests, i)
		}
		if requests%(limit+1) != 0 {
			t.Errorf("%d requests reached Envoy %d: some client's were split", requests, i)
		}
	}
}
