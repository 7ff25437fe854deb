package e2e

import (
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// A connection that was made before a config push stays with the old listener,
// and with the old instance of the filter, until that has drained.
func TestOldAndNewConfigCountInTheSameBucketsWhileTheOldListenerDrains(t *testing.T) {
	site := serve(t, perIP(6, `, "response": {"body": "old"}`), envoytest.Listener{})
	old := envoytest.NewClient(t, site.addr, envoytest.ClientOptions{HTTP2: true})
	expectLimit(t, old.Get(t, "/"), 6, 5)

	site.envoy.Push(t, site.withConfig(t, perIP(4, `, "response": {"body": "new"}`)))

	latest := site.newcomer(t, "127.0.0.1")
	// 1 of the 6 is spent, and so 1 of the 4.
	expectLimit(t, latest.Get(t, "/"), 4, 2)
	expectLimit(t, old.Get(t, "/"), 6, 3)
	expectLimit(t, latest.Get(t, "/"), 4, 0)
	refused := latest.Get(t, "/")
	expectRefused(t, refused)
	if refused.Body != "new" {
		t.Fatalf("the new config refuses with %q", refused.Body)
	}
	// What the old one still admits counts for the new one too.
	expectLimit(t, old.Get(t, "/"), 6, 1)
	retry := number(t, latest.Get(t, "/"), "Retry-After")
	if retry <= day || retry > 2*day {
		t.Errorf("5 of 4 are spent at one a day; Retry-After is %d seconds, want more than one day and at most two", retry)
	}
	expectLimit(t, old.Get(t, "/"), 6, 0)
	refused = old.Get(t, "/")
	expectRefused(t, refused)
	if refused.Body != "old" {
		t.Errorf("the old config refuses with %q: the connection is not the old listener's", refused.Body)
	}
}
