package algorithms

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// chargedReference is a reference that also takes and gives back what requests
// turned out to cost.
type chargedReference interface {
	reference
	// renumber gives the limit other numbers.
	renumber(numbers)
	charge(now Time, units, maxDebt int64)
	// giveBack undoes the nth admission, counted from 0.
	giveBack(nth int)
}

// numbers are those of one setting of a limit.
type numbers struct {
	limiter Limiter
	units   int64    // capacity or limit
	rate    *big.Rat // of a bucket
	den     int64    // of the rate
}

// chargedBucket is a bucket by its level, which falls at the rate. A rate whose
// fractions do not spell the level rounds it up.
type chargedBucket struct {
	numbers
	spent *big.Rat
	at    int64
	takes []take
}

func (b *chargedBucket) renumber(n numbers) { b.numbers = n }

// now returns the level and its moment, without writing.
func (b *chargedBucket) now(mono int64) (spent *big.Rat, at int64) {
	if b.spent == nil {
		return new(big.Rat), mono
	}
	at = max(mono, b.at)
	spent = new(big.Rat).Mul(b.rate, rat(at-b.at))
	spent.Sub(b.rounded(), spent)
	if spent.Sign() < 0 {
		spent.SetInt64(0)
	}
	return spent, at
}

func (b *chargedBucket) rounded() *big.Rat {
	parts := ceilRat(new(big.Rat).Mul(b.spent, rat(b.den)))
	return new(big.Rat).SetFrac(parts, big.NewInt(b.den))
}

func (b *chargedBucket) decide(now Time, cost int64) Decision {
	spent, at := b.now(now.Mono)
	// timeTo is how long after now no more than so many units are spent.
	timeTo := func(units int64) time.Duration {
		over := new(big.Rat).Sub(spent, rat(units))
		if over.Sign() <= 0 {
			return 0
		}
		return durationOf(ceilRat(over.Quo(over, b.rate).Add(over, rat(at-now.Mono))))
	}
	d := Decision{Limit: b.units}
	switch retry := timeTo(b.units - cost); {
	case cost > b.units:
		d.Never = true
	case retry > 0:
		d.RetryAfter = retry
	default:
		d.Allowed = true
		if cost > 0 {
			spent.Add(spent, rat(cost))
			b.spent, b.at = spent, at
			b.takes = append(b.takes, take{at, cost})
		}
	}
	d.Remaining = max(floorRat(new(big.Rat).Sub(rat(b.units), spent)).Int64(), 0)
	d.Reset = timeTo(0)
	return d
}

func (b *chargedBucket) charge(now Time, units, maxDebt int64) {
	spent, at := b.now(now.Mono)
	most := rat(b.units + maxDebt)
	if units == 0 || spent.Cmp(most) >= 0 {
		return
	}
	if spent.Add(spent, rat(units)); spent.Cmp(most) > 0 {
		spent = most
	}
	b.spent, b.at = spent, at
}

// giveBack takes out what cannot have come back of the cost since it was taken.
func (b *chargedBucket) giveBack(nth int) {
	taken := b.takes[nth]
	left := new(big.Rat).Mul(b.rate, rat(b.at-taken.at))
	left.Sub(rat(taken.cost), left)
	if b.spent = b.rounded(); left.Sign() > 0 {
		b.spent.Sub(b.spent, left)
	}
	if b.spent.Sign() < 0 {
		b.spent.SetInt64(0)
	}
}

// ledger knows which of a window's takes are admissions: chargedFixedWindow and
// chargedSlidingWindow record a charge as a take, too.
type ledger struct {
	admissions []int
}

// decide has a window decide, which records what it takes in takes.
func (l *ledger) decide(window reference, takes *[]take, now Time, cost int64) Decision {
	before := len(*takes)
	d := window.decide(now, cost)
	if len(*takes) > before {
		l.admissions = append(l.admissions, before)
	}
	d.Remaining = max(d.Remaining, 0) // which a debt makes less
	return d
}

func (l *ledger) giveBack(takes []take, nth int) { takes[l.admissions[nth]].cost = 0 }

type chargedFixedWindow struct {
	fixedReference
	ledger ledger
}

func (f *chargedFixedWindow) renumber(n numbers) { f.limit = n.units }

func (f *chargedFixedWindow) decide(now Time, cost int64) Decision {
	return f.ledger.decide(&f.fixedReference, &f.takes, now, cost)
}

