package wasmtest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// waiting is a config of a queue from which 10 requests leave each second, beside
// a limit that nobody reaches.
func waiting(onError string) string {
	return `{"limits":{
		"q":{"algorithm":"leaky_bucket","capacity":5,"leak_rate":"10/s","key":["ip"]},
		"wide":{"algorithm":"token_bucket","capacity":100,"refill_rate":"1/d","key":["ip"]}},
	"rules":[{"limits":["q","wide"]}],
	"state":{"max_buckets":1000},"on_error":"` + onError + `"}`
}

// arrive is a request of a client that stays where the filter leaves it.
func arrive(plugin *wasmtest.Plugin, n int, headers ...[2]string) *wasmtest.Stream {
	stream := plugin.NewStream(map[string]string{"source/address": client(n)})
	stream.RequestHeaders(append(wasmtest.Headers{{":method", "GET"}, {":path", "/"}, {":authority", "example.com"}}, headers...))
	return stream
}

// arriveAll are requests of one client: the first goes on at once, and each of
// the others 100 ms after the one before it.
func arriveAll(t *testing.T, plugin *wasmtest.Plugin, client, n int) []*wasmtest.Stream {
	t.Helper()
	var all []*wasmtest.Stream
	for i := range n {
		s := arrive(plugin, client)
		if s.Paused() != (i > 0) {
			t.Fatalf("request %d waits: %t", i, s.Paused())
		}
		all = append(all, s)
	}
	return all
}

// status is what has become of a request: 0 while it waits, 200 if it went on.
func status(s *wasmtest.Stream) int {
	switch {
	case s.Local() != nil:
		return int(s.Local().Status)
	case s.Paused():
		return 0
	}
	return 200
}

// trial is one hostcall failing in one way.
type trial struct {
	host    *wasmtest.Host
	plugin  *wasmtest.Plugin
	streams []*wasmtest.Stream
	policy  string // on_error
	failure wasmtest.Status
	call    *wasmtest.Call // the one that failed
}

// eachFailure lets every hostcall that act makes fail in turn, with every status
// and under either policy, while three requests wait. check returns what is
// wrong then. It is told once for each hostcall and policy.
func eachFailure(t *testing.T, act func(*trial), check func(*trial) string) {
	t.Helper()
	host := wasmtest.New(t, wasmtest.Module(t))
	vm := host.NewVM()
	told := map[string]bool{}
	for policy := range undecidedStatus {
		for _, failure := range everyFailure {
			for n := 0; ; n++ {
				plugin := startAfresh(t, vm, host, waiting(policy))
				w := &trial{host: host, plugin: plugin, policy: policy, failure: failure, streams: arriveAll(t, plugin, 1, 4)}
				w.call = failAt(host, n, failure)
				act(w)
				host.Fail = nil
				problem := check(w)
				if problem == "" {
					problem = w.afterwards()
				}
				if vm.Err() != nil {
					t.Fatalf("on_error %s, call %d %s returns %d: the VM is dead", policy, n, w.call, failure)
				}
				if what := policy + w.call.Name; problem != "" && !told[what] {
					told[what] = true
					t.Errorf("on_error %s, call %d %s returns %d: %s", policy, n, w.call, failure, problem)
				}
				plugin.Stop()
				if w.call.Name == "" {
					break // there are fewer calls
				}
			}
		}
	}
}

// afterwards returns what is wrong once everybody had time to leave, "" if
// nothing is.
func (w *trial) afterwards() string {
	w.host.Advance(10 * time.Second)
	for i, s := range w.streams {
		if s.Paused() {
			return fmt.Sprintf("request %d is paused for ever", i)
		}
		s.End()
	}
	w.host.Advance(10 * time.Second)
	if w.plugin.TickPeriod() != 0 {
		return "ticks go on"
	}
	for _, line := range w.plugin.VM().Logs() {
		if strings.Contains(line.Message, "panic") {
			return line.Message
		}
	}
	for i, want := range []int{200, 0, 0} {
		s := arrive(w.plugin, 9)
		defer s.End()
		if got := status(s); got != want {
			return fmt.Sprintf("of the next client, request %d gets %d, want %d", i, got, want)
		}
	}
	return ""
}

