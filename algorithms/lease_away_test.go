package algorithms_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
)

// every has an Envoy get a request every so often.
func (f *leaseFleet) every(e *leasingEnvoy, gap time.Duration, from, to int64) {
	var next func()
	next = func() {
		if f.now < to {
			f.request(e, 1)
			f.after(gap, next)
		}
	}
	f.after(time.Duration(from-f.now), next)
}

func TestADeadServiceIsAwayUntilItAnswersAgain(t *testing.T) {
	const dead, alive = 10 * int64(time.Second), 25 * int64(time.Second)
	for _, kind := range []string{rlsWindow, gubWindow, gubBucket} {
		for _, fails := range []time.Duration{time.Millisecond, 53 * time.Millisecond} {
			f := newLeaseFleet(t, newCounting(t, kind, 50_000, 100), 8, 1)
			f.fate = func(sent int64) fate {
				if dead <= sent && sent < alive {
					return fate{answer: fails, fails: true}
				}
				return f.goodNetwork(sent)
			}
			for _, e := range f.envoys {
				f.every(e, 5*time.Millisecond, 0, minute)
			}
			f.runUntil(dead)
			refused := f.refusals()
			f.runUntil(alive)
			// Only a request that begins a probe may be refused.
			probes := 8 * (alive - dead) / int64(leasePause)
			if refused = f.refusals() - refused; refused > probes {
				t.Errorf("%s: refused %d requests, with %d probes", kind, refused, probes)
			}
			for _, e := range f.envoys {
				e.firstAdmitted = 0
			}
			f.runUntil(alive + int64(time.Second))
			for i, e := range f.envoys {
				back := time.Duration(e.firstAdmitted - alive)
				if e.firstAdmitted == 0 || back > leasePause+110*time.Millisecond {
					t.Errorf("%s: Envoy %d admits after %v", kind, i, back)
				}
			}
		}
	}
}

func TestTokensAreSpentWhileTheServiceIsAway(t *testing.T) {
	f := newLeaseFleet(t, newCounting(t, gubWindow, 5000, 250), 1, 1)
	e := f.envoys[0]
	lease, now := e.lease, algorithms.Time{Mono: 1}
	var s algorithms.State
	lease.Answer(&s, now, algorithms.LeaseAnswer{
		Asked: 2, Allowed: true, Remaining: 100, EndsAfter: int64(time.Minute), EndsBefore: int64(time.Minute),
	})
	lease.Answer(&s, now, algorithms.LeaseAnswer{Asked: 2, Failed: true, Pause: leasePause})
	for range 2 {
		if lease.Away(&s, now) {
			t.Fatal("is away with tokens in stock")
		}
		s, _ = algorithms.Decide(lease, s, now, 1)
	}
	if !lease.Away(&s, now) {
		t.Fatal("is not away without a token")
	}
}

func TestARefusalDoesNotOutliveItsWindow(t *testing.T) {
	for _, kind := range []string{rlsWindow, gubWindow} {
		for seed := range uint64(10) {
			f := newLeaseFleet(t, newCounting(t, kind, 500, 25), 8, seed)
			for _, e := range f.envoys {
				f.every(e, 50*time.Millisecond, 0, 4*minute)
			}
			for w := range int64(3) {
				f.runUntil((w + 1) * minute)
				for _, e := range f.envoys {
					e.firstAdmitted = 0
				}
				f.runUntil((w+1)*minute + int64(time.Second))
				for i, e := range f.envoys {
					after := time.Duration(e.firstAdmitted - (w+1)*minute)
					// The pause at the edge, a call, and the next request.
					if e.firstAdmitted == 0 || after > 20*time.Millisecond+50*time.Millisecond+2*50*time.Millisecond {
						t.Errorf("%s: Envoy %d admits %v after the window's beginning", kind, i, after)
					}
				}
			}
		}
	}
}

func TestOnlyWhoStoresTheStateCalls(t *testing.T) {
	c := newCounting(t, rlsWindow, 5000, 250)
	lease, err := algorithms.NewLease(c.terms)
	if err != nil {
		t.Fatal(err)
	}
	var state atomic.Pointer[algorithms.State]
	state.Store(new(algorithms.State))
	var admitted, calls atomic.Int64
	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 0))
			for range 200 {
				for {
					old := state.Load()
					next, d := algorithms.Decide(lease, *old, algorithms.Time{Mono: 1 + random.Int64N(1000)}, 1)
					stores := d.Allowed || d.Window > 0
					if stores && !state.CompareAndSwap(old, &next) {
						continue
					}
					if d.Allowed {
						admitted.Add(1)
					}
					if d.Window > 0 {
						calls.Add(1)
					}
					break
				}
			}
		})
	}
	workers.Wait()
	if admitted.Load() != 250 || calls.Load() != 1 {
		t.Errorf("admitted %d on credit, with %d calls", admitted.Load(), calls.Load())
	}
}
