package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

func TestWhoWaitsAndWhoGivesUpIsCounted(t *testing.T) {
	const limit, waiters = "waiting-counted", 4
	site := serve(t, queue(limit, 10, "5/s", ""), envoytest.Listener{})
	client := site.newcomer(t, "127.0.0.2")
	var all []*envoytest.Pending
	for range 1 + waiters {
		all = append(all, client.Begin(t, "GET", site.path(), nil))
	}
	for _, pending := range all {
		expectAdmitted(t, pending.Await(t))
	}
	site.awaitStat(t, limit, "waiting", 0)
	site.awaitStat(t, limit, "allowed", 1+waiters)
	site.awaitStat(t, limit, "given_up", 0)

	// How many have had to wait the access log knows.
	var delayed int
	envoytest.Eventually(t, "the access log has all", func() bool {
		entries := site.envoy.AccessLog(t, site.listener.Name)
		delayed = 0
		for _, entry := range entries {
			if _, found := waitIn(t, limit, entry.State); found {
				delayed++
			}
		}
		return len(entries) == 1+waiters
	})
	if delayed == 0 {
		t.Error("nobody had to wait")
	}
	// Envoy merges its workers' histograms every five seconds.
	count := fmt.Sprintf("sluice_limit_waiting_counted_waited_ms_count{} %d\n", delayed)
	envoytest.Eventually(t, "Prometheus gets "+count, func() bool {
		return strings.Contains(site.envoy.Admin(t, "/stats/prometheus?filter=waiting-counted"), count)
	})
	if stats := site.envoy.Admin(t, "/stats?filter=waited_ms"); !strings.Contains(stats, limitStat(limit, "waited_ms")+": P0(") {
		t.Errorf("the stats have no histogram %s:\n%s", limitStat(limit, "waited_ms"), stats)
	}
}

func TestPrometheusSeesWhoWaitsByTheNameOfTheLimit(t *testing.T) {
	envoy, _, addr := shipped(t, "edge.yaml",
		`"algorithm": "token_bucket", "capacity": 5, "refill_rate": "5/m"`,
		`"algorithm": "leaky_bucket", "capacity": 5, "leak_rate": "1/3s"`)
	client, waiting := from(t, "127.0.0.2", addr), &line{site: &site{envoy: envoy}, limit: "login"}
	expectAdmitted(t, client.Do(t, "POST", "/login"))
	waits := waiting.join(t, client, "POST", "/login", nil)
	givesUp := waiting.join(t, client, "POST", "/login", nil)
	expectScraped(t, envoy, `sluice_waiting{sluice_limit="login"} 2`)
	waiting.leave(t, givesUp)
	expectAdmitted(t, waits.Await(t))
	expectScraped(t, envoy,
		`sluice_waiting{sluice_limit="login"} 0`,
		`sluice_given_up{sluice_limit="login"} 1`,
		`sluice_waited_ms_bucket{sluice_limit="login",le="1"} 0`,
		`sluice_waited_ms_bucket{sluice_limit="login",le="+Inf"} 1`,
		`sluice_waited_ms_count{sluice_limit="login"} 1`)
}
