package algorithms

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// A State comes from shared memory, which other modules can write to. Whatever
// it holds, a limiter must answer, and with an answer that makes sense.

func FuzzAnyStateIsAnswered(f *testing.F) {
	f.Add(uint64(0), uint64(0), uint64(0), uint64(0), int64(0), int64(0), int64(1), int64(0))
	f.Add(uint64(math.MaxUint64), uint64(math.MaxUint64), uint64(math.MaxUint64), uint64(math.MaxUint64), int64(math.MinInt64), int64(math.MaxInt64), int64(MaxUnits), int64(-1))
	f.Add(uint64(1<<63), uint64(5), uint64(3), uint64(1<<32|7), int64(math.MaxInt64), int64(math.MinInt64), int64(0), int64(math.MinInt64))
	limiters := allLimiters(f)
	f.Fuzz(func(t *testing.T, w0, w1, w2, w3 uint64, mono, wall, cost, window int64) {
		for name, l := range limiters {
			checkAnswer(t, name, l, State{w0, w1, w2, w3}, Time{Mono: mono, Wall: wall}, cost, window)
		}
	})
}

func TestAnyStateIsAnswered(t *testing.T) {
	limiters := allLimiters(t)
	rapid.Check(t, func(t *rapid.T) {
		s, now := anyState().Draw(t, "state"), anyTime().Draw(t, "now")
		cost := rapid.Int64Range(0, MaxUnits).Draw(t, "cost")
		window := rapid.OneOf(rapid.Just(int64(s[0])), anyClock()).Draw(t, "window")
		for name, l := range limiters {
			checkAnswer(t, name, l, s, now, cost, window)
		}
	})
}

// anyState draws what shared memory may hold: small and extreme words, and those
// of the limiters' own, find more than even ones.
func anyState() *rapid.Generator[State] {
	word := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 100), rapid.SampledFrom([]uint64{
		1, 1e8, 86_400_000_000_000, 1<<63 - 1, 1 << 63, math.MaxUint32, 1<<32 | 1, math.MaxUint64,
	}))
	return rapid.Custom(func(t *rapid.T) State {
		return State{word.Draw(t, "s0"), word.Draw(t, "s1"), word.Draw(t, "s2"), word.Draw(t, "s3")}
	})
}

func anyClock() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 100), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64}))
}

func anyTime() *rapid.Generator[Time] {
	return rapid.Custom(func(t *rapid.T) Time {
		return Time{Mono: anyClock().Draw(t, "mono"), Wall: anyClock().Draw(t, "wall")}
	})
}

func checkAnswer(t fataler, name string, l Limiter, s State, now Time, cost, window int64) {
	t.Helper()
	cost = max(0, cost%(MaxUnits+1))
	next, d := Decide(l, s, now, cost)
	switch {
	case d.Remaining < 0, d.Remaining > d.Limit, d.Reset < 0, d.RetryAfter < 0, d.Wait < 0:
		t.Fatal(name, "answers out of range:", d)
	case d.Never != (cost > d.Limit), d.Allowed && d.Never:
		t.Fatal(name, "errs about never, with cost", cost, ":", d)
	case (d.RetryAfter > 0) != (!d.Allowed && !d.Never):
		t.Fatal(name, "errs about retry after:", d)
	case (!d.Allowed || cost == 0) && next != s:
		t.Fatal(name, "writes though it takes nothing:", d)
	case d.Allowed && cost > 0 && next == s:
		t.Fatal(name, "takes without writing:", d)
	}
	l.GiveBack(s, now, cost, window)
	l.GiveBack(next, now, cost, d.Window)
}
