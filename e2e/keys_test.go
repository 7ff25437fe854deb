package e2e

import (
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

func TestARequestThatLacksItsKey(t *testing.T) {
	site := serve(t, `{
		"limits": {
			"shared": {"algorithm": "token_bucket", "capacity": 3, "refill_rate": "1/d", "key": ["header:x-api-key"]},
			"skip":   {"algorithm": "token_bucket", "capacity": 3, "refill_rate": "1/d", "key": ["header:x-api-key"], "missing": "skip"},
			"deny":   {"algorithm": "token_bucket", "capacity": 3, "refill_rate": "1/d", "key": ["header:x-api-key"], "missing": "deny"},
			"or-ip":  {"algorithm": "token_bucket", "capacity": 3, "refill_rate": "1/d", "key": ["header:x-api-key|ip"]}
		},
		"rules": [
			{"match": {"path": "/shared"}, "limits": ["shared"]},
			{"match": {"path": "/skip"}, "limits": ["skip"]},
			{"match": {"path": "/deny"}, "limits": ["deny"]},
			{"match": {"path": "/or-ip"}, "limits": ["or-ip"]}
		]
	}`, envoytest.Listener{})
	one, other := site.newcomer(t, "127.0.0.2"), site.newcomer(t, "127.0.0.3")

	t.Run("shared: all such requests are one client", func(t *testing.T) {
		expectAdmitted(t, one.Get(t, "/shared"))
		expectAdmitted(t, other.Get(t, "/shared"))
		expectAdmitted(t, other.Get(t, "/shared", "x-api-key: "))
		expectRefused(t, one.Get(t, "/shared"))
		expectRefused(t, one.Get(t, "/shared", "x-api-key: "))
		expectLimit(t, one.Get(t, "/shared", "x-api-key: a"), 3, 2)
	})

	t.Run("skip: the limit does not apply", func(t *testing.T) {
		for range 5 {
			for _, header := range []string{"x-other: a", "x-api-key: "} {
				response := one.Get(t, "/skip", header)
				expectAdmitted(t, response)
				expectNoLimit(t, response)
			}
		}
		expectLimit(t, one.Get(t, "/skip", "x-api-key: a"), 3, 2)
	})

	t.Run("deny: refused, and no waiting helps", func(t *testing.T) {
		before := site.upstream.Requests()
		for _, header := range []string{"x-other: a", "x-api-key: "} {
			response := one.Get(t, "/deny", header)
			expectRefused(t, response)
			expectNoLimit(t, response)
			if response.Header.Get("Retry-After") != "" {
				t.Error("there is a Retry-After")
			}
			want := `{"error":"rate_limit_exceeded","message":"A required credential is missing.","retryAfter":null}`
			if response.Body != want {
				t.Errorf("the body is %s, want %s", response.Body, want)
			}
		}
		if site.upstream.Requests() != before {
			t.Error("a denied request reached the upstream")
		}
		expectLimit(t, one.Get(t, "/deny", "x-api-key: a"), 3, 2)
	})

	t.Run("or by address, which no header can spell", func(t *testing.T) {
		for range 3 {
			expectAdmitted(t, one.Get(t, "/or-ip"))
		}
		expectRefused(t, one.Get(t, "/or-ip"))
		expectLimit(t, other.Get(t, "/or-ip", "x-api-key: 127.0.0.2"), 3, 2)
		expectLimit(t, other.Get(t, "/or-ip"), 3, 2)
		expectRefused(t, one.Get(t, "/or-ip"))
	})
}

func TestKeysThatLookAlikeAreDifferentClients(t *testing.T) {
	site := serve(t, `{
		"limits": {
			"pair":   {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["header:a", "header:b"]},
			"route":  {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["const:x", "method", "host", "path", "route"]}
		},
		"rules": [{"match": {"path": "/pair"}, "limits": ["pair"]}, {"limits": ["route"]}]
	}`, envoytest.Listener{})
	client := site.client(t)
	for _, pair := range [][]string{
		{"a: x", "b: yz"}, {"a: xy", "b: z"}, {"a: xyz"}, {"b: xyz"}, {"a: x", "a: y", "b: z"}, {"a: x,y", "b: z,"},
	} {
		expectAdmitted(t, client.Get(t, "/pair", pair...))
		expectRefused(t, client.Get(t, "/pair", pair...))
	}
	// Several lines of one header are their values joined by commas.
	expectRefused(t, client.Get(t, "/pair", "a: x,y", "b: z"))

	for _, request := range []struct{ method, path, host string }{
		{"GET", "/r/a", "one"}, {"PUT", "/r/a", "one"}, {"GET", "/r/b", "one"}, {"GET", "/r/a", "two"},
	} {
		expectAdmitted(t, client.Do(t, request.method, request.path, "host: "+request.host))
		expectRefused(t, client.Do(t, request.method, request.path, "host: "+strings.ToUpper(request.host)))
	}
}
