package wasmtest

import (
	"slices"
	"strings"
	"testing"
)

func TestRequestHeadersAreReadAndChanged(t *testing.T) {
	p, plugin := startPuppet(t)
	p.on["proxy_on_request_headers"] = func(arguments []uint64) uint64 {
		want(t, "number of headers", arguments[1], 3)
		var value, all string
		want(t, "get", p.call("proxy_get_header_map_value", 0, "X-A", &value), OK)
		want(t, "the first of two values", value, "1")
		want(t, "get of a missing header", p.call("proxy_get_header_map_value", 0, "x-b", &value), NotFound)
		want(t, "get of a map that is not there", p.call("proxy_get_header_map_value", 2, "x-a", &value), BadArgument)
		want(t, "pairs", p.call("proxy_get_header_map_pairs", 0, &all), OK)
		want(t, "pairs after a round trip", len(parseHeaders([]byte(all))), 3)
		want(t, "pairs of a map that is not there", p.call("proxy_get_header_map_pairs", 2, &all), OK)
		want(t, "size of those", all, "")
		p.call("proxy_add_header_map_value", 0, "X-C", "3")
		p.call("proxy_replace_header_map_value", 0, "x-a", "new")
		p.call("proxy_remove_header_map_value", 0, ":path")
		return uint64(Continue)
	}
	s := plugin.NewStream(nil)
	s.RequestHeaders(Headers{{":path", "/"}, {"X-A", "1"}, {"x-a", "2"}})
	if got, want := s.request, (Headers{{"x-a", "new"}, {"x-c", "3"}}); !slices.Equal(got, want) {
		t.Errorf("headers afterwards: got %v, want %v", got, want)
	}
	p.during(plugin, func() {
		p.call("proxy_set_effective_context", int(s.ContextID()))
		var value string
		want(t, "get after the headers have gone on", p.call("proxy_get_header_map_value", 0, "x-a", &value), BadArgument)
	})
}

func TestDamagedHeaderListsAreEmpty(t *testing.T) {
	good := Headers{{"a", "b"}, {"", "\x00"}}.serialize()
	if got := parseHeaders(good); len(got) != 2 {
		t.Fatalf("a good list: got %q", got)
	}
	for i := range good {
		if got := parseHeaders(good[:i]); got != nil {
			t.Errorf("the first %d bytes: got %q", i, got)
		}
	}
	if got := parseHeaders(append(good, 0)); got != nil {
		t.Errorf("a byte too many: got %q", got)
	}
	if got := parseHeaders([]byte("\xff\xff\xff\xff")); got != nil {
		t.Errorf("a count without headers: got %q", got)
	}
}

func TestLocalResponsePassesTheFilterAgain(t *testing.T) {
	p, plugin := startPuppet(t)
	var seen []string
	p.on["proxy_on_request_headers"] = func([]uint64) uint64 {
		headers := string(Headers{{"Retry-After", "5"}}.serialize())
		want(t, "send", p.call("proxy_send_local_response", 429, "rate limited", "slow down", headers, -1), OK)
		want(t, "response headers before the callback returns", len(seen), 0)
		return uint64(Continue)
	}
	p.on["proxy_on_response_headers"] = func([]uint64) uint64 {
		var status string
		p.call("proxy_get_header_map_value", 2, ":status", &status)
		seen = append(seen, status)
		p.call("proxy_replace_header_map_value", 2, "retry-after", "6")
		return uint64(Continue)
	}
	result := plugin.NewStream(nil).RequestHeaders(Headers{{":path", "/"}})
	if !slices.Equal(seen, []string{"429"}) {
		t.Errorf("statuses seen: got %q", seen)
	}
	if result.Action != Pause || result.Local == nil {
		t.Fatalf("the request went on: %+v", result)
	}
	want(t, "details", result.Local.Details, "rate_limited")
	sent := Headers{{":status", "429"}, {"retry-after", "6"}, {"content-length", "9"}, {"content-type", "text/plain"}}
	if !slices.Equal(result.Local.Sent, sent) {
		t.Errorf("sent: got %v, want %v", result.Local.Sent, sent)
	}
}

func TestLocalResponseToGRPCHasItsStatusInHeaders(t *testing.T) {
	p, plugin := startPuppet(t)
	p.on["proxy_on_request_headers"] = func([]uint64) uint64 {
		p.call("proxy_send_local_response", 429, "", "slow down", "", 8)
		return uint64(Pause)
	}
	result := plugin.NewStream(nil).RequestHeaders(Headers{{"content-type", "application/grpc+proto"}})
	sent := Headers{{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "8"}, {"grpc-message", "slow down"}}
	if !slices.Equal(result.Local.Sent, sent) {
		t.Errorf("sent: got %v, want %v", result.Local.Sent, sent)
	}
}

