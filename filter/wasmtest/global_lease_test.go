package wasmtest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// Workers share what one of them has leased, and the call for it: however they
// race, one is in flight at a time, none waits, and in the end the window's limit
// has been admitted but for one lease more or less. Then all know that it is used up.
func TestWorkersThatRaceShareLeasesAndCalls(t *testing.T) {
	const limit, largest = 200, 20
	eachSeed(t, 4, func(random *rand.Rand) error {
		host := wasmtest.New(t, wasmtest.Module(t))
		defer host.Close()
		workers := startWorkers(t, host, 6, fleetConfig("rls", `,"mode":"lease","lease":0.1`,
			fmt.Sprintf(`"x":{"algorithm":"fixed_window","limit":%d,"window":"1m","key":["ip"],"scope":"global"}`, limit), `{"limits":["x"]}`))
		taken, admitted := uint64(0), 0
		for round := range 40 {
			var tasks []wasmtest.Task
			for _, worker := range workers {
				tasks = append(tasks, wasmtest.Task{VM: worker.VM(), Run: func() {
					for range 2 {
						if ask(worker, request{address: client(1)}).admitted() {
							admitted++
						}
					}
				}})
			}
			host.Race(random, nil, tasks...)
			open := 0
			for _, worker := range workers {
				for _, call := range worker.GRPCCalls() {
					open++
					taken += readRLS(t, call).hits
					status, left := uint64(rlsOK), uint64(limit)-min(taken, limit)
					if taken > limit {
						status = rlsOver
					}
					worker.AnswerGRPC(call.ID, rlsAnswer(status, limit, rlsMinute, left, 42))
				}
			}
			if open > 1 {
				return fmt.Errorf("round %d: %d calls at a time for one client", round, open)
			}
			host.Clock.Advance(time.Millisecond)
		}
		if admitted <= limit-largest || admitted > limit+largest {
			return fmt.Errorf("%d admitted, want %d but for a lease of %d", admitted, limit, largest)
		}
		for i, worker := range workers {
			if got := ask(worker, request{address: client(1)}); got.status != 429 || len(worker.GRPCCalls()) > 0 {
				return fmt.Errorf("worker %d does not know that the limit is used up: status %d, %d calls", i, got.status, len(worker.GRPCCalls()))
			}
		}
		return nil
	})
}

// A refusal that a process remembers ends with its window, and holds for no
// override, which has units of its own.
func TestARefusalIsRememberedUntilItsWindowEndsAndForNoOverride(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, fleetConfig("rls", `,"mode":"lease"`, `"x":{"algorithm":"fixed_window","limit":10,"window":"1m","key":["ip"],"scope":"global",
		"overrides":[{"match":{"headers":{"x-plan":"gold"}},"limit":100},{"match":{"headers":{"x-plan":"free"}},"unlimited":true}]}`, anyCost))
	r := request{address: client(1)}
	for only := 0; only < 3 && ask(plugin, r).admitted(); only++ {
		for _, call := range plugin.GRPCCalls() {
			plugin.AnswerGRPC(call.ID, rlsAnswer(rlsOver, 10, rlsMinute, 0, 42))
		}
	}
	if got := ask(plugin, r); got.status != 429 || got.retryAfter < 41 || got.retryAfter > 43 {
		t.Errorf("the service has refused, and a client is told %+v", got)
	}
	expectCalls(t, plugin, 0)
	for _, plan := range []string{"gold", "free"} {
		if got := ask(plugin, request{address: client(1), headers: wasmtest.Headers{{"x-plan", plan}}}); got.status != 200 {
			t.Errorf("%s: got %+v beside a refusal of the limit's own numbers", plan, got)
		}
	}
	for _, call := range plugin.GRPCCalls() {
		plugin.AnswerGRPC(call.ID, rlsAnswer(rlsOK, 100, rlsMinute, 99, 42))
	}
	host.Clock.Advance(43 * time.Second)
	if got := ask(plugin, r); got.status != 200 {
		t.Errorf("after the window's end: %+v", got)
	}
}
