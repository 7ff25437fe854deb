package algorithms

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// bucketReference is a continuous bucket by its definition: in any interval of
// length T no more than capacity + rate × T is admitted.
type bucketReference struct {
	capacity int64
	rate     *big.Rat // units per ns
	takes    []take
}

type take struct{ at, cost int64 }

func (b *bucketReference) decide(now Time, cost int64) Decision {
	at := now.Mono
	if n := len(b.takes); n > 0 {
		// A clock that has stepped back stands still for the bucket.
		at = max(at, b.takes[n-1].at)
	}
	spent := b.spent(at)
	behind := rat(at - now.Mono)
	after := new(big.Rat).Add(spent, rat(cost))
	d := Decision{Limit: b.capacity}
	switch {
	case cost > b.capacity:
		d.Never = true
	case after.Cmp(rat(b.capacity)) > 0:
		over := new(big.Rat).Sub(after, rat(b.capacity))
		d.RetryAfter = durationOf(ceilRat(over.Quo(over, b.rate).Add(over, behind)))
	default:
		d.Allowed = true
		if cost > 0 {
			b.takes = append(b.takes, take{at, cost})
			spent = after
		}
	}
	if left := floorRat(new(big.Rat).Sub(rat(b.capacity), spent)); left.Sign() > 0 {
		d.Remaining = left.Int64()
	}
	if spent.Sign() > 0 {
		whole := new(big.Rat).Quo(spent, b.rate)
		d.Reset = durationOf(ceilRat(whole.Add(whole, behind)))
	}
	return d
}

// spent returns the most that any interval up to at has admitted beyond what
// its length has brought back.
func (b *bucketReference) spent(at int64) *big.Rat {
	most, sum := new(big.Rat), int64(0)
	for i := len(b.takes) - 1; i >= 0; i-- {
		sum += b.takes[i].cost
		back := new(big.Rat).Mul(b.rate, rat(at-b.takes[i].at))
		if spent := back.Sub(rat(sum), back); spent.Cmp(most) > 0 {
			most = spent
		}
	}
	return most
}

// checkNoIntervalHoldsMore checks every interval between two takes.
func checkNoIntervalHoldsMore(t fataler, takes []take, capacity int64, rate *big.Rat) {
	t.Helper()
	for i := range takes {
		sum := int64(0)
		for j := i; j < len(takes); j++ {
			sum += takes[j].cost
			allowed := new(big.Rat).Mul(rate, rat(takes[j].at-takes[i].at))
			if allowed.Add(allowed, rat(capacity)).Cmp(rat(sum)) < 0 {
				t.Fatal("from", takes[i].at, "to", takes[j].at, "admitted", sum, "which is more than", allowed.FloatString(9))
			}
		}
	}
}

// bucketKinds are the three names of the one bucket.
var bucketKinds = map[string]func(capacity int64, rate Rate) (Limiter, error){
	"token bucket": NewTokenBucket,
	"gcra":         func(burst int64, rate Rate) (Limiter, error) { return NewGCRA(rate, burst) },
	"leaky meter":  NewLeakyMeter,
}

func TestABucketAdmitsExactlyWhatItsDefinitionAllows(t *testing.T) {
	for name, build := range bucketKinds {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				spelled, exact := rateSpelling().Draw(t, "rate").unpack()
				capacity := anyCapacity().Draw(t, "capacity")
				rate := mustRate(t, spelled)
				ref := &bucketReference{capacity: capacity, rate: exact}
				walk(t, must(t)(build(capacity, rate)), ref, anyCost(capacity), rate.TimeFor(capacity), true)
				checkNoIntervalHoldsMore(t, ref.takes, capacity, exact)
			})
		})
	}
}

// TestGCRAIsVirtualScheduling compares with the other spelling in ITU-T I.371:
// a theoretical arrival time that moves by the cost's increment.
func TestGCRAIsVirtualScheduling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spelled, exact := rateSpelling().Draw(t, "rate").unpack()
		burst := anyCapacity().Draw(t, "burst")
		rate := mustRate(t, spelled)
		limiter := must(t)(NewGCRA(rate, burst))
		increment := new(big.Rat).Inv(exact)
		tolerance := new(big.Rat).Mul(increment, rat(burst-1))

		var s State
		var d Decision
		arrival := new(big.Rat)
		now := int64(0)
		for range 30 {
			now += clockStep(rate.TimeFor(burst), d, false).Draw(t, "clock goes on")
			if arrival.Cmp(rat(now)) < 0 {
				arrival = rat(now)
			}
			conforms := new(big.Rat).Sub(arrival, rat(now)).Cmp(tolerance) <= 0
			s, d = Decide(limiter, s, Time{Mono: now}, 1)
			if d.Allowed != conforms {
				t.Fatalf("at %d allowed is %v, but theoretical arrival is %v", now, d.Allowed, arrival)
			}
			if conforms {
				arrival.Add(arrival, increment)
			}
		}
	})
}

