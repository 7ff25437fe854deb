package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// shipped starts an Envoy with a bootstrap of the folder envoy, in front of an
// upstream of the test, and returns the upstream and the listener's address too.
// Of each further pair of texts, the first is replaced in the file by the second.
func shipped(t *testing.T, file string, replace ...string) (*envoytest.Envoy, *envoytest.Upstream, string) {
	t.Helper()
	upstream := envoytest.NewUpstream(t)
	replace = append(replace, "port_value: 8080 ", fmt.Sprintf("port_value: %d ", upstream.Port()))
	envoy := envoytest.Start(t, envoytest.Options{
		Workers:   2,
		Bootstrap: envoytest.ShippedBootstrap(t, filepath.Join("envoy", file), replace...),
	})
	return envoy, upstream, envoy.Addr(t, "ingress")
}

// from returns a client that has the given address.
func from(t *testing.T, source, addr string) *envoytest.Client {
	return envoytest.NewClient(t, addr, envoytest.ClientOptions{Source: source, NewConnections: true})
}

// expectSpent checks that a client's limit of so many requests is met after
// exactly these.
func expectSpent(t *testing.T, limit int, send func() envoytest.Response) {
	t.Helper()
	for left := limit - 1; left >= 0; left-- {
		response := send()
		expectAdmitted(t, response)
		expectLimit(t, response, limit, left)
	}
	response := send()
	expectRefused(t, response)
	expectLimit(t, response, limit, 0)
}

func TestEveryBootstrapThatShipsIsValidAsItIs(t *testing.T) {
	for _, file := range envoytest.ShippedFiles(t, "envoy/*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			envoytest.Validate(t, envoytest.Ship(t, file))
		})
	}
	// These find the module where the compose file mounts it.
	for _, file := range []string{"envoy/docker/envoy.yaml", "envoy/docker/upstream.yaml", "envoy/docker/fleet/envoy.yaml"} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			envoytest.Validate(t, strings.ReplaceAll(envoytest.Ship(t, file), "/etc/envoy/sluice.wasm", "build/sluice.wasm"))
		})
	}
}

func TestEveryBootstrapWithTheFilterRestartsDeadVMsAndLabelsItsStats(t *testing.T) {
	tags := envoytest.Ship(t, "envoy/prometheus/stats-tags.yaml")
	tags = tags[strings.Index(tags, "stats_config:"):]
	for _, file := range envoytest.ShippedFiles(t, "envoy/*.yaml", "envoy/docker/envoy.yaml", "envoy/docker/fleet/envoy.yaml") {
		text := envoytest.Ship(t, file)
		instances := strings.Count(text, "envoy.extensions.filters.http.wasm.v3.Wasm")
		if instances == 0 {
			continue
		}
		if n := strings.Count(text, "\n"+tags); n != 1 {
			t.Errorf("%s has the stats_config of prometheus/stats-tags.yaml %d times, want once", file, n)
		}
		for _, line := range []string{" failure_policy: ", " reload_config:"} {
			if n := strings.Count(text, line); n != instances {
				t.Errorf("%s has%q %d times for %d instances of the filter", file, line, n, instances)
			}
		}
	}
}

