package algorithms

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Tests of one State that is read under several settings: after a config push,
// and while the old config drains beside the new one.

func TestWhatWasSpentStaysSpentWhenALimitChanges(t *testing.T) {
	const second = int64(time.Second)
	minute := mustWindow(t, "1m", "")
	for _, c := range []struct {
		name                string
		before, smaller     Limiter
		recovers            time.Duration // until the smaller one admits a request
		larger              Limiter
		leftInLarger, reset int64
	}{
		{
			"token bucket",
			must(t)(NewTokenBucket(10, mustRate(t, "1/s"))), must(t)(NewTokenBucket(5, mustRate(t, "3/s"))), 4 * time.Second / 3,
			must(t)(NewTokenBucket(100, mustRate(t, "1/s"))), 92, 8,
		}, {
			"fixed window",
			must(t)(NewFixedWindow(10, minute)), must(t)(NewFixedWindow(5, minute)), 60 * time.Second,
			must(t)(NewFixedWindow(100, minute)), 92, 60,
		}, {
			"sliding window", // 8 of 60 s must be worth no more than 4
			must(t)(NewSlidingWindow(10, minute)), must(t)(NewSlidingWindow(5, minute)), 90 * time.Second,
			must(t)(NewSlidingWindow(100, minute)), 92, 120,
		}, {
			"queue", // 7 places wait; 4 may, so 4 must begin
			must(t)(NewLeakyQueue(10, mustRate(t, "1/s"), time.Minute)), must(t)(NewLeakyQueue(4, mustRate(t, "1/s"), time.Minute)), 4 * time.Second,
			must(t)(NewLeakyQueue(100, mustRate(t, "1/s"), time.Minute)), 93, 8,
		},
	} {
		s, _ := Decide(c.before, State{}, Time{}, 1)
		s, d := Decide(c.before, s, Time{}, 7)
		if !d.Allowed {
			t.Fatalf("%s: %+v", c.name, d)
		}
		next, d := Decide(c.smaller, s, Time{}, 1)
		wantRetry := c.recovers
		if wantRetry%time.Second != 0 {
			wantRetry++ // rounded up
		}
		if d.Allowed || d.Never || d.Remaining != 0 || d.RetryAfter != wantRetry || next != s {
			t.Errorf("%s, smaller: %+v, want a refusal for %v", c.name, d, wantRetry)
		}
		_, d = Decide(c.larger, s, Time{}, 0)
		if !d.Allowed || d.Remaining != c.leftInLarger || int64(d.Reset) != c.reset*second {
			t.Errorf("%s, larger: %+v, want %d left and reset in %d s", c.name, d, c.leftInLarger, c.reset)
		}
	}
}

func TestABucketInDebtRefusesEvenALook(t *testing.T) {
	minute := mustWindow(t, "1m", "")
	for _, c := range []struct{ before, after Limiter }{
		{must(t)(NewTokenBucket(8, mustRate(t, "1/s"))), must(t)(NewTokenBucket(5, mustRate(t, "1/s")))},
		{must(t)(NewFixedWindow(8, minute)), must(t)(NewFixedWindow(5, minute))},
		{must(t)(NewSlidingWindow(8, minute)), must(t)(NewSlidingWindow(5, minute))},
	} {
		s, _ := Decide(c.before, State{}, Time{}, 8)
		_, d := Decide(c.after, s, Time{}, 0)
		if d.Allowed || d.RetryAfter < 1 {
			t.Fatalf("%T in debt: %+v", c.after, d)
		}
		if _, again := Decide(c.after, s, Time{}.plus(d.RetryAfter), 0); !again.Allowed {
			t.Errorf("%T after waiting %v as told: %+v", c.after, d.RetryAfter, again)
		}
		if _, before := Decide(c.after, s, Time{}.plus(d.RetryAfter-1), 0); before.Allowed {
			t.Errorf("%T 1 ns before %v: admitted", c.after, d.RetryAfter)
		}
	}
}

func TestReadingUnderAnotherRateNeverForgives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wrote := mustRate(t, rateSpelling().Draw(t, "rate that wrote").Text)
		reads := mustRate(t, rateSpelling().Draw(t, "rate that reads").Text)
		l := level{
			at:    5,
			whole: rapid.Uint64Range(0, 10).Draw(t, "whole"),
			frac:  rapid.OneOf(rapid.Uint64Range(0, wrote.den-1), rapid.Just(wrote.den-1)).Draw(t, "frac"),
		}
		var s State
		l.store(&s, wrote, 0)
		read := loadLevel(&s, reads)
		// Rounded up, by less than the smallest that the reader can tell apart.
		more := new(big.Rat).Sub(unitsOf(read, reads), unitsOf(l, wrote))
		if more.Sign() < 0 || more.Cmp(big.NewRat(1, int64(reads.den))) >= 0 {
			t.Fatalf("%d + %d/%d is read as %d + %d/%d", l.whole, l.frac, wrote.den, read.whole, read.frac, reads.den)
		}
		if read.frac >= reads.den || read.at != l.at {
			t.Fatalf("read as %+v with denominator %d", read, reads.den)
		}
	})
}

