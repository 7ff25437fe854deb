package e2e

import (
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

func TestNoMoreThanTheLimitAreInFlightForEachClientOverAllWorkers(t *testing.T) {
	const limit, others = 5, 40
	h := serveHolding(t, envoytest.Options{}, envoytest.Wasm{Config: inFlightConfig(limit, "")}, envoytest.Listener{})
	clients := []string{"x-client: a", "x-client: b"}
	for range 3 { // the same after all have come back
		bursts := []*held{}
		for _, client := range clients {
			b := h.hold(t, h.newcomer(t), limit+others, client)
			b.expectHeld(t, limit)
			bursts = append(bursts, b)
			for _, refusal := range b.refused() {
				expectInFlightRefusal(t, refusal, limit)
			}
		}
		h.awaitInFlight(t, int64(limit*len(clients)))
		expectEveryWorkerBusy(t, h.envoy, "main")
		for _, b := range bursts {
			if tally := b.release(t); tally[200] != limit || tally[429] != others {
				t.Fatalf("got answers by status %v, want %d of 200 and %d of 429", tally, limit, others)
			}
			for _, response := range b.answers {
				if response.Status == 200 {
					expectInFlightAdmission(t, response, limit)
				}
			}
		}
		h.awaitInFlight(t, 0)
	}
}

// expectInFlightRefusal checks what a refusal by a concurrency limit says. When
// it will be over nobody knows.
func expectInFlightRefusal(t *testing.T, r envoytest.Response, limit int) {
	t.Helper()
	expectLimit(t, r, limit, 0)
	if retry := number(t, r, "Retry-After"); retry != 1 {
		t.Errorf("Retry-After is %d, want 1", retry)
	}
	if values := r.Header.Values("RateLimit-Reset"); len(values) != 0 {
		t.Errorf("RateLimit-Reset is %q, want none", values)
	}
	if want := `{"error":"rate_limit_exceeded","message":"Too many requests. Try again in 1 second.","retryAfter":1}`; r.Body != want {
		t.Errorf("the body is %s, want %s", r.Body, want)
	}
}

// expectInFlightAdmission checks what an admitted response says.
func expectInFlightAdmission(t *testing.T, r envoytest.Response, limit int) {
	t.Helper()
	if n, remaining := number(t, r, "RateLimit-Limit"), number(t, r, "RateLimit-Remaining"); n != limit || remaining >= limit {
		t.Errorf("the response says %d of %d left", remaining, n)
	}
	for _, name := range []string{"RateLimit-Reset", "Retry-After"} {
		if values := r.Header.Values(name); len(values) != 0 {
			t.Errorf("an admitted response has %s: %q, want none", name, values)
		}
	}
}

// A request that another limit refuses is not in flight, and one under two
// concurrency limits is in flight under both, whatever it costs.
func TestARequestIsInFlightUnderAllItsLimitsOrNone(t *testing.T) {
	h := serveHolding(t, envoytest.Options{}, envoytest.Wasm{Config: `{
		"limits": {
			"busy":  {"algorithm": "concurrency", "limit": 3, "key": ["header:x-client"]},
			"all":   {"algorithm": "concurrency", "limit": 4, "key": []},
			"quota": {"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/d", "key": ["header:x-client"]}
		},
		"always": ["all"],
		"rules":  [{"limits": ["busy", "quota"], "cost": 2}]
	}`}, envoytest.Listener{})
	a := h.hold(t, h.newcomer(t), 10, "x-client: a")
	a.expectHeld(t, 2) // by quota: 5 tokens pay for two requests of 2
	h.awaitInFlight(t, 2)
	b := h.hold(t, h.newcomer(t), 10, "x-client: b")
	b.expectHeld(t, 2) // by quota again, and all are taken then
	c := h.hold(t, h.newcomer(t), 10, "x-client: c")
	c.expectHeld(t, 0)
	for _, refusal := range c.refused() {
		expectInFlightRefusal(t, refusal, 4)
	}
	if n := h.envoy.Stat(t, limitStat("all", "in_flight")); n != 4 {
		t.Errorf("%d are in flight under the limit for all, want 4", n)
	}
	c.release(t)
	a.release(t)
	envoytest.Eventually(t, "two are in flight under the limit for all", func() bool {
		return h.envoy.Stat(t, limitStat("all", "in_flight")) == 2
	})
	h.expectExactly(t, 2, "x-client: c") // whose quota has not been touched by the refusals
	b.release(t)
	h.awaitInFlight(t, 0)
}
