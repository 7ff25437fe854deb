package algorithms

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// inFlight is one request by its definition: it counts in the slice in which it
// was registered or renewed last, and in the next one.
type inFlight struct {
	slice  int64
	window int64 // as the limiter names it
	holder int
}

// concurrencyReference is a list of all requests that were not given back.
type concurrencyReference struct {
	requests []inFlight
	lapsed   []inFlight // given back too late, so that a clock which steps back finds them again
	latest   int64      // the slice of the last write
}

func (r *concurrencyReference) slice(now Time) int64 {
	return max(r.latest, floorRat(rat(0).SetFrac64(now.Mono, int64(LeaseSlice))).Int64())
}

// count returns how many are in flight, and how long until none is.
func (r *concurrencyReference) count(now Time) (n int64, reset time.Duration) {
	slice := r.slice(now)
	for _, q := range slices.Concat(r.requests, r.lapsed) {
		if q.slice >= slice-1 {
			n++
			reset = max(reset, time.Duration((q.slice+2)*int64(LeaseSlice)-now.Mono))
		}
	}
	return n, reset
}

// look is what a request is told before it is registered.
func (r *concurrencyReference) look(limit int64, now Time, requests int64) Decision {
	n, reset := r.count(now)
	d := Decision{Allowed: n+requests <= limit, Limit: limit, Remaining: max(limit-n, 0), Reset: reset}
	if !d.Allowed {
		d.RetryAfter = time.Second
	}
	return d
}

// mustConcurrency is must for those who need more than a Limiter.
func mustConcurrency(t fataler, limit int64) *Concurrency {
	t.Helper()
	return must(t)(NewConcurrency(limit)).(*Concurrency)
}

// holders are workers that have requests in flight.
type holders struct {
	*rapid.T
	concurrencyReference
	s     State
	limit *Concurrency
	now   Time
	away  map[int]bool // holders that are dead or stalled
	late  map[int]bool // those that have been away for longer than a lease
}

func (h *holders) decide(holder int) {
	want := h.look(h.limit.limit, h.now, 1)
	next, d := Decide(h.limit, h.s, h.now, rapid.Int64Range(1, 3).Draw(h.T, "cost"))
	if d.Allowed {
		h.latest = h.slice(h.now)
		h.requests = append(h.requests, inFlight{h.latest, d.Window, holder})
		_, want.Reset = h.count(h.now)
		want.Remaining--
	} else if next != h.s {
		h.Fatal("a refusal wrote")
	}
	if h.s = next; (d.Window != 0) != d.Allowed {
		h.Fatal("registered in", d.Window, "but allowed is", d.Allowed)
	}
	if d.Window = 0; d != want {
		h.Fatalf("at %d:\n got %+v\nwant %+v", h.now.Mono, d, want)
	}
	onTime := int64(0)
	for _, q := range h.requests {
		if !h.away[q.holder] && !h.late[q.holder] {
			onTime++
		}
	}
	if d.Allowed && onTime > h.limit.limit {
		h.Fatal("of holders on time", onTime, "are in flight, the limit is", h.limit.limit)
	}
}

// renew renews what a holder has, as one number for each window.
func (h *holders) renew(holder int) {
	counts := map[int64]int64{}
	for _, q := range h.requests {
		if q.holder == holder {
			counts[q.window]++
		}
	}
	for window, n := range counts {
		renewed, slice := h.limit.Renew(&h.s, h.now, n, window), h.slice(h.now)
		for i := range h.requests {
			q := &h.requests[i]
			if q.holder == holder && q.window == window && q.slice != slice {
				q.slice, q.window = slice, renewed
				h.latest = slice
			}
		}
	}
	delete(h.late, holder)
}

func (h *holders) giveBack(nth int) {
	q := h.requests[nth]
	before, _ := h.count(h.now)
	h.requests = append(h.requests[:nth:nth], h.requests[nth+1:]...)
	if after, _ := h.count(h.now); after != before {
		h.latest = h.slice(h.now)
	} else {
		h.lapsed = append(h.lapsed, q)
	}
	h.s = h.limit.GiveBack(h.s, h.now, 1, q.window)
}

// due says whether a holder must renew before the clock goes on by a step.
func (h *holders) due(holder int, step time.Duration) bool {
	then := h.slice(h.now.plus(step))
	for _, q := range h.requests {
		if q.holder == holder && then >= q.slice+2 {
			return true
		}
	}
	return false
}

func (h *holders) check() {
	next, d := Decide(h.limit, h.s, h.now, 0)
	if next != h.s {
		h.Fatal("looking wrote")
	}
	if want := h.look(h.limit.limit, h.now, 0); d != want {
		h.Fatalf("at %d:\n got %+v\nwant %+v", h.now.Mono, d, want)
	}
}

