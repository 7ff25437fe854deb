package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
	"github.com/sluice-proxy/sluice/e2e/fleettest"
)

// strictly is a config of one Envoy that asks a service about each request. A path
// names the limit that it is under.
func strictly(cluster, protocol, further string) string {
	return fmt.Sprintf(`{
		"global": {"cluster": %q, "protocol": %q, "timeout": "2s"},
		"limits": {
			"day":     {"algorithm": "fixed_window", "limit": 5, "window": "1d", "key": ["header:x-client"], "scope": "global"},
			"minute":  {"algorithm": "fixed_window", "limit": 5, "window": "1m", "key": ["header:x-client"], "scope": "global"},
			"shadow":  {"algorithm": "fixed_window", "limit": 1, "window": "1d", "key": ["header:x-client"], "scope": "global", "shadow": true},
			"plan":    {"algorithm": "fixed_window", "limit": 2, "window": "1d", "key": ["header:x-client"], "scope": "global", "missing": "deny", "overrides": [
				{"match": {"headers": {"x-plan": "gold"}}, "limit": 4}, {"match": {"headers": {"x-plan": "free"}}, "unlimited": true}]},
			"skip":    {"algorithm": "fixed_window", "limit": 1, "window": "1d", "key": ["header:x-client"], "scope": "global", "missing": "skip"},
			"tokens":  {"algorithm": "fixed_window", "limit": 100, "window": "1d", "key": ["header:x-client"], "scope": "global", "charge": {"response_header": "x-used", "max": 500}},
			%s
			"process": {"algorithm": "fixed_window", "limit": 7, "window": "1d", "key": ["header:x-client"]}
		},
		"rules": [
			{"match": {"path": "/process"}, "limits": [{"limit": "process", "cost": 0}]},
			{"match": {"path": "/day"}, "limits": ["day"], "cost": {"header": "x-cost", "default": 1, "max": 100}},
			{"match": {"path": "/both"}, "limits": ["process", "day"]},
			{"match": {"path": "/minute"}, "limits": ["minute"]},
			{"match": {"path": "/shadow"}, "limits": ["shadow"]},
			{"match": {"path": "/plan"}, "limits": ["plan"]},
			{"match": {"path": "/skip"}, "limits": ["skip"]},
			{"match": {"path": "/tokens"}, "limits": ["tokens"]},
			{"match": {"path": "/further"}, "limits": ["further"], "cost": {"header": "x-cost", "default": 1, "max": 500}},
			{"match": {"path_prefix": "/svc"}, "limits": ["day"]}
		]
	}`, cluster, protocol, further)
}

// strictSite is a listener of an Envoy whose filter asks a service strictly.
type strictSite struct {
	protocol string
	envoy    *envoytest.Envoy
	client   *envoytest.Client
}

// get sends a request of a client.
func (s *strictSite) get(t *testing.T, path, client string, headers ...string) envoytest.Response {
	t.Helper()
	return s.client.Get(t, path, append([]string{"x-client: " + client}, headers...)...)
}

// serveStrictly starts one Envoy with a listener for each cluster. The names of
// the clusters, as bare text, would be messages to Envoy, and end it.
func serveStrictly(t *testing.T) map[string]*strictSite {
	t.Helper()
	rls, gubernator := rateLimitServer(t).Addr(), fleettest.StartGubernator(t).Addr()
	const second = `"further": {"algorithm": "fixed_window", "limit": 1, "window": "1s", "key": ["header:x-client"], "scope": "global"},`
	const bucket = `"further": {"algorithm": "token_bucket", "capacity": 1000, "refill_rate": "10/s", "key": ["header:x-client"], "scope": "global"},`
	options := envoytest.Options{Workers: workers, Upstream: envoytest.NewUpstream(t)}
	sites := map[string]*strictSite{
		"model": {protocol: "rls"},
		"envoy": {protocol: "gubernator"},
		"xa":    {protocol: "rls"},
	}
	for cluster, site := range sites {
		addr, further := rls, second
		if site.protocol == "gubernator" {
			addr, further = gubernator, bucket
		}
		options.Clusters = append(options.Clusters, envoytest.HTTP2Cluster(cluster, addr))
		options.Listeners = append(options.Listeners, envoytest.Listener{Name: cluster, Filters: filters{envoytest.Wasm{
			Name:   cluster,
			Module: envoytest.Module(t, "sluice.wasm"),
			Config: strictly(cluster, site.protocol, further),
		}.Filter()}})
	}
	envoy := envoytest.Start(t, options)
	for cluster, site := range sites {
		site.envoy = envoy
		site.client = envoytest.NewClient(t, envoy.Addr(t, cluster), envoytest.ClientOptions{HTTP2: true})
	}
	return sites
}

