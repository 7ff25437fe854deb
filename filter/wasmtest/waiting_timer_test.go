package wasmtest

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// ticks has a plugin note when its ticks come, in ms from now on, and then do
// what f says, which may be nil.
func (p *puppet) ticks(f func(n int)) *[]string {
	start, noted := p.vm.host.Clock.Mono, &[]string{}
	p.on["proxy_on_tick"] = func([]uint64) uint64 {
		*noted = append(*noted, fmt.Sprint(float64(p.vm.host.Clock.Mono-start)/1e6))
		if f != nil {
			f(len(*noted))
		}
		return 0
	}
	return noted
}

// period sets the period from the callback of a new stream.
func (p *puppet) period(plugin *Plugin, ms int) {
	p.on["proxy_on_request_headers"] = func([]uint64) uint64 {
		p.call("proxy_set_tick_period_milliseconds", ms)
		return 0
	}
	plugin.NewStream(nil).RequestHeaders(nil)
}

func wantTicks(t *testing.T, got *[]string, want ...string) {
	t.Helper()
	if !slices.Equal(*got, want) {
		t.Errorf("ticks came after %v ms, want %v", *got, want)
	}
}

func TestTicksComeOnePeriodAfterItWasSetAndAgainUntilItIsZero(t *testing.T) {
	p, plugin := startPuppet(t)
	host := p.vm.host
	host.Advance(time.Second) // no timer is set
	start := host.Clock
	got := p.ticks(func(n int) {
		if n == 3 {
			p.call("proxy_set_tick_period_milliseconds", 0)
		}
	})
	host.Advance(7 * time.Millisecond)
	p.period(plugin, 10)
	host.Advance(time.Second)
	wantTicks(t, got, "17", "27", "37")
	want(t, "the time passed", time.Duration(host.Clock.Mono-start.Mono), 1007*time.Millisecond)
	want(t, "by the wall clock", time.Duration(host.Clock.Wall-start.Wall), 1007*time.Millisecond)
}

func TestAPeriodThatIsSetStartsTheTimerAnew(t *testing.T) {
	p, plugin := startPuppet(t)
	got := p.ticks(func(n int) {
		if n == 1 {
			p.call("proxy_set_tick_period_milliseconds", 3)
		}
	})
	p.period(plugin, 10)
	p.vm.host.Advance(9 * time.Millisecond)
	p.period(plugin, 10) // as before, but from now on
	p.vm.host.Advance(16 * time.Millisecond)
	wantTicks(t, got, "19", "22", "25")
	p.period(plugin, 0)
	p.vm.host.Advance(time.Second)
	wantTicks(t, got, "19", "22", "25")
}

func TestATickThatIsLateStartsTheNextPeriodWhenItComes(t *testing.T) {
	p, plugin := startPuppet(t)
	got := p.ticks(nil)
	p.period(plugin, 10)
	p.vm.host.Clock.Advance(34 * time.Millisecond) // the worker is busy
	p.vm.host.Advance(10 * time.Millisecond)
	wantTicks(t, got, "34", "44")
}

func TestTicksOfSeveralVMsComeInOrderOfTime(t *testing.T) {
	host := newPuppetHost(t)
	var order []int
	for i := range 3 {
		p := newPuppet(t, host)
		plugin, _ := p.vm.StartPlugin(PluginConfig{Name: "limits"})
		p.ticks(func(int) { order = append(order, i) })
		p.period(plugin, []int{7, 3, 5}[i])
	}
	host.Advance(10 * time.Millisecond)
	if want := []int{1, 2, 1, 0, 1, 2}; !slices.Equal(order, want) {
		t.Errorf("the VMs ticked in the order %v, want %v", order, want)
	}
}

func TestATimerOutlivesItsPluginButNotItsVM(t *testing.T) {
	p, plugin := startPuppet(t)
	host := p.vm.host
	got := p.ticks(nil)
	p.period(plugin, 10)
	plugin.Stop()
	host.Advance(35 * time.Millisecond)
	wantTicks(t, got)
	want(t, "ticks of a plugin that is gone", host.StrayTicks, 3)
	p.vm.Kill()
	host.Advance(time.Second)
	want(t, "ticks of a VM that is dead", host.StrayTicks, 3)
}
