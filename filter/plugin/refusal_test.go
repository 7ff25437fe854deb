//go:build !wasip1

package plugin

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

func TestJitterIsTheSameInHeaderBodyAndMessage(t *testing.T) {
	e := started(t, strings.Replace(oneAMinute, "{", `{"response": {"retry_after_jitter": "30s"},`, 1))
	e.request()
	e.request()
	drawn := map[int64]bool{}
	for range 200 {
		stream, _ := e.request()
		reply := e.GetSentLocalResponse(stream)
		var body struct {
			Message    string
			RetryAfter int64
		}
		if err := json.Unmarshal(reply.Data, &body); err != nil {
			t.Fatal(err)
		}
		said := strconv.FormatInt(body.RetryAfter, 10)
		e.wantHeader(reply.Headers, "retry-after", said)
		if want := "Too many requests. Try again in " + said + " seconds."; body.Message != want {
			t.Errorf("got %q, want %q", body.Message, want)
		}
		if body.RetryAfter < 60 || body.RetryAfter > 90 {
			t.Errorf("%d seconds, want 60 to 90", body.RetryAfter)
		}
		drawn[body.RetryAfter] = true
		// Neither does it change on the way back.
		e.wantHeader(e.response(stream, reply.Headers...), "retry-after", said)

		stream, _ = e.request([2]string{"content-type", "application/grpc"})
		reply = e.GetSentLocalResponse(stream)
		if want := "Too many requests. Try again in " + values(reply.Headers, "retry-after")[0] + " seconds."; string(reply.Data) != want {
			t.Errorf("gRPC: got %q, want %q", reply.Data, want)
		}
	}
	if len(drawn) < 10 {
		t.Errorf("200 refusals were spread over %d different seconds", len(drawn))
	}
}

