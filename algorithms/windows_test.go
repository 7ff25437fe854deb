package algorithms

import (
	"fmt"
	"math"
	"math/big"
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fixedReference is a fixed window by its definition: a list of what was
// admitted, and a calendar as people read it.
type fixedReference struct {
	limit  int64
	window string // as the config spells it
	zone   *time.Location
	takes  []take // by the wall clock
}

func (f *fixedReference) decide(now Time, cost int64) Decision {
	d := Decision{Limit: f.limit}
	name, end := calendarWindow(f.window, f.zone, now.Wall)
	if n := len(f.takes); n > 0 {
		// Clocks that have stepped back into a window that is over stay in the
		// last one that was used.
		if last, lastEnd := calendarWindow(f.window, f.zone, f.takes[n-1].at); lastEnd > end {
			name, end = last, lastEnd
		}
	}
	rest := time.Duration(end - now.Wall)
	used := int64(0)
	for _, taken := range f.takes {
		if other, _ := calendarWindow(f.window, f.zone, taken.at); other == name {
			used += taken.cost
		}
	}
	switch {
	case cost > f.limit:
		d.Never = true
	case used+cost > f.limit:
		d.RetryAfter = rest
	default:
		d.Allowed = true
		if cost > 0 {
			f.takes = append(f.takes, take{end - 1, cost})
			used += cost
		}
	}
	d.Remaining = f.limit - used
	if used > 0 {
		d.Reset = rest
	}
	return d
}

// calendarWindow names the window of a wall time as the calendar writes it, and
// says when it ends.
func calendarWindow(window string, zone *time.Location, wall int64) (name string, end int64) {
	at := time.Unix(0, wall).In(zone)
	midnight := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, zone)
	switch window {
	case "1y":
		return at.Format("2006"), time.Date(at.Year()+1, time.January, 1, 0, 0, 0, 0, zone).UnixNano()
	case "1mo":
		return at.Format("2006-01"), time.Date(at.Year(), at.Month()+1, 1, 0, 0, 0, 0, zone).UnixNano()
	case "1w":
		year, number := at.ISOWeek()
		monday := midnight.AddDate(0, 0, 1)
		for monday.Weekday() != time.Monday {
			monday = monday.AddDate(0, 0, 1)
		}
		return fmt.Sprintf("%d week %d", year, number), monday.UnixNano()
	case "1d", "24h":
		return at.Format(time.DateOnly), midnight.AddDate(0, 0, 1).UnixNano()
	}
	length, _ := time.ParseDuration(window)
	number := at.Sub(midnight) / length
	return fmt.Sprintf("%s window %d", at.Format(time.DateOnly), number), midnight.Add((number + 1) * length).UnixNano()
}

// slidingReference is a sliding window by its definition, from a list of what
// was admitted.
type slidingReference struct {
	limit  int64
	length time.Duration
	offset time.Duration
	takes  []take // by the wall clock
}

func (r *slidingReference) decide(now Time, cost int64) Decision {
	d := Decision{Limit: r.limit}
	switch {
	case cost > r.limit:
		d.Never = true
	case !r.admits(now.Wall, cost):
		d.RetryAfter = r.firstTime(now.Wall, func(later int64) bool { return r.admits(now.Wall+later, cost) })
	default:
		d.Allowed = true
		if cost > 0 {
			r.takes = append(r.takes, take{max(now.Wall, r.latest()), cost})
		}
	}
	left := new(big.Rat).Sub(rat(r.limit), r.weighted(now.Wall))
	d.Remaining = floorRat(left).Int64()
	d.Reset = r.firstTime(now.Wall, func(later int64) bool { return r.weightless(now.Wall + later) })
	return d
}

func (r *slidingReference) admits(wall, cost int64) bool {
	return new(big.Rat).Add(r.weighted(wall), rat(cost)).Cmp(rat(r.limit)) <= 0
}

// weighted returns previous × (share of it still inside) + current.
func (r *slidingReference) weighted(wall int64) *big.Rat {
	// Clocks that have stepped back stand still for the bucket.
	wall = max(wall, r.latest())
	window := r.number(wall)
	previous, current := int64(0), int64(0)
	for _, taken := range r.takes {
		switch r.number(taken.at) {
		case window:
			current += taken.cost
		case window - 1:
			previous += taken.cost
		}
	}
	end := (window+1)*int64(r.length) - int64(r.offset)
	share := big.NewRat(end-wall, int64(r.length))
	share.Mul(share, rat(previous))
	return share.Add(share, rat(current))
}

