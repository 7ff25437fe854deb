package wasmtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// lastingLimits is a config of a limit of requests in flight, and of one that is
// given back or charged by the response. Names with a path look at the latter.
func lastingLimits(onError, charge string) string {
	return `{"limits":{
		"f":{"algorithm":"concurrency","limit":3,"key":["ip"]},
		"g":{"algorithm":"fixed_window","limit":100,"window":"1d","key":["ip"],"count_status":["401"]` + charge + `}},
	"rules":[
		{"match":{"path":"/f"},"limits":["f"]},
		{"match":{"path":"/g"},"limits":[{"limit":"g","cost":0}]},
		{"limits":["f",{"limit":"g","cost":10}]}],
	"state":{"max_buckets":1000},"on_error":"` + onError + `"}`
}

// broken is one hostcall that fails in one way.
type broken struct {
	host    *wasmtest.Host
	plugin  *wasmtest.Plugin
	looker  *wasmtest.Plugin // has the same limits, and charges nothing
	policy  string
	failure wasmtest.Status
	call    *wasmtest.Call
}

func (b *broken) errors(limit string) uint64 { return b.host.Metrics["sluice.limit."+limit+".errors"] }

func (b *broken) left() int64 {
	return ask(b.looker, request{address: client(1), path: "/g"}).remaining
}

func (b *broken) room() int { return room(b.looker, request{address: client(1), path: "/f"}) }

// is says whether the failed call is one of these, and was not taken for an answer:
// absent data and a lost race are no failures.
func (b *broken) is(names ...string) bool {
	for _, name := range names {
		if b.call.Name == name {
			return (name != "proxy_get_shared_data" || b.failure != wasmtest.NotFound) && (name != "proxy_set_shared_data" || b.failure != wasmtest.CASMismatch)
		}
	}
	return false
}

// eachBreakage lets every hostcall of act fail in turn, with every status and under
// either policy. prepare runs before. check returns what is wrong then; whatever it
// finds, the VM must live, without a panic. Each problem is told once for a hostcall.
func eachBreakage(t *testing.T, charge string, prepare func(*broken) *wasmtest.Stream, act func(*broken, *wasmtest.Stream), check func(*broken) string) {
	t.Helper()
	host := wasmtest.New(t, wasmtest.Module(t))
	vm := host.NewVM()
	told, tried := map[string]bool{}, map[string]bool{}
	for policy := range undecidedStatus {
		for _, failure := range everyFailure {
			for n := 0; ; n++ {
				plugin := startAfresh(t, vm, host, lastingLimits(policy, charge))
				looker, ok := vm.StartPlugin(wasmtest.PluginConfig{Name: "sluice", Config: lastingLimits(policy, "")})
				if !ok {
					t.Fatal(vm.Logs())
				}
				clear(host.Metrics)
				b := &broken{host: host, plugin: plugin, looker: looker, policy: policy, failure: failure}
				s := prepare(b)
				logged := len(vm.Logs())
				b.call = failAt(host, n, failure)
				act(b, s)
				host.Fail = nil
				if vm.Err() != nil {
					t.Fatalf("on_error %s, %s returns %d: the VM is dead", policy, b.call, failure)
				}
				problem := ""
				if b.call.Name != "" {
					problem = check(b)
				}
				for _, line := range vm.Logs()[logged:] {
					if strings.Contains(line.Message, "panic") {
						problem = line.Message
					}
				}
				tried[b.call.Name] = true
				if what := b.call.Name + b.call.Subject; problem != "" && !told[what] {
					told[what] = true
					t.Errorf("on_error %s, call %d %s returns %d: %s", policy, n, b.call, failure, problem)
				}
				plugin.Stop()
				looker.Stop()
				if b.call.Name == "" {
					break
				}
			}
		}
	}
	if !tried["proxy_get_shared_data"] || !tried["proxy_set_shared_data"] || !tried["clock_time_get"] {
		t.Errorf("little was tried: %v", tried)
	}
}

func beginLasting(b *broken) *wasmtest.Stream {
	return begin(b.plugin, request{address: client(1)})
}

// tableAndClocks are the calls without which a bucket cannot be changed.
var tableAndClocks = []string{"clock_time_get", "proxy_get_shared_data", "proxy_set_shared_data"}

