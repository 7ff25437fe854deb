package algorithms_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// refusals is how often the fleet has refused.
func (f *leaseFleet) refusals() (n int64) {
	for _, e := range f.envoys {
		n += e.refused
	}
	return n
}

// badNetwork has a share of the calls slow, refused, charged without an answer,
// never heard of again, or answered after their deadline.
func (f *leaseFleet) badNetwork(bad float64, lateToo bool) {
	timeout := f.terms.Timeout
	f.fate = func(sent int64) fate {
		if f.random.Float64() >= bad {
			return f.goodNetwork(sent)
		}
		within := func(d time.Duration) time.Duration { return time.Duration(f.random.Int64N(int64(d))) }
		kinds := 5
		if lateToo {
			kinds = 6
		}
		switch f.random.IntN(kinds) {
		case 0: // slow
			d := 1 + within(timeout-1)
			return fate{reaches: true, toServer: within(d), answer: d}
		case 1: // no connection
			return fate{answer: time.Millisecond, fails: true}
		case 2: // no answer in time, and charged, maybe long after
			return fate{reaches: true, toServer: within(2 * time.Second), answer: timeout + 3*time.Millisecond, fails: true}
		case 3: // not charged
			return fate{answer: timeout + 3*time.Millisecond, fails: true}
		case 4: // never heard of, as when the worker's VM has died
			return fate{reaches: f.random.IntN(2) == 0, toServer: within(timeout)}
		default:
			d := timeout + 50*time.Millisecond + 1 + within(2*time.Second)
			return fate{reaches: true, toServer: within(timeout), answer: d}
		}
	}
}

// anyFleet draws a fleet and its load over some windows.
func anyFleet(t *rapid.T, kinds ...string) (f *leaseFleet, windows int64) {
	limit := rapid.OneOf(rapid.Int64Range(1, 30), rapid.Int64Range(1, 3000)).Draw(t, "limit")
	largest := rapid.OneOf(rapid.Int64Range(1, limit), rapid.Just(max(limit/20, 1))).Draw(t, "largest")
	envoys := rapid.IntRange(1, 10).Draw(t, "envoys")
	c := newCounting(t, rapid.SampledFrom(kinds).Draw(t, "kind"), limit, largest)
	f = newLeaseFleet(t, c, envoys, rapid.Uint64().Draw(t, "seed"))
	f.badNetwork(rapid.SampledFrom([]float64{0, 0.05, 0.5, 1}).Draw(t, "bad"), rapid.Bool().Draw(t, "late"))
	f.givesBack = rapid.SampledFrom([]float64{0, 0, 0.1, 0.5}).Draw(t, "gives back")
	windows = rapid.Int64Range(1, 3).Draw(t, "windows")
	end := windows * int64(time.Minute)
	for _, e := range f.envoys {
		f.anyLoad(t, e, end)
	}
	return f, windows
}

// anyLoad has an Envoy get a steady load, and bursts, often around the windows'
// edges.
func (f *leaseFleet) anyLoad(t *rapid.T, e *leasingEnvoy, end int64) {
	if times := rapid.SampledFrom([]float64{0, 0.1, 1, 3}).Draw(t, "load"); times > 0 {
		share := float64(f.terms.Limit) / 60 / float64(len(f.envoys))
		f.load(e, min(times*share, 30), 0, end)
	}
	for range rapid.IntRange(0, 4).Draw(t, "bursts") {
		at := rapid.OneOf(
			rapid.Int64Range(0, end-1),
			rapid.Map(rapid.Int64Range(-2e9, 2e9), func(d int64) int64 {
				return max(rapid.Int64Range(0, 2).Draw(t, "edge")*int64(time.Minute)+d, 0)
			}),
		).Draw(t, "at")
		n := rapid.IntRange(1, 200).Draw(t, "requests")
		cost := rapid.Int64Range(1, f.terms.Largest).Draw(t, "cost")
		gap := time.Duration(rapid.Int64Range(0, int64(20*time.Millisecond)).Draw(t, "gap"))
		var again func(left int) func()
		again = func(left int) func() {
			return func() {
				f.request(e, cost)
				if left > 1 && f.now < end {
					f.after(gap, again(left-1))
				}
			}
		}
		f.after(time.Duration(at), again(n))
	}
}

func TestAWindowAdmitsNoMoreThanTheLimitAndTheOvershoot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, windows := anyFleet(t, rlsWindow, gubWindow)
		f.runUntil(windows * int64(time.Minute))
		bound := f.terms.Limit + f.terms.Overshoot(int64(len(f.envoys)))
		for w := range windows {
			if f.admitted[w] > bound {
				t.Fatalf("window %d: admitted %d, bound %d", w, f.admitted[w], bound)
			}
			// So no token of one window was spent in the next.
			if f.used[w] > f.granted[w] {
				t.Fatalf("window %d: spent %d tokens of %d", w, f.used[w], f.granted[w])
			}
		}
	})
}

func TestAWindowStrandsNoMoreThanTheFleetsStocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, windows := anyFleet(t, rlsWindow, gubWindow)
		f.runUntil(windows*int64(time.Minute) + int64(10*time.Second)) // with the last answers
		bound := f.terms.Stranded(int64(len(f.envoys))) + (f.lost+f.late)*f.terms.Largest + f.edge
		for w := range windows {
			stranded := f.granted[w] - f.used[w]
			if m, ok := f.service.(*rlsModel); ok && m.counts[w*int64(time.Minute)+midnight] >= m.limit {
				stranded += m.limit - f.granted[w]
			}
			if stranded > bound {
				t.Fatalf("window %d: stranded %d, bound %d", w, stranded, bound)
			}
		}
	})
}

func TestAnyIntervalOfABucketAdmitsNoMoreThanItRefillsAndTheOvershoot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, windows := anyFleet(t, gubBucket)
		f.logs = true
		f.runUntil(windows * int64(time.Minute))
		// The most that any interval up to here admitted beyond what it refilled.
		var most, at float64
		bound := f.terms.Limit + f.terms.Overshoot(int64(len(f.envoys))) + f.late*f.terms.Largest + f.lapsed
		for _, a := range f.log {
			refilled := (float64(a.at) - at) * float64(f.terms.Limit) / float64(time.Minute)
			most, at = max(most-refilled, 0)+float64(a.cost), float64(a.at)
			if most > float64(bound)+0.001 {
				t.Fatalf("admitted %.3f, bound %d", most, bound)
			}
		}
	})
}

func TestTheOvershootOfAWindowIsReached(t *testing.T) {
	for _, kind := range []string{rlsWindow, gubWindow} {
		f := newLeaseFleet(t, newCounting(t, kind, 5000, 250), 8, 1)
		f.service.hit(midnight, f.terms.Limit) // some other Envoy has used it up
		for _, e := range f.envoys {
			for range 2 * f.terms.Largest {
				f.request(e, 1) // all of them before the first answer
			}
		}
		f.runUntil(minute / 2)
		if got, want := f.admitted[0], f.terms.Overshoot(8); got != want {
			t.Errorf("%s: over the limit by %d, want %d", kind, got, want)
		}
	}
}
