package algorithms

import (
	"math"
	"math/big"
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// queueReference is a queue by its definition: a list of every place that was
// ever reserved.
type queueReference struct {
	capacity int64
	rate     *big.Rat // places per ns
	maxWait  time.Duration

	last   int64 // when the last place was reserved
	end    *big.Rat
	places []place
}

// place lasts from the first whole nanosecond in it to the first after it.
type place struct {
	begin, end int64
	waits      bool
}

func (q *queueReference) decide(now Time, cost int64) Decision {
	d := Decision{Limit: q.capacity}
	wait, _ := q.look(now.Mono)
	switch {
	case cost > q.capacity:
		d.Never = true
	case cost == 0:
		d.Allowed = true
	case !q.admits(now.Mono, cost):
		// It admits from some moment on, at the latest when it is idle.
		d.RetryAfter = time.Duration(sort.Search(int(wait), func(later int) bool {
			return q.admits(now.Mono+int64(later), cost)
		}))
	default:
		d.Allowed = true
		d.Wait = wait
		q.reserve(now.Mono, cost)
	}
	wait, waiting := q.look(now.Mono)
	d.Reset = wait
	d.Remaining = q.capacity - waiting
	return d
}

// look returns how long a request would wait, and how many places wait.
func (q *queueReference) look(now int64) (wait time.Duration, waiting int64) {
	at := max(now, q.last)
	for _, p := range q.places {
		if p.end > at {
			wait = time.Duration(p.end - now)
			if p.waits && p.begin > at {
				waiting++
			}
		}
	}
	return wait, waiting
}

func (q *queueReference) admits(now, cost int64) bool {
	wait, waiting := q.look(now)
	return wait == 0 || wait <= q.maxWait && waiting+cost <= q.capacity
}

func (q *queueReference) reserve(now, cost int64) {
	wait, _ := q.look(now)
	waits := wait > 0
	if !waits {
		q.end = rat(now)
	}
	for range cost {
		begin := ceilRat(q.end).Int64()
		q.end = new(big.Rat).Add(q.end, new(big.Rat).Inv(q.rate))
		q.places = append(q.places, place{begin, ceilRat(q.end).Int64(), waits})
	}
	q.last = max(now, q.last)
}

func anyMaxWait(full time.Duration) *rapid.Generator[time.Duration] {
	full = min(full, farAway)
	return rapid.Custom(func(t *rapid.T) time.Duration {
		return rapid.OneOf(
			rapid.SampledFrom([]time.Duration{0, 1, full / 2, full, 4 * time.Minute, Forever}),
			rapid.Map(rapid.Int64Range(0, int64(full)), func(ns int64) time.Duration { return time.Duration(ns) }),
		).Draw(t, "ns")
	})
}

func TestAQueueReservesPlacesExactlyAsDefined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spelled, exact := rateSpelling().Draw(t, "rate").unpack()
		rate := mustRate(t, spelled)
		capacity := rapid.OneOf(rapid.Int64Range(1, 12), anyCapacity()).Draw(t, "capacity")
		maxWait := anyMaxWait(rate.TimeFor(min(capacity, 12))).Draw(t, "max wait")
		limiter := must(t)(NewLeakyQueue(capacity, rate, maxWait))
		ref := &queueReference{capacity: capacity, rate: exact, maxWait: maxWait, last: math.MinInt64}
		costs := rapid.OneOf(
			rapid.SampledFrom([]int64{0, 1, 1, 1, 2}),
			rapid.Int64Range(0, min(capacity, 5)),
			rapid.Just(min(capacity+1, MaxUnits)),
		).Filter(func(cost int64) bool { return cost <= 12 || cost > capacity })
		walk(t, limiter, ref, costs, rate.TimeFor(min(capacity, 5)), true)
	})
}

func TestAQueueLetsNoMoreLeaveThanItsLeakRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spelled, exact := rateSpelling().Draw(t, "rate").unpack()
		rate := mustRate(t, spelled)
		limiter := must(t)(NewLeakyQueue(20, rate, Forever))
		var s State
		var d Decision
		now := int64(0)
		departure, end := int64(0), new(big.Rat) // the last one's, and of its places
		for i := range 40 {
			now += clockStep(rate.TimeFor(5), d, false).Draw(t, "clock goes on")
			cost := rapid.Int64Range(1, 4).Draw(t, "cost")
			if s, d = Decide(limiter, s, Time{Mono: now}, cost); !d.Allowed {
				continue
			}
			leaves := now + int64(d.Wait)
			if i > 0 && (leaves < departure || rat(leaves).Cmp(end) < 0) {
				t.Fatalf("leaves at %d, before %s when the places ahead are over", leaves, end.FloatString(3))
			}
			// A departure is rounded up to a nanosecond, its places are not.
			begins := end
			if d.Wait == 0 {
				begins = rat(now)
			}
			if early := new(big.Rat).Sub(rat(leaves), begins); early.Cmp(rat(1)) >= 0 {
				t.Fatalf("leaves at %d, 1 ns or more after its place begins at %s", leaves, begins.FloatString(3))
			}
			departure = leaves
			end = new(big.Rat).Add(begins, new(big.Rat).Quo(rat(cost), exact))
		}
	})
}