// latest returns the moment of the last admission, or one that is long over.
func (r *slidingReference) latest() int64 {
	if n := len(r.takes); n > 0 {
		return r.takes[n-1].at
	}
	return math.MinInt64 + int64(2*r.length)
}

// weightless says whether nothing counts any more. The share of the last
// nanosecond is not 0, so that is when two windows have begun.
func (r *slidingReference) weightless(wall int64) bool {
	return r.weighted(wall).Sign() == 0
}

func (r *slidingReference) number(wall int64) int64 {
	length := big.NewInt(int64(r.length))
	return new(big.Int).Div(big.NewInt(wall+int64(r.offset)), length).Int64()
}

// firstTime returns the first time from wall on at which it is true, which is
// at the latest two windows after the last admission.
func (r *slidingReference) firstTime(wall int64, isTrue func(later int64) bool) time.Duration {
	longest := 2 * int64(r.length)
	if latest := r.latest(); latest > wall {
		longest += latest - wall
	}
	return time.Duration(sort.Search(int(longest), func(later int) bool { return isTrue(int64(later)) }))
}

// windowLimit draws a limit with costs to match.
func windowLimit(t *rapid.T) (limit int64, costs *rapid.Generator[int64]) {
	limit = anyCapacity().Draw(t, "limit")
	return limit, anyCost(limit)
}

func TestAFixedWindowCountsByTheCalendar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := anyWindow().Draw(t, "window")
		offset := anyOffset().Draw(t, "offset")
		w := mustWindow(t, window, offset)
		limit, costs := windowLimit(t)
		ref := &fixedReference{limit: limit, window: window, zone: time.FixedZone("", int(w.offset/time.Second))}
		length := w.length
		if w.months > 0 {
			length = 30 * day
		}
		walk(t, must(t)(NewFixedWindow(limit, w)), ref, costs, length, true)
	})
}

func TestASlidingWindowWeighsTheWindowBeforeExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := mustWindow(t, anyDayDividingWindow().Draw(t, "window"), anyOffset().Draw(t, "offset"))
		limit, costs := windowLimit(t)
		ref := &slidingReference{limit: limit, length: w.length, offset: w.offset}
		walk(t, must(t)(NewSlidingWindow(limit, w)), ref, costs, w.length, true)
	})
}

// TestAFixedWindowAtItsEdge spells out what the calendar says of the last and
// the first nanosecond of a window.
func TestAFixedWindowAtItsEdge(t *testing.T) {
	limiter := must(t)(NewFixedWindow(2, mustWindow(t, "1m", "")))
	const edge = int64(time.Minute)
	var s State
	for i, c := range []struct {
		at        int64
		allowed   bool
		remaining int64
		retry     time.Duration
		reset     time.Duration
	}{
		{edge - 2, true, 1, 0, 2},
		{edge - 1, true, 0, 0, 1},
		{edge - 1, false, 0, 1, 1},
		{edge, true, 1, 0, time.Minute}, // a burst at the edge: twice the limit in 2 ns
		{edge, true, 0, 0, time.Minute},
		{edge, false, 0, time.Minute, time.Minute},
		{edge - 1, false, 0, time.Minute + 1, time.Minute + 1}, // both clocks have stepped back
		{2*edge - 1, false, 0, 1, 1},
		{2 * edge, true, 1, 0, time.Minute},
	} {
		var d Decision
		s, d = Decide(limiter, s, Time{Mono: c.at, Wall: c.at}, 1)
		if d.Allowed != c.allowed || d.Remaining != c.remaining || d.RetryAfter != c.retry || d.Reset != c.reset {
			t.Errorf("step %d at %d ns: %+v, want %+v", i, c.at, d, c)
		}
	}
}

func TestWindowsNeedTheWallClock(t *testing.T) {
	minute := mustWindow(t, "1m", "")
	for _, l := range []Limiter{must(t)(NewFixedWindow(1, minute)), must(t)(NewSlidingWindow(1, minute))} {
		if !l.UsesWall() {
			t.Errorf("%T does not read the wall clock", l)
		}
	}
}

