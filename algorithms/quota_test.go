package algorithms

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAQuotaIsTheLimitAndTheTimeItIsFor(t *testing.T) {
	rate := func(s string) Rate { return mustRate(t, s) }
	window := func(s string) Window { return mustWindow(t, s, "") }
	for name, c := range map[string]struct {
		limiter Limiter
		units   int64
		window  time.Duration
	}{
		"5 tokens at 1/s":           {must(t)(NewTokenBucket(5, rate("1/s"))), 5, 5 * time.Second},
		"2 tokens at 3/s":           {must(t)(NewTokenBucket(2, rate("3/s"))), 2, 666_666_667},
		"slower than time goes on":  {must(t)(NewTokenBucket(MaxUnits, rate("1/d"))), MaxUnits, Forever},
		"a meter of 10 at 2/s":      {must(t)(NewLeakyMeter(10, rate("2/s"))), 10, 5 * time.Second},
		"a queue of 10 at 2/s":      {must(t)(NewLeakyQueue(10, rate("2/s"), time.Second)), 10, 5 * time.Second},
		"100/m, one at once":        {must(t)(NewGCRA(rate("100/m"), 1)), 1, 600 * time.Millisecond},
		"100/m, 50 at once":         {must(t)(NewGCRA(rate("100/m"), 50)), 50, 30 * time.Second},
		"a fixed window of 10 s":    {must(t)(NewFixedWindow(7, window("10s"))), 7, 10 * time.Second},
		"a fixed window of a week":  {must(t)(NewFixedWindow(7, window("1w"))), 7, 7 * 24 * time.Hour},
		"a fixed window of a month": {must(t)(NewFixedWindow(7, window("1mo"))), 7, 31 * 24 * time.Hour},
		"a fixed window of a year":  {must(t)(NewFixedWindow(7, window("1y"))), 7, 366 * 24 * time.Hour},
		"a sliding window of 1 m":   {must(t)(NewSlidingWindow(7, window("1m"))), 7, time.Minute},
		"a sliding window of a day": {must(t)(NewSlidingWindow(7, mustWindow(t, "1d", "+02:00"))), 7, 24 * time.Hour},
	} {
		if units, window := c.limiter.Quota(); units != c.units || window != c.window {
			t.Errorf("%s: %d in %v, want %d in %v", name, units, window, c.units, c.window)
		}
	}
}

func TestABucketThatHasSpentItsQuotaIsWholeAgainAfterItsWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spelled, _ := rateSpelling().Draw(t, "rate").unpack()
		rate, capacity := mustRate(t, spelled), anyCapacity().Draw(t, "capacity")
		for _, l := range []Limiter{
			must(t)(NewTokenBucket(capacity, rate)),
			must(t)(NewGCRA(rate, capacity)),
			must(t)(NewLeakyMeter(capacity, rate)),
			must(t)(NewLeakyQueue(capacity, rate, 0)),
		} {
			units, window := l.Quota()
			if _, d := Decide(l, State{}, Time{Mono: 1}, units); !d.Allowed || d.Limit != units || d.Reset != window {
				t.Fatalf("%T: spending %d gives %+v, want it whole again after %v", l, units, d, window)
			}
		}
	})
}
