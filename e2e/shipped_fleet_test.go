package e2e

import (
	"fmt"
	"net"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// A client that goes from one Envoy to the other sees one limit, and so do two
// addresses that have one key.
func TestTheFleetFileHasItsEnvoysShareALimit(t *testing.T) {
	_, port, _ := net.SplitHostPort(rateLimitServer(t).Addr())
	var addrs []string
	for range 2 {
		_, _, addr := shipped(t, "fleet.yaml",
			"port_value: 8081 ", "port_value: "+port+" ",
			`"limit": 1000, "window": "1h"`, `"limit": 10, "window": "1d"`,
			`"timeout": "50ms"`, `"timeout": "5s"`)
		addrs = append(addrs, addr)
	}
	onOneDay(func(key string) {
		sent := 0
		expectSpent(t, 10, func() envoytest.Response {
			sent++
			return from(t, fmt.Sprintf("127.0.0.%d", 2+sent/2), addrs[sent%2]).Get(t, "/", "x-api-key: "+key)
		})
		expectLimit(t, from(t, "127.0.0.2", addrs[0]).Get(t, "/", "x-api-key: other-"+key), 10, 9)
	})
}
