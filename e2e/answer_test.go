package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// answerConfig has a path for each thing that an answer depends on. Every test
// is a client of its own, by the header x-client.
const answerConfig = `{
	"limits": {
		"slow":  {"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/d", "key": ["header:x-client"]},
		"quick": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/2s", "key": ["header:x-client"]},
		"blink": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/s", "key": ["header:x-client"]}
	},
	"rules": [
		{"match": {"path": "/quick"}, "limits": ["quick"]},
		{"match": {"path": "/blink"}, "limits": ["blink"]},
		{"match": {"path": "/never"}, "limits": [{"limit": "slow", "cost": 6}]},
		{"match": {"path": "/status"}, "limits": ["slow"], "response": {"status": 503}},
		{"match": {"path": "/body"}, "limits": ["slow"], "response": {"body": "Zu viele Anfragen – später.\n"}},
		{"match": {"path_prefix": "/free"}, "limits": []},
		{"limits": ["slow"]}
	]
}`

const day = 24 * 60 * 60 // seconds

// exhaust sends requests until one is refused, and returns the refusal. That
// is the sixth request where the limit is 5 and refills by the day; where it
// refills by the second, a slow machine may take more.
func exhaust(t *testing.T, client *envoytest.Client, path, header string) envoytest.Response {
	t.Helper()
	var response envoytest.Response
	envoytest.Eventually(t, "a request is refused", func() bool {
		response = client.Get(t, path, header)
		return response.Status != http.StatusOK
	})
	return response
}

func TestWhatClientsAreTold(t *testing.T) {
	site := serve(t, answerConfig, envoytest.Listener{})
	client := site.client(t)

	t.Run("an admitted request says what is left", func(t *testing.T) {
		for used := 1; used <= 5; used++ {
			response := client.Get(t, "/", "x-client: admitted")
			expectAdmitted(t, response)
			expectLimit(t, response, 5, 5-used)
			if reset := number(t, response, "RateLimit-Reset"); reset > used*day || reset < used*day-600 {
				t.Errorf("after %d requests at one a day, RateLimit-Reset is %d seconds", used, reset)
			}
			for _, name := range []string{"Retry-After", "X-Envoy-Ratelimited"} {
				if response.Header.Get(name) != "" {
					t.Errorf("an admitted response has %s", name)
				}
			}
		}
	})

	t.Run("a refusal is a 429 with a JSON body that repeats Retry-After", func(t *testing.T) {
		response := exhaust(t, client, "/", "x-client: refused")
		expectRefused(t, response)
		expectLimit(t, response, 5, 0)
		retryAfter := number(t, response, "Retry-After")
		if retryAfter > day || retryAfter < day-600 {
			t.Errorf("the bucket is empty and gains one token a day; Retry-After is %d seconds", retryAfter)
		}
		if reset := number(t, response, "RateLimit-Reset"); reset > 5*day || reset < 5*day-600 {
			t.Errorf("the bucket is empty and full after five days; RateLimit-Reset is %d seconds", reset)
		}
		want := fmt.Sprintf(`{"error":"rate_limit_exceeded","message":"Too many requests. Try again in %d seconds.","retryAfter":%d}`, retryAfter, retryAfter)
		if response.Body != want {
			t.Errorf("the body is %s, want %s", response.Body, want)
		}
		if got := only(t, response, "Content-Type"); got != "application/json" {
			t.Errorf("content-type is %q", got)
		}
		if got := only(t, response, "X-Envoy-Ratelimited"); got != "true" {
			t.Errorf("x-envoy-ratelimited is %q", got)
		}
		if got := number(t, response, "Content-Length"); got != len(want) {
			t.Errorf("content-length is %d, want %d", got, len(want))
		}
	})

	t.Run("one second is not many", func(t *testing.T) {
		response := exhaust(t, client, "/blink", "x-client: blink")
		want := `{"error":"rate_limit_exceeded","message":"Too many requests. Try again in 1 second.","retryAfter":1}`
		if response.Body != want {
			t.Errorf("the body is %s, want %s", response.Body, want)
		}
	})

	t.Run("who waits as long as Retry-After says is admitted", func(t *testing.T) {
		refused := exhaust(t, client, "/quick", "x-client: waits")
		time.Sleep(time.Duration(number(t, refused, "Retry-After")) * time.Second)
		expectAdmitted(t, client.Get(t, "/quick", "x-client: waits"))
	})

	t.Run("what costs more than its limit never comes through and is told no time", func(t *testing.T) {
		response := client.Get(t, "/never", "x-client: never")
		expectRefused(t, response)
		if values := response.Header.Values("Retry-After"); len(values) != 0 {
			t.Errorf("Retry-After is %q, want none", values)
		}
		want := `{"error":"rate_limit_exceeded","message":"This request costs more than its limit allows.","retryAfter":null}`
		if response.Body != want {
			t.Errorf("the body is %s, want %s", response.Body, want)
		}
		expectLimit(t, client.Get(t, "/", "x-client: never"), 5, 4)
	})

	t.Run("a request without a limit says nothing of any", func(t *testing.T) {
		response := client.Get(t, "/free", "x-client: free")
		expectAdmitted(t, response)
		expectNoLimit(t, response)
	})

	t.Run("HEAD is refused without a body", func(t *testing.T) {
		exhaust(t, client, "/", "x-client: head")
		response := client.Do(t, "HEAD", "/", "x-client: head")
		expectRefused(t, response)
		expectLimit(t, response, 5, 0)
		number(t, response, "Retry-After")
		if response.Body != "" {
			t.Errorf("the body is %q, want none", response.Body)
		}
		// The connection is still in step.
		expectAdmitted(t, client.Do(t, "HEAD", "/free"))
	})

	t.Run("a rule has a status of its own", func(t *testing.T) {
		exhaust(t, client, "/", "x-client: status")
		response := client.Get(t, "/status", "x-client: status")
		if response.Status != 503 || !strings.HasPrefix(response.Body, `{"error":"rate_limit_exceeded",`) {
			t.Errorf("got %d %q, want 503 with the default body", response.Status, response.Body)
		}
		number(t, response, "Retry-After")
	})

	t.Run("a rule has a body of its own, as it was written", func(t *testing.T) {
		exhaust(t, client, "/", "x-client: body")
		response := client.Get(t, "/body", "x-client: body")
		expectRefused(t, response)
		if want := "Zu viele Anfragen – später.\n"; response.Body != want {
			t.Errorf("the body is %q, want %q", response.Body, want)
		}
	})

	t.Run("what the upstream says of its own limits is replaced", func(t *testing.T) {
		response := client.Get(t, "/", "x-client: upstream",
			"x-reply-header: RateLimit-Limit: 1000",
			"x-reply-header: RateLimit-Remaining: 999",
			"x-reply-header: ratelimit-remaining: 998",
			"x-reply-header: RateLimit-Reset: 7")
		expectAdmitted(t, response)
		expectLimit(t, response, 5, 4)
		if reset := number(t, response, "RateLimit-Reset"); reset == 7 {
			t.Error("RateLimit-Reset is the upstream's")
		}
	})

	t.Run("the upstream's own refusal is left alone", func(t *testing.T) {
		response := client.Get(t, "/", "x-client: upstream-503", "x-reply-status: 503", "x-reply-header: Retry-After: 7")
		if response.Status != 503 || only(t, response, "Retry-After") != "7" {
			t.Errorf("got status %d with Retry-After %q, want 503 with 7", response.Status, response.Header.Values("Retry-After"))
		}
		expectLimit(t, response, 5, 4)
	})
}

