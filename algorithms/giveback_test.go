package algorithms

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestGivingBackWithNothingInBetweenRestoresTheBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := mustRate(t, rateSpelling().Draw(t, "rate").Text)
		capacity := anyCapacity().Draw(t, "capacity")
		w := mustWindow(t, anyDayDividingWindow().Draw(t, "window"), anyOffset().Draw(t, "offset"))
		limiter := rapid.SampledFrom([]Limiter{
			must(t)(NewTokenBucket(capacity, rate)),
			must(t)(NewFixedWindow(capacity, w)),
			must(t)(NewSlidingWindow(capacity, w)),
		}).Draw(t, "limiter")
		length := min(rate.TimeFor(capacity), longestStep/50)
		if limiter.UsesWall() {
			length = w.length
		}

		var s State
		var d Decision
		now := Time{Wall: anyWall().Draw(t, "wall")}
		costs := anyCost(capacity)
		for range rapid.IntRange(0, 8).Draw(t, "requests") {
			now = now.plus(time.Duration(clockStep(length, d, true).Draw(t, "clock goes on")))
			s, d = Decide(limiter, s, now, costs.Draw(t, "cost"))
		}
		now = now.plus(time.Duration(clockStep(length, d, true).Draw(t, "clock goes on")))
		before := s
		cost := rapid.Int64Range(1, capacity).Draw(t, "cost given back")
		s, d = Decide(limiter, s, now, cost)
		if !d.Allowed {
			t.Skip("refused")
		}
		back := now.plus(time.Duration(clockStep(length, d, true).Draw(t, "given back after")))
		s = limiter.GiveBack(s, back, cost, d.Window)
		checkSameBucket(t, limiter, before, s, maxTime(now, back), length)
	})
}

func maxTime(a, b Time) Time {
	if a.Mono > b.Mono {
		return a
	}
	return b
}

func TestGivingBackLetsInNoMoreThanIfItHadNeverBeenTaken(t *testing.T) {
	type admission struct {
		take
		window    int64
		givenBack bool
	}
	// history sends requests and gives some of them back later; it returns the
	// admissions, at the moments at which the bucket saw them.
	history := func(t *rapid.T, l Limiter, capacity int64, length time.Duration, mayStepBack bool) []admission {
		var s State
		var d Decision
		var admitted []admission
		now, latest := Time{Mono: 1000, Wall: 1000}, int64(math.MinInt64)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			now = now.plus(time.Duration(clockStep(length, d, mayStepBack).Draw(t, "clock goes on")))
			if rapid.IntRange(0, 3).Draw(t, "give back") == 0 && len(admitted) > 0 {
				i := rapid.IntRange(0, len(admitted)-1).Draw(t, "which")
				if a := &admitted[i]; !a.givenBack {
					a.givenBack = true
					s = l.GiveBack(s, now, a.cost, a.window)
				}
				continue
			}
			cost := anyCost(capacity).Draw(t, "cost")
			if s, d = Decide(l, s, now, cost); d.Allowed && cost > 0 {
				latest = max(latest, now.Mono)
				admitted = append(admitted, admission{take{latest, cost}, d.Window, false})
			}
		}
		return admitted
	}

	t.Run("bucket", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			spelled, exact := rateSpelling().Draw(t, "rate").unpack()
			rate := mustRate(t, spelled)
			capacity := anyCapacity().Draw(t, "capacity")
			limiter := must(t)(NewTokenBucket(capacity, rate))
			var kept []take
			for _, a := range history(t, limiter, capacity, rate.TimeFor(capacity), true) {
				if !a.givenBack {
					kept = append(kept, a.take)
				}
			}
			checkNoIntervalHoldsMore(t, kept, capacity, exact)
		})
	})
	t.Run("fixed window", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			limit := anyCapacity().Draw(t, "limit")
			limiter := must(t)(NewFixedWindow(limit, mustWindow(t, "1m", "")))
			counted := map[int64]int64{}
			for _, a := range history(t, limiter, limit, time.Minute, true) {
				if !a.givenBack {
					counted[a.window] += a.cost
				}
			}
			for window, n := range counted {
				if n > limit {
					t.Fatalf("window %d has admitted %d", window, n)
				}
			}
		})
	})
	t.Run("sliding window", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			limit := anyCapacity().Draw(t, "limit")
			limiter := must(t)(NewSlidingWindow(limit, mustWindow(t, "1m", "")))
			ref := &slidingReference{limit: limit, length: time.Minute}
			for _, a := range history(t, limiter, limit, time.Minute, false) {
				if a.givenBack {
					continue
				}
				if d := ref.decide(Time{Mono: a.at, Wall: a.at}, a.cost); !d.Allowed {
					t.Fatalf("cost %d at %d would have been refused without the others", a.cost, a.at)
				}
			}
		})
	})
}

