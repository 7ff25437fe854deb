package algorithms

import (
	"math"
	"time"
)

// slidingWindow counts what is admitted in each window of the calendar, and
// takes the window before for evenly spread: as much of it counts as is still
// inside the last window's length. That is the approximation described by
// Cloudflare ("How we built rate limiting capable of scaling to millions of
// domains", 2017), here computed exactly.
//
// Its State is
//
//	s[0]  label of the window, wall ns
//	s[1]  its end, monotonic ns
//	s[2]  high half: units counted in it; low half: in the window before it
//	s[3]  the moment of the last admission or charge, monotonic ns
type slidingWindow struct {
	limit  int64
	window Window
}

// counts is a sliding window's bucket at one moment.
type counts struct {
	span
	at                int64 // the moment, monotonic ns
	current, previous int64
}

// NewSlidingWindow returns a limiter that admits a request if
//
//	previous × (share of it still inside) + current + cost <= limit
//
// where previous and current are the units admitted in the calendar's last
// window and in this one. limit is 1 to MaxUnits; the window must have a fixed
// length that divides a day, 1d included. An error says what to write instead.
//
// The wall clock aligns a bucket's windows when the bucket is first used, and
// again after a whole window in which it was not used; meanwhile they follow one
// another on the monotonic clock. So a step of the wall clock changes nothing
// for a client that is counted, and RetryAfter is true whatever that clock does.
func NewSlidingWindow(limit int64, w Window) (Limiter, error) {
	if err := checkUnits("limit", limit); err != nil {
		return nil, err
	}
	if !w.dividesDay() {
		return nil, errWindowDivides
	}
	return &slidingWindow{limit, w}, nil
}

// Decide does not allocate: BenchmarkDecide.
func (w *slidingWindow) Decide(s *State, now Time, cost int64, d *Decision) {
	c := w.load(*s, now)
	// All but the weighted count are whole numbers, so rounding it up decides
	// exactly as the fraction does.
	left := w.limit - c.current - w.weight(c) // below 0 in debt
	*d = Decision{Limit: w.limit}
	switch {
	case cost > w.limit:
		d.Never = true
	case cost > left:
		d.RetryAfter = w.retryAfter(c, now.Mono, cost)
	default:
		d.Allowed = true
		if cost > 0 {
			c.current += cost
			left -= cost
			*s = c.state()
			d.Window = c.label
		}
	}
	d.Remaining = max(left, 0)
	d.Reset = w.reset(c, now.Mono)
}

// load returns the bucket at now; on a clock that has stepped back, as of the
// last admission or charge, so that the step neither gives nor takes anything.
func (w *slidingWindow) load(s State, now Time) counts {
	if s == (State{}) {
		return counts{span: w.window.first(now), at: now.Mono}
	}
	c := counts{
		span:     span{label: int64(s[0]), end: int64(s[1])},
		at:       max(now.Mono, int64(s[3])),
		current:  int64(s[2] >> 32),
		previous: int64(s[2] & math.MaxUint32),
	}
	following := later(c.end, w.window.length)
	switch {
	case c.at >= following:
		return counts{span: w.window.after(c.span, now), at: now.Mono}
	case c.at >= c.end:
		c.span = span{w.window.end(c.label), following}
		c.current, c.previous = 0, c.current
	}
	return c
}

func (c counts) state() State {
	return State{uint64(c.label), uint64(c.end), uint64(c.current)<<32 | uint64(c.previous), uint64(c.at)}
}

// weight returns what counts of the window before, rounded up to whole units.
func (w *slidingWindow) weight(c counts) int64 {
	// No more than the whole window is inside, whatever a State says.
	inside := min(until(c.end, c.at), w.window.length)
	return int64(mul(uint64(c.previous), uint64(inside)).ceilDiv(uint64(w.window.length)))
}

// retryAfter returns the time until a cost that is refused at now fits. It fits
// when so little of a window is inside that its weighted count leaves room for
// it: of the window before, if the current one alone leaves room, else of the
// current one, after that has become the one before. How much time may be
// inside is the room's share of the window, rounded down.
func (w *slidingWindow) retryAfter(c counts, now, cost int64) time.Duration {
	length := w.window.length
	inside := func(room, count int64) time.Duration {
		most, _ := mul(uint64(room), uint64(length)).div(uint64(count))
		return time.Duration(most)
	}
	if room := w.limit - c.current - cost; room >= 0 {
		return until(c.end-int64(inside(room, c.previous)), now)
	}
	// The next window's end may be beyond what an int64 holds, and this not.
	return until(later(c.end, length-inside(w.limit-cost, c.current)), now)
}

// reset returns the time until neither window counts any more.
func (w *slidingWindow) reset(c counts, now int64) time.Duration {
	switch {
	case c.current > 0:
		return until(later(c.end, w.window.length), now)
	case c.previous > 0:
		return until(c.end, now)
	default:
		return 0
	}
}

// GiveBack takes the cost out of the window in which it was counted, if that is
// the stored one or the one before it.
func (w *slidingWindow) GiveBack(s State, _ Time, cost, window int64) State {
	current, previous := s[2]>>32, s[2]&math.MaxUint32
	label := int64(s[0])
	switch window {
	case label:
		current -= min(current, uint64(cost))
	case label - int64(w.window.length):
		previous -= min(previous, uint64(cost))
	}
	s[2] = current<<32 | previous
	return s
}

// Quota is the limit and the window's length.
func (w *slidingWindow) Quota() (units int64, window time.Duration) {
	return w.limit, w.window.length
}

// UsesWall says that windows are aligned by the wall clock.
func (w *slidingWindow) UsesWall() bool { return true }
