package wasmtest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// besides is a config of the minute's limit and others of the process on "/", and
// of a path "/left" on which the process' limit p can be looked at.
func besides(global, others, names string) string {
	return fleetConfig("rls", global, minute+","+others,
		`{"match":{"path":"/left"},"limits":[{"limit":"p","cost":0}]},{"limits":["x",`+names+`]}`)
}

const dayOfTen = `"p":{"algorithm":"fixed_window","limit":10,"window":"1d","key":["ip"]}`

// left is what a client has left of the process' limit p.
func left(plugin *wasmtest.Plugin, n int) int64 {
	return ask(plugin, request{address: client(n), path: "/left"}).remaining
}

func TestAProcessLimitIsTakenFirstAndGivenBackWhenTheServiceRefuses(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, besides("", dayOfTen, `"p"`))
	r := request{address: client(1)}

	s := waits(t, plugin, r)
	if n := left(plugin, 1); n != 9 {
		t.Errorf("while the service is asked %d are left, want 9", n)
	}
	plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOver, 10, rlsMinute, 0, 42))
	expectAnswer(t, s, answer{429, 10, 0, 42, 42})
	if n := left(plugin, 1); n != 10 {
		t.Errorf("when the service has refused %d are left, want 10", n)
	}

	s = waits(t, plugin, r)
	plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOK, 10, rlsMinute, 1, 42))
	expectAnswer(t, s, answer{200, 10, 1, 42, absent}) // the smaller share
	if n := left(plugin, 1); n != 9 {
		t.Errorf("when the service has admitted %d are left, want 9", n)
	}
	clear(host.Metrics)
	s = waits(t, plugin, r)
	plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOver, 10, rlsMinute, 0, 42))
	finish(t, s)
	expectCounts(t, host, map[string]uint64{"x.refused": 1, "p.refused": 0, "p.allowed": 0, "x.allowed": 0})
}

func TestWhatAProcessLimitRefusesAsksNobody(t *testing.T) {
	for name, other := range map[string]string{
		"window":      `"p":{"algorithm":"fixed_window","limit":1,"window":"1d","key":["ip"]}`,
		"concurrency": `"p":{"algorithm":"concurrency","limit":1,"key":["ip"]}`,
		"queue":       `"p":{"algorithm":"leaky_bucket","capacity":1,"leak_rate":"1/h","max_wait":"0s","key":["ip"]}`,
	} {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, fleetConfig("rls", "", minute+","+other, `{"limits":["x","p"]}`))
		first := waits(t, plugin, request{address: client(1)})
		plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOK, 10, rlsMinute, 9, 42))
		if !wentOn(first) {
			t.Fatalf("%s: the first does not go on", name)
		}
		second := begin(plugin, request{address: client(1)})
		if second.Local() == nil || second.Local().Status != 429 {
			t.Errorf("%s: the second is not refused: %+v", name, second.Local())
		}
		expectCalls(t, plugin, 0)
		expectCounts(t, host, map[string]uint64{"x.calls": 1, "p.refused": 1})
	}
}

// A request is in flight once all others have admitted it, and no longer than it
// lasts.
func TestARequestThatTheServiceRefusesIsNotInFlight(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, fleetConfig("rls", "", minute+`,"p":{"algorithm":"concurrency","limit":1,"key":["ip"]}`, `{"limits":["x","p"]}`))
	r := request{address: client(1)}
	for range 3 {
		s := waits(t, plugin, r)
		plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOver, 10, rlsMinute, 0, 42))
		if got := finish(t, s); got.status != 429 {
			t.Fatalf("got %+v", got)
		}
	}
	if n := gauge(host, "p"); n != 0 {
		t.Errorf("%d are in flight", n)
	}
	s, late := waits(t, plugin, r), waits(t, plugin, r)
	for _, call := range slices.Clone(plugin.GRPCCalls()) {
		plugin.AnswerGRPC(call.ID, rlsAnswer(rlsOK, 10, rlsMinute, 5, 42))
	}
	if !wentOn(s) || late.Local() == nil {
		t.Errorf("the first goes on: %t, the second is refused: %t; want both", wentOn(s), late.Local() != nil)
	}
	if n := gauge(host, "p"); n != 1 {
		t.Errorf("%d are in flight, want 1", n)
	}
	s.End()
	late.End()
	if n := gauge(host, "p"); n != 0 {
		t.Errorf("%d are in flight in the end", n)
	}
}

// twoFleetWide are limits a and b of one service.
const twoFleetWide = `"a":{"algorithm":"fixed_window","limit":10,"window":"1m","key":["ip"],"scope":"global"},
	"b":{"algorithm":"fixed_window","limit":20,"window":"1h","key":["ip"],"scope":"global"}`