// TestRequestsInFlightAreCountedExactly has workers that renew in time, that
// die and that stall, under limits that change and clocks that step back.
func TestRequestsInFlightAreCountedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const workers = 4
		h := &holders{T: t, away: map[int]bool{}, late: map[int]bool{}}
		h.latest = math.MinInt64
		limits := []*Concurrency{}
		for range 2 {
			limits = append(limits, mustConcurrency(t, rapid.Int64Range(1, 6).Draw(t, "limit")))
		}
		h.limit = limits[0]
		h.now.Mono = rapid.OneOf(rapid.Just[int64](0), rapid.Int64Range(-longestStep, longestStep)).Draw(t, "start")
		steps := rapid.OneOf(
			rapid.SampledFrom([]int64{0, 1, -1, int64(LeaseSlice), int64(LeaseSlice) - 1}),
			rapid.Int64Range(-int64(time.Second), int64(LeaseSlice)),
		)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			worker := rapid.IntRange(0, workers-1).Draw(t, "worker")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1, 2:
				step := time.Duration(steps.Draw(t, "clock goes on"))
				for holder := range workers {
					switch due := h.due(holder, step); {
					case due && h.away[holder]:
						h.late[holder] = true
					case due:
						h.renew(holder)
					}
				}
				h.now = h.now.plus(step)
			case 3:
				h.away[worker] = !h.away[worker]
				if !h.away[worker] {
					h.renew(worker)
				}
			case 4:
				if !h.away[worker] {
					h.renew(worker)
				}
			case 5:
				h.limit = rapid.SampledFrom(limits).Draw(t, "setting")
			case 6, 7:
				if n := len(h.requests); n > 0 {
					h.giveBack(rapid.IntRange(0, n-1).Draw(t, "which"))
				}
			default:
				if !h.away[worker] {
					h.decide(worker)
				}
			}
			h.check()
		}
		for len(h.requests) > 0 {
			h.giveBack(rapid.IntRange(0, len(h.requests)-1).Draw(t, "which"))
			h.check()
		}
		if _, d := Decide(h.limit, h.s, h.now, 1); d.Remaining != d.Limit-1 && len(h.lapsed) == 0 {
			t.Fatalf("all have given back, but one more request is told %+v", d)
		}
	})
}

// TestADeadHoldersRequestsAreBackAfterFourToEightSeconds renews some requests a
// few times, and then never again.
func TestADeadHoldersRequestsAreBackAfterFourToEightSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 5).Draw(t, "requests")
		limiter := mustConcurrency(t, n)
		var s State
		now := Time{Mono: rapid.Int64Range(-longestStep, longestStep).Draw(t, "start")}
		if rapid.Bool().Draw(t, "as a slice begins") {
			now.Mono -= now.Mono % int64(LeaseSlice)
		}
		var d Decision
		for range n {
			limiter.Decide(&s, now, 1, &d)
		}
		window := d.Window
		for range rapid.IntRange(0, 5).Draw(t, "renewals") {
			now = now.plus(LeaseSlice)
			window = limiter.Renew(&s, now, n, window)
		}
		for _, c := range []struct {
			after time.Duration
			held  bool
		}{{0, true}, {LeaseSlice, true}, {d.Reset, false}, {2 * LeaseSlice, false}} {
			if c.after == d.Reset {
				_, d = Decide(limiter, s, now, 0)
				c.after = d.Reset
				if _, before := Decide(limiter, s, now.plus(c.after-1), 1); before.Allowed {
					t.Fatal("admitted 1 ns before reset after", c.after)
				}
			}
			if _, d := Decide(limiter, s, now.plus(c.after), 1); d.Allowed == c.held {
				t.Fatalf("%v after the last renewal: %+v", c.after, d)
			}
		}
	})
}

func TestARequestCountsOnceWhateverItCosts(t *testing.T) {
	limiter := must(t)(NewConcurrency(3))
	var s State
	for i, cost := range []int64{1, MaxUnits, 2} {
		var d Decision
		s, d = Decide(limiter, s, Time{}, cost)
		if want := (Decision{Allowed: true, Limit: 3, Remaining: int64(2 - i), Reset: 2 * LeaseSlice, Window: d.Window}); d != want || d.Window == 0 {
			t.Errorf("request %d: %+v, want %+v", i, d, want)
		}
	}
	for _, cost := range []int64{1, MaxUnits} {
		if next, d := Decide(limiter, s, Time{}, cost); d.Allowed || d.Never || d.RetryAfter != time.Second || next != s {
			t.Errorf("cost %d on top: %+v", cost, d)
		}
	}
}