func TestPropertiesAreFoundByTheirPath(t *testing.T) {
	p, plugin := startPuppet(t)
	p.on["proxy_on_request_headers"] = func([]uint64) uint64 {
		var value string
		want(t, "get", p.call("proxy_get_property", "source\x00address", &value), OK)
		want(t, "value", value, "192.0.2.1:80")
		want(t, "get of a missing one", p.call("proxy_get_property", "source", &value), NotFound)
		p.call("proxy_get_property", "plugin_name", &value)
		want(t, "the plugin's name", value, "limits")
		want(t, "set", p.call("proxy_set_property", "sluice", "allowed"), OK)
		p.call("proxy_get_property", "sluice", &value)
		want(t, "what was set", value, "allowed")
		return uint64(Continue)
	}
	s := plugin.NewStream(map[string]string{"source/address": "192.0.2.1:80"})
	s.RequestHeaders(nil)
	if value, _ := s.Property("sluice"); value != "allowed" {
		t.Errorf("the host sees %q", value)
	}
	p.during(plugin, func() {
		want(t, "set without a stream", p.call("proxy_set_property", "a", "b"), NotFound)
	})
}

func TestADeadStreamLeavesTheOneBeforeEffective(t *testing.T) {
	p, plugin := startPuppet(t)
	alive, dead := plugin.NewStream(nil), plugin.NewStream(nil)
	dead.End()
	p.during(plugin, func() {
		want(t, "set to a living stream", p.call("proxy_set_effective_context", int(alive.ContextID())), OK)
		want(t, "set to a dead one", p.call("proxy_set_effective_context", int(dead.ContextID())), BadArgument)
		p.call("proxy_set_property", "hit", "yes")
	})
	if value, _ := alive.Property("hit"); value != "yes" {
		t.Error("the living stream is not effective any more")
	}
	p.during(plugin, func() {
		want(t, "the next callback begins without", p.call("proxy_set_property", "a", "b"), NotFound)
	})
}

func TestAPausedRequestGoesOnAfterTheCallbackThatResumesIt(t *testing.T) {
	p, plugin := startPuppet(t)
	p.on["proxy_on_request_headers"] = func([]uint64) uint64 { return uint64(Pause) }
	s := plugin.NewStream(nil)
	want(t, "action", s.RequestHeaders(nil).Action, Pause)
	want(t, "paused", s.Paused(), true)
	p.during(plugin, func() {
		p.call("proxy_set_effective_context", int(s.ContextID()))
		want(t, "resume", p.call("proxy_continue_stream", 0), OK)
		want(t, "paused until the callback returns", s.Paused(), true)
	})
	want(t, "paused afterwards", s.Paused(), false)
}

func TestAStreamWithoutHeadersIsCreatedAtItsEnd(t *testing.T) {
	p, plugin := startPuppet(t)
	var order []string
	for _, name := range []string{"proxy_on_context_create", "proxy_on_log", "proxy_on_done", "proxy_on_delete"} {
		p.on[name] = func([]uint64) uint64 {
			order = append(order, strings.TrimPrefix(name, "proxy_on_"))
			return 1
		}
	}
	plugin.NewStream(nil).End()
	if want := []string{"context_create", "log", "done", "delete"}; !slices.Equal(order, want) {
		t.Errorf("callbacks: got %v, want %v", order, want)
	}
}

func TestBodiesAreReadAndReplaced(t *testing.T) {
	p, plugin := startPuppet(t)
	p.on["proxy_on_request_body"] = func(arguments []uint64) uint64 {
		var part string
		want(t, "get", p.call("proxy_get_buffer_bytes", 0, 6, 100, &part), OK)
		want(t, "the part", part, "world")
		want(t, "get of a buffer that is not there", p.call("proxy_get_buffer_bytes", 1, 0, 1, &part), NotFound)
		want(t, "replace", p.call("proxy_set_buffer_bytes", 0, 0, int(arguments[1]), "bye"), OK)
		return uint64(Continue)
	}
	want(t, "what goes on", plugin.NewStream(nil).RequestBody("hello world"), "bye")
}

func TestATickCanAnswerOrResetAPausedRequest(t *testing.T) {
	p, plugin := startPuppet(t)
	p.on["proxy_on_request_headers"] = func([]uint64) uint64 { return uint64(Pause) }
	answered, reset := plugin.NewStream(nil), plugin.NewStream(nil)
	answered.RequestHeaders(nil)
	reset.RequestHeaders(nil)
	p.during(plugin, func() {
		p.call("proxy_set_effective_context", int(answered.ContextID()))
		p.call("proxy_send_local_response", 429, "", "", "", -1)
		p.call("proxy_set_effective_context", int(reset.ContextID()))
		p.call("proxy_close_stream", 0)
	})
	if local := answered.Local(); local == nil || local.Status != 429 {
		t.Errorf("the answer is %+v", local)
	}
	want(t, "reset", reset.Closed(), true)
	want(t, "the other reset", answered.Closed(), false)
}