func TestAWindowThatBeginsAtTimeZeroIsCounted(t *testing.T) {
	minute := mustWindow(t, "1m", "")
	for _, l := range []Limiter{must(t)(NewFixedWindow(1, minute)), must(t)(NewSlidingWindow(1, minute))} {
		// Label and end are both 0 here, as in a State that nobody has used.
		now := Time{Mono: -int64(time.Minute), Wall: 0}
		s, d := Decide(l, State{}, now, 1)
		if !d.Allowed {
			t.Fatalf("%T refuses the first request", l)
		}
		if _, d := Decide(l, s, now, 1); d.Allowed {
			t.Errorf("%T admits a second one", l)
		}
	}
}

func TestAStepBackTakesNothingFromASlidingWindow(t *testing.T) {
	limiter := must(t)(NewSlidingWindow(10, mustWindow(t, "1m", "")))
	s, _ := Decide(limiter, State{}, Time{}, 4)
	s, _ = Decide(limiter, s, Time{}.plus(90*time.Second), 8)
	// Half of the 4 counted, and 8. Now both clocks step back.
	now := Time{}.plus(30 * time.Second)
	if _, d := Decide(limiter, s, now, 0); !d.Allowed || d.Remaining != 0 {
		t.Errorf("a look: %+v", d)
	}
	_, d := Decide(limiter, s, now, 1)
	if want := 75 * time.Second; d.Allowed || d.RetryAfter != want { // at 105 s 1 of 4 counts
		t.Errorf("cost 1: %+v, want a refusal for %v", d, want)
	}
}

func TestAWindowsRequestIsGivenBackToItsWindow(t *testing.T) {
	const minute = int64(time.Minute)
	w := mustWindow(t, "1m", "")
	at := func(t int64) Time { return Time{Mono: t, Wall: t} }
	for _, c := range []struct {
		name       string
		limiter    Limiter
		taken      int64 // the moment of the request that is given back
		others     int64 // the moment of the others
		back       int64 // the moment of giving back
		want, left int64 // what is left then, and without giving back
	}{
		{"fixed, same window", must(t)(NewFixedWindow(10, w)), 0, 10, 20, 7, 3},
		{"fixed, window over", must(t)(NewFixedWindow(10, w)), 0, minute, minute, 7, 7},
		{"sliding, same window", must(t)(NewSlidingWindow(10, w)), 0, 10, 20, 7, 3},
		{"sliding, window before", must(t)(NewSlidingWindow(10, w)), 0, minute, minute + minute/2, 7, 5},
		{"sliding, window before that", must(t)(NewSlidingWindow(10, w)), 0, 2 * minute, 2 * minute, 7, 7},
	} {
		s, d := Decide(c.limiter, State{}, at(c.taken), 4)
		s, _ = Decide(c.limiter, s, at(c.others), 3)
		if _, look := Decide(c.limiter, s, at(c.back), 0); look.Remaining != c.left {
			t.Errorf("%s: %d are left before giving back, want %d", c.name, look.Remaining, c.left)
		}
		s = c.limiter.GiveBack(s, at(c.back), 4, d.Window)
		if _, look := Decide(c.limiter, s, at(c.back), 0); look.Remaining != c.want {
			t.Errorf("%s: %d are left after giving back, want %d", c.name, look.Remaining, c.want)
		}
	}
}

// The windows at the end of int64 time have ends that it does not hold.
func TestASlidingWindowAtTheEndOfTimeRefusesToItsEnd(t *testing.T) {
	limiter := must(t)(NewSlidingWindow(10, mustWindow(t, "1m", "")))
	const end = math.MaxInt64 - int64(30*time.Second)
	for current, want := range map[uint64]time.Duration{
		20: time.Duration(end) + 30*time.Second, // half of it may be inside
		11: time.Duration(end) + time.Minute*1/11 + 1,
		90: Forever,
	} {
		_, d := Decide(limiter, State{0, uint64(end), current << 32}, Time{}, 0)
		if d.RetryAfter != want {
			t.Errorf("%d in the window: refused for %v, want %v", current, d.RetryAfter, want)
		}
	}
}