// However it fails, what could not be told not to count stays charged.
func TestAHostcallThatFailsAsARequestIsGivenBackLeavesItCharged(t *testing.T) {
	var sent wasmtest.Headers
	eachBreakage(t, "", beginLasting, func(_ *broken, s *wasmtest.Stream) {
		sent = s.ResponseHeaders(wasmtest.Headers{{":status", "200"}})
	}, func(b *broken) string {
		errors, left := uint64(0), int64(100)
		if b.is(append(tableAndClocks, "proxy_get_header_map_value")...) && b.call.Subject != "grpc-status" {
			errors, left = 1, 90
		}
		if b.call.Name == "proxy_get_shared_data" && b.failure == wasmtest.NotFound {
			return "" // a table that looks new
		}
		if status, _ := sent.Get(":status"); status != "200" {
			return fmt.Sprintf("the client gets %v", sent)
		}
		if b.left() != left || b.errors("g") != errors || b.errors("f") != 0 {
			return fmt.Sprintf("%d left, want %d; %d errors, want %d", b.left(), left, b.errors("g"), errors)
		}
		return ""
	})
}

func TestAHostcallThatFailsAsARequestIsChargedChargesItWhollyOrCountsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		charge       string
		prepare, act func(*broken, *wasmtest.Stream)
		reads        string // the call that reads the charge
	}{
		"header": {`,"charge":{"response_header":"x-tokens","max":50,"remove":true}`, nil, func(_ *broken, s *wasmtest.Stream) {
			s.ResponseHeaders(wasmtest.Headers{{":status", "401"}, {"x-tokens", "7"}})
		}, "proxy_get_header_map_pairs"},
		"trailer": {`,"charge":{"response_trailer":"x-tokens","max":50}`, func(_ *broken, s *wasmtest.Stream) {
			s.BeginResponse(wasmtest.Headers{{":status", "401"}})
		}, func(_ *broken, s *wasmtest.Stream) {
			s.ResponseTrailers(wasmtest.Headers{{"x-tokens", "7"}})
		}, "proxy_get_header_map_pairs"},
		"metadata": {`,"charge":{"metadata":"ai/tokens","max":50}`, func(_ *broken, s *wasmtest.Stream) {
			s.ResponseHeaders(wasmtest.Headers{{":status", "401"}})
			s.SetProperty("metadata", metadata("ai", "tokens", metadataNumber(7)))
		}, func(_ *broken, s *wasmtest.Stream) { s.End() }, "proxy_get_property"},
	} {
		t.Run(name, func(t *testing.T) {
			eachBreakage(t, c.charge, func(b *broken) *wasmtest.Stream {
				s := beginLasting(b)
				if c.prepare != nil {
					c.prepare(b, s)
				}
				return s
			}, c.act, func(b *broken) string {
				if b.call.Name == "proxy_get_shared_data" && b.failure == wasmtest.NotFound {
					return ""
				}
				left, errors := b.left(), b.errors("g")
				switch {
				case b.call.Name == c.reads && (c.reads != "proxy_get_property" || b.call.Subject == "metadata"):
					if left != 90 || errors != 1 {
						return fmt.Sprintf("%d left and %d errors, want 90 and 1", left, errors)
					}
				case b.is(tableAndClocks...) && errors+b.errors("f") != 1, !b.is(append(tableAndClocks, "proxy_get_header_map_value")...) && errors != 0:
					return fmt.Sprintf("%d and %d errors", errors, b.errors("f"))
				case errors == 0 && left != 83, errors == 1 && b.call.Name != "proxy_get_header_map_value" && left != 90:
					return fmt.Sprintf("%d left with %d errors", left, errors)
				}
				return ""
			})
		})
	}
}

// A request that could not be given back is in flight until its lease lapses, and
// then never again.
func TestAHostcallThatFailsAsARequestLandsLetsItLapse(t *testing.T) {
	eachBreakage(t, "", func(b *broken) *wasmtest.Stream {
		s := beginLasting(b)
		s.ResponseHeaders(wasmtest.Headers{{":status", "200"}})
		return s
	}, func(_ *broken, s *wasmtest.Stream) { s.End() }, func(b *broken) string {
		errors := uint64(0)
		if b.is(tableAndClocks...) {
			errors = 1
		}
		early := b.room()
		if want := 3 - int(errors); early != want && (b.call.Name != "proxy_get_shared_data" || b.failure != wasmtest.NotFound) {
			return fmt.Sprintf("%d are admitted, want %d", early, want)
		}
		if b.errors("f") != errors {
			return fmt.Sprintf("%d errors, want %d", b.errors("f"), errors)
		}
		if n := gauge(b.host, "f"); n != 0 && b.call.Name != "proxy_increment_metric" && b.call.Name != "proxy_define_metric" {
			return fmt.Sprintf("the gauge says that %d are in flight", n)
		}
		b.host.Advance(10 * time.Second)
		if late := b.room(); late != 3 {
			return fmt.Sprintf("%d are admitted after 10 s, want 3", late)
		}
		b.host.Advance(10 * time.Second)
		if period := b.plugin.TickPeriod(); period != 0 {
			return fmt.Sprintf("ticks go on every %d ms", period)
		}
		return ""
	})
}

