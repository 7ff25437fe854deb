package algorithms

import (
	"fmt"
	"math/big"
	"time"

	"pgregory.net/rapid"
)

// spelledRate is a rate as the config spells it, and what that means in units
// per nanosecond, worked out beside ParseRate.
type spelledRate struct {
	Text    string
	N, Unit int64 // N units every Unit ns
}

func (r spelledRate) unpack() (string, *big.Rat) {
	return r.Text, big.NewRat(r.N, r.Unit)
}

// rateSpelling draws rates over the whole range, the extremes often.
func rateSpelling() *rapid.Generator[spelledRate] {
	const second, minute, hour = int64(time.Second), int64(time.Minute), int64(time.Hour)
	extremes := rapid.SampledFrom([]spelledRate{
		{"1/d", 1, 24 * hour},
		{"1000000000/s", 1, 1},
		{"0.5/s", 1, 2 * second},
		{"10000/d", 10000, 24 * hour},
		{"1/1900ms", 10, 19 * second},
		{"1/3s", 1, 3 * second},
		{"3/s", 3, second},
		{"7/h", 7, hour},
		{"999999937/s", 999999937, second},
		{"0.123456789/s", 123456789, second * second},
		{"1", 1, second},
	})
	plain := rapid.Custom(func(t *rapid.T) spelledRate {
		unit := rapid.SampledFrom([]spelledRate{
			{"s", 0, second}, {"m", 0, minute}, {"h", 0, hour}, {"d", 0, 24 * hour},
			{"1d", 0, 24 * hour}, {"10s", 0, 10 * second}, {"1m30s", 0, 90 * second}, {"777ms", 0, 777_000_000},
		}).Draw(t, "unit")
		n := rapid.Int64Range(1, 1_000_000).Draw(t, "n")
		return spelledRate{fmt.Sprintf("%d/%s", n, unit.Text), n, unit.Unit}
	})
	return rapid.OneOf(extremes, plain)
}

// anyCapacity draws capacities over the whole range, small ones often.
func anyCapacity() *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64Range(1, 10),
		rapid.Int64Range(1, 1000),
		rapid.SampledFrom([]int64{1, MaxUnits - 1, MaxUnits}),
		rapid.Int64Range(1, MaxUnits),
	)
}

// anyCost draws costs around a capacity: 0, 1, all of it, too much.
func anyCost(capacity int64) *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.SampledFrom([]int64{0, 1, 1, 1, capacity, min(capacity+1, MaxUnits), MaxUnits}),
		rapid.Int64Range(1, min(10, capacity)),
		rapid.Int64Range(1, capacity),
	)
}

// longestStep keeps a test's clocks far from where an int64 ends.
const longestStep = 1e16

// clockStep draws how far a clock goes on before the next request: not at all,
// a little, about as long as interesting is, just before or at one of the
// moments that matter to the last decision, or, where it may, backwards.
func clockStep(interesting time.Duration, last Decision, mayStepBack bool) *rapid.Generator[int64] {
	clamp := func(d time.Duration) int64 { return min(int64(d), longestStep) }
	steps := []*rapid.Generator[int64]{
		rapid.Just[int64](0),
		rapid.Int64Range(0, 2),
		rapid.Int64Range(0, clamp(interesting)),
		rapid.Int64Range(0, clamp(interesting)/4),
		rapid.SampledFrom([]int64{
			clamp(last.RetryAfter), max(clamp(last.RetryAfter)-1, 0),
			clamp(last.Reset), max(clamp(last.Reset)-1, 0), clamp(last.Reset) / 2,
		}),
	}
	if mayStepBack {
		steps = append(steps, rapid.Int64Range(-clamp(interesting), 0))
	}
	return rapid.OneOf(steps...)
}
