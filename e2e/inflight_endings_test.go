package e2e

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// endingRoutes are routes on which requests end otherwise than on "/".
func endingRoutes() []envoytest.Object {
	return []envoytest.Object{
		envoytest.Direct("direct", "/direct"),
		envoytest.To("refusing", "/refusing"),
		envoytest.To("http1", "/http1"),
		envoytest.With(envoytest.To("upstream", "/timeout"), "timeout", "0.05s"),
		envoytest.With(envoytest.To("upstream", "/idle"), "idle_timeout", "0.05s"),
		envoytest.With(envoytest.To("upstream", "/long"), "max_stream_duration", envoytest.Object{"max_stream_duration": "0.05s"}),
		envoytest.With(envoytest.To("upstream", "/retry"), "retry_policy", envoytest.Object{
			"retry_on": "5xx", "num_retries": 3,
			"retry_back_off": envoytest.Object{"base_interval": "0.001s"},
		}),
		envoytest.With(envoytest.To("http1", "/upgrade"), "upgrade_configs", []envoytest.Object{{"upgrade_type": "websocket"}}),
		envoytest.FollowRedirects(envoytest.To("upstream", "/redirect")),
		envoytest.ToUpstream("all", "/"),
	}
}

// The listener has a virtual host without a route for most paths, and one filter
// ahead of the filter, which answers preflights.
func endingListener() envoytest.Listener {
	return envoytest.Listener{
		Filters: filters{envoytest.CORS()},
		Routes:  endingRoutes(),
		VirtualHosts: []envoytest.Object{
			envoytest.VirtualHost("none", "nowhere.test", envoytest.Direct("x", "/x")),
			envoytest.VirtualHost("cors", "cors.test", envoytest.AllowOrigin(envoytest.ToUpstream("cors", "/"), "https://app.test")),
		},
	}
}

// The filters behind the filter, which answer in place of the upstream. The last
// one is another instance, whose only limit refuses the path /beside.
func endingFilters(t *testing.T) []envoytest.Object {
	return []envoytest.Object{
		envoytest.DenyHeader("x-end", "rbac"),
		envoytest.Faults(),
		envoytest.Lua(`function envoy_on_request(handle)
			if handle:headers():get("x-end") == "lua" then
				handle:respond({[":status"] = "418"}, "no")
			end
		end`),
		envoytest.Named(envoytest.Wasm{Module: envoytest.Module(t, "sluice.wasm"), Name: "beside", Config: `{
			"limits": {"beside": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": []}},
			"rules":  [{"match": {"path": "/beside"}, "limits": [{"limit": "beside", "cost": 2}]}]
		}`}.Filter(), "beside"),
	}
}

// ending is one way in which a request ends.
type ending struct {
	name string
	// end has a request of a client that is told by the header end that way, and
	// returns when the client knows of it.
	end func(t *testing.T, h *holding, client string)
}

// answered is a request that gets an answer with this status.
func answered(name string, status int, path string, headers ...string) ending {
	return ending{name, func(t *testing.T, h *holding, client string) {
		t.Helper()
		response := h.newcomer(t).Get(t, path, append(headers, client)...)
		if response.Status != status {
			t.Fatalf("got status %d %q, want %d", response.Status, response.Body, status)
		}
	}}
}

var endings = []ending{
	answered("a response", 200, "/"),
	answered("a response with a status of failure", 500, "/", "x-reply-status: 500"),
	answered("an answer by the route itself", 200, "/direct"),
	answered("no route", 404, "/y", "host: nowhere.test"),
	answered("a refused connection to the upstream", 503, "/refusing"),
	answered("a reset by the upstream", 503, "/", "x-end: abort"),
	answered("the route's timeout", 504, "/timeout", "x-hold: for-ever"),
	answered("the stream's idle timeout", 504, "/idle", "x-hold: for-ever"),
	answered("the stream's longest duration", 504, "/long", "x-hold: for-ever"),
	answered("a refusal by rbac behind the filter", 403, "/", "x-end: rbac"),
	answered("an injected fault", 418, "/", "x-envoy-fault-abort-request: 418"),
	answered("an answer by a script", 418, "/", "x-end: lua"),
	answered("a refusal by another instance", 429, "/beside"),
	answered("a retry by Envoy", 200, "/retry", "x-end: unwell"),
	// The request that follows it is another one.
	answered("a redirect that Envoy follows", 200, "/redirect", "x-reply-status: 302", "x-reply-header: location: http://any.test/direct", "host: any.test"),
	{"an HTTP/1 client that goes while it waits", func(t *testing.T, h *holding, client string) {
		name := h.newHold()
		conn := h.dial(t, "GET / HTTP/1.1", client, "x-hold: "+name)
		envoytest.Eventually(t, "the request is held", func() bool { return h.upstream.Held(name) == 1 })
		conn.Close()
	}},
	{"an HTTP/1 client that goes in the middle of the body", func(t *testing.T, h *holding, client string) {
		conn := h.dial(t, "GET / HTTP/1.1", client, "x-end: endless")
		conn.expect(t, "\r\n\r\npart")
		conn.Close()
	}},
	{"an HTTP/1 client that goes in the middle of its upload", func(t *testing.T, h *holding, client string) {
		before := h.inFlight(t)
		conn := h.dial(t, "POST / HTTP/1.1", client, "x-hold: upload", "content-length: 1000")
		conn.write(t, "part")
		h.awaitInFlight(t, before+1)
		conn.Close()
	}},
	{"an HTTP/2 reset while it waits", func(t *testing.T, h *holding, client string) {
		send, name := h.http2(t), h.newHold()
		// Another stream of the same connection, before and after.
		expectOverHTTP2(t, send, client)
		reset(t, func(ctx context.Context) (*http.Response, error) { return send(ctx, "/", client, "x-hold: "+name) },
			func() bool { return h.upstream.Held(name) == 1 })
		expectOverHTTP2(t, send, client)
	}},
	{"an HTTP/2 reset in the middle of the body", func(t *testing.T, h *holding, client string) {
		send := h.http2(t)
		ctx, cancel := context.WithCancel(context.Background())
		response, err := send(ctx, "/", client, "x-end: endless")
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("got %v and %v, want a response", response, err)
		}
		cancel()
		response.Body.Close()
		expectOverHTTP2(t, send, client)
	}},
	{"a reset by the upstream in the middle of the body", func(t *testing.T, h *holding, client string) {
		response, err := h.newcomer(t).Send("GET", "/", client, "x-end: cut")
		if err == nil || response.Status != http.StatusOK {
			t.Fatalf("got %d %q and error %v, want half a response", response.Status, response.Body, err)
		}
	}},
	{"an upgraded connection that is closed", func(t *testing.T, h *holding, client string) {
		before := h.inFlight(t)
		conn := h.dial(t, "GET /upgrade HTTP/1.1", client, "x-end: upgrade", "connection: upgrade", "upgrade: websocket")
		conn.expect(t, "101 Switching Protocols")
		conn.write(t, "ping")
		conn.expect(t, "ping")
		h.awaitInFlight(t, before+1) // for as long as it is open
		conn.Close()
	}},
	{"a gRPC call", func(t *testing.T, h *holding, client string) {
		response := envoytest.NewClient(t, h.addr, envoytest.ClientOptions{HTTP2: true}).
			Do(t, "POST", "/svc/Method", client, "content-type: application/grpc", "te: trailers")
		if status := response.Trailer.Get("grpc-status"); status != "0" {
			t.Fatalf("a gRPC call got grpc-status %q", status)
		}
	}},
}