func TestAStrictLimitMeansWhatItMeansInTheProcess(t *testing.T) {
	sites := serveStrictly(t)
	for cluster, site := range sites {
		t.Run(cluster, func(t *testing.T) {
			onOneDay(func(try string) {
				key := cluster + "-" + try
				site.expectHeaders(t, key)
				site.expectCosts(t, key+"-cost")
				site.expectProcessLimitGivenBack(t, key+"-both")
				site.expectShadow(t, key)
				site.expectOverrides(t, key)
				site.expectMissing(t, key)
				site.expectCharge(t, key)
				site.expectGRPC(t, key+"-grpc")
			})
			if site.protocol == "rls" {
				site.expectSeconds(t)
			} else {
				site.expectRefill(t)
			}
		})
	}
}

// expectReset checks that a reset is within a window, and that a refusal says the
// same as Retry-After.
func expectReset(t *testing.T, r envoytest.Response, window int) {
	t.Helper()
	reset := number(t, r, "RateLimit-Reset")
	if reset < 1 || reset > window {
		t.Fatalf("the reset is in %d s, want 1 to %d", reset, window)
	}
	if r.Status == 429 && number(t, r, "Retry-After") != reset {
		t.Fatalf("Retry-After is %d, want %d as the reset", number(t, r, "Retry-After"), reset)
	}
}

// expectMidnight checks that a reset is when the day is over, by UTC: within five
// seconds, whichever day it is just before and just after midnight.
func expectMidnight(t *testing.T, r envoytest.Response) {
	t.Helper()
	const day = 24 * 60 * 60
	expectReset(t, r, day)
	left := day - int(time.Now().UTC().Unix()%day)
	if off := (number(t, r, "RateLimit-Reset") - left + day) % day; off > 5 && off < day-5 {
		t.Fatalf("the reset is in %d s, want the %d until midnight", number(t, r, "RateLimit-Reset"), left)
	}
}

func (s *strictSite) expectHeaders(t *testing.T, key string) {
	for left := 4; left >= 0; left-- {
		r := s.get(t, "/day", key)
		expectAdmitted(t, r)
		expectLimit(t, r, 5, left)
		expectMidnight(t, r)
	}
	r := s.get(t, "/day", key)
	expectRefused(t, r)
	expectLimit(t, r, 5, 0)
	expectMidnight(t, r)

	r = s.get(t, "/minute", key)
	expectAdmitted(t, r)
	expectReset(t, r, 60)
}

// A look, and what is never admitted, take nothing, neither from a client that is
// new to the service nor from one that is known.
func (s *strictSite) expectCosts(t *testing.T, key string) {
	for _, left := range []int{5, 4} {
		r := s.get(t, "/day", key, "x-cost: 6")
		expectRefused(t, r)
		expectLimit(t, r, 5, left)
		if values := r.Header.Values("Retry-After"); len(values) > 0 {
			t.Fatalf("what is never admitted has Retry-After %q", values)
		}
		r = s.get(t, "/day", key, "x-cost: 0")
		expectAdmitted(t, r)
		expectLimit(t, r, 5, left)
		r = s.get(t, "/day", key)
		expectAdmitted(t, r)
		expectLimit(t, r, 5, left-1)
	}
	expectAdmitted(t, s.get(t, "/day", key, "x-cost: 3"))
	for range 2 {
		expectRefused(t, s.get(t, "/day", key))
	}
	r := s.get(t, "/day", key, "x-cost: 0")
	expectAdmitted(t, r)
	expectLimit(t, r, 5, 0)
}

func (s *strictSite) expectProcessLimitGivenBack(t *testing.T, key string) {
	for range 5 {
		expectAdmitted(t, s.get(t, "/both", key))
	}
	for range 4 {
		r := s.get(t, "/both", key)
		expectRefused(t, r)
		expectLimit(t, r, 5, 0)
	}
	expectLimit(t, s.get(t, "/process", key), 7, 2)
}

func (s *strictSite) expectShadow(t *testing.T, key string) {
	before := s.envoy.Stat(t, limitStat("shadow", "shadow_refused"))
	for range 3 {
		r := s.get(t, "/shadow", key)
		expectAdmitted(t, r)
		expectNoLimit(t, r)
	}
	envoytest.Eventually(t, "two refusals in shadow are counted", func() bool {
		return s.envoy.Stat(t, limitStat("shadow", "shadow_refused"))-before == 2
	})
}

