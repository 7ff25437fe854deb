package wasmtest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// callEndings are the ways in which a call ends.
var callEndings = map[string]func(plugin *wasmtest.Plugin, id uint32){
	"admitted":  func(p *wasmtest.Plugin, id uint32) { p.AnswerGRPC(id, rlsAnswer(rlsOK, 10, rlsMinute, 9, 42)) },
	"refused":   func(p *wasmtest.Plugin, id uint32) { p.AnswerGRPC(id, rlsAnswer(rlsOver, 10, rlsMinute, 0, 42)) },
	"nonsense":  func(p *wasmtest.Plugin, id uint32) { p.AnswerGRPC(id, "\xff\xff nonsense") },
	"empty":     func(p *wasmtest.Plugin, id uint32) { p.AnswerGRPC(id, "") },
	"closed":    func(p *wasmtest.Plugin, id uint32) { p.CloseGRPC(id, 14) },
	"closed OK": func(p *wasmtest.Plugin, id uint32) { p.CloseGRPC(id, 0) },
	"status 99": func(p *wasmtest.Plugin, id uint32) { p.CloseGRPC(id, 99) },
}

// Envoy does not end a call whose client has gone. What the request has taken of
// the process' limits goes back, and the answer is nobody's.
func TestAClientThatGoesBeforeTheAnswerTakesNothingOfTheProcess(t *testing.T) {
	for name, end := range callEndings {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, besides("", dayOfTen+`,"f":{"algorithm":"concurrency","limit":5,"key":[]}`, `"p","f"`))
		gone := waits(t, plugin, request{address: client(1)})
		call := only(t, plugin)
		gone.End()
		if n := left(plugin, 1); n != 10 {
			t.Errorf("%s: %d are left when the client has gone, want 10", name, n)
		}
		other := waits(t, plugin, request{address: client(2)})
		end(plugin, call.ID)
		if !other.Paused() || gone.Local() != nil {
			t.Errorf("%s: the late answer hits somebody", name)
		}
		if n := left(plugin, 1); n != 10 {
			t.Errorf("%s: %d are left after the late answer, want 10", name, n)
		}
		end(plugin, call.ID) // nobody's any more
		if !other.Paused() {
			t.Errorf("%s: what is nobody's hits somebody", name)
		}
		plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOK, 10, rlsMinute, 3, 42))
		if n := gauge(host, "f"); n != 1 {
			t.Errorf("%s: %d are in flight, want the other alone", name, n)
		}
		expectAnswer(t, other, answer{200, 10, 3, 42, absent})
		expectCounts(t, host, map[string]uint64{"x.allowed": 1, "x.refused": 0, "x.errors": 0})
	}
}

// An answer that never comes leaves the request to Envoy, which ends the stream.
func TestWhatIsNeverAnsweredHoldsUpNobodyElse(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, besides("", dayOfTen, `"p"`))
	stuck := waits(t, plugin, request{address: client(1)})
	for range 3 {
		s := waits(t, plugin, request{address: client(1)})
		calls := plugin.GRPCCalls()
		plugin.AnswerGRPC(calls[len(calls)-1].ID, rlsAnswer(rlsOK, 10, rlsMinute, 9, 42))
		finish(t, s)
	}
	if !stuck.Paused() {
		t.Error("it was answered with another's answer")
	}
	stuck.End()
	if n := left(plugin, 1); n != 7 {
		t.Errorf("%d are left, want 7", n)
	}
}

// The call returns 10, and a close comes later for an id that nobody was given.
func TestACallThatFailsAtOnceIsDecidedByThePolicyAtOnce(t *testing.T) {
	for policy, want := range map[string]int{"local": 200, "allow": 200, "deny": 503} {
		for _, id := range []uint32{0, 1, 2, 3, 777} {
			host := wasmtest.New(t, wasmtest.Module(t))
			plugin := start(t, host, besides(fmt.Sprintf(`,"on_failure":%q`, policy), dayOfTen, `"p"`))
			waiter := waits(t, plugin, request{address: client(2)})
			real := only(t, plugin)
			host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) {
				return wasmtest.InternalFailure, c.Name == "proxy_grpc_call"
			}
			s := begin(plugin, request{address: client(1)})
			if got := finish(t, s); got.status != want {
				t.Errorf("%s: got %+v, want %d", policy, got, want)
			}
			host.Fail = nil
			if id != real.ID {
				plugin.CloseGRPC(id, 14)
			}
			if !waiter.Paused() {
				t.Errorf("%s: the close for id %d hits a request that waits", policy, id)
			}
			wantLeft := int64(9)
			if want == 503 {
				wantLeft = 10
			}
			if n := left(plugin, 1); n != wantLeft {
				t.Errorf("%s: %d are left of the process' limit, want %d", policy, n, wantLeft)
			}
			expectCounts(t, host, map[string]uint64{"x.call_errors": 1, "x.calls": 2})
		}
	}
}

