package wasmtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const (
	stepOf250Hz = 4 * time.Millisecond
	stepOf1kHz  = time.Millisecond
)

// stepping lets time pass as where timers go by a clock that moves in steps: a
// tick comes within the first millisecond of the step that reaches it.
func (h *Host) stepping(random *rand.Rand, step time.Duration, steps int, plugins []*Plugin) {
	for range steps {
		start := (h.Clock.Mono/int64(step) + 1) * int64(step)
		late := make([]int64, len(plugins))
		order := make([]int, len(plugins))
		for i := range plugins {
			late[i], order[i] = random.Int64N(int64(time.Millisecond)), i
		}
		slices.SortFunc(order, func(a, b int) int { return int(late[a] - late[b]) })
		for _, i := range order {
			p := plugins[i]
			period := int64(p.tickPeriod) * int64(time.Millisecond)
			set := p.tickDue - period
			if period == 0 || set-set%int64(step)+period > start {
				continue
			}
			h.advanceTo(start + late[i])
			p.Tick()
		}
		h.advanceTo(start + int64(step) - 1)
	}
}

// spaced starts workers at which requests wait, 20 ms one behind the other, from
// so long after a step on, and returns when each is due and has left.
func spaced(t *testing.T, step, phase time.Duration) (due, left []int64) {
	t.Helper()
	const workers, waiters = 3, 240
	random := rand.New(rand.NewPCG(1, uint64(phase)))
	host := New(t, Module(t))
	host.Clock.Mono = int64(time.Hour) + int64(phase)
	begin := host.Clock.Mono
	var plugins []*Plugin
	for range workers {
		plugin, ok := host.NewVM().StartPlugin(PluginConfig{Name: "sluice", Config: fmt.Sprintf(`{
			"limits":{"q":{"algorithm":"leaky_bucket","capacity":%d,"leak_rate":"50/s","max_wait":"1m","key":[]}},
			"rules":[{"limits":["q"]}],"state":{"max_buckets":1000},"on_error":"deny"}`, waiters)})
		if !ok {
			t.Fatal("the plugin does not start")
		}
		plugins = append(plugins, plugin)
	}
	host.Fail = func(c *Call) (Status, bool) {
		if c.Name == "proxy_continue_stream" {
			left = append(left, host.Clock.Mono)
		}
		return OK, false
	}
	for i := range waiters + 1 {
		s := plugins[i%workers].NewStream(nil)
		s.RequestHeaders(Headers{{":method", "GET"}, {":path", "/"}})
		if s.Paused() != (i > 0) {
			t.Fatalf("request %d waits: %t", i, s.Paused())
		}
		if i > 0 {
			due = append(due, begin+int64(i)*int64(20*time.Millisecond))
		}
	}
	host.stepping(random, step, int((waiters+2)*20*time.Millisecond/step), plugins)
	if len(left) != waiters {
		t.Fatalf("%d have left, want %d", len(left), waiters)
	}
	for i, p := range plugins {
		want(t, fmt.Sprintf("period of ticks of worker %d in the end", i), p.TickPeriod(), 0)
	}
	return due, left
}

func TestWhereTimersGoBy4msDeparturesKeepTheirSpacing(t *testing.T) {
	// The first of each worker teach it the steps.
	const taught = 40
	for us := 0; us < 4000; us += 20 {
		due, left := spaced(t, stepOf250Hz, time.Duration(us)*time.Microsecond)
		for i := range left {
			if late := time.Duration(left[i] - due[i]); late < 0 || late > 7*time.Millisecond {
				t.Errorf("%d µs after a step: departure %d is %v late", us, i, late)
			}
			if i < taught {
				continue
			}
			if apart := time.Duration(left[i] - left[i-1]); apart < 19*time.Millisecond || apart > 21*time.Millisecond {
				t.Errorf("%d µs after a step: departure %d is %v behind the one before", us, i, apart)
			}
		}
	}
}

func TestWhereTimersGoBy1msNobodyIsHeld(t *testing.T) {
	for _, us := range []int{0, 200, 500, 900} {
		due, left := spaced(t, stepOf1kHz, time.Duration(us)*time.Microsecond)
		for i := range left {
			if late := time.Duration(left[i] - due[i]); late < 0 || late >= 2*time.Millisecond {
				t.Errorf("%d µs after a step: departure %d is %v late", us, i, late)
			}
		}
	}
}