func TestAHolderThatIsLateIsCountedAgainBesidesTheOthers(t *testing.T) {
	limiter := mustConcurrency(t, 2)
	s, late := Decide(limiter, State{}, Time{}, 1)
	s, _ = Decide(limiter, s, Time{}, 1)
	now := Time{}.plus(2 * LeaseSlice)
	s, first := Decide(limiter, s, now, 1)
	s, second := Decide(limiter, s, now, 1)
	if !first.Allowed || !second.Allowed {
		t.Fatalf("after the others have lapsed: %+v, %+v", first, second)
	}
	if same := limiter.GiveBack(s, now, 2, late.Window); same != s {
		t.Fatal("what has lapsed was given back")
	}
	window := limiter.Renew(&s, now, 2, late.Window)
	s = limiter.GiveBack(s, now, 2, first.Window)
	if _, d := Decide(limiter, s, now, 1); d.Allowed || window != first.Window {
		t.Errorf("two are in flight again in %d, and one more is told %+v", window, d)
	}
	s = limiter.GiveBack(s, now, 2, window)
	if _, d := Decide(limiter, s, now, 1); d.Remaining != 1 || d.Reset != 2*LeaseSlice {
		t.Errorf("all have ended: %+v", d)
	}
}

func TestGivingBackMoreThanAreInFlightLeavesNone(t *testing.T) {
	limiter := mustConcurrency(t, 5)
	s, d := Decide(limiter, State{}, Time{}, 1)
	for range 2 {
		s = limiter.GiveBack(s, Time{}, MaxUnits, d.Window)
		if _, d = Decide(limiter, s, Time{}, 0); d != (Decision{Allowed: true, Limit: 5, Remaining: 5}) {
			t.Errorf("after giving back: %+v", d)
		}
	}
	if s = limiter.GiveBack(State{}, Time{}, 1, sliceAt(0)); s != (State{}) {
		t.Errorf("giving back to a bucket that nobody has used writes %v", s)
	}
	if limiter.Renew(&s, Time{}, 0, 1); s != (State{}) {
		t.Errorf("renewing nothing writes %v", s)
	}
}

func TestALimitOnRequestsInFlightIsInRange(t *testing.T) {
	for limit, ok := range map[int64]bool{-1: false, 0: false, 1: true, MaxUnits: true, MaxUnits + 1: false} {
		if l, err := NewConcurrency(limit); (err == nil) != ok || ok != (l != nil) {
			t.Errorf("a limit of %d: error %v", limit, err)
		}
	}
	limiter := must(t)(NewConcurrency(7))
	if units, window := limiter.Quota(); units != 7 || window != 0 || limiter.UsesWall() {
		t.Errorf("a quota of %d in %v, uses the wall clock: %v", units, window, limiter.UsesWall())
	}
}

func TestAnyStateOfRequestsInFlightIsAnswered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limiter := mustConcurrency(t, rapid.SampledFrom([]int64{1, 10, MaxUnits}).Draw(t, "limit"))
		s, now := anyState().Draw(t, "state"), anyTime().Draw(t, "now")
		n := rapid.Int64Range(0, MaxUnits).Draw(t, "n")
		window := rapid.OneOf(rapid.Just(int64(s[0])), rapid.Just(sliceAt(now.Mono)), anyClock()).Draw(t, "window")
		for range 3 {
			next, d := Decide(limiter, s, now, max(n, 1))
			if d.Remaining < 0 || d.Remaining > d.Limit || d.Reset < 0 || d.Never ||
				d.Allowed == (d.RetryAfter > 0) || d.Allowed != (d.Window > 0) || d.Allowed != (next != s) {
				t.Fatalf("%+v from %v to %v", d, s, next)
			}
			if d.Allowed && d.Reset == 0 && now.Mono != math.MaxInt64 {
				t.Fatalf("one is in flight from %v to %v, but %+v", s, next, d)
			}
			if back := limiter.GiveBack(next, now, 1, d.Window); d.Allowed {
				_, before := Decide(limiter, s, now, 0)
				if _, restored := Decide(limiter, back, now, 0); restored != before {
					t.Fatalf("given back at once: %+v, was %+v", restored, before)
				}
			}
			s = limiter.GiveBack(next, now, n, window)
			if renewed := limiter.Renew(&s, now, n, window); renewed <= 0 {
				t.Fatal("renewed in", renewed)
			}
			now = anyTime().Draw(t, "then")
		}
	})
}

func TestASliceBeyondTheEndOfTimeEndsWithIt(t *testing.T) {
	limiter := must(t)(NewConcurrency(2))
	for _, slice := range []uint64{uint64(sliceAt(math.MaxInt64)), math.MaxInt64 - 1, math.MaxInt64} {
		s, d := Decide(limiter, State{slice, 1}, Time{}, 1)
		if !d.Allowed || d.Reset != Forever || d.Window != sliceAt(math.MaxInt64) {
			t.Errorf("in slice %d: %+v", slice, d)
		}
		if _, d = Decide(limiter, s, Time{}, 1); d.Allowed {
			t.Errorf("a third one in slice %d: %+v", slice, d)
		}
	}
}