// One of two limits' calls fails at once, the other is answered.
func TestOneCallOfTwoThatFailsAtOnceLeavesTheOtherToDecide(t *testing.T) {
	for nth := range 2 {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, fleetConfig("rls", `,"on_failure":"local"`, twoFleetWide, `{"limits":["a","b"]}`))
		n := 0
		host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) {
			if c.Name != "proxy_grpc_call" {
				return 0, false
			}
			n++
			return wasmtest.InternalFailure, n-1 == nth
		}
		s := waits(t, plugin, request{address: client(1)})
		call := only(t, plugin)
		asked := readRLS(t, call)
		plugin.AnswerGRPC(call.ID, rlsAnswer(rlsOver, asked.units, asked.unit, 0, 20))
		expectAnswer(t, s, answer{429, int64(asked.units), 0, 20, 20})
	}
}

// dayOfMany is a limit of the process that is never the one with the smallest share.
const dayOfMany = `"p":{"algorithm":"fixed_window","limit":1000,"window":"1d","key":["ip"]}`

// asked is a request that waits in one of the VMs.
type asked struct {
	plugin *wasmtest.Plugin
	stream *wasmtest.Stream
	call   uint32
}

func TestAnswersInAnyOrderOverAllWorkersReachWhoAsked(t *testing.T) {
	eachSeed(t, 20, func(random *rand.Rand) error {
		host := wasmtest.New(t, wasmtest.Module(t))
		defer host.Close()
		workers := startWorkers(t, host, 3, besides("", `"p":{"algorithm":"fixed_window","limit":1000,"window":"1d","key":[]}`, `"p"`))
		var waiting []asked
		admitted := int64(0)
		for step := range 200 {
			if len(waiting) < 12 && random.IntN(2) == 0 {
				plugin := workers[random.IntN(len(workers))]
				s := begin(plugin, request{address: client(random.IntN(5))})
				calls := plugin.GRPCCalls()
				if !s.Paused() || len(calls) == 0 {
					return fmt.Errorf("step %d: a request does not wait", step)
				}
				waiting = append(waiting, asked{plugin, s, calls[len(calls)-1].ID})
				continue
			}
			if len(waiting) == 0 {
				continue
			}
			i := random.IntN(len(waiting))
			w := waiting[i]
			waiting = slices.Delete(waiting, i, i+1)
			remaining := uint64(random.IntN(10))
			switch random.IntN(3) {
			case 0:
				w.plugin.AnswerGRPC(w.call, rlsAnswer(rlsOK, 10, rlsMinute, remaining, 42))
				want := answer{200, 10, int64(remaining), 42, absent}
				if !wentOn(w.stream) {
					return fmt.Errorf("step %d: not admitted", step)
				}
				if got := answerOf(respondWith(w.stream)); got != want {
					return fmt.Errorf("step %d: told %+v, want %+v", step, got, want)
				}
				admitted++
			case 1:
				reset := 1 + uint64(random.IntN(60))
				w.plugin.AnswerGRPC(w.call, rlsAnswer(rlsOver, 10, rlsMinute, 0, reset))
				want := answer{429, 10, 0, int64(reset), int64(reset)}
				if local := w.stream.Local(); local == nil || answerOf(local.Sent) != want {
					return fmt.Errorf("step %d: told %+v, want %+v", step, local, want)
				}
				w.stream.End()
			case 2:
				w.stream.End()
				w.plugin.AnswerGRPC(w.call, rlsAnswer(rlsOK, 10, rlsMinute, remaining, 42))
			}
			for _, other := range waiting {
				if !other.stream.Paused() {
					return fmt.Errorf("step %d: another request was answered", step)
				}
			}
			if n := 1000 - left(workers[0], 1); n != admitted+int64(len(waiting)) {
				return fmt.Errorf("step %d: %d are taken, want %d that were admitted and %d that wait", step, n, admitted, len(waiting))
			}
		}
		return nil
	})
}

