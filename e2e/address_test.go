package e2e

import (
	"fmt"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// The clients of these tests name their address in a line of the proxy
// protocol, as a load balancer in front of Envoy would.
func TestWhoIsOneClientByAddress(t *testing.T) {
	site := serve(t, perIP(1000, ""), envoytest.Listener{ProxyProtocol: true})
	// get sends one request from an address, each time from another port, and
	// returns how many requests the client has left.
	port := 1000
	get := func(t *testing.T, family, address string, headers ...string) int {
		t.Helper()
		port++
		server := map[string]string{"TCP4": "198.51.100.1", "TCP6": "2001:db8::1"}[family]
		response := envoytest.Exchange(t, site.addr, append([]string{
			fmt.Sprintf("PROXY %s %s %s %d 80", family, address, server, port),
			"GET / HTTP/1.1", "host: a"}, headers...)...)
		expectAdmitted(t, response)
		return number(t, response, "RateLimit-Remaining")
	}
	expect := func(t *testing.T, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("the client has %d requests left, want %d", got, want)
		}
	}

	t.Run("from any port, and with IPv4 inside IPv6 in any spelling", func(t *testing.T) {
		expect(t, get(t, "TCP4", "1.2.3.4"), 999)
		expect(t, get(t, "TCP4", "1.2.3.4"), 998)
		expect(t, get(t, "TCP6", "::ffff:1.2.3.4"), 997)
		expect(t, get(t, "TCP6", "::ffff:102:304"), 996)
		expect(t, get(t, "TCP4", "1.2.3.5"), 999)
	})
	t.Run("an IPv6 network of 64 bits is one client", func(t *testing.T) {
		expect(t, get(t, "TCP6", "2001:db8:1234:5678::1.2.3.4"), 999)
		expect(t, get(t, "TCP6", "2001:db8:1234:5678::1"), 998)
		expect(t, get(t, "TCP6", "2001:db8:1234:5678:ffff:ffff:ffff:ffff"), 997)
		expect(t, get(t, "TCP6", "2001:db8:1234:5679::1"), 999)
		expect(t, get(t, "TCP4", "1.2.3.4"), 995)
	})
	t.Run("whatever the client says of itself", func(t *testing.T) {
		for i := range 5 {
			left := get(t, "TCP4", "203.0.113.9", fmt.Sprintf("x-forwarded-for: 198.51.100.%d", i),
				fmt.Sprintf("x-real-ip: 198.51.100.%d", i))
			expect(t, left, 999-i)
		}
	})
}
