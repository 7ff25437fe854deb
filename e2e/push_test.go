package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// withConfig is the site's listener with another config of the filter, which is
// the only one in its chain.
func (s *site) withConfig(t *testing.T, config string) envoytest.Listener {
	t.Helper()
	l := s.listener
	l.Filters = filters{envoytest.Wasm{Module: envoytest.Module(t, "sluice.wasm"), Name: l.Name, Config: config}.Filter()}
	return l
}

func TestAPushThatChangesOnlyTheResponseKeepsEveryBucket(t *testing.T) {
	site := serve(t, perIP(5, ""), envoytest.Listener{})
	spent := site.newcomer(t, "127.0.0.2")
	for range 5 {
		expectAdmitted(t, spent.Get(t, "/"))
	}
	expectRefused(t, spent.Get(t, "/"))
	const others = 50
	other := func(i int) *envoytest.Client { return site.newcomer(t, fmt.Sprintf("127.0.1.%d", 1+i)) }
	for i := range others {
		for range 1 + i%5 {
			expectAdmitted(t, other(i).Get(t, "/"))
		}
	}

	site.envoy.Push(t, site.withConfig(t, perIP(5, `, "response": {"status": 503, "body": "Come back later."}`)))

	// Often enough to meet every worker.
	for range 16 {
		if response := spent.Get(t, "/"); response.Status != 503 || response.Body != "Come back later." {
			t.Fatalf("after the push, the spent client got %d %q, want the pushed refusal", response.Status, response.Body)
		}
	}
	for i := range others {
		used := 1 + i%5
		response := other(i).Get(t, "/")
		if used == 5 {
			if response.Status != 503 {
				t.Errorf("after the push, client %d, which had used up its 5 requests, got status %d, want 503", i, response.Status)
			}
			continue
		}
		expectAdmitted(t, response)
		expectLimit(t, response, 5, 5-used-1)
	}
}

func TestALimitLoweredBelowWhatAClientHasUsedRefusesItUntilThatIsMadeUpFor(t *testing.T) {
	site := serve(t, perIP(5, ""), envoytest.Listener{})
	client := site.newcomer(t, "127.0.0.2")
	for range 4 {
		expectAdmitted(t, client.Get(t, "/"))
	}

	site.envoy.Push(t, site.withConfig(t, perIP(2, "")))

	// 4 spent of now 2: the client is 2 below zero, and its next request needs
	// 3 tokens, at one a day.
	response := client.Get(t, "/")
	expectRefused(t, response)
	expectLimit(t, response, 2, 0)
	if seconds := number(t, response, "Retry-After"); seconds <= 2*day || seconds > 3*day {
		t.Errorf("Retry-After is %d seconds, want more than two days and at most three", seconds)
	}

	// And back: what was spent is still what was spent.
	site.envoy.Push(t, site.withConfig(t, perIP(6, "")))
	response = client.Get(t, "/")
	expectAdmitted(t, response)
	expectLimit(t, response, 6, 1)
}

// mistakes is a config with three mistakes, each with what a line about it must
// hold: where it is, and what was found.
var mistakes = struct {
	config string
	lines  [][]string
}{
	config: `{
		"limits": {
			"per-ip": {"algorithm": "token_bucket", "capacity": 0, "refill_rate": "5/fortnight", "key": ["ip"]}
		},
		"rulez":  [{"limits": ["per-ip"]}]
	}`,
	lines: [][]string{
		{"limits.per-ip.capacity", "0"},
		{"limits.per-ip.refill_rate", `"5/fortnight"`, "want"},
		{"rulez"},
	},
}

// expectMistakesNamed checks that the log has a line for each of the mistakes.
func expectMistakesNamed(t *testing.T, log string) {
	t.Helper()
	for _, words := range mistakes.lines {
		found := false
		for line := range strings.Lines(log) {
			all := true
			for _, word := range words {
				all = all && strings.Contains(line, word)
			}
			found = found || all
		}
		if !found {
			t.Errorf("no line of Envoy's log has all of %q", words)
		}
	}
}

func TestABadPushLeavesTheOldConfigInForce(t *testing.T) {
	site := serve(t, perIP(5, ""), envoytest.Listener{})
	client := site.newcomer(t, "127.0.0.2")
	for range 3 {
		expectAdmitted(t, client.Get(t, "/"))
	}

	site.envoy.PushRefused(t, site.withConfig(t, mistakes.config))

	expectMistakesNamed(t, site.envoy.Log(t))
	if dump := site.envoy.ConfigDump(t); !strings.Contains(dump, `"error_state"`) {
		t.Error("Envoy's config dump says nothing of the listener that was refused")
	}
	response := client.Get(t, "/")
	expectAdmitted(t, response)
	expectLimit(t, response, 5, 1)
	expectAdmitted(t, client.Get(t, "/"))
	expectRefused(t, client.Get(t, "/"))

	// A good one is taken after that.
	site.envoy.Push(t, site.withConfig(t, perIP(5, `, "response": {"status": 503}`)))
	if response := client.Get(t, "/"); response.Status != 503 {
		t.Errorf("after a good push, got status %d, want 503", response.Status)
	}
}

func TestABadConfigAtStartUpEndsEnvoyAndSaysWhy(t *testing.T) {
	log := envoytest.StartRefused(t, envoytest.Options{
		Upstream: envoytest.NewUpstream(t),
		Listeners: []envoytest.Listener{{Filters: filters{
			envoytest.Wasm{Module: envoytest.Module(t, "sluice.wasm"), Config: mistakes.config}.Filter(),
		}}},
	})
	expectMistakesNamed(t, log)
}

// One that is left out reaches the filter as no data at all.
func TestAMissingConfigAtStartUpIsNamedAsOne(t *testing.T) {
	log := envoytest.StartRefused(t, envoytest.Options{
		Upstream: envoytest.NewUpstream(t),
		Listeners: []envoytest.Listener{{Filters: filters{
			envoytest.Wasm{Module: envoytest.Module(t, "sluice.wasm")}.Filter(),
		}}},
	})
	if want := `sluice: config: document: empty: want a JSON object with "limits" and "rules"`; !strings.Contains(log, want) {
		t.Errorf("want %q in the log:\n%s", want, log)
	}
}
