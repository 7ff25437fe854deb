package e2e

import (
	"regexp"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// Envoy can log every call between it and the module: that is where it shows
// that nothing ticks while nobody waits.
func TestNothingTicksWhileNobodyWaits(t *testing.T) {
	const limit = "waiting-ticks"
	site := alone(t, envoytest.Options{Workers: 1, WasmLog: "trace"}, envoytest.Listener{},
		envoytest.Wasm{Config: queue(limit, 10, "5/s", "")})
	client := site.newcomer(t, "127.0.0.2")
	periods := func() []string {
		var all []string
		for _, call := range regexp.MustCompile(`proxy_set_tick_period_milliseconds\((\d+)\)`).FindAllStringSubmatch(site.envoy.Log(t), -1) {
			all = append(all, call[1])
		}
		return all
	}
	ticks := func() int {
		return len(regexp.MustCompile(`\[host->vm\] proxy_on_tick\(`).FindAllString(site.envoy.Log(t), -1))
	}
	for range 20 {
		expectAdmitted(t, client.Get(t, "/free"))
	}
	expectAdmitted(t, client.Get(t, site.path(), "x-client: first"))
	if got := periods(); len(got) != 0 || ticks() != 0 {
		t.Fatalf("before anybody waits, the tick was set to %q and came %d times", got, ticks())
	}
	for round := range 3 {
		tally, err := envoytest.AtOnce(4, func(int) (envoytest.Response, error) { return client.Send("GET", site.path()) })
		if err != nil || tally[200] != 4 {
			t.Fatalf("got answers by status %v (error: %v), want 4 of 200", tally, err)
		}
		site.awaitStat(t, limit, "waiting", 0)
		got := periods()
		if len(got) == 0 || got[len(got)-1] != "0" {
			t.Fatalf("after round %d, the tick was set to %q, want 0 at last", round, got)
		}
		came := ticks()
		for range 20 {
			expectAdmitted(t, client.Get(t, "/free"))
		}
		if ticks() != came || len(periods()) != len(got) {
			t.Fatalf("while nobody waits, the tick came %d times", ticks()-came)
		}
	}
}