// While an old config drains, what it has asked is answered to it.
func TestAConfigPushLosesNoRequestThatWaits(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	old := besides("", dayOfMany, `"p"`)
	const stricter = `"x":{"algorithm":"fixed_window","limit":5,"window":"1m","key":["ip"],"scope":"global"}`
	now := fleetConfig("rls", `,"domain":"other"`, stricter+","+dayOfMany, `{"match":{"path":"/left"},"limits":[{"limit":"p","cost":0}]},{"limits":["x","p"]}`)
	both := startBoth(t, host, old, now)
	before := [2]*wasmtest.Stream{waits(t, both[0], request{address: client(1)}), waits(t, both[0], request{address: client(1)})}
	calls := slices.Clone(both[0].GRPCCalls())
	after := waits(t, both[1], request{address: client(1)})
	if got := readRLS(t, only(t, both[1])); got.units != 5 || got.domain != "other" {
		t.Errorf("the new config asks %+v", got)
	}
	both[0].AnswerGRPC(calls[1].ID, rlsAnswer(rlsOver, 10, rlsMinute, 0, 42))
	expectAnswer(t, before[1], answer{429, 10, 0, 42, 42})
	both[1].AnswerGRPC(only(t, both[1]).ID, rlsAnswer(rlsOK, 5, rlsMinute, 4, 42))
	expectAnswer(t, after, answer{200, 5, 4, 42, absent})
	both[0].AnswerGRPC(calls[0].ID, rlsAnswer(rlsOK, 10, rlsMinute, 3, 42))
	expectAnswer(t, before[0], answer{200, 10, 3, 42, absent})
	if !both[0].Stop() {
		t.Error("the old plugin does not end")
	}
	if n := left(both[1], 1); n != 998 {
		t.Errorf("%d are left of the process' limit, want 998", n)
	}
}

// What cannot be relied on is a failure, and who waited for it is decided by the
// policy.
func TestAnAnswerThatCannotBeReliedOnFollowsThePolicy(t *testing.T) {
	for name, end := range callEndings {
		if name == "admitted" || name == "refused" {
			continue
		}
		for policy, want := range map[string]answer{
			"local": {200, 10, 9, 40, absent}, // counted by the process, whose minute is over in 40 s
			"allow": {200, 1000, 999, absent, absent},
			"deny":  {503, absent, absent, absent, absent},
		} {
			host := wasmtest.New(t, wasmtest.Module(t))
			host.Clock.Wall = 1_700_000_000_000_000_000 // 20 s into a minute
			plugin := start(t, host, besides(fmt.Sprintf(`,"on_failure":%q`, policy), dayOfMany, `"p"`))
			s := waits(t, plugin, request{address: client(1)})
			end(plugin, only(t, plugin).ID)
			got := finish(t, s)
			if policy == "allow" {
				got.reset = absent // the day's
			}
			if got != want {
				t.Errorf("%s, %s: the client is told %+v, want %+v", name, policy, got, want)
			}
			expectCounts(t, host, map[string]uint64{"x.calls": 1, "x.call_errors": 1})
		}
	}
}

func TestAnErrorOfGubernatorsIsAFailureWhateverItsStatus(t *testing.T) {
	for _, status := range []uint64{gubUnder, gubOver} {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, fleetConfig("gubernator", `,"on_failure":"deny"`, minute, anyCost))
		s := waits(t, plugin, costing(1, 1))
		plugin.AnswerGRPC(only(t, plugin).ID, gubAnswer(status, 10, 5, uint64(host.Clock.Wall)/1e6+9000, "the owner is down"))
		if got := finish(t, s); got.status != 503 {
			t.Errorf("status %d: got %+v, want 503", status, got)
		}
	}
}

// What asked about one rule's limits must say nothing of another rule's.
func TestRequestsUnderDifferentRulesAskForTheirOwnLimitsOnly(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, fleetConfig("rls", "", minute+","+dayOfMany,
		`{"match":{"path":"/x"},"limits":["x"]},{"match":{"path":"/p"},"limits":["p"]},{"limits":["x","p"]}`))
	for range 2 {
		for _, path := range []string{"/x", "/", "/p"} {
			s := begin(plugin, request{address: client(1), path: path})
			if path == "/p" {
				expectCalls(t, plugin, 0)
			} else {
				plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOK, 10, rlsMinute, 3, 42))
			}
			if got := finish(t, s); got.status != 200 {
				t.Errorf("%s: got %+v", path, got)
			}
		}
	}
	expectCounts(t, host, map[string]uint64{"x.allowed": 4, "x.calls": 4, "p.allowed": 4, "p.calls": 0, "p.errors": 0})
}
