package wasmtest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// callsOf are the names of the hostcalls that a few requests make which nobody
// has to wait behind, with their responses and ends.
func callsOf(t *testing.T, config string) (names []string) {
	t.Helper()
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, config)
	host.Recording = true
	for range 3 {
		host.Advance(time.Second)
		if got := ask(plugin, request{address: client(1)}); !got.admitted() || got.remaining == absent {
			t.Fatalf("got %+v", got)
		}
	}
	for _, c := range host.Calls {
		names = append(names, c.Callback+" "+c.Name)
	}
	return names
}

func TestARequestThatNeedNotWaitCostsNoMoreThanUnderAnotherLimit(t *testing.T) {
	limit := `"algorithm":"leaky_bucket","capacity":5,"leak_rate":"10/s"`
	queue, meter := callsOf(t, oneLimit(limit)), callsOf(t, oneLimit(limit+`,"mode":"meter"`))
	if !slices.Equal(queue, meter) {
		t.Errorf("in a queue:\n%s\nin a meter:\n%s", strings.Join(queue, "\n"), strings.Join(meter, "\n"))
	}
}

func TestNothingTicksWhileNobodyWaits(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, waiting("allow"))
	calls := func() int {
		host.Recording, host.Calls = true, nil
		host.Advance(time.Hour)
		return len(host.Calls)
	}
	for n := range 3 {
		ask(plugin, request{address: client(n)})
	}
	if n := calls(); n > 0 || host.Count("proxy_set_tick_period_milliseconds") > 0 {
		t.Errorf("before the first waiter: %d hostcalls in an hour", n)
	}
	streams := arriveAll(t, plugin, 1, 6)
	host.Advance(500 * time.Millisecond)
	if plugin.TickPeriod() != 0 {
		t.Error("the last waiter was resumed, and ticks go on")
	}
	// Of each of the five departures it is set to what comes before, and to the
	// millisecond that ticks come in shortly before it; and once to 0.
	if n := host.Count("proxy_set_tick_period_milliseconds"); n != 11 {
		t.Errorf("the period was set %d times, want 11", n)
	}
	for _, s := range streams {
		s.End()
	}
	if n := calls(); n > 0 {
		t.Errorf("after the last waiter: %d hostcalls in an hour", n)
	}
}

// Whoever leaves cannot stop the timer without a hostcall, so one tick more comes
// and finds nobody.
func TestAfterTheLastWaiterHasLeftOneTickComesAndNoMore(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, waiting("allow"))
	for _, s := range arriveAll(t, plugin, 1, 3) {
		s.End()
	}
	host.Recording = true
	host.Advance(time.Hour)
	ticks := 0
	for _, c := range host.Calls {
		if c.Name == "clock_time_get" {
			ticks++
		}
	}
	if ticks > 1 || plugin.TickPeriod() != 0 {
		t.Errorf("%d ticks come, and the period is %d ms", ticks, plugin.TickPeriod())
	}
}

func TestAPluginThatEndsStopsItsTimer(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, waiting("allow"))
	for _, s := range arriveAll(t, plugin, 1, 3) {
		s.End()
	}
	if plugin.TickPeriod() == 0 {
		t.Skip("it is off already")
	}
	plugin.Stop()
	host.Advance(time.Hour)
	if host.StrayTicks > 0 {
		t.Errorf("%d ticks reach nobody", host.StrayTicks)
	}
}
