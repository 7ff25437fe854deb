package e2e

import (
	"fmt"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// In this config every rule has a limit of another size, so that the header
// RateLimit-Limit of an answer tells which rule held.
const rulesConfig = `{
	"limits": {
		"login":  {"algorithm": "token_bucket", "capacity": 1001, "refill_rate": "1/d", "key": []},
		"post":   {"algorithm": "token_bucket", "capacity": 1002, "refill_rate": "1/d", "key": []},
		"api":    {"algorithm": "token_bucket", "capacity": 1003, "refill_rate": "1/d", "key": []},
		"host":   {"algorithm": "token_bucket", "capacity": 1004, "refill_rate": "1/d", "key": []},
		"under":  {"algorithm": "token_bucket", "capacity": 1005, "refill_rate": "1/d", "key": []},
		"report": {"algorithm": "token_bucket", "capacity": 1006, "refill_rate": "1/d", "key": []},
		"rest":   {"algorithm": "token_bucket", "capacity": 1007, "refill_rate": "1/d", "key": []}
	},
	"rules": [
		{"match": {"path": "/login"}, "limits": ["login"]},
		{"match": {"method": ["POST", "PUT"], "path_prefix": "/things"}, "limits": ["post"]},
		{"match": {"path_prefix": "/api"}, "limits": ["api"]},
		{"match": {"host": "shop.example.com"}, "limits": ["host"]},
		{"match": {"host": "*.example.org"}, "limits": ["under"]},
		{"match": {"route": "reports"}, "limits": ["report"]},
		{"limits": ["rest"]}
	]
}`

func TestAnotherSpellingOfARequestCannotDodgeItsRule(t *testing.T) {
	site := serve(t, rulesConfig, envoytest.Listener{
		Routes: []envoytest.Object{envoytest.ToUpstream("reports", "/reports"), envoytest.ToUpstream("all", "/")},
	})
	const login, post, api, host, under, report, rest = 1001, 1002, 1003, 1004, 1005, 1006, 1007
	for _, c := range []struct {
		method, path, host string
		limit              int
	}{
		{"GET", "/login", "a", login},
		{"GET", "/login/", "a", login},
		{"GET", "//login", "a", login},
		{"GET", "/./login", "a", login},
		{"GET", "/login/.", "a", login},
		{"GET", "/x/../login", "a", login},
		{"GET", "/x/%2e%2E/login", "a", login},
		{"GET", "/%6cogin", "a", login},
		{"GET", "/%6Cogin//", "a", login},
		{"GET", "/login?next=/", "a", login},
		{"GET", "/login?", "a", login},
		{"GET", "http://a/login", "a", login},
		{"POST", "/login", "a", login},
		{"GET", "/loginx", "a", rest},
		{"GET", "/login.css", "a", rest},
		{"GET", "/login/x", "a", rest},
		{"GET", "/LOGIN", "a", rest},
		{"GET", "/x%2Flogin", "a", rest},
		{"GET", "/%256cogin", "a", rest},
		{"GET", "/?/login", "a", rest},

		{"POST", "/things", "a", post},
		{"PUT", "/things/1", "a", post},
		{"GET", "/things/1", "a", rest},

		{"GET", "/api", "a", api},
		{"GET", "/api/x/y", "a", api},
		{"GET", "/x/../api//x", "a", api},
		{"GET", "/apix", "a", rest},
		{"GET", "/api/../x", "a", rest},

		{"GET", "/", "shop.example.com", host},
		{"GET", "/", "SHOP.Example.com", host},
		{"GET", "/", "shop.example.com:8443", host},
		{"GET", "/", "shop.example.com.", host},
		{"GET", "/", "shop.example.com.evil.net", rest},
		{"GET", "/", "a.example.org", under},
		{"GET", "/", "a.b.Example.org:80", under},
		{"GET", "/", "example.org", rest},
		{"GET", "/", "badexample.org", rest},

		{"GET", "/reports/1", "a", report},
		{"GET", "/login", "shop.example.com", login}, // the first rule that holds
	} {
		response := envoytest.Exchange(t, site.addr,
			fmt.Sprintf("%s %s HTTP/1.1", c.method, c.path),
			"host: "+c.host,
			"content-length: 0")
		expectAdmitted(t, response)
		if got := number(t, response, "RateLimit-Limit"); got != c.limit {
			t.Errorf("%s %s of host %s: the rule of limit %d held, want that of %d", c.method, c.path, c.host, got, c.limit)
		}
	}
}

func TestSeveralLimitsOfOneRequestAreDecidedAsOne(t *testing.T) {
	const wide, narrow = 50, 3
	site := serve(t, `{
		"limits": {
			"wide":   {"algorithm": "token_bucket", "capacity": 50, "refill_rate": "1/d", "key": ["header:x-test"]},
			"narrow": {"algorithm": "token_bucket", "capacity": 3, "refill_rate": "1/d", "key": ["header:x-test"]}
		},
		"always": ["wide"],
		"rules":  [
			{"match": {"path": "/both"}, "limits": ["narrow"]},
			{"match": {"path": "/costly"}, "limits": [{"limit": "wide", "cost": 10}, "narrow"]},
			{"limits": []}
		]
	}`, envoytest.Listener{})
	client := site.newcomer(t, "127.0.0.2")

	t.Run("a refusal by the second charges the first nothing", func(t *testing.T) {
		const test = "x-test: turns"
		for used := 1; used <= narrow; used++ {
			response := client.Get(t, "/both", test)
			expectAdmitted(t, response)
			expectLimit(t, response, narrow, narrow-used) // the smaller share is reported
		}
		for range 100 {
			response := client.Get(t, "/both?refused", test)
			expectRefused(t, response)
			expectLimit(t, response, narrow, 0)
			number(t, response, "RateLimit-Reset")
			number(t, response, "Retry-After")
		}
		response := client.Get(t, "/wide-only", test)
		expectAdmitted(t, response)
		expectLimit(t, response, wide, wide-narrow-1)
	})

	t.Run("nor does it when all come at once", func(t *testing.T) {
		const test = "x-test: at-once"
		// Fewer at once than the wide limit has left, since what is being given
		// back counts until it has been.
		for range 10 {
			_, err := envoytest.AtOnce(40, func(int) (envoytest.Response, error) {
				return client.Send("GET", "/both", test)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		expectLimit(t, client.Get(t, "/wide-only", test), wide, wide-narrow-1)
	})

	t.Run("a limit that both name counts once, at the larger cost", func(t *testing.T) {
		const test = "x-test: once"
		expectAdmitted(t, client.Get(t, "/costly", test))
		expectLimit(t, client.Get(t, "/wide-only", test), wide, wide-10-1)
	})

	t.Run("the access log names the one that refused", func(t *testing.T) {
		if entry := site.awaitLogged(t, "/both?refused"); entry.Details != "sluice_rate_limited.narrow" {
			t.Errorf("the access log has details %q, want sluice_rate_limited.narrow", entry.Details)
		}
	})
}

func TestARefusalIsNotRememberedForARequestThatCostsLess(t *testing.T) {
	site := serve(t, `{
		"limits": {"all": {"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/d", "key": []}},
		"rules":  [
			{"match": {"path": "/dear"}, "limits": ["all"], "cost": 4},
			{"match": {"path": "/look"}, "limits": ["all"], "cost": 0},
			{"limits": ["all"]}
		]
	}`, envoytest.Listener{})
	client := site.client(t)
	expectAdmitted(t, client.Get(t, "/dear"))
	expectRefused(t, client.Get(t, "/dear"))
	expectAdmitted(t, client.Get(t, "/"))
	expectRefused(t, client.Get(t, "/"))
	response := client.Get(t, "/look")
	expectAdmitted(t, response)
	expectLimit(t, response, 5, 0)
}