func TestBucketsNeedNoWallClock(t *testing.T) {
	rate := mustRate(t, "1/s")
	for _, l := range []Limiter{
		must(t)(NewTokenBucket(1, rate)), must(t)(NewGCRA(rate, 1)),
		must(t)(NewLeakyMeter(1, rate)), must(t)(NewLeakyQueue(1, rate, 0)),
	} {
		if l.UsesWall() {
			t.Errorf("%T reads the wall clock", l)
		}
	}
}

func TestRetryAfterIsRightOnAClockThatSteppedBack(t *testing.T) {
	limiter := must(t)(NewTokenBucket(2, mustRate(t, "1/s")))
	second := int64(time.Second)
	s, _ := Decide(limiter, State{}, Time{Mono: 10 * second}, 2)
	_, d := Decide(limiter, s, Time{Mono: 4 * second}, 1)
	if want := 7 * time.Second; d.Allowed || d.RetryAfter != want {
		t.Errorf("6 s back: allowed %v, retry after %v; want %v", d.Allowed, d.RetryAfter, want)
	}
	if want := 8 * time.Second; d.Reset != want {
		t.Errorf("6 s back: reset %v, want %v", d.Reset, want)
	}
}

func TestTimesBeyondAnInt64Saturate(t *testing.T) {
	slowest := mustRate(t, "1/d")
	queue := must(t)(NewLeakyQueue(MaxUnits, slowest, time.Minute))
	s, d := Decide(queue, State{}, Time{Mono: 1}, MaxUnits)
	if !d.Allowed || d.Wait != 0 || d.Reset != Forever {
		t.Errorf("in an idle queue: %+v", d)
	}
	if _, d = Decide(queue, s, Time{Mono: 1}, 1); d.Allowed || d.RetryAfter != Forever {
		t.Errorf("in a queue for ever: %+v", d)
	}

	limiter := must(t)(NewTokenBucket(MaxUnits, slowest))
	s, d = Decide(limiter, State{}, Time{Mono: 1}, MaxUnits)
	if !d.Allowed || d.Remaining != 0 || d.Reset != Forever {
		t.Errorf("after all tokens: %+v", d)
	}
	if _, d = Decide(limiter, s, Time{Mono: 1}, MaxUnits); d.RetryAfter != Forever {
		t.Errorf("retry after %d, want %d", d.RetryAfter, Forever)
	}
	if _, d = Decide(limiter, s, Time{Mono: 1}, 1); d.RetryAfter != day {
		t.Errorf("retry after %v for one token, want a day", d.RetryAfter)
	}
	if _, d = Decide(limiter, s, Time{Mono: -1 << 63}, 1); d.Allowed || d.RetryAfter != Forever {
		t.Errorf("on a clock that stepped back as far as it can: %+v", d)
	}
}

func TestAYearOfADailyRateHasNoDrift(t *testing.T) {
	const year = 365 * day
	for _, c := range []struct {
		rate     string
		capacity int64
		step     time.Duration
		perYear  int64
	}{
		{"10000/d", 100, 13 * time.Minute, 10000 * 365},
		{"10000/d", 2, 8639999 * time.Microsecond, 10000 * 365}, // just too early, each time
		{"0.5/s", 10, 17*time.Second + 1, 365 * 86400 / 2},
		{"0.5/s", 86400, 7*time.Hour + 13*time.Nanosecond, 365 * 86400 / 2},
		{"3/s", 1000, 331 * time.Second, 3 * 365 * 86400},
		{"1/d", 1, 3 * time.Hour, 365},
		{"1/1900ms", 5, 9*time.Second + 500*time.Millisecond, 365 * 864000 / 19},
	} {
		limiter := must(t)(NewTokenBucket(c.capacity, mustRate(t, c.rate)))
		start := Time{Mono: 12345}
		var s State
		admitted := int64(0)
		// Every step takes all that there is, as a look says.
		drain := func(now Time) {
			_, look := Decide(limiter, s, now, 0)
			next, d := Decide(limiter, s, now, look.Remaining)
			if !d.Allowed || d.Remaining != 0 {
				t.Fatalf("%s: %d remained, but taking them gives %+v", c.rate, look.Remaining, d)
			}
			s = next
			admitted += look.Remaining
		}
		for at := time.Duration(0); at < year; at += c.step {
			drain(start.plus(at))
		}
		drain(start.plus(year))
		if want := c.perYear + c.capacity; admitted != want {
			t.Errorf("%s with capacity %d every %v admits %d in a year, want %d", c.rate, c.capacity, c.step, admitted, want)
		}
	}
}
