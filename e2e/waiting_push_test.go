package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// Requests stay with the instance of the filter that has decided about them.
func TestWhoWaitsDuringAPushLeavesAsToldBefore(t *testing.T) {
	const limit, waiters = "waiting-pushed", 6
	site := serve(t, queue(limit, 10, "1/s", ""), envoytest.Listener{})
	arrivals, client := site.watch(), site.newcomer(t, "127.0.0.2")
	sent := time.Now()
	expectAdmitted(t, client.Get(t, site.path()+"?0"))
	var all []*envoytest.Pending
	for i := range waiters {
		all = append(all, client.Begin(t, "GET", fmt.Sprintf("%s?%d", site.path(), 1+i), nil))
		site.awaitStat(t, limit, "allowed", int64(2+i))
	}

	site.envoy.Push(t, site.withConfig(t, queue(limit, 3, "1/s", "")))

	// It is the same line, in which too many wait by the new config.
	refused := client.Get(t, site.path()+"?new")
	expectRefused(t, refused)
	expectLimit(t, refused, 3, 0)

	var want []string
	for i := range waiters + 1 {
		want = append(want, fmt.Sprintf("%s?%d", site.path(), i))
	}
	for _, pending := range all {
		response := pending.Await(t)
		expectAdmitted(t, response)
		if got := number(t, response, "RateLimit-Limit"); got != 10 {
			t.Errorf("a request that was there before the push is told of %d places, want the old limit's 10", got)
		}
	}
	if got := arrivals.Paths(); !slices.Equal(got, want) {
		t.Errorf("the requests left in the order %q, want %q", got, want)
	}
	expectNoneEarly(t, sent, time.Second, arrivals.All())
	site.awaitStat(t, limit, "waiting", 0)
	site.awaitStat(t, limit, "given_up", 0)

	later := client.Get(t, site.path()+"?later")
	expectAdmitted(t, later)
	if got := number(t, later, "RateLimit-Limit"); got != 3 {
		t.Errorf("a request after the push is told of %d places, want 3", got)
	}
}

// Envoy ends what is still on a listener when its time to drain is over.
func TestTheOldListenerDrainsThoughRequestsWait(t *testing.T) {
	const limit = "waiting-drained"
	site := alone(t, envoytest.Options{Workers: 2, Dynamic: true, DrainTime: 3}, envoytest.Listener{},
		envoytest.Wasm{Config: queue(limit, 10, "1/m", "")})
	client, waiting := site.newcomer(t, "127.0.0.2"), &line{site: site, limit: limit}
	expectAdmitted(t, client.Get(t, site.path()))
	cut := waiting.join(t, client, "GET", site.path()+"?cut", nil)

	site.envoy.Push(t, site.withConfig(t, queue(limit, 11, "1/m", "")))
	if response, err := cut.Ended(); err == nil && response.Status == 200 {
		t.Errorf("the request was served when the listener was gone")
	}
	site.awaitStat(t, limit, "waiting", 0)
	site.awaitStat(t, limit, "given_up", 1)
	envoytest.Eventually(t, "the old listener is gone", func() bool {
		return site.envoy.Stat(t, "listener_manager.total_listeners_draining") == 0
	})
	// It was the last in line, so that its place is the next one's.
	site.addr = site.envoy.Addr(t, "main")
	client, waiting = site.newcomer(t, "127.0.0.2"), &line{site: site, limit: limit}
	next := waiting.join(t, client, "GET", site.path()+"?next", nil)
	waiting.leave(t, next)
	site.expectDelayed(t, limit, site.path()+"?next", 0, time.Minute)
	if log := site.envoy.Log(t); strings.Contains(log, "panic") || strings.Contains(log, "Function") {
		t.Error("a VM has failed")
	}
}