// A renewal that fails is made up for by the next one.
func TestAHostcallThatFailsInATickLosesNoRequestInFlight(t *testing.T) {
	var held []*wasmtest.Stream
	eachBreakage(t, "", func(b *broken) *wasmtest.Stream {
		b.host.Clock.Advance(4*time.Second - time.Duration(b.host.Clock.Mono%int64(4*time.Second)))
		held = []*wasmtest.Stream{beginLasting(b), beginLasting(b)}
		b.host.Advance(3 * time.Second)
		return nil
	}, func(b *broken, _ *wasmtest.Stream) { b.host.Advance(2 * time.Second) }, func(b *broken) string {
		for i := range 20 {
			b.host.Advance(1500 * time.Millisecond)
			if n := b.room(); n != 1 {
				return fmt.Sprintf("%d are admitted %d checks after the tick, want 1", n, i+1)
			}
		}
		endAll(held)
		if n := b.room(); n != 3 {
			return fmt.Sprintf("all have ended, and %d are admitted", n)
		}
		return ""
	})
}

// Where a request could not be counted, the policy says what becomes of it, and
// nothing is left of it either way.
func TestAHostcallThatFailsAsARequestTakesOffLeavesNothingInFlight(t *testing.T) {
	var s *wasmtest.Stream
	eachBreakage(t, "", func(b *broken) *wasmtest.Stream {
		beginLasting(b).End() // opens the table
		return nil
	}, func(b *broken, _ *wasmtest.Stream) { s = beginLasting(b) }, func(b *broken) string {
		if s.Paused() {
			return "the request waits for ever"
		}
		undecided := b.is(tableAndClocks...)
		if denied := s.Local() != nil; denied && (b.policy != "deny" || !undecided) {
			return fmt.Sprintf("the client gets %d", s.Local().Status)
		}
		s.End()
		b.host.Advance(10 * time.Second)
		if n := b.room(); n != 3 {
			return fmt.Sprintf("it has ended, and %d are admitted, want 3", n)
		}
		return ""
	})
}

// A lease that could not be renewed for want of a tick lapses; the next request
// asks for ticks again, and all are renewed from then on.
func TestATickThatCannotBeSetIsAskedForAgain(t *testing.T) {
	for _, failure := range everyFailure {
		host := wasmtest.New(t, wasmtest.Module(t))
		worker := start(t, host, inFlight(3, ""))
		host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) {
			return failure, c.Name == "proxy_set_tick_period_milliseconds"
		}
		first := begin(worker, request{address: client(1)})
		host.Fail = nil
		second := begin(worker, request{address: client(1)})
		if !wentOn(first) || !wentOn(second) {
			t.Fatalf("status %d: a request was stopped", failure)
		}
		host.Advance(time.Minute)
		if n := room(worker, request{address: client(1)}); n != 1 {
			t.Errorf("status %d: two are in flight, and %d more are admitted, want 1", failure, n)
		}
		first.End()
		second.End()
		if n := room(worker, request{address: client(1)}); n != 3 {
			t.Errorf("status %d: all have ended, and %d are admitted", failure, n)
		}
	}
}

// A worker whose ticks fail for good, or whose table does, still serves.
func TestACallThatAlwaysFailsWhileRequestsAreInFlightHarmsNoStream(t *testing.T) {
	for _, name := range append([]string{"proxy_set_tick_period_milliseconds", "proxy_increment_metric", "proxy_define_metric", "proxy_get_header_map_value",
		"proxy_get_header_map_pairs", "proxy_get_property", "proxy_remove_header_map_value", "proxy_replace_header_map_value"}, tableAndClocks...) {
		for _, failure := range everyFailure {
			host := wasmtest.New(t, wasmtest.Module(t))
			worker := start(t, host, lastingLimits("allow", `,"charge":{"response_header":"x-tokens","max":50,"remove":true}`))
			before := []*wasmtest.Stream{begin(worker, request{address: client(1)}), begin(worker, request{address: client(1)})}
			host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) { return failure, c.Name == name }
			host.Advance(20 * time.Second)
			for _, s := range append(before, begin(worker, request{address: client(1)})) {
				sent := s.ResponseHeaders(wasmtest.Headers{{":status", "200"}, {"x-tokens", "7"}})
				if status, _ := sent.Get(":status"); status != "200" || !wentOn(s) {
					t.Errorf("%s returns %d: the client gets %v", name, failure, sent)
				}
				s.End()
			}
			host.Fail = nil
			host.Advance(20 * time.Second)
			if n := room(worker, request{address: client(1), path: "/f"}); n != 3 || worker.VM().Err() != nil {
				t.Errorf("%s returned %d: %d are admitted, want 3", name, failure, n)
			}
			for _, line := range worker.VM().Logs() {
				if strings.Contains(line.Message, "panic") {
					t.Errorf("%s returned %d: %s", name, failure, line.Message)
				}
			}
			host.Close()
		}
	}
}
