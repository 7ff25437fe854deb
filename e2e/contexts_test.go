package e2e

import (
	"net/http"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// expectUnharmed checks that a client has so many of its 5 requests left, which
// it uses up, and that nobody else is any worse off.
func expectUnharmed(t *testing.T, site *site, client *envoytest.Client, left int) {
	t.Helper()
	for remaining := left - 1; remaining >= 0; remaining-- {
		response := client.Get(t, "/")
		expectAdmitted(t, response)
		expectLimit(t, response, 5, remaining)
	}
	expectRefused(t, client.Get(t, "/"))
	expectLimit(t, site.newcomer(t, "127.0.9.9").Get(t, "/"), 5, 4)
}

func TestRequestsThatTheFilterNeverSeesAreNotCounted(t *testing.T) {
	site := serve(t, perIP(5, ""), envoytest.Listener{Filters: filters{
		envoytest.Lua(`
			function envoy_on_request(handle)
				if handle:headers():get("x-early") then
					handle:respond({[":status"] = "403", ["ratelimit-limit"] = "77"}, "not you")
				end
			end`),
	}})
	client := site.client(t)
	expectLimit(t, client.Get(t, "/"), 5, 4)
	for range 20 {
		// Answered by the filter ahead: its response passes this filter all the same.
		response := client.Get(t, "/", "x-early: yes")
		if response.Status != 403 || response.Body != "not you" || only(t, response, "RateLimit-Limit") != "77" {
			t.Fatalf("the answer of an earlier filter arrived as %d %q with RateLimit-Limit %q",
				response.Status, response.Body, response.Header.Values("RateLimit-Limit"))
		}
		// Refused by the codec: there is no request at all.
		bad := envoytest.Exchange(t, site.addr, "GET / HTTP/1.1", "host: a", "no colon here")
		if bad.Status != 400 {
			t.Fatalf("a request that is none got status %d, want 400", bad.Status)
		}
	}
	expectUnharmed(t, site, client, 4)
}

func TestAnInternalRedirectIsARequestOfItsOwn(t *testing.T) {
	site := serve(t, perIP(5, ""), envoytest.Listener{
		Routes: []envoytest.Object{envoytest.FollowRedirects(envoytest.ToUpstream("all", "/"))},
	})
	client := site.newcomer(t, "127.0.0.2")
	redirect := func() envoytest.Response {
		t.Helper()
		// The upstream redirects whatever it gets; Envoy follows once.
		return client.Get(t, "/", "x-reply-status: 302", "x-reply-header: Location: http://elsewhere/next")
	}
	for _, remaining := range []int{3, 1} {
		before := site.upstream.Requests()
		response := redirect()
		if response.Status != 302 || site.upstream.Requests()-before != 2 {
			t.Fatalf("got status %d after %d requests to the upstream, want 302 after two", response.Status, site.upstream.Requests()-before)
		}
		expectLimit(t, response, 5, remaining)
	}
	// One is left: the redirected request is refused on its way to its target.
	before := site.upstream.Requests()
	response := redirect()
	expectRefused(t, response)
	expectLimit(t, response, 5, 0)
	if site.upstream.Requests()-before != 1 {
		t.Errorf("%d requests reached the upstream, want one", site.upstream.Requests()-before)
	}
	expectUnharmed(t, site, site.newcomer(t, "127.0.0.3"), 5)
}

func TestCORSAheadOfTheFilter(t *testing.T) {
	const origin = "https://app.example.com"
	site := serve(t, perIP(2, ""), envoytest.Listener{
		Filters: filters{envoytest.CORS()},
		Routes:  []envoytest.Object{envoytest.AllowOrigin(envoytest.ToUpstream("all", "/"), origin)},
	})
	client := site.client(t)
	for range 5 {
		preflight := client.Do(t, http.MethodOptions, "/", "origin: "+origin, "access-control-request-method: GET")
		expectAdmitted(t, preflight)
		if got := only(t, preflight, "Access-Control-Allow-Origin"); got != origin {
			t.Fatalf("access-control-allow-origin of a preflight is %q", got)
		}
	}
	for remaining := 1; remaining >= 0; remaining-- {
		response := client.Get(t, "/", "origin: "+origin)
		expectAdmitted(t, response)
		expectLimit(t, response, 2, remaining) // the preflights took nothing
	}
	refused := client.Get(t, "/", "origin: "+origin)
	expectRefused(t, refused)
	if got := only(t, refused, "Access-Control-Allow-Origin"); got != origin {
		t.Errorf("access-control-allow-origin of a 429 is %q, want %q: the page's script can't read it", got, origin)
	}
	if got := only(t, refused, "Access-Control-Expose-Headers"); got != "retry-after" {
		t.Errorf("access-control-expose-headers of a 429 is %q", got)
	}
	expectAdmitted(t, client.Do(t, http.MethodOptions, "/", "origin: "+origin, "access-control-request-method: GET"))
}