func TestTwoFleetWideLimitsAreAskedAtOnceAndBothDecide(t *testing.T) {
	const hour = 3
	ok := map[string]string{"a": rlsAnswer(rlsOK, 10, rlsMinute, 5, 30), "b": rlsAnswer(rlsOK, 20, hour, 2, 300)}
	over := map[string]string{"a": rlsAnswer(rlsOver, 10, rlsMinute, 0, 30), "b": rlsAnswer(rlsOver, 20, hour, 0, 300)}
	for _, c := range []struct {
		a, b string
		want answer
	}{
		{ok["a"], ok["b"], answer{200, 20, 2, 300, absent}},
		{over["a"], ok["b"], answer{429, 10, 0, 30, 30}},
		{ok["a"], over["b"], answer{429, 20, 0, 300, 300}},
		{over["a"], over["b"], answer{429, 20, 0, 300, 300}},
	} {
		for _, order := range []string{"ab", "ba"} {
			host := wasmtest.New(t, wasmtest.Module(t))
			plugin := start(t, host, fleetConfig("rls", "", twoFleetWide+","+dayOfTen, `{"match":{"path":"/left"},"limits":[{"limit":"p","cost":0}]},{"limits":["a","b","p"]}`))
			s := waits(t, plugin, request{address: client(1)})
			calls := map[byte]uint32{}
			for _, call := range plugin.GRPCCalls() {
				calls[readRLS(t, call).entries[len("limit=")]] = call.ID
			}
			if len(calls) != 2 {
				t.Fatalf("asked about %d limits, want 2", len(calls))
			}
			for i := range order {
				if !s.Paused() {
					t.Fatalf("%s: decided before both have answered", order)
				}
				plugin.AnswerGRPC(calls[order[i]], map[byte]string{'a': c.a, 'b': c.b}[order[i]])
			}
			expectAnswer(t, s, c.want)
			want := int64(9)
			if c.want.status != 200 {
				want = 10
			}
			if n := left(plugin, 1); n != want {
				t.Errorf("%+v: %d are left of the process' limit, want %d", c.want, n, want)
			}
		}
	}
}

func TestARequestNeverWaitsForALimitInShadow(t *testing.T) {
	const shadowed = `"x":{"algorithm":"fixed_window","limit":10,"window":"1m","key":["ip"],"scope":"global","shadow":true}`
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, fleetConfig("rls", "", shadowed, anyCost))
	for _, c := range []struct {
		cost          int
		asked         uint64
		answer        string // "" is none
		allowed, over uint64
		errors        uint64
	}{
		{3, 3, rlsAnswer(rlsOK, 10, rlsMinute, 7, 42), 1, 0, 0},
		{3, 3, rlsAnswer(rlsOver, 10, rlsMinute, 0, 42), 0, 1, 0},
		{0, 0, rlsAnswer(rlsOver, 10, rlsMinute, 0, 42), 1, 0, 0},
		{11, 0, rlsAnswer(rlsOK, 10, rlsMinute, 7, 42), 0, 1, 0},
		{1, 1, "", 0, 0, 1},
	} {
		clear(host.Metrics)
		s := begin(plugin, costing(1, c.cost))
		if !wentOn(s) {
			t.Fatalf("%+v: the request does not go on at once", c)
		}
		call := only(t, plugin)
		if got := readRLS(t, call).hits; got != c.asked {
			t.Errorf("%+v: asked for %d", c, got)
		}
		expectAnswer(t, s, answer{200, absent, absent, absent, absent})
		if c.answer == "" {
			plugin.CloseGRPC(call.ID, 14)
		} else {
			plugin.AnswerGRPC(call.ID, c.answer)
		}
		expectCounts(t, host, map[string]uint64{"x.allowed": c.allowed, "x.shadow_refused": c.over, "x.errors": c.errors, "x.refused": 0, "x.calls": 1})
	}
}

func TestALimitInShadowIsAskedAboutOnlyWhenTheRequestIsAdmitted(t *testing.T) {
	const shadowed = `"s":{"algorithm":"fixed_window","limit":10,"window":"1h","key":["ip"],"scope":"global","shadow":true}`
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, fleetConfig("rls", "", minute+","+shadowed+","+dayOfTen, `{"limits":["x","s","p"]}`))
	s := waits(t, plugin, request{address: client(1)})
	plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOver, 10, rlsMinute, 0, 42))
	if got := finish(t, s); got.status != 429 {
		t.Errorf("got %+v", got)
	}
	expectCounts(t, host, map[string]uint64{"s.calls": 0, "s.allowed": 0})
	s = waits(t, plugin, request{address: client(1)})
	plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOK, 10, rlsMinute, 9, 42))
	if !wentOn(s) {
		t.Error("the request waits for the limit in shadow")
	}
	call := only(t, plugin)
	if got := readRLS(t, call); got.entries != "limit=s unit=hour" || got.hits != 1 {
		t.Errorf("asked %+v", got)
	}
	finish(t, s)
	plugin.AnswerGRPC(call.ID, rlsAnswer(rlsOver, 10, 3, 0, 42))
	expectCounts(t, host, map[string]uint64{"s.calls": 1, "s.shadow_refused": 1, "s.allowed": 0, "x.allowed": 1, "p.allowed": 1})
}