func unitsOf(l level, r Rate) *big.Rat {
	units := big.NewRat(int64(l.frac), int64(r.den))
	return units.Add(units, rat(int64(l.whole)))
}

// TestTwoSettingsOnOneBucketAdmitNoMoreThanTheLooserOne alternates two
// settings for thousands of requests. A level that falls at the larger rate all
// the time is the least that can be spent, one that falls at the smaller rate
// the most.
func TestTwoSettingsOnOneBucketAdmitNoMoreThanTheLooserOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type setting struct {
			limiter  Limiter
			capacity int64
			rate     *big.Rat
			full     time.Duration
		}
		var settings [2]setting
		for i := range settings {
			spelled, exact := rateSpelling().Draw(t, "rate").unpack()
			capacity := anyCapacity().Draw(t, "capacity")
			rate := mustRate(t, spelled)
			settings[i] = setting{must(t)(NewTokenBucket(capacity, rate)), capacity, exact, rate.TimeFor(capacity)}
		}
		slow, fast := settings[0].rate, settings[1].rate
		if slow.Cmp(fast) > 0 {
			slow, fast = fast, slow
		}
		costs := rapid.OneOf(anyCost(settings[0].capacity), anyCost(settings[1].capacity))

		var s State
		var d Decision
		least, most := fallingLevel{rate: fast}, fallingLevel{rate: slow}
		// Reading what the other has written rounds up by less than 1/den units,
		// which is no more than comes back in 1 ns.
		rounding := fast
		now := Time{}
		for range 60 {
			use := settings[rapid.IntRange(0, 1).Draw(t, "setting")]
			now = now.plus(time.Duration(clockStep(use.full, d, false).Draw(t, "clock goes on")))
			cost := costs.Draw(t, "cost")
			var next State
			next, d = Decide(use.limiter, s, now, cost)
			if !d.Allowed && next != s {
				t.Fatal("a refusal wrote")
			}
			s = next
			room := rat(use.capacity - cost)
			if spent := least.at(now.Mono); d.Allowed && spent.Cmp(room) > 0 {
				t.Fatalf("cost %d is admitted on top of %s by a capacity of %d", cost, spent.FloatString(9), use.capacity)
			}
			if spent := most.at(now.Mono); !d.Allowed && !d.Never && new(big.Rat).Add(spent, rounding).Cmp(room) <= 0 {
				t.Fatalf("cost %d is refused on top of %s by a capacity of %d", cost, spent.FloatString(9), use.capacity)
			}
			if d.Allowed && cost > 0 {
				least.add(cost)
				most.add(cost)
				rounding = new(big.Rat).Add(rounding, fast)
			}
		}
	})
}

func TestTheStricterSettingStillRefusesAfterThousandsOfReadings(t *testing.T) {
	strict := must(t)(NewTokenBucket(5, mustRate(t, "1/s")))
	loose := must(t)(NewTokenBucket(100, mustRate(t, "7/3s")))
	var s State
	now := Time{}
	admitted := int64(0)
	for i := range 50_000 {
		now = now.plus(10 * time.Millisecond)
		next, d := Decide(strict, s, now, 1)
		if i >= 100 && (d.Allowed || d.RetryAfter < 90*time.Second) {
			t.Fatalf("the stricter setting at %v: %+v", time.Duration(now.Mono), d)
		}
		s = next
		if d.Allowed {
			admitted++
		}
		if s, d = Decide(loose, s, now, 1); d.Allowed {
			admitted++
		}
	}
	// The looser setting's capacity, and the 1166 whole tokens that come back in
	// 500 s.
	if want := int64(100 + 1166); admitted != want {
		t.Errorf("%d are admitted, want %d", admitted, want)
	}
}

// fallingLevel is the naive level: so much, falling since then.
type fallingLevel struct {
	rate  *big.Rat
	since int64
	units *big.Rat
}

func (l *fallingLevel) at(now int64) *big.Rat {
	if l.units == nil {
		l.units = new(big.Rat)
	}
	back := new(big.Rat).Mul(l.rate, rat(now-l.since))
	l.units.Sub(l.units, back)
	if l.units.Sign() < 0 {
		l.units.SetInt64(0)
	}
	l.since = now
	return l.units
}

func (l *fallingLevel) add(cost int64) { l.units.Add(l.units, rat(cost)) }
