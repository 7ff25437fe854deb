package algorithms_test

import (
	"fmt"
	"testing"
	"time"
)

const minute = int64(time.Minute)

// checkShares runs a fleet, and checks from one window to another that few calls
// are made and that no less than a share of the limit is handed out where the
// requests could use it up.
func (f *leaseFleet) checkShares(t *testing.T, from, windows int64, least float64) {
	t.Helper()
	limit := float64(f.terms.Limit)
	f.runUntil(from * minute)
	for w := from; w < windows; w++ {
		calls := f.calls
		f.runUntil((w + 1) * minute)
		requests, admitted := float64(f.requests[w]), float64(f.admitted[w])
		if share := float64(f.calls-calls) / requests; share >= 0.05 {
			t.Errorf("window %d: the service sees %.2f %% of the requests", w, 100*share)
		}
		if requests > 1.05*limit && admitted < least*limit {
			t.Errorf("window %d: %.2f %% of the limit was handed out", w, 100*admitted/limit)
		}
	}
}

func TestAFleetUsesUpALimitWithFewCalls(t *testing.T) {
	for _, kind := range []string{rlsWindow, gubWindow} {
		for _, times := range []float64{1.2, 1.5, 2, 3} {
			for _, begin := range []int64{0, 30} {
				for seed := range uint64(5) {
					t.Run(fmt.Sprintf("%s/%.1f/%d/%d", kind, times, begin, seed), func(t *testing.T) {
						f := newLeaseFleet(t, newCounting(t, kind, 5000, 250), 8, seed)
						for _, e := range f.envoys {
							f.load(e, times*5000/60/8, begin*int64(time.Second), 4*minute)
						}
						f.checkShares(t, 0, 4, 0.97)
					})
				}
			}
		}
	}
}

func TestAFleetUsesUpABucketWithFewCalls(t *testing.T) {
	for _, times := range []float64{1.5, 2, 3} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprintf("%.1f/%d", times, seed), func(t *testing.T) {
				f := newLeaseFleet(t, newCounting(t, gubBucket, 5000, 250), 8, seed)
				for _, e := range f.envoys {
					f.load(e, times*5000/60/8, 0, 6*minute)
				}
				f.checkShares(t, 3, 6, 0.97) // the burst is used up by then
			})
		}
	}
}

func TestOneHotProcessUsesUpALimit(t *testing.T) {
	for _, kind := range []string{rlsWindow, gubWindow} {
		for _, cold := range []float64{0.01, 0.05, 0.3, 1} {
			for seed := range uint64(3) {
				t.Run(fmt.Sprintf("%s/%.2f/%d", kind, cold, seed), func(t *testing.T) {
					f := newLeaseFleet(t, newCounting(t, kind, 5000, 250), 8, seed)
					for i, e := range f.envoys {
						load := cold * 5000 / 60 / 8
						if i == 0 {
							load = 1.5 * 5000 / 60
						}
						f.load(e, load, 0, 3*minute)
					}
					f.checkShares(t, 0, 3, 0.95)
				})
			}
		}
	}
}

func TestALightLoadIsNeverRefused(t *testing.T) {
	for _, kind := range []string{rlsWindow, gubWindow, gubBucket} {
		for _, limit := range []int64{10, 100, 1000, 5000} {
			for _, times := range []float64{0.1, 0.5, 0.8} {
				f := newLeaseFleet(t, newCounting(t, kind, limit, max(limit/20, 1)), 8, 1)
				for _, e := range f.envoys {
					f.load(e, times*float64(limit)/60/8, 0, 10*minute)
				}
				f.runUntil(10 * minute)
				if f.refusals() > 0 {
					t.Errorf("%s of %d at %.1f: refused %d requests", kind, limit, times, f.refusals())
				}
			}
		}
	}
}