// charge finds by asking how much is counted: so much more than the limit that
// it is in debt, or so much less as is admitted.
func (f *chargedFixedWindow) charge(now Time, units, maxDebt int64) {
	loose := f.fixedReference
	loose.limit = 1 << 40
	loose.takes = slices.Clone(f.takes)
	count := loose.limit - loose.decide(now, 0).Remaining
	if units = min(units, f.limit+maxDebt-count); units > 0 {
		loose.decide(now, units)
		f.takes = loose.takes
	}
}

func (f *chargedFixedWindow) giveBack(nth int) { f.ledger.giveBack(f.takes, nth) }

type chargedSlidingWindow struct {
	slidingReference
	ledger ledger
}

func (r *chargedSlidingWindow) renumber(n numbers) { r.limit = n.units }

func (r *chargedSlidingWindow) decide(now Time, cost int64) Decision {
	return r.ledger.decide(&r.slidingReference, &r.takes, now, cost)
}

func (r *chargedSlidingWindow) charge(now Time, units, maxDebt int64) {
	room := new(big.Rat).Sub(rat(r.limit+maxDebt), r.weighted(now.Wall))
	if units = min(units, floorRat(room).Int64()); units > 0 {
		r.takes = append(r.takes, take{max(now.Wall, r.latest()), units})
	}
}

func (r *chargedSlidingWindow) giveBack(nth int) { r.ledger.giveBack(r.takes, nth) }

func TestAChargedBucketDecidesExactlyAsDefined(t *testing.T) {
	for name, build := range bucketKinds {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				settings := make([]numbers, 2)
				var length time.Duration
				for i := range settings {
					spelled, exact := rateSpelling().Draw(t, "rate").unpack()
					rate := mustRate(t, spelled)
					capacity := anyCapacity().Draw(t, "capacity")
					settings[i] = numbers{must(t)(build(capacity, rate)), capacity, exact, int64(rate.den)}
					length = max(length, rate.TimeFor(capacity))
				}
				chargedWalk(t, settings, &chargedBucket{}, length)
			})
		})
	}
}

func TestAChargedFixedWindowDecidesExactlyAsDefined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := anyWindow().Draw(t, "window")
		w := mustWindow(t, window, anyOffset().Draw(t, "offset"))
		ref := &chargedFixedWindow{fixedReference: fixedReference{window: window, zone: time.FixedZone("", int(w.offset/time.Second))}}
		length := w.length
		if w.months > 0 {
			length = 30 * day
		}
		chargedWalk(t, windowNumbers(t, NewFixedWindow, w), ref, length)
	})
}

func TestAChargedSlidingWindowDecidesExactlyAsDefined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := mustWindow(t, anyDayDividingWindow().Draw(t, "window"), anyOffset().Draw(t, "offset"))
		ref := &chargedSlidingWindow{slidingReference: slidingReference{length: w.length, offset: w.offset}}
		chargedWalk(t, windowNumbers(t, NewSlidingWindow, w), ref, w.length)
	})
}

func windowNumbers(t *rapid.T, build func(int64, Window) (Limiter, error), w Window) []numbers {
	settings := make([]numbers, 2)
	for i := range settings {
		limit := anyCapacity().Draw(t, "limit")
		settings[i] = numbers{limiter: must(t)(build(limit, w)), units: limit}
	}
	return settings
}

// chargedWalk mixes requests, charges and what is given back, under settings that
// change, on clocks that may stand still or step back, and checks at every step
// what a client relies on.
func chargedWalk(t *rapid.T, settings []numbers, ref chargedReference, interesting time.Duration) {
	type admission struct {
		cost, window int64
		givenBack    bool
	}
	var s State
	var last Decision
	var admitted []admission
	use := settings[0]
	ref.renumber(use)
	now := Time{Mono: rapid.Int64Range(-longestStep, longestStep).Draw(t, "start"), Wall: anyWall().Draw(t, "wall")}
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		now = now.plus(time.Duration(clockStep(interesting, last, true).Draw(t, "clock goes on")))
		cost := int64(0)
		switch rapid.IntRange(0, 6).Draw(t, "step") {
		case 0:
			use = rapid.SampledFrom(settings).Draw(t, "setting")
			ref.renumber(use)
		case 1, 2:
			units := anyCost(use.units).Draw(t, "units")
			maxDebt := rapid.OneOf(rapid.Just[int64](0), anyCost(use.units)).Draw(t, "longest debt")
			before := s
			use.limiter.(Charger).Charge(&s, now, units, maxDebt)
			if units == 0 && s != before {
				t.Fatal("charging nothing writes")
			}
			ref.charge(now, units, maxDebt)
		case 3:
			if len(admitted) == 0 {
				break
			}
			nth := rapid.IntRange(0, len(admitted)-1).Draw(t, "which")
			if a := &admitted[nth]; !a.givenBack {
				a.givenBack = true
				s = use.limiter.GiveBack(s, now, a.cost, a.window)
				ref.giveBack(nth)
			}
		default:
			cost = anyCost(use.units).Draw(t, "cost")
		}

		want := ref.decide(now, cost)
		next, got := Decide(use.limiter, s, now, cost)
		if got.Allowed && cost > 0 {
			admitted = append(admitted, admission{cost, got.Window, false})
		} else if next != s {
			t.Fatalf("cost %d at %d wrote though it took nothing", cost, now.Mono)
		}
		s, last = next, got
		got.Window = 0
		if got != want {
			t.Fatalf("cost %d at %d:\n got %+v\nwant %+v", cost, now.Mono, got, want)
		}
		checkRetryAfter(t, use.limiter, s, now, cost, got)
		if got.Reset > 0 {
			// What was emptied by giving back, by a clock that is ahead, is empty as
			// of that clock's moment.
			checkReset(t, use.limiter, s, now, got)
		}
	}
}