func TestAtTheEdge(t *testing.T) {
	envoy, upstream, addr := shipped(t, "edge.yaml", `"refill_rate": "5/m"`, `"refill_rate": "5/d"`)
	t.Run("a made-up X-Forwarded-For gains nothing", func(t *testing.T) {
		client, sent := from(t, "127.0.0.2", addr), 0
		expectSpent(t, 5, func() envoytest.Response {
			sent++
			return client.Do(t, "POST", "/login", fmt.Sprintf("x-forwarded-for: 198.51.100.%d", sent))
		})
		expectLimit(t, client.Get(t, "/"), 200, 199)
		expectLimit(t, from(t, "127.0.0.3", addr).Do(t, "POST", "/login"), 5, 4)
		if n := upstream.Requests(); n != 7 {
			t.Errorf("%d requests reached the upstream, want the 7 admitted ones", n)
		}
	})
	t.Run("the access log says which limit refused whom", func(t *testing.T) {
		// It is on standard output, which the log has too.
		want := "127.0.0.2 POST /login 429 sluice_rate_limited.login refused:login"
		envoytest.Eventually(t, "the access log has "+want, func() bool {
			return strings.Contains(envoy.Log(t), want)
		})
	})
	t.Run("Prometheus sees the name of a limit as a label", func(t *testing.T) {
		expectScraped(t, envoy,
			`sluice_allowed{sluice_limit="login"} 6`,
			`sluice_refused{sluice_limit="login"} 1`,
			`sluice_allowed{sluice_limit="client"} 1`,
			`sluice_allowed{sluice_limit="upstream"} 7`)
	})
}

func TestBehindAProxyTheAddressThatItAppendedCounts(t *testing.T) {
	_, _, addr := shipped(t, "behind-proxy.yaml", `"refill_rate": "10/m"`, `"refill_rate": "1/d"`)
	proxy, sent := from(t, "127.0.0.2", addr), 0
	// forwarded sends a request as the proxy does for a client that claims to
	// have come from elsewhere, each time from somewhere else.
	forwarded := func(client string) envoytest.Response {
		sent++
		return proxy.Get(t, "/", fmt.Sprintf("x-forwarded-for: 198.51.100.%d, %s", sent, client))
	}
	expectSpent(t, 10, func() envoytest.Response { return forwarded("203.0.113.9") })
	expectLimit(t, forwarded("203.0.113.10"), 10, 9)
	expectLimit(t, forwarded("2001:db8::1"), 10, 9)
}

func TestARouteIsLimitedByItsNameItsMetadataItsOwnConfigOrNotAtAll(t *testing.T) {
	_, _, addr := shipped(t, "per-route.yaml", `"refill_rate": "3/m"`, `"refill_rate": "1/d"`)
	client := from(t, "127.0.0.2", addr)
	get := func(path string) func() envoytest.Response {
		return func() envoytest.Response { return client.Get(t, path) }
	}
	expectSpent(t, 3, get("/login"))
	expectSpent(t, 2, get("/export/all"))
	expectSpent(t, 4, get("/partner/orders"))
	// The limit of the same name in the filter's own config is another one.
	expectLimit(t, client.Get(t, "/"), 200, 199)
	for range 250 {
		response := client.Get(t, "/health")
		expectAdmitted(t, response)
		expectNoLimit(t, response)
	}
}

func TestARefusalBehindCORSCanBeReadByThePage(t *testing.T) {
	const origin = "origin: https://app.example.com"
	_, upstream, addr := shipped(t, "cors.yaml", `"refill_rate": "5/m"`, `"refill_rate": "1/d"`)
	client := from(t, "127.0.0.2", addr)
	preflight := func() {
		t.Helper()
		response := client.Do(t, http.MethodOptions, "/", origin, "access-control-request-method: POST")
		expectAdmitted(t, response)
		expectNoLimit(t, response)
		only(t, response, "Access-Control-Allow-Methods")
	}
	for range 20 {
		preflight()
	}
	var last envoytest.Response
	expectSpent(t, 5, func() envoytest.Response {
		last = client.Get(t, "/", origin)
		return last
	})
	if got := only(t, last, "Access-Control-Allow-Origin"); got != "https://app.example.com" {
		t.Errorf("access-control-allow-origin of a 429 is %q", got)
	}
	if got := only(t, last, "Access-Control-Expose-Headers"); !strings.Contains(got, "retry-after") {
		t.Errorf("access-control-expose-headers of a 429 is %q, want retry-after among them", got)
	}
	preflight()
	if n := upstream.Requests(); n != 5 {
		t.Errorf("%d requests reached the upstream, want 5", n)
	}
}