func TestWhoLacksARequiredCredentialIsToldThatAlone(t *testing.T) {
	e := started(t, `{"limits": {"key": {"algorithm": "gcra", "rate": "1/s", "key": ["bearer"], "missing": "deny"}},
		"response": {"status": 401, "rate_limit_headers": ["ratelimit", "x-ratelimit", "draft"], "retry_after_jitter": "1m", "headers": {"x-help": "ext. 5"}},
		"rules": [{"limits": ["key"]}]}`)
	stream, action := e.request()
	reply := e.GetSentLocalResponse(stream)
	if action != types.ActionPause || reply.StatusCode != 401 || reply.GRPCStatus != 8 {
		t.Fatalf("got %+v", reply)
	}
	if got, want := string(reply.Data), `{"error":"rate_limit_exceeded","message":"A required credential is missing.","retryAfter":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	back := e.response(stream, append(reply.Headers, [2]string{"retry-after", "7"})...) // which the route has added
	for _, headers := range [][][2]string{reply.Headers, back} {
		for _, name := range []string{"retry-after", "ratelimit-limit", "x-ratelimit-limit", "ratelimit", "ratelimit-policy"} {
			e.wantHeader(headers, name)
		}
		e.wantHeader(headers, "x-help", "ext. 5")
		e.wantHeader(headers, "x-envoy-ratelimited", "true")
	}
	stream, _ = e.request([2]string{"content-type", "application/grpc"})
	if got := string(e.GetSentLocalResponse(stream).Data); got != "A required credential is missing." {
		t.Errorf("gRPC: got %q", got)
	}
	if _, action := e.request([2]string{"authorization", "Bearer x"}); action != types.ActionContinue {
		t.Error("a request that has it was refused")
	}
}

// Envoy looks at a request's content type when it arrives, the filter when it
// refuses, and a filter in between may have changed it.
func TestAClientThatEnvoyTakesForGRPCGetsTheSentenceAlone(t *testing.T) {
	e := started(t, oneAMinute)
	e.request()
	e.request()
	const sentence = "Too many requests. Try again in 60 seconds."
	stream, _ := e.request([2]string{"content-type", "application/json"})
	body := string(e.GetSentLocalResponse(stream).Data)
	if body == sentence {
		t.Fatal("the body was not meant for HTTP")
	}
	e.wantHeader(e.response(stream, [2]string{"grpc-status", "8"}, [2]string{"grpc-message", body}), "grpc-message", sentence)

	stream, _ = e.request()
	e.wantHeader(e.response(stream), "grpc-message") // nobody who is not gRPC gets one
}

func TestWhereNoWaitingHelpsTheRoutesRetryAfterGoes(t *testing.T) {
	e := started(t, strings.Replace(oneAMinute, `["login"]`, `[{"limit": "login", "cost": 3}]`, 1))
	stream, _ := e.request()
	e.wantHeader(e.GetSentLocalResponse(stream).Headers, "retry-after")
	headers := e.response(stream, [2]string{"retry-after", "7"})
	e.wantHeader(headers, "retry-after")
	e.wantHeader(headers, "ratelimit-remaining", "2")
}

func TestEveryFamilyIsToldOfEveryResponse(t *testing.T) {
	e := started(t, `{
		"limits": {
			"a": {"algorithm": "token_bucket", "capacity": 9, "refill_rate": "1/m", "key": []},
			"b": {"algorithm": "fixed_window", "limit": 2, "window": "1d", "key": []},
			"dark": {"algorithm": "gcra", "rate": "1/d", "key": [], "shadow": true}
		},
		"response": {"rate_limit_headers": ["ratelimit", "x-ratelimit", "draft"]},
		"rules": [{"limits": ["a", "dark", "b"]}]
	}`)
	check := func(headers [][2]string, remaining, draft string) {
		t.Helper()
		for name, want := range map[string]string{
			"ratelimit-limit": "2", "ratelimit-remaining": remaining, "ratelimit-reset": "82800",
			"x-ratelimit-limit": "2", "x-ratelimit-remaining": remaining, "x-ratelimit-reset": "82800",
			"ratelimit-policy": `"b";q=2;w=86400, "a";q=9;w=540`, "ratelimit": draft,
		} {
			e.wantHeader(headers, name, want)
		}
	}
	stream, _ := e.request()
	check(e.response(stream), "1", `"b";r=1;t=82800, "a";r=8;t=60`)
	stream, _ = e.request()
	check(e.response(stream), "0", `"b";r=0;t=82800, "a";r=7;t=120`)
	stream, _ = e.request()
	reply := e.GetSentLocalResponse(stream)
	check(reply.Headers, "0", `"b";r=0;t=82800, "a";r=7;t=120`) // a is not charged
	check(e.response(stream, [2]string{"ratelimit", "the route's"}, [2]string{"x-ratelimit-limit", "1"}), "0", `"b";r=0;t=82800, "a";r=7;t=120`)
}

// Streams whose ids lie streamSlots apart have one place in turn.
func TestNothingOfAStreamIsLeftForTheNextInItsPlace(t *testing.T) {
	e := started(t, `{
		"limits": {
			"login": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/m", "key": ["ip"]},
			"key":   {"algorithm": "token_bucket", "capacity": 9, "refill_rate": "1/m", "key": ["bearer"], "missing": "deny"}},
		"response": {"rate_limit_headers": ["ratelimit", "draft"]},
		"rules": [{"match": {"path": "/key"}, "limits": ["key"]}, {"limits": ["login"]}]
	}`)
	next := func(place uint32, headers ...[2]string) (response [][2]string) {
		stream := e.InitializeHttpContext()
		for ; stream%streamSlots != place; stream = e.InitializeHttpContext() {
			e.CompleteHttpContext(stream)
		}
		e.state = map[string]string{}
		e.CallOnRequestHeaders(stream, withPseudoHeaders(headers), true)
		response = e.response(stream, [2]string{"retry-after", "7"})
		e.CompleteHttpContext(stream)
		return response
	}
	const place = 5
	next(place)
	e.wantHeader(next(place), "retry-after", "60")
	bearer := [2]string{"authorization", "Bearer x"}
	headers := next(place, [2]string{":path", "/key"}, bearer)
	e.wantHeader(headers, "retry-after", "7") // the upstream's own
	e.wantHeader(headers, "ratelimit", `"key";r=8;t=60`)
	headers = next(place, [2]string{":path", "/key"})
	for _, name := range []string{"retry-after", "ratelimit-limit", "ratelimit", "ratelimit-policy"} {
		e.wantHeader(headers, name)
	}
	headers = next(place, [2]string{":path", "/key"}, bearer)
	e.wantHeader(headers, "ratelimit", `"key";r=7;t=120`)
}

func TestARulesNameCanBePartOfAKey(t *testing.T) {
	e := started(t, `{"limits": {"a": {"algorithm": "gcra", "rate": "1/h", "key": ["rule"]}},
		"rules": [{"name": "x", "match": {"path": "/x"}, "limits": ["a"]}, {"name": "y", "match": {"path": "/y"}, "limits": ["a"]}, {"limits": ["a"]}]}`)
	for _, path := range []string{"/x", "/y", "/z"} {
		if !e.path(path) || e.path(path) {
			t.Errorf("%s: want the first request to go on, and not the second", path)
		}
	}
}

func TestAConfigThatIsRefusedLeavesTheOldOneInForce(t *testing.T) {
	e := started(t, oneAMinute)
	plugin := e.vm.plugins[1]
	for _, bad := range []string{"", "{", `{"limits": {"login": {}}}`, `{"limits": {}, "on_error": "deny", "shadow": 1}`} {
		e.configure(bad)
		if plugin.OnPluginStart(0) != types.OnPluginStartStatusFailed {
			t.Errorf("%q was taken", bad)
		}
	}
	for i, want := range []bool{true, true, false} {
		if got := e.path("/"); got != want {
			t.Errorf("request %d went on: %v, want %v", i, got, want)
		}
	}
	e.configure(strings.Replace(oneAMinute, `"capacity": 2`, `"capacity": 3`, 1))
	if plugin.OnPluginStart(0) != types.OnPluginStartStatusOK {
		t.Fatal("a good config was refused")
	}
	for i, want := range []bool{true, false} {
		if got := e.path("/"); got != want {
			t.Errorf("request %d under the new config went on: %v, want %v", i, got, want)
		}
	}
}
