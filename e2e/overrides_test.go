package e2e

import (
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

func TestAnOverrideIsForWhoeverMatchesIt(t *testing.T) {
	site := serve(t, `{
		"limits": {"read": {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/d", "key": ["ip"], "overrides": [
			{"match": {"value": {"header:x-api-key": ["partner-7", "partner-8"]}}, "capacity": 5},
			{"match": {"value": {"metadata:envoy.filters.http.jwt_authn/payload/plan": "gold"}}, "capacity": 7},
			{"match": {"ip": "127.0.8.0/24"}, "capacity": 4},
			{"match": {"ip": ["127.0.9.9", "127.0.8.1"]}, "unlimited": true}
		]}},
		"rules": [{"limits": ["read"]}]
	}`, envoytest.Listener{Filters: filters{envoytest.JWTAuthn()}})
	gold := "authorization: Bearer " + envoytest.Token(t, envoytest.Object{"sub": "ada", "plan": "gold"})
	for _, c := range []struct {
		from    string
		headers []string
		limit   int // 0: unlimited
	}{
		{"127.0.1.1", nil, 2},
		{"127.0.1.1", []string{"x-api-key: partner-7"}, 5}, // a bucket of its own
		{"127.0.1.2", []string{"x-api-key: partner-8"}, 5},
		{"127.0.1.3", []string{"x-api-key: partner-9"}, 2},
		{"127.0.1.4", []string{gold}, 7},
		{"127.0.1.5", []string{gold, "x-api-key: partner-7"}, 5}, // the first that matches
		{"127.0.1.6", []string{"authorization: Bearer " + envoytest.Token(t, envoytest.Object{"plan": "iron"})}, 2},
		{"127.0.1.7", []string{"x-plan: gold", "plan: gold"}, 2}, // whoever only says so
		{"127.0.8.1", nil, 4}, // the first again
		{"127.0.9.9", nil, 0},
		{"127.0.9.8", nil, 2},
	} {
		client := site.newcomer(t, c.from)
		if c.limit == 0 {
			for range 10 {
				response := client.Get(t, "/", c.headers...)
				expectAdmitted(t, response)
				expectNoLimit(t, response)
			}
			continue
		}
		expectSpent(t, c.limit, func() envoytest.Response { return client.Get(t, "/", c.headers...) })
	}
	// A token that nobody has signed gets no further than to authentication.
	if response := site.client(t).Get(t, "/", gold[:len(gold)-3]+"AAA"); response.Status != 401 {
		t.Errorf("a made-up claim got status %d, want 401", response.Status)
	}
}

func TestARefusedClientIsAdmittedWhenALargerOverrideApplies(t *testing.T) {
	site := serve(t, `{
		"limits": {"read": {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/d", "key": ["ip"], "overrides": [
			{"match": {"value": {"header:x-plan": "gold"}}, "capacity": 5},
			{"match": {"value": {"header:x-plan": "free"}}, "unlimited": true}
		]}},
		"rules": [{"limits": ["read"]}]
	}`, envoytest.Listener{})
	client := site.client(t) // one connection: the worker that has refused decides again
	expectSpent(t, 2, func() envoytest.Response { return client.Get(t, "/") })
	for range 3 {
		expectRefused(t, client.Get(t, "/"))
	}
	expectLimit(t, client.Get(t, "/", "x-plan: gold"), 5, 4)
	expectRefused(t, client.Get(t, "/")) // what the override admits is not charged here
	expectAdmitted(t, client.Get(t, "/", "x-plan: free"))
	expectLimit(t, client.Get(t, "/", "x-plan: gold"), 5, 3)
	expectRefused(t, client.Get(t, "/", "x-plan: iron"))
}

func TestWhatIsExemptIsNeverLimitedCountedOrGivenHeaders(t *testing.T) {
	site := serve(t, `{
		"limits": {
			"exempted": {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/d", "key": ["ip"]},
			"exempted-always": {"algorithm": "token_bucket", "capacity": 100, "refill_rate": "1/d", "key": []}
		},
		"always": ["exempted-always"],
		"exempt": [{"path": "/healthz", "ip": "127.0.8.0/24"}, {"headers": {"x-probe": {"prefix": "kube-"}}, "method": ["GET", "HEAD"]}],
		"rules":  [{"match": {"path": "/none"}, "limits": []}, {"limits": ["exempted"]}]
	}`, envoytest.Listener{})
	inside, outside := site.newcomer(t, "127.0.8.8"), site.newcomer(t, "127.0.1.1")
	free := func() {
		t.Helper()
		for range 4 {
			for _, response := range []envoytest.Response{
				inside.Get(t, "/healthz"), inside.Get(t, "/x/../healthz/"), outside.Get(t, "/", "x-probe: kube-1"),
			} {
				expectAdmitted(t, response)
				expectNoLimit(t, response)
			}
		}
	}
	free()
	expectLimit(t, outside.Get(t, "/healthz"), 2, 1) // one field of two
	expectLimit(t, outside.Do(t, "PUT", "/", "x-probe: kube-1"), 2, 0)
	expectRefused(t, outside.Get(t, "/", "x-probe: other"))
	expectLimit(t, inside.Get(t, "/"), 2, 1)
	// Nothing but exempt frees from what always applies.
	expectLimit(t, outside.Get(t, "/none"), 100, 96)
	free()
	expectLimit(t, outside.Get(t, "/none"), 100, 95)
	envoytest.Eventually(t, "what was admitted is counted", func() bool {
		return site.envoy.Stat(t, limitStat("exempted-always", "allowed")) == 5
	})
}