// The bucket has got back 3 of the first request's 10 tokens, which somebody
// else has taken. Only 7 are there to be given back.
func TestWhatHasComeBackIsNotGivenBackAgain(t *testing.T) {
	limiter := must(t)(NewTokenBucket(10, mustRate(t, "1/s")))
	s, first := Decide(limiter, State{}, Time{Mono: 5}, 10)
	now := Time{Mono: 5}.plus(3 * time.Second)
	s, d := Decide(limiter, s, now, 3)
	if !d.Allowed || d.Remaining != 0 {
		t.Fatalf("3 s later: %+v", d)
	}
	s = limiter.GiveBack(s, now.plus(time.Second), 10, first.Window)
	if _, d = Decide(limiter, s, now, 0); d.Remaining != 7 {
		t.Errorf("%d are left after giving back, want 7", d.Remaining)
	}
}

func TestWhoeverWasAdmittedBeforeGivingBackIsAdmittedAfter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Any State will do, and any admission.
		var s State
		for i := range s {
			s[i] = rapid.Uint64().Draw(t, "word")
		}
		now := Time{Mono: rapid.Int64Range(0, longestStep).Draw(t, "mono"), Wall: anyWall().Draw(t, "wall")}
		window := rapid.OneOf(rapid.Just(int64(s[0])), rapid.Int64()).Draw(t, "window")
		cost := rapid.Int64Range(0, 10).Draw(t, "cost")
		for name, limiter := range allLimiters(t) {
			_, before := Decide(limiter, s, now, cost)
			back := limiter.GiveBack(s, now, rapid.Int64Range(0, MaxUnits).Draw(t, "given back"), window)
			if _, after := Decide(limiter, back, now, cost); before.Allowed && !after.Allowed {
				t.Fatalf("%s refuses %d after giving back, and admitted it before", name, cost)
			}
		}
	})
}

func TestGivingBackMoreThanThereIsLeavesAWholeBucket(t *testing.T) {
	now := Time{Mono: 7, Wall: 7}
	for name, limiter := range allLimiters(t) {
		_, unused := Decide(limiter, State{}, now, 1)
		s, d := Decide(limiter, State{}, now, 1)
		for range 2 {
			s = limiter.GiveBack(s, now, 5, d.Window)
			if _, back := Decide(limiter, s, now, 1); back != unused {
				t.Errorf("%s: after giving back %+v, in an unused bucket %+v", name, back, unused)
			}
			_, look := Decide(limiter, s, now.plus(-3), 0)
			if !look.Allowed || look.Remaining != look.Limit || look.Reset != 0 {
				t.Errorf("%s: 3 ns back: %+v", name, look)
			}
		}
		if s = limiter.GiveBack(State{}, now, 5, d.Window); s != (State{}) {
			t.Errorf("%s: giving back to an unused bucket writes %v", name, s)
		}
	}
}

// allLimiters returns limiters of every algorithm, with plain and with extreme
// numbers.
func allLimiters(t fataler) map[string]Limiter {
	t.Helper()
	plain, slowest, fastest := mustRate(t, "10/s"), mustRate(t, "1/d"), mustRate(t, "1000000000/s")
	return map[string]Limiter{
		"token bucket":           must(t)(NewTokenBucket(10, plain)),
		"gcra":                   must(t)(NewGCRA(mustRate(t, "0.123456789/s"), 1)),
		"slow leaky meter":       must(t)(NewLeakyMeter(MaxUnits, slowest)),
		"fast token bucket":      must(t)(NewTokenBucket(MaxUnits, fastest)),
		"queue":                  must(t)(NewLeakyQueue(10, plain, time.Second)),
		"slow queue":             must(t)(NewLeakyQueue(MaxUnits, slowest, Forever)),
		"fixed window":           must(t)(NewFixedWindow(10, mustWindow(t, "1m", "+02:00"))),
		"fixed monthly window":   must(t)(NewFixedWindow(MaxUnits, mustWindow(t, "1mo", "-03:30"))),
		"fixed yearly window":    must(t)(NewFixedWindow(1, mustWindow(t, "1y", ""))),
		"fixed weekly window":    must(t)(NewFixedWindow(10, mustWindow(t, "1w", ""))),
		"sliding window":         must(t)(NewSlidingWindow(10, mustWindow(t, "1m", ""))),
		"longest sliding window": must(t)(NewSlidingWindow(MaxUnits, mustWindow(t, "1d", "+14:00"))),
		"tiny sliding window":    must(t)(NewSlidingWindow(MaxUnits, mustWindow(t, "1ns", ""))),
	}
}