func TestAHostcallThatFailsAsARequestBeginsToWaitLeavesNobodyPaused(t *testing.T) {
	eachFailure(t, func(w *trial) {
		w.streams = append(w.streams, arrive(w.plugin, 1))
	}, func(w *trial) string {
		before, arrived := w.streams[1:4], status(w.streams[4])
		undecided := undecidedStatus[w.policy]
		switch {
		case w.call.Name == "proxy_get_shared_data" && w.failure == wasmtest.NotFound, w.call.Name == "proxy_get_property":
			if arrived != 0 && arrived != 200 { // a table or a client that looks new
				return fmt.Sprintf("got %d", arrived)
			}
		case w.call.Name == "proxy_get_shared_data", w.call.Name == "proxy_set_shared_data":
			// Of which limit, if any: under "allow" the other one still applies.
			if w.policy == "deny" && decides(w.call, w.failure) && arrived != undecided || arrived != 0 && arrived != undecided {
				return fmt.Sprintf("got %d, want %d", arrived, undecided)
			}
		case w.call.Name == "clock_time_get", w.call.Name == "proxy_set_tick_period_milliseconds":
			if arrived != undecided {
				return fmt.Sprintf("got %d, want %d", arrived, undecided)
			}
		case arrived != 0:
			return fmt.Sprintf("got %d, want it to wait", arrived)
		}
		for i, s := range before {
			if !s.Paused() {
				return fmt.Sprintf("request %d, which waited before, does not any more", i+1)
			}
		}
		return ""
	})
}

// A place that nobody can be woken for goes back, and the limit is undecided.
func TestATickThatCannotBeSetLeavesTheLimitUndecided(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	vm := host.NewVM()
	for policy, undecided := range undecidedStatus {
		for _, failure := range everyFailure {
			clear(host.Metrics)
			w := &trial{host: host, plugin: startAfresh(t, vm, host, waiting(policy))}
			w.streams = arriveAll(t, w.plugin, 1, 1)
			host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) {
				return failure, c.Name == "proxy_set_tick_period_milliseconds"
			}
			second := arrive(w.plugin, 1)
			host.Fail = nil
			if got := status(second); got != undecided || host.Metrics["sluice.limit.q.errors"] != 1 || host.Metrics["sluice.limit.q.waiting"] != 0 {
				t.Errorf("on_error %s, status %d: got %d, want %d; counted %v", policy, failure, got, undecided, host.Metrics)
			}
			third := arrive(w.plugin, 1)
			if state, _ := third.Property("sluice"); state != "delayed:q:100ms" {
				t.Errorf("on_error %s, status %d: the next got %q, want the place that was given back", policy, failure, state)
			}
			w.streams = append(w.streams, second, third)
			if problem := w.afterwards(); problem != "" {
				t.Errorf("on_error %s, status %d: %s", policy, failure, problem)
			}
			w.plugin.Stop()
		}
	}
}

// startSlowAndFast starts a plugin with two queues, from which a request leaves
// each second or each tenth of one.
func startSlowAndFast(t *testing.T, host *wasmtest.Host) *wasmtest.Plugin {
	return start(t, host, `{"limits":{
		"slow":{"algorithm":"leaky_bucket","capacity":5,"leak_rate":"1/s","key":["ip"]},
		"fast":{"algorithm":"leaky_bucket","capacity":5,"leak_rate":"10/s","key":["ip"]}},
		"rules":[{"match":{"headers":{"x-slow":{"present":true}}},"limits":["slow"]},{"limits":["fast"]}],
		"state":{"max_buckets":1000}}`)
}

var slow = [2]string{"x-slow", "1"}

// A tick that could not be set must not be taken for one that will come.
func TestATickThatCouldNotBeSetDelaysNobodyElse(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := startSlowAndFast(t, host)
	arrive(plugin, 1, slow)
	arrive(plugin, 1, slow) // a tick in a second
	arrive(plugin, 1)
	host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) {
		return wasmtest.InternalFailure, c.Name == "proxy_set_tick_period_milliseconds"
	}
	arrive(plugin, 1)
	host.Fail = nil
	wantResumedIn(t, host, arrive(plugin, 1), 100*time.Millisecond)
}

