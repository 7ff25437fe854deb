package algorithms

import (
	"math/big"
	"time"

	"pgregory.net/rapid"
)

// reference decides like a Limiter, from a full record of what it has admitted
// and by the definition alone: rational numbers, lists, no State.
type reference interface {
	// decide returns what Decide should, but for Window, and records what is
	// taken.
	decide(now Time, cost int64) Decision
}

// walk has a limiter and its reference decide on the same requests, and checks
// at every step what a client relies on. interesting is a length of time in
// which much happens.
func walk(t *rapid.T, l Limiter, ref reference, costs *rapid.Generator[int64], interesting time.Duration, mayStepBack bool) {
	var s State
	var last Decision
	start := rapid.Int64Range(-longestStep, longestStep).Draw(t, "start")
	now := Time{Mono: start, Wall: anyWall().Draw(t, "wall")}
	for range rapid.IntRange(1, 40).Draw(t, "requests") {
		step := clockStep(interesting, last, mayStepBack).Draw(t, "clock goes on")
		now = now.plus(time.Duration(step))
		cost := costs.Draw(t, "cost")

		want := ref.decide(now, cost)
		next, got := Decide(l, s, now, cost)
		if window := got.Window; !got.Allowed && window != 0 {
			t.Fatalf("a refusal was counted in %d", window)
		}
		last = got
		got.Window = 0
		if got != want {
			t.Fatalf("cost %d at %d:\n got %+v\nwant %+v", cost, now.Mono, got, want)
		}
		if (cost == 0 || !got.Allowed) && next != s {
			t.Fatalf("cost %d at %d wrote %v over %v though it took nothing", cost, now.Mono, next, s)
		}
		s = next
		checkRetryAfter(t, l, s, now, cost, got)
		checkReset(t, l, s, now, got)
	}
}

// checkRetryAfter checks that RetryAfter is the moment at which the same request
// is admitted, not a nanosecond later and not one earlier.
func checkRetryAfter(t *rapid.T, l Limiter, s State, now Time, cost int64, d Decision) {
	t.Helper()
	if d.Allowed || d.Never {
		if d.RetryAfter != 0 {
			t.Fatalf("allowed %v, never %v, but retry after %d", d.Allowed, d.Never, d.RetryAfter)
		}
		return
	}
	if d.RetryAfter < 1 {
		t.Fatalf("refused with retry after %d", d.RetryAfter)
	}
	if d.RetryAfter > farAway {
		return
	}
	if _, again := Decide(l, s, now.plus(d.RetryAfter), cost); !again.Allowed {
		t.Fatalf("cost %d is refused after waiting %d as told; another %d", cost, d.RetryAfter, again.RetryAfter)
	}
	if _, again := Decide(l, s, now.plus(d.RetryAfter-1), cost); again.Allowed {
		t.Fatalf("cost %d is admitted 1 ns before retry after %d", cost, d.RetryAfter)
	}
}

// checkReset checks that Reset is the moment at which the bucket is like one
// that nobody has used.
func checkReset(t *rapid.T, l Limiter, s State, now Time, d Decision) {
	t.Helper()
	if d.Reset > farAway {
		return
	}
	_, fresh := Decide(l, State{}, now.plus(d.Reset), d.Limit)
	_, whole := Decide(l, s, now.plus(d.Reset), d.Limit)
	fresh.Window, whole.Window = 0, 0
	if whole.Reset > fresh.Reset && l.UsesWall() {
		// It may be a window that is aligned differently.
		fresh.Reset, whole.Reset = 0, 0
	}
	if whole != fresh {
		t.Fatalf("at reset after %d the bucket says %+v, an unused one %+v", d.Reset, whole, fresh)
	}
	if d.Reset > 0 {
		if _, before := Decide(l, s, now.plus(d.Reset-1), 0); before.Reset != 1 {
			t.Fatalf("1 ns before reset after %d there is %d to go", d.Reset, before.Reset)
		}
	}
}

// farAway is where tests stop going: clocks are still far from where an int64
// ends.
const farAway = 2 * longestStep

// plus moves both clocks on.
func (t Time) plus(d time.Duration) Time {
	return Time{Mono: t.Mono + int64(d), Wall: t.Wall + int64(d)}
}

// ceilRat returns r rounded up, floorRat rounded down; a duration saturates.
func ceilRat(r *big.Rat) *big.Int {
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if m.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

func floorRat(r *big.Rat) *big.Int {
	return new(big.Int).Div(r.Num(), r.Denom())
}

func durationOf(ns *big.Int) time.Duration {
	if !ns.IsInt64() {
		return Forever
	}
	return time.Duration(ns.Int64())
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }
