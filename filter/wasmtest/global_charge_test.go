package wasmtest_test

import (
	"testing"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// chargedMinute is the minute's limit with a charge.
func chargedMinute(charge string) string {
	return `"x":{"algorithm":"fixed_window","limit":10,"window":"1m","key":["ip"],"scope":"global","charge":` + charge + `}`
}

func TestAChargeIsSentToTheServiceAsAFurtherHitFromWhereverItStands(t *testing.T) {
	for name, source := range sources {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, fleetConfig("rls", "", chargedMinute(source.charge), anyCost))
		for _, c := range []struct {
			value  string
			sent   uint64 // 0: nothing is sent
			errors uint64
		}{{"7", 7, 0}, {"51", 50, 0}, {"0", 0, 0}, {"five", 0, 1}} {
			clear(host.Metrics)
			s := waits(t, plugin, costing(1, 2))
			call := only(t, plugin)
			arrival := readRLS(t, call)
			plugin.AnswerGRPC(call.ID, rlsAnswer(rlsOK, 10, rlsMinute, 8, 42))
			source.respond(s, c.value)
			if c.sent == 0 {
				expectCalls(t, plugin, 0)
			} else {
				call = only(t, plugin)
				want := arrival
				want.hits = c.sent
				if got := readRLS(t, call); got != want {
					t.Errorf("%s %q: charged %+v, want %+v", name, c.value, got, want)
				}
				// What the service says of a charge is nobody's refusal.
				plugin.AnswerGRPC(call.ID, rlsAnswer(rlsOver, 10, rlsMinute, 0, 42))
			}
			expectCounts(t, host, map[string]uint64{"x.errors": c.errors, "x.refused": 0, "x.allowed": 1})
		}
	}
}

func TestAChargeOnGubernatorTakesWhatIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		limit string
		want  gubRequest
	}{
		"window": {chargedMinute(sources["a header"].charge), gubRequest{"sluice:x:minute", "", 10, 10, 0, 0, gubDraining, 0}},
		"bucket": {`"x":{"algorithm":"token_bucket","capacity":10,"refill_rate":"5/s","key":["ip"],"scope":"global","charge":` + sources["a header"].charge + `}`,
			gubRequest{"sluice:x:bucket", "", 10, 10, 2000, 1, gubDraining &^ gubGregorian, 10}},
	} {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, fleetConfig("gubernator", "", c.limit, anyCost))
		s := waits(t, plugin, costing(1, 2))
		call := only(t, plugin)
		arrival := readGubernator(t, call)
		plugin.AnswerGRPC(call.ID, gubAnswer(gubUnder, 10, 8, uint64(host.Clock.Wall)/1e6+20_000, ""))
		sources["a header"].respond(s, "40")
		c.want.key = arrival.key
		if got := readGubernator(t, only(t, plugin)); got != c.want {
			t.Errorf("%s: charged %+v, want %+v", name, got, c.want)
		}
	}
}

func TestARequestThatTheServiceRefusedIsNotCharged(t *testing.T) {
	for name, source := range sources {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, fleetConfig("rls", "", chargedMinute(source.charge), anyCost))
		s := waits(t, plugin, costing(1, 2))
		plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOver, 10, rlsMinute, 0, 42))
		source.respond(s, "7")
		if n := len(plugin.GRPCCalls()); n != 0 {
			t.Errorf("%s: charged all the same", name)
		}
		expectCounts(t, host, map[string]uint64{"x.calls": 1, "x.errors": 0})
	}
}

// A limit that charges knows debt, so that one which looks can be refused.
func TestInDebtARequestOfNoCostIsRefused(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, fleetConfig("rls", "", chargedMinute(sources["a header"].charge), anyCost))
	s := waits(t, plugin, costing(1, 0))
	plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOver, 10, rlsMinute, 0, 42))
	expectAnswer(t, s, answer{429, 10, 0, 42, 42})
	s = waits(t, plugin, costing(1, 0))
	plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOK, 10, rlsMinute, 0, 42))
	sources["a header"].respond(s, "3")
	if got := readRLS(t, only(t, plugin)).hits; got != 3 {
		t.Errorf("charged %d, want 3", got)
	}
}