func TestTheAccessLogNamesTheLimitThatRefused(t *testing.T) {
	site := serve(t, answerConfig, envoytest.Listener{})
	client := site.client(t)
	exhaust(t, client, "/?first", "x-client: a")
	expectRefused(t, client.Get(t, "/?refused", "x-client: a"))

	entry := site.awaitLogged(t, "/?refused")
	if entry.Status != 429 || entry.Details != "sluice_rate_limited.slow" {
		t.Errorf("the access log has status %d, details %q, want 429, sluice_rate_limited.slow", entry.Status, entry.Details)
	}
}

func TestGRPCClientsAreRefusedInTheirOwnTerms(t *testing.T) {
	site := serve(t, answerConfig, envoytest.Listener{})
	client := envoytest.NewClient(t, site.addr, envoytest.ClientOptions{HTTP2: true})
	call := func(path, contentType string) envoytest.Response {
		return client.Do(t, "POST", path, "x-client: grpc", "te: trailers", "content-type: "+contentType)
	}
	for remaining := 4; remaining >= 0; remaining-- {
		response := call("/pkg.Service/Method", "application/grpc")
		expectAdmitted(t, response)
		expectLimit(t, response, 5, remaining)
		if got := response.Trailer.Get("Grpc-Status"); got != "0" {
			t.Fatalf("an admitted call ended with grpc-status %q, want 0", got)
		}
	}
	for _, path := range []string{"/pkg.Service/Method", "/body"} {
		for _, contentType := range []string{"application/grpc", "application/grpc+proto"} {
			response := call(path, contentType)
			if response.Status != 200 || response.Body != "" {
				t.Fatalf("%s: got status %d and body %q, want 200 without one, as gRPC has it", path, response.Status, response.Body)
			}
			if got := only(t, response, "Grpc-Status"); got != "8" {
				t.Errorf("%s: grpc-status is %s, want 8 (RESOURCE_EXHAUSTED)", path, got)
			}
			want := fmt.Sprintf("Too many requests. Try again in %d seconds.", number(t, response, "Retry-After"))
			if got := only(t, response, "Grpc-Message"); got != want {
				t.Errorf("%s: grpc-message is %q, want %q", path, got, want)
			}
			if got := only(t, response, "Content-Type"); !strings.HasPrefix(got, "application/grpc") {
				t.Errorf("%s: content-type is %q", path, got)
			}
			expectLimit(t, response, 5, 0)
		}
	}
	site.expectReached(t, 5)
	// Whoever only looks like gRPC gets the answer that HTTP clients get.
	expectRefused(t, call("/pkg.Service/Method", "application/grpc-web+proto"))
}

// Envoy adds a route's response headers to the filter's own answers too, before
// those pass the filter again.
func TestWhatARouteSaysOfLimitsIsReplacedEverywhere(t *testing.T) {
	route := envoytest.ToUpstream("all", "/")
	route["response_headers_to_add"] = []envoytest.Object{
		{"header": envoytest.Object{"key": "ratelimit-remaining", "value": "999"}},
		{"header": envoytest.Object{"key": "x-route", "value": "all"}},
	}
	site := serve(t, perIP(1, ""), envoytest.Listener{Routes: []envoytest.Object{route}})
	client := site.client(t)
	for _, expect := range []func(testing.TB, envoytest.Response){expectAdmitted, expectRefused} {
		response := client.Get(t, "/")
		expect(t, response)
		expectLimit(t, response, 1, 0)
	}
}