func TestOverridesHaveTheirOwnNumbersAndAreAClientOfTheirOwn(t *testing.T) {
	const limits = `"x":{"algorithm":"fixed_window","limit":10,"window":"1m","key":["ip"],"scope":"global","overrides":[
		{"match":{"headers":{"x-plan":"gold"}},"limit":50},{"match":{"headers":{"x-plan":"silver"}},"limit":50},
		{"match":{"headers":{"x-plan":"free"}},"unlimited":true}]}`
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, fleetConfig("rls", "", limits, `{"limits":["x"]}`))
	names := map[string]string{}
	for plan, units := range map[string]uint64{"": 10, "gold": 50, "silver": 50} {
		s := waits(t, plugin, request{address: client(1), headers: wasmtest.Headers{{"x-plan", plan}}})
		call := only(t, plugin)
		got := readRLS(t, call)
		if got.units != units || got.hits != 1 {
			t.Errorf("%q: asked %+v, want a limit of %d", plan, got, units)
		}
		if other, taken := names[got.entries+got.client]; taken {
			t.Errorf("%q and %q are one to the service: %+v", plan, other, got)
		}
		names[got.entries+got.client] = plan
		plugin.AnswerGRPC(call.ID, rlsAnswer(rlsOver, units, rlsMinute, 0, 42))
		expectAnswer(t, s, answer{429, int64(units), 0, 42, 42})
	}
	if s := begin(plugin, request{address: client(1), headers: wasmtest.Headers{{"x-plan", "free"}}}); !wentOn(s) {
		t.Error("what is unlimited does not go on")
	}
	expectCalls(t, plugin, 0)
}

func TestWhatAKeyLacksIsSharedSkippedOrDenied(t *testing.T) {
	for _, missing := range []string{"shared", "skip", "deny"} {
		host := wasmtest.New(t, wasmtest.Module(t))
		limit := fmt.Sprintf(`"x":{"algorithm":"fixed_window","limit":10,"window":"1m","key":["header:x-user"],"missing":%q,"scope":"global"}`, missing)
		plugin := start(t, host, fleetConfig("rls", "", limit+","+dayOfTen, `{"match":{"path":"/left"},"limits":[{"limit":"p","cost":0}]},{"limits":["x","p"]}`))
		s := begin(plugin, request{address: client(1)})
		calls, status, remaining := 0, 200, int64(9)
		switch missing {
		case "shared":
			plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOK, 10, rlsMinute, 9, 42))
			calls = 1
		case "deny":
			status, remaining = 429, 10
		}
		if got := finish(t, s); got.status != status || status == 429 && got != (answer{429, absent, absent, absent, absent}) {
			t.Errorf("%s: got %+v", missing, got)
		}
		expectCounts(t, host, map[string]uint64{"x.calls": uint64(calls)})
		if n := left(plugin, 1); n != remaining {
			t.Errorf("%s: %d are left of the process' limit, want %d", missing, n, remaining)
		}
	}
}

// A place in a queue is taken last; who finds it full by then gives the process'
// limits back, and the service nothing.
func TestAQueuesPlaceIsTakenWhenTheServiceHasAdmitted(t *testing.T) {
	const queue = `"q":{"algorithm":"leaky_bucket","capacity":1,"leak_rate":"1/s","key":["ip"]}`
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, besides("", dayOfTen+","+queue, `"p","q"`))
	var all []*wasmtest.Stream
	for range 3 {
		all = append(all, waits(t, plugin, request{address: client(1)}))
	}
	calls := slices.Clone(plugin.GRPCCalls())
	if len(calls) != 3 {
		t.Fatalf("%d are asked about, want 3: no place is taken yet", len(calls))
	}
	// The last one's answer is the first, and so it has the first place.
	for i := len(calls) - 1; i >= 0; i-- {
		plugin.AnswerGRPC(calls[i].ID, rlsAnswer(rlsOK, 10, rlsMinute, 9, 42))
	}
	if !wentOn(all[2]) || !all[1].Paused() || all[0].Local() == nil || all[0].Local().Status != 429 {
		t.Fatalf("want the last one gone on, the second in the queue, the first refused: %t, %t, %+v", wentOn(all[2]), all[1].Paused(), all[0].Local())
	}
	if n := left(plugin, 1); n != 8 {
		t.Errorf("%d are left of the process' limit, want 8", n)
	}
	expectCalls(t, plugin, 0)
	expectCounts(t, host, map[string]uint64{"x.calls": 3, "q.refused": 1, "q.waiting": 1})
	host.Advance(time.Second)
	if !wentOn(all[1]) {
		t.Error("the second never leaves the queue")
	}
	for _, s := range all {
		s.End()
	}
}

func TestNoPlaceInAQueueIsTakenWhenTheServiceRefuses(t *testing.T) {
	const queue = `"q":{"algorithm":"leaky_bucket","capacity":1,"leak_rate":"1/s","key":["ip"]}`
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, besides("", dayOfTen+","+queue, `"p","q"`))
	for range 3 {
		s := waits(t, plugin, request{address: client(1)})
		plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOver, 10, rlsMinute, 0, 42))
		if got := finish(t, s); got.status != 429 {
			t.Fatalf("got %+v", got)
		}
	}
	s := waits(t, plugin, request{address: client(1)})
	plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOK, 10, rlsMinute, 9, 42))
	if !wentOn(s) {
		t.Error("the queue is not idle")
	}
}