func (s *strictSite) expectOverrides(t *testing.T, key string) {
	for plan, limit := range map[string]int{"none": 2, "gold": 4} {
		for left := limit - 1; left >= 0; left-- {
			r := s.get(t, "/plan", key, "x-plan: "+plan)
			expectAdmitted(t, r)
			expectLimit(t, r, limit, left)
		}
		expectRefused(t, s.get(t, "/plan", key, "x-plan: "+plan))
	}
	for range 3 {
		r := s.get(t, "/plan", key, "x-plan: free")
		expectAdmitted(t, r)
		expectNoLimit(t, r)
	}
}

func (s *strictSite) expectMissing(t *testing.T, key string) {
	r := s.client.Get(t, "/plan")
	expectRefused(t, r)
	expectNoLimit(t, r)
	for range 3 {
		r := s.client.Get(t, "/skip")
		expectAdmitted(t, r)
		expectNoLimit(t, r)
	}
	expectAdmitted(t, s.get(t, "/skip", key))
	expectRefused(t, s.get(t, "/skip", key))
}

// What a response costs is taken from the service, even where less is left.
func (s *strictSite) expectCharge(t *testing.T, key string) {
	r := s.get(t, "/tokens", key, "x-reply-header: x-used: 30")
	expectAdmitted(t, r)
	expectLimit(t, r, 100, 99)
	s.awaitCharge(t, key, 68)
	r = s.get(t, "/tokens", key, "x-reply-header: x-used: 400")
	expectAdmitted(t, r)
	envoytest.Eventually(t, "the charge takes all", func() bool {
		return s.get(t, "/tokens", key, "x-reply-header: x-used: 0").Status == 429
	})
}

// awaitCharge waits until a client has so much left, or less by what it asked
// while the charge was on its way.
func (s *strictSite) awaitCharge(t *testing.T, key string, left int) {
	t.Helper()
	asked := 0
	envoytest.Eventually(t, "the charge is taken", func() bool {
		r := s.get(t, "/tokens", key, "x-reply-header: x-used: 0")
		expectAdmitted(t, r)
		got := number(t, r, "RateLimit-Remaining")
		asked++
		return got == left-asked+1
	})
}

func (s *strictSite) expectGRPC(t *testing.T, key string) {
	call := func() envoytest.Response {
		return s.client.Do(t, "POST", "/svc/Method", "content-type: application/grpc", "te: trailers", "x-client: "+key)
	}
	for range 5 {
		if r := call(); r.Trailer.Get("grpc-status") != "0" {
			t.Fatalf("grpc-status is %q, want the call admitted", r.Trailer.Get("grpc-status"))
		}
	}
	if r := call(); r.Status != 200 || only(t, r, "Grpc-Status") != "8" {
		t.Fatalf("got status %d, grpc-status %q, want 200 and 8", r.Status, r.Header.Values("Grpc-Status"))
	}
}

// One a second: what is refused in a window is told to come back in one second.
func (s *strictSite) expectSeconds(t *testing.T) {
	envoytest.Eventually(t, "a second request of one second is refused", func() bool {
		expectReset(t, s.get(t, "/further", "second"), 1)
		r := s.get(t, "/further", "second")
		expectReset(t, r, 1)
		return r.Status == 429
	})
	envoytest.Eventually(t, "the next second admits", func() bool {
		return s.get(t, "/further", "second").Status == 200
	})
}

// The bucket fills while it is looked at: ten a second.
func (s *strictSite) expectRefill(t *testing.T) {
	r := s.get(t, "/further", "bucket", "x-cost: 500")
	expectAdmitted(t, r)
	expectLimit(t, r, 1000, 500)
	if reset := number(t, r, "RateLimit-Reset"); reset < 50 || reset > 51 {
		t.Errorf("500 are back in %d s, want 50", reset)
	}
	var left, reset int
	envoytest.Eventually(t, "some of the bucket is back", func() bool {
		r := s.get(t, "/further", "bucket", "x-cost: 0")
		expectAdmitted(t, r)
		left, reset = number(t, r, "RateLimit-Remaining"), number(t, r, "RateLimit-Reset")
		return left >= 515
	})
	if want := (1000 - left + 9) / 10; reset < want || reset > want+1 {
		t.Errorf("with %d left the reset is in %d s, want %d", left, reset, want)
	}
}