// What a request turned out to cost, in plain numbers: 8 of 10 are spent at 0,
// half a minute later something is charged.
func TestAChargeTakesWhateverIsLeft(t *testing.T) {
	const seconds = time.Second
	minute := mustWindow(t, "1m", "")
	bucket := must(t)(NewTokenBucket(10, mustRate(t, "1/10s")))
	fixed, sliding := must(t)(NewFixedWindow(10, minute)), must(t)(NewSlidingWindow(10, minute))
	for _, c := range []struct {
		name           string
		limiter        Limiter
		at             time.Duration
		units, maxDebt int64
		remaining      int64
		retryAfter     time.Duration // of a look
		reset          time.Duration
	}{
		{"bucket, no debt", bucket, 30 * seconds, 3, 100, 2, 0, 80 * seconds},
		{"bucket, in debt", bucket, 30 * seconds, 25, 100, 0, 200 * seconds, 300 * seconds},
		{"bucket, to the longest debt", bucket, 30 * seconds, MaxUnits, 4, 0, 40 * seconds, 140 * seconds},
		{"bucket, none is borne", bucket, 35 * seconds, 100, 0, 0, 0, 100 * seconds},
		{"fixed, no debt", fixed, 30 * seconds, 1, 100, 1, 0, 30 * seconds},
		{"fixed, in debt", fixed, 30 * seconds, 25, 100, 0, 30 * seconds, 30 * seconds},
		{"fixed, in the next window", fixed, 60 * seconds, 4, 100, 6, 0, 60 * seconds},
		{"fixed, none is borne", fixed, 30 * seconds, 100, 0, 0, 0, 30 * seconds},
		{"sliding, no debt", sliding, 90 * seconds, 4, 100, 2, 0, 90 * seconds},
		// 30 in this window: a third of them may count in the next one.
		{"sliding, in debt", sliding, 90 * seconds, 30, 100, 0, 70 * seconds, 90 * seconds},
		// 8 × 1/2 + 10 - 10: a debt of 4 that is gone when the window before is.
		{"sliding, to the longest debt", sliding, 90 * seconds, MaxUnits, 4, 0, 30 * seconds, 90 * seconds},
		// 8 × 59/60 counts as 7.87; a whole unit more would be a debt of 0.87.
		{"sliding, none is borne", sliding, 61 * seconds, 100, 0, 0, 0, 119 * seconds},
	} {
		s, _ := Decide(c.limiter, State{}, Time{}, 8)
		now := Time{}.plus(c.at)
		c.limiter.(Charger).Charge(&s, now, c.units, c.maxDebt)
		_, d := Decide(c.limiter, s, now, 0)
		if d.Allowed != (c.retryAfter == 0) || d.Remaining != c.remaining || d.RetryAfter != c.retryAfter || d.Reset != c.reset {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, d, c)
		}
		// Once the debt is as deep as it may be, a charge takes nothing.
		c.limiter.(Charger).Charge(&s, now, MaxUnits, c.maxDebt)
		before := s
		c.limiter.(Charger).Charge(&s, now, MaxUnits, c.maxDebt)
		c.limiter.(Charger).Charge(&s, now, MaxUnits, 0)
		if s != before {
			t.Errorf("%s: a charge on top of the longest debt writes", c.name)
		}
	}
}

