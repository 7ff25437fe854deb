package wasmtest_test

import (
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// A circuit opens after failures in a row, so a service of whose calls every other
// one fails keeps deciding: each request gets its own answer or the policy.
func TestAServiceThatFailsEveryOtherCallDecidesTheRest(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, fleetConfig("rls", `,"on_failure":"deny"`, minute, anyCost))
	for i := range 40 {
		s := waits(t, plugin, request{address: client(1)})
		if i%2 == 0 {
			plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOK, 10, rlsMinute, 7, 42))
			if !wentOn(s) {
				t.Fatalf("request %d: admitted by the service, and does not go on", i)
			}
		} else {
			plugin.AnswerGRPC(only(t, plugin).ID, "nonsense")
			if s.Local() == nil || s.Local().Status != 503 {
				t.Fatalf("request %d: no answer can be had, and it is not denied", i)
			}
		}
		s.End()
	}
	expectCounts(t, host, map[string]uint64{"x.calls": 40, "x.call_errors": 20, "x.errors": 20, "x.allowed": 20})
}

// After five failures in a row requests are decided at once, until a single one
// finds the service back.
func TestADeadServiceHoldsUpNobodyForLong(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, fleetConfig("rls", `,"on_failure":"deny"`, minute, anyCost))
	for range 5 {
		s := waits(t, plugin, request{address: client(1)})
		plugin.CloseGRPC(only(t, plugin).ID, 14)
		s.End()
	}
	s := begin(plugin, request{address: client(2)})
	if s.Local() == nil || s.Local().Status != 503 {
		t.Fatal("the sixth request is not decided at once")
	}
	expectCalls(t, plugin, 0)
	s.End()
	host.Clock.Advance(100 * time.Millisecond)
	probe := waits(t, plugin, request{address: client(2)})
	at := begin(plugin, request{address: client(3)})
	if at.Local() == nil {
		t.Error("more than one request asks whether the service is back")
	}
	plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOK, 10, rlsMinute, 7, 42))
	if !wentOn(probe) {
		t.Error("the request that found the service back does not go on")
	}
	probe.End()
	waits(t, plugin, request{address: client(3)}).End()
}
