package e2e

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// expectScraped checks that Prometheus, if it is told to scrape as prometheus.yaml
// says, gets these lines, and nothing that is not the filter's.
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
		if !strings.HasPrefix(strings.TrimPrefix(line, "# TYPE "), "sluice_") && strings.TrimSpace(line) != "" {
			t.Errorf("the scrape has %q too, which is not the filter's", line)
		}
	}
}
