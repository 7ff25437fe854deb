package algorithms

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestNoStepOfTheWallClockLocksOutOrForgives lets the wall clock jump at random
// while the monotonic one goes on.
func TestNoStepOfTheWallClockLocksOutOrForgives(t *testing.T) {
	t.Run("fixed", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			w := mustWindow(t, anyWindow().Draw(t, "window"), anyOffset().Draw(t, "offset"))
			longest := w.length
			if w.months > 0 {
				longest = time.Duration(w.months) * 31 * day
			}
			limit := rapid.Int64Range(1, 20).Draw(t, "limit")
			takes := stepWallClock(t, must(t)(NewFixedWindow(limit, w)), limit, longest, longest)
			counted := map[int64]int64{}
			for i, taken := range takes {
				counted[taken.window] += taken.cost
				if counted[taken.window] > limit {
					t.Fatalf("window %d has admitted %d", taken.window, counted[taken.window])
				}
				if i > 0 && taken.window < takes[i-1].window {
					t.Fatalf("window %d came back after window %d", taken.window, takes[i-1].window)
				}
			}
		})
	})
	t.Run("sliding", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			w := mustWindow(t, anyDayDividingWindow().Draw(t, "window"), anyOffset().Draw(t, "offset"))
			limit := rapid.Int64Range(1, 20).Draw(t, "limit")
			takes := stepWallClock(t, must(t)(NewSlidingWindow(limit, w)), limit, w.length, 2*w.length)
			// By its definition: what is admitted in any two moments less than a
			// window apart is at most twice the limit, and within one window the
			// limit.
			for i := range takes {
				sum, same := int64(0), int64(0)
				for _, other := range takes[i:] {
					if other.mono-takes[i].mono < int64(w.length) {
						sum += other.cost
					}
					if other.window == takes[i].window {
						same += other.cost
					}
				}
				if sum > 2*limit || same > limit {
					t.Fatalf("%d are admitted within a window's length and %d in one window", sum, same)
				}
			}
		})
	})
}

type windowTake struct{ mono, window, cost int64 }

// stepWallClock sends requests while the wall clock jumps, and checks that
// RetryAfter is true whatever the wall clock does meanwhile, and that no client
// is refused for longer than longest after what it last took.
func stepWallClock(t *rapid.T, l Limiter, limit int64, length, longest time.Duration) []windowTake {
	now := Time{Mono: rapid.Int64Range(0, longestStep).Draw(t, "mono"), Wall: anyWall().Draw(t, "wall")}
	jump := rapid.OneOf(
		rapid.Just[int64](0),
		rapid.Int64Range(-3*int64(length), 3*int64(length)),
		rapid.Int64Range(-int64(length), int64(length)),
		rapid.SampledFrom([]int64{-int64(length), -1, 1, int64(length)}),
	)
	var s State
	var last Decision
	var takes []windowTake
	for range rapid.IntRange(1, 40).Draw(t, "requests") {
		now = now.plus(time.Duration(clockStep(length, last, false).Draw(t, "clocks go on")))
		now.Wall += jump.Draw(t, "wall clock steps by")
		cost := rapid.Int64Range(0, limit).Draw(t, "cost")
		s, last = Decide(l, s, now, cost)
		if last.Allowed && cost > 0 {
			takes = append(takes, windowTake{now.Mono, last.Window, cost})
		}
		if last.Allowed {
			continue
		}
		if refusedUntil := now.Mono + int64(last.RetryAfter); refusedUntil-takes[len(takes)-1].mono > int64(longest) {
			t.Fatalf("refused until %d, after the last admission at %d; the longest is %v", refusedUntil, takes[len(takes)-1].mono, longest)
		}
		if _, sliding := l.(*slidingWindow); sliding {
			// A step forward may open a fixed window earlier.
			checkRetryAfter(t, l, s, now, cost, last)
		}
		then := now.plus(last.RetryAfter)
		then.Wall += jump.Draw(t, "meanwhile the wall clock steps by")
		if _, d := Decide(l, s, then, cost); !d.Allowed {
			t.Fatalf("refused after waiting %v as told; another %v", last.RetryAfter, d.RetryAfter)
		}
	}
	return takes
}

func TestAStepForwardOpensTheNextFixedWindow(t *testing.T) {
	limiter := must(t)(NewFixedWindow(1, mustWindow(t, "1d", "")))
	now := Time{Mono: 5, Wall: 10 * int64(time.Hour)}
	s, _ := Decide(limiter, State{}, now, 1)
	now.Wall += int64(14 * time.Hour)
	s, d := Decide(limiter, s, now, 1)
	if !d.Allowed || d.Reset != day || d.Window != int64(day) {
		t.Fatalf("on the next day: %+v", d)
	}
	// Back on the first day the second one's window stays.
	now.Wall -= int64(14 * time.Hour)
	if _, d = Decide(limiter, s, now, 1); d.Allowed || d.RetryAfter != day {
		t.Fatalf("back on the first day: %+v", d)
	}
	// It ends by the monotonic clock, and the third day's follows it.
	now.Mono += int64(day)
	_, d = Decide(limiter, s, now, 1)
	if !d.Allowed || d.Reset != day || d.Window != 2*int64(day) {
		t.Fatalf("a day later: %+v", d)
	}
}

func TestAStepOfTheWallClockChangesNothingInASlidingWindow(t *testing.T) {
	limiter := must(t)(NewSlidingWindow(10, mustWindow(t, "1m", "")))
	const second = int64(time.Second)
	at := func(mono, wall int64) Time { return Time{Mono: mono * second, Wall: wall * second} }
	s, _ := Decide(limiter, State{}, at(59, 59), 10)
	for _, wall := range []int64{-1e9, 0, 59, 60, 90, 1e9} {
		if _, d := Decide(limiter, s, at(60, wall), 1); d.Allowed || d.RetryAfter != 6*time.Second {
			t.Errorf("wall clock at %d: %+v", wall, d)
		}
		if _, d := Decide(limiter, s, at(66, wall), 1); !d.Allowed {
			t.Errorf("wall clock at %d: refused 6 s later", wall)
		}
	}
	// A bucket that has rested for a whole window is aligned anew.
	if _, d := Decide(limiter, s, at(180, 1234567), 1); !d.Allowed || d.Reset != 113*time.Second {
		t.Errorf("after a rest: %+v", d)
	}
}