func expectOverHTTP2(t *testing.T, send func(context.Context, string, ...string) (*http.Response, error), headers ...string) {
	t.Helper()
	response, err := send(context.Background(), "/", headers...)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("got status %d, want 200", response.StatusCode)
	}
}

// One request is in flight throughout: an ending that gave back more than its
// own would let one too many in.
func TestAPlaceIsGivenBackOnceHoweverTheRequestEnds(t *testing.T) {
	const limit = 3
	h := serveHolding(t, envoytest.Options{}, envoytest.Wasm{Config: inFlightConfig(limit, "")}, endingListener(), endingFilters(t)...)
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			client := "x-client: " + t.Name()
			h.awaitInFlight(t, 0)
			keeps := h.hold(t, h.newcomer(t), 1, client)
			keeps.expectHeld(t, 1)
			for range 2 * limit { // more than there are places
				e.end(t, h, client)
				h.awaitInFlight(t, 1)
			}
			h.expectExactly(t, limit-1, client)
			keeps.release(t)
			h.awaitInFlight(t, 0)
			h.expectExactly(t, limit, client)
			h.awaitInFlight(t, 0)
		})
	}
	if n := h.envoy.Stat(t, limitStat("busy", "errors")); n != 0 {
		t.Errorf("%d errors are counted", n)
	}
}

// Their contexts end like all others.
func TestStreamsThatAreNotInFlightGiveNothingBack(t *testing.T) {
	const limit = 2
	h := serveHolding(t, envoytest.Options{}, envoytest.Wasm{Config: inFlightConfig(limit, `, "exempt": [{"path": "/exempt"}]`)},
		endingListener(), endingFilters(t)...)
	for _, c := range []ending{
		answered("a refusal by the limit", 429, "/"),
		answered("an exempt request", 200, "/exempt"),
		{"a preflight, answered by a filter ahead", func(t *testing.T, h *holding, client string) {
			response := h.newcomer(t).Do(t, "OPTIONS", "/", client, "host: cors.test", "origin: https://app.test", "access-control-request-method: GET")
			if response.Status != 200 || response.Header.Get("access-control-allow-origin") == "" {
				t.Fatalf("got %d with %v, want the cors filter's answer", response.Status, response.Header)
			}
		}},
		{"a 400 of the codec", func(t *testing.T, h *holding, client string) {
			conn := h.dial(t, "GET / HTTP/1.1", client, "transfer-encoding: chunked", "content-length: 7", "not a header")
			conn.expect(t, "400 Bad Request")
			conn.Close()
		}},
		{"a request that is never whole", func(t *testing.T, h *holding, client string) {
			conn := h.dial(t, "GET / HTTP/1.1", client)
			conn.expect(t, "429 Too Many Requests")
			conn.write(t, "GET / HTTP/1.1\r\nhost: raw\r\n"+client)
			conn.Close()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := "x-client: " + t.Name()
			keeps := h.hold(t, h.newcomer(t), limit, client)
			keeps.expectHeld(t, limit)
			for range 8 * limit { // often enough to meet every worker
				c.end(t, h, client)
			}
			h.expectExactly(t, 0, client)
			h.awaitInFlight(t, limit)
			keeps.release(t)
			h.awaitInFlight(t, 0)
			h.expectExactly(t, limit, client)
		})
	}
}
