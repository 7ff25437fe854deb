package algorithms

import (
	"math"
	"time"
)

// fixedWindow counts what is admitted in each window of the calendar. Its State
// is
//
//	s[0]  label of the window, wall ns
//	s[1]  its end, monotonic ns
//	s[2]  units counted in it, up to 2^32-1
type fixedWindow struct {
	limit  int64
	window Window
}

// NewFixedWindow returns a limiter that admits limit units (1 to MaxUnits) in
// each window. A client that comes at the edge of two windows can have the
// limit of both at once; NewSlidingWindow closes that. An error says what to
// write instead.
//
// When the wall clock steps, a client has each window's limit at most once, is
// refused no longer than one window's length on the monotonic clock, and no
// longer than RetryAfter said. A step forward into a later window opens that at
// once, so earlier than RetryAfter said. After a step back the client's windows
// stay ahead of the calendar's until it rests after one of them for as long as
// the clock stepped.
func NewFixedWindow(limit int64, w Window) (Limiter, error) {
	if err := checkUnits("limit", limit); err != nil {
		return nil, err
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	return &fixedWindow{limit, w}, nil
}

// Decide does not allocate: BenchmarkDecide.
func (f *fixedWindow) Decide(s *State, now Time, cost int64, d *Decision) {
	window, count := f.load(*s, now)
	left := f.limit - count // below 0 in debt
	*d = Decision{Limit: f.limit}
	switch {
	case cost > f.limit:
		d.Never = true
	case cost > left:
		d.RetryAfter = until(window.end, now.Mono)
	default:
		d.Allowed = true
		if cost > 0 {
			count += cost
			left -= cost
			*s = State{uint64(window.label), uint64(window.end), uint64(count)}
			d.Window = window.label
		}
	}
	d.Remaining = max(left, 0)
	if count > 0 {
		d.Reset = until(window.end, now.Mono)
	}
}

// load returns the bucket's window at now and what is counted in it. The stored
// window is over when its time has passed, and also when the wall clock has
// stepped forward into a later one.
func (f *fixedWindow) load(s State, now Time) (window span, count int64) {
	stored := span{label: int64(s[0]), end: int64(s[1])}
	switch {
	case s == State{}:
		return f.window.first(now), 0
	case now.Mono >= stored.end || f.window.start(now.Wall) > stored.label:
		return f.window.after(stored, now), 0
	default:
		return stored, int64(min(s[2], math.MaxUint32))
	}
}

// GiveBack takes the cost out of the window in which it was counted, if that is
// still the stored one.
func (f *fixedWindow) GiveBack(s State, _ Time, cost, window int64) State {
	if int64(s[0]) == window {
		s[2] -= min(s[2], uint64(cost))
	}
	return s
}

// Quota is the limit and the window's length.
func (f *fixedWindow) Quota() (units int64, window time.Duration) {
	return f.limit, f.window.longest()
}

// UsesWall says that windows are aligned by the wall clock.
func (f *fixedWindow) UsesWall() bool { return true }
