package e2e

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// reloads is what Prometheus gets of VMs that were started again.
var reloads = regexp.MustCompile(`(?m)^envoy_wasm_.*vm_reload`)

// expectScraped checks that Prometheus, if it is told to scrape as prometheus.yaml
// says, gets these lines, and how often VMs were started again, and nothing else.
func expectScraped(t *testing.T, envoy *envoytest.Envoy, lines ...string) {
	t.Helper()
	config := envoytest.Ship(t, "envoy/prometheus/prometheus.yaml")
	path := regexp.MustCompile(`metrics_path: (\S+)\n`).FindStringSubmatch(config)
	filter := regexp.MustCompile(`filter: \['(.+)'\]\n`).FindStringSubmatch(config)
	if path == nil || filter == nil {
		t.Fatal("prometheus.yaml has no metrics_path or no filter where this test looks for them")
	}
	var scraped string
	for _, line := range lines {
		envoytest.Eventually(t, "Prometheus gets "+line, func() bool {
			scraped = envoy.Admin(t, path[1]+"?filter="+url.QueryEscape(filter[1]))
			return strings.Contains(scraped, line+"\n")
		})
	}
	for line := range strings.Lines(scraped) {
		name := strings.TrimPrefix(line, "# TYPE ")
		if !strings.HasPrefix(name, "sluice_") && !reloads.MatchString(name) && strings.TrimSpace(line) != "" {
			t.Errorf("the scrape has %q too, which is not the filter's", line)
		}
	}
	if !reloads.MatchString(scraped) {
		t.Errorf("the scrape does not say how often VMs were started again:\n%s", scraped)
	}
}