func TestAYearOfDeparturesHasNoDrift(t *testing.T) {
	for _, c := range []struct {
		rate         string
		n, unit, max int64 // n leave every unit ns; max leave in all
	}{
		{"10000/d", 10000, int64(day), 10000 * 365},
		{"3/s", 3, int64(time.Second), 1_000_000},
		{"1/1900ms", 1, 1_900_000_000, 1_000_000},
	} {
		limiter := must(t)(NewLeakyQueue(2, mustRate(t, c.rate), Forever))
		s, d := Decide(limiter, State{}, Time{}, 1)
		// Each comes when the one before it leaves, and leaves after it.
		now, perUnit := int64(0), big.NewRat(c.unit, c.n)
		for i := int64(1); i <= c.max; i++ {
			if s, d = Decide(limiter, s, Time{Mono: now}, 1); !d.Allowed {
				t.Fatalf("%s: the queue is full at request %d: %+v", c.rate, i, d)
			}
			now += int64(d.Wait)
			if i%100_000 != 0 && i != c.max {
				continue
			}
			if want := ceilRat(new(big.Rat).Mul(rat(i), perUnit)).Int64(); now != want {
				t.Errorf("%s: request %d leaves at %d, want %d", c.rate, i, now, want)
				break
			}
		}
	}
}

func TestAQueuesRequestLeavesWhenItsFirstPlaceBegins(t *testing.T) {
	limiter := must(t)(NewLeakyQueue(3, mustRate(t, "10/s"), time.Second))
	type step struct {
		atMS, cost            int64
		allowed               bool
		wait, retryAfter      time.Duration
		remaining, resetAfter int64
	}
	const ms = time.Millisecond
	var s State
	for i, c := range []step{
		{0, 2, true, 0, 0, 3, 200},          // idle: it leaves at once, and no place of it waits
		{0, 3, true, 200 * ms, 0, 0, 500},   // three places wait behind those two
		{0, 1, false, 0, 200 * ms, 0, 500},  // until the first of the three begins
		{199, 1, false, 0, 1 * ms, 0, 301},  // which it has not yet
		{200, 1, true, 300 * ms, 0, 0, 400}, // now two wait, and this one
	} {
		var d Decision
		s, d = Decide(limiter, s, Time{Mono: c.atMS * int64(ms)}, c.cost)
		got := step{c.atMS, c.cost, d.Allowed, d.Wait, d.RetryAfter, d.Remaining, int64(d.Reset / ms)}
		if got != c {
			t.Errorf("step %d:\n got %+v\nwant %+v", i, got, c)
		}
	}
}

func TestAWaitOfExactlyTheLongestIsAdmitted(t *testing.T) {
	for maxWait, admitted := range map[time.Duration]bool{333333333: false, 333333334: true} {
		limiter := must(t)(NewLeakyQueue(10, mustRate(t, "3/s"), maxWait))
		s, _ := Decide(limiter, State{}, Time{}, 1)
		if _, d := Decide(limiter, s, Time{}, 1); d.Allowed != admitted {
			t.Errorf("a wait of 333333334 ns and at most %d: allowed %v", maxWait, d.Allowed)
		}
	}
}

func TestGivingUpTheLastPlaceRestoresTheQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := mustRate(t, rateSpelling().Draw(t, "rate").Text)
		limiter := must(t)(NewLeakyQueue(50, rate, Forever))
		var s State
		var d Decision
		now := Time{}
		for range rapid.IntRange(0, 10).Draw(t, "requests") {
			now = now.plus(time.Duration(clockStep(rate.TimeFor(3), d, true).Draw(t, "clock goes on")))
			s, d = Decide(limiter, s, now, rapid.Int64Range(1, 5).Draw(t, "cost"))
		}
		now = now.plus(time.Duration(clockStep(rate.TimeFor(3), d, true).Draw(t, "clock goes on")))
		cost := rapid.Int64Range(1, 5).Draw(t, "cost")
		before := s
		s, d = Decide(limiter, s, now, cost)
		if !d.Allowed {
			t.Skip("the queue is full")
		}
		first := d.Window

		// Somebody else lines up behind, and gives up first.
		other := rapid.Int64Range(1, 5).Draw(t, "cost behind")
		if behind, d := Decide(limiter, s, now, other); d.Allowed {
			if kept := limiter.GiveBack(behind, now, cost, first); kept != behind {
				t.Fatalf("a place ahead was freed though %d units stand behind it", other)
			}
			s = limiter.GiveBack(behind, now, other, d.Window)
		}
		gaveUp := now.plus(time.Duration(rapid.Int64Range(0, int64(d.Wait)).Draw(t, "gives up after")))
		s = limiter.GiveBack(s, gaveUp, cost, first)
		checkSameBucket(t, limiter, before, s, gaveUp, rate.TimeFor(1))
	})
}

// checkSameBucket checks that two States lead to the same decisions from now
// on.
func checkSameBucket(t *rapid.T, l Limiter, want, got State, now Time, step time.Duration) {
	t.Helper()
	for _, wait := range []time.Duration{0, 1, step / 3, step - 1, step, 2 * step, 7 * step, 50 * step} {
		for _, cost := range []int64{0, 1, 2, 7} {
			at := now.plus(min(wait, farAway))
			_, wanted := Decide(l, want, at, cost)
			if _, decided := Decide(l, got, at, cost); decided != wanted {
				t.Fatalf("cost %d, %v later:\n got %+v\nwant %+v", cost, wait, decided, wanted)
			}
		}
	}
}