// After a tick that does not know the time another comes a period later, and that
// may be too late for those who have come meanwhile.
func TestATickThatDoesNotKnowTheTimeDelaysNobodyWhoComesLater(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := startSlowAndFast(t, host)
	arrive(plugin, 1, slow)
	arrive(plugin, 1, slow) // a tick in a second
	host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) {
		return wasmtest.InternalFailure, c.Name == "clock_time_get"
	}
	host.Advance(time.Second)
	host.Fail = nil
	arrive(plugin, 1)
	wantResumedIn(t, host, arrive(plugin, 1), 100*time.Millisecond)
}

// wantResumedIn checks that a request waits for so long and no longer.
func wantResumedIn(t *testing.T, host *wasmtest.Host, s *wasmtest.Stream, wait time.Duration) {
	t.Helper()
	host.Advance(wait - 1)
	if !s.Paused() {
		t.Errorf("it is resumed before %v", wait)
	}
	host.Advance(time.Millisecond)
	if s.Paused() {
		t.Errorf("after %v it still waits, for a tick that comes for others", wait)
	}
}

func TestAHostcallThatFailsInATickLeavesNobodyPaused(t *testing.T) {
	eachFailure(t, func(w *trial) {
		w.host.Advance(250 * time.Millisecond) // two of three depart
	}, func(w *trial) string {
		for i, want := range []int{200, 200, 200, 0} {
			got := status(w.streams[i])
			switch w.call.Name {
			case "clock_time_get": // whoever still waits goes on, or is denied
				if i == 3 {
					want = undecidedStatus[w.policy]
				} else if got == undecidedStatus[w.policy] {
					continue
				}
			case "proxy_set_effective_context", "proxy_continue_stream", "proxy_set_tick_period_milliseconds":
				if got == 0 {
					continue // late, but not for ever: see afterwards
				}
			}
			if got != want {
				return fmt.Sprintf("request %d got %d, want %d", i, got, want)
			}
		}
		return ""
	})
}

func TestAHostcallThatFailsAsAWaiterLeavesHarmsNobodyElse(t *testing.T) {
	for _, place := range []int{1, 3} { // in the middle of the line, and at its end
		eachFailure(t, func(w *trial) {
			w.streams[place].End()
			w.streams = slices.Delete(w.streams, place, place+1)
		}, func(w *trial) string {
			w.host.Advance(350 * time.Millisecond)
			for i, s := range w.streams {
				if got := status(s); got != 200 {
					return fmt.Sprintf("of the others, request %d got %d, want 200", i, got)
				}
			}
			return ""
		})
	}
}

// Without a working clock nobody knows when to go.
func TestAClockThatNeverWorksEndsAllWaitingByThePolicy(t *testing.T) {
	for policy, undecided := range undecidedStatus {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, waiting(policy))
		streams := arriveAll(t, plugin, 1, 4)
		host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) {
			return wasmtest.InternalFailure, c.Name == "clock_time_get"
		}
		host.Advance(time.Minute)
		for i, s := range streams[1:] {
			if got := status(s); got != undecided {
				t.Errorf("on_error %s: request %d got %d, want %d", policy, i+1, got, undecided)
			}
			if local := s.Local(); local != nil && answerOf(local.Sent).limit != absent {
				t.Errorf("on_error %s: what could not be decided tells of a limit: %v", policy, local.Sent)
			}
		}
		host.Fail = nil
		w := &trial{host: host, plugin: plugin, streams: streams}
		if problem := w.afterwards(); problem != "" {
			t.Errorf("on_error %s: %s", policy, problem)
		}
	}
}

// A waiter that cannot be reached in the one tick is ended in another.
func TestWithoutAClockNobodyIsForgottenWhoCannotBeReachedAtOnce(t *testing.T) {
	for policy, undecided := range undecidedStatus {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, waiting(policy))
		streams := arriveAll(t, plugin, 1, 4)
		failures := 2
		host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) {
			fails := c.Name == "clock_time_get"
			if c.Name == "proxy_set_effective_context" && failures > 0 {
				failures--
				fails = true
			}
			return wasmtest.InternalFailure, fails
		}
		host.Advance(time.Minute)
		for i, s := range streams[1:] {
			if got := status(s); got != undecided {
				t.Errorf("on_error %s: request %d got %d, want %d", policy, i+1, got, undecided)
			}
		}
		host.Fail = nil
		w := &trial{host: host, plugin: plugin, streams: streams}
		if problem := w.afterwards(); problem != "" {
			t.Errorf("on_error %s: %s", policy, problem)
		}
	}
}
