package wasmtest

import (
	"testing"
	"time"
)

const waitingConfig = `{"limits":{"q":{"algorithm":"leaky_bucket","capacity":5,"leak_rate":"10/s","key":[]}},
	"rules":[{"limits":["q"]}],"state":{"max_buckets":1000},"on_error":"deny"}`

// waitersOf starts a filter at which one request went on and n wait, for 100 ms
// each.
func waitersOf(t *testing.T, n int) (*Host, *Plugin, []*Stream) {
	t.Helper()
	host := New(t, Module(t))
	plugin, ok := host.NewVM().StartPlugin(PluginConfig{Name: "sluice", Config: waitingConfig})
	if !ok {
		t.Fatal("the plugin does not start")
	}
	var waiters []*Stream
	for i := range n + 1 {
		s := plugin.NewStream(nil)
		s.RequestHeaders(Headers{{":method", "GET"}, {":path", "/"}})
		if s.Paused() != (i > 0) {
			t.Fatalf("request %d waits: %t", i, s.Paused())
		}
		if i > 0 {
			waiters = append(waiters, s)
		}
	}
	return host, plugin, waiters
}

// vanish removes a stream of which the filter is not told that it has ended.
func (s *Stream) vanish() { delete(s.plugin.vm.objects, s.object.id) }

// On a dead stream set_effective_context changes nothing, and what follows would
// hit the stream before it.
func TestADeadStreamAmongWaitersTouchesNoOther(t *testing.T) {
	host, plugin, waiters := waitersOf(t, 4)
	waiters[1].vanish()
	for i, s := range waiters {
		host.Advance(99 * time.Millisecond)
		if s != waiters[1] && !s.Paused() {
			t.Errorf("request %d is resumed before its time", i)
		}
		host.Advance(time.Millisecond)
		if s != waiters[1] && s.Paused() {
			t.Errorf("request %d is not resumed in time", i)
		}
	}
	want(t, "streams resumed", host.Count("proxy_continue_stream"), 3)
	host.Advance(time.Hour)
	want(t, "period of ticks", plugin.TickPeriod(), 0)
	want(t, "streams resumed in the end", host.Count("proxy_continue_stream"), 3)
}

func TestADeadStreamAmongWaitersThatAreDeniedTouchesNoOther(t *testing.T) {
	host, plugin, waiters := waitersOf(t, 4)
	waiters[1].vanish()
	host.Fail = func(c *Call) (Status, bool) { return InternalFailure, c.Name == "clock_time_get" }
	host.Advance(100 * time.Millisecond)
	host.Fail = nil
	for i, s := range waiters {
		if s != waiters[1] && (s.Local() == nil || s.Local().Status != 503) {
			t.Errorf("request %d got %+v, want 503", i, s.Local())
		}
	}
	want(t, "responses", host.Count("proxy_send_local_response"), 3)
	host.Advance(time.Hour)
	want(t, "period of ticks", plugin.TickPeriod(), 0)
	want(t, "responses in the end", host.Count("proxy_send_local_response"), 3)
}

// Envoy passes a request's headers through an instance of a filter once. If they
// came twice, those who wait behind it would still have to be resumed.
func TestHeadersThatComeTwiceWhileWaitingBreakNoQueue(t *testing.T) {
	host, plugin, waiters := waitersOf(t, 3)
	waiters[0].RequestHeaders(Headers{{":method", "GET"}, {":path", "/"}})
	host.Advance(time.Minute)
	for i, s := range waiters {
		if s.Paused() {
			t.Errorf("request %d is paused for ever", i)
		}
	}
	want(t, "period of ticks", plugin.TickPeriod(), 0)
	if logs := plugin.vm.Logs(); len(logs) > 0 {
		t.Errorf("%d lines are logged, the first: %s", len(logs), logs[0].Message)
	}
}