func TestADebtThatIsDeeperAlreadyIsLeftAsItIs(t *testing.T) {
	minute := mustWindow(t, "1m", "")
	for _, c := range []struct{ before, after Limiter }{
		{must(t)(NewTokenBucket(9, mustRate(t, "1/s"))), must(t)(NewTokenBucket(2, mustRate(t, "7/3s")))},
		{must(t)(NewFixedWindow(9, minute)), must(t)(NewFixedWindow(2, minute))},
		{must(t)(NewSlidingWindow(9, minute)), must(t)(NewSlidingWindow(2, minute))},
	} {
		s, _ := Decide(c.before, State{}, Time{}, 9)
		before := s
		c.after.(Charger).Charge(&s, Time{}, 5, 6)
		if s != before {
			t.Errorf("%T: a charge changes a debt of 7 though at most 6 is borne", c.after)
		}
		c.after.(Charger).Charge(&s, Time{}, 5, 8)
		if _, d := Decide(c.before, s, Time{}, 0); d.Allowed || d.Remaining != 0 {
			t.Errorf("%T: a charge does not deepen a debt of 7 though 8 is borne: %+v", c.after, d)
		}
	}
}

func TestAFixedWindowForgetsItsDebtWhenItEnds(t *testing.T) {
	limiter := must(t)(NewFixedWindow(10, mustWindow(t, "1m", "")))
	var s State
	limiter.(Charger).Charge(&s, Time{}, MaxUnits, MaxUnits)
	if _, d := Decide(limiter, s, Time{}.plus(time.Minute-1), 0); d.Allowed {
		t.Errorf("in its last nanosecond: %+v", d)
	}
	if _, d := Decide(limiter, s, Time{}.plus(time.Minute), 10); !d.Allowed {
		t.Errorf("in the next window: %+v", d)
	}
}

// TestTheLargestDebtIsPaidOffExactly charges 1e9 units again and again.
func TestTheLargestDebtIsPaidOffExactly(t *testing.T) {
	day := mustWindow(t, "1d", "")
	for _, c := range []struct {
		limiter    Limiter
		retryAfter time.Duration // of a look
	}{
		{must(t)(NewTokenBucket(MaxUnits, mustRate(t, "1000000000/s"))), time.Second},
		{must(t)(NewTokenBucket(MaxUnits, mustRate(t, "1/s"))), MaxUnits * time.Second},
		{must(t)(NewTokenBucket(MaxUnits, mustRate(t, "1/d"))), Forever},
		{must(t)(NewFixedWindow(MaxUnits, day)), 24 * time.Hour},
		{must(t)(NewSlidingWindow(MaxUnits, day)), 36 * time.Hour},
	} {
		var s State
		for range 10 {
			c.limiter.(Charger).Charge(&s, Time{}, MaxUnits, MaxUnits)
		}
		if _, d := Decide(c.limiter, s, Time{}, 0); d.Allowed || d.RetryAfter != c.retryAfter {
			t.Errorf("%T: %+v, want a refusal for %v", c.limiter, d, c.retryAfter)
		}
	}
}

func TestOnlyAQueueAndRequestsInFlightCannotBeCharged(t *testing.T) {
	for name, l := range measured(t) {
		_, charger := l.(Charger)
		_, isQueue := l.(*queue)
		_, isConcurrency := l.(*Concurrency)
		if charger == (isQueue || isConcurrency) {
			t.Errorf("%s can be charged: %v", name, charger)
		}
	}
}

func TestAnyStateCanBeCharged(t *testing.T) {
	limiters := allLimiters(t)
	rapid.Check(t, func(t *rapid.T) {
		s, now := anyState().Draw(t, "state"), anyTime().Draw(t, "now")
		units := rapid.OneOf(rapid.SampledFrom([]int64{0, 1, MaxUnits}), rapid.Int64Range(0, MaxUnits)).Draw(t, "units")
		maxDebt := rapid.OneOf(rapid.SampledFrom([]int64{0, 1, MaxUnits}), rapid.Int64Range(0, MaxUnits)).Draw(t, "longest debt")
		for name, l := range limiters {
			charger, ok := l.(Charger)
			if !ok {
				continue
			}
			charged := s
			charger.Charge(&charged, now, units, maxDebt)
			_, before := Decide(l, s, now, 0)
			_, after := Decide(l, charged, now, 0)
			if after.Remaining > before.Remaining || after.RetryAfter < before.RetryAfter || after.Reset < before.Reset {
				t.Fatalf("%s: a charge of %d forgives:\n%+v\n%+v", name, units, before, after)
			}
			checkAnswer(t, name, l, charged, now, 1, int64(charged[0]))
		}
	})
}
