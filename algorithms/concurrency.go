package algorithms

import (
	"math"
	"time"
)

// LeaseSlice is the length of the slices of monotonic time in which a Concurrency
// registers requests: what was registered or renewed in one is in flight until
// the next one ends. The first of them after time 0 begins at 0.
const LeaseSlice = 4 * time.Second

// Concurrency admits a request if fewer than the limit are in flight. Each counts
// as 1, whatever it costs above 0, until it is given back.
//
// A worker that dies gives nothing back, so requests are held under leases that
// the living renew. A holder must renew what is registered in one slice before
// the next one ends, so at least once in each slice: then its requests count
// for as long as they last, and no more than the limit are ever admitted. What a
// dead holder had counts for more than one slice and at most two after it
// renewed last: from 4 to 8 s.
//
// Its State is
//
//	s[0]  number of the slice it was last brought up to
//	s[1]  requests registered in it
//	s[2]  requests registered in the slice before it
//
// which is fixed in size, however many are in flight on however many workers.
// It counts whole requests, and no count outlives two slices, so nothing can
// drift.
type Concurrency struct {
	limit int64
}

// NewConcurrency returns a limiter that admits requests while fewer than limit (1
// to MaxUnits) are in flight. An error says what to write instead.
func NewConcurrency(limit int64) (*Concurrency, error) {
	if err := checkUnits("limit", limit); err != nil {
		return nil, err
	}
	return &Concurrency{limit}, nil
}

// Decide registers a request of any cost above 0 in now's slice, or refuses it.
// One of cost 0 is refused only where more than the limit are in flight. A refused
// one is told to try again after 1 s, which is a guess: nobody knows when a
// request ends. It does not allocate: BenchmarkDecide.
func (c *Concurrency) Decide(s *State, now Time, cost int64, d *Decision) {
	l := loadLeases(s, now)
	requests := min(cost, 1)
	allowed := l.inFlight()+requests <= c.limit
	if allowed && requests > 0 {
		l.current++
		l.store(s)
	}
	*d = Decision{
		Allowed:   allowed,
		Limit:     c.limit,
		Remaining: max(c.limit-l.inFlight(), 0),
		Reset:     l.reset(now.Mono),
	}
	switch {
	case !allowed:
		d.RetryAfter = time.Second
	case requests > 0:
		d.Window = l.slice
	}
}

// GiveBack ends n requests (0 to MaxUnits) that are registered in the given
// window: the one that Decide said, or Renew after it. Where that has lapsed they
// no longer count, and it does nothing.
func (c *Concurrency) GiveBack(s State, now Time, n, window int64) State {
	l := loadLeases(&s, now)
	count := l.in(window)
	if count == nil || n <= 0 || *count == 0 {
		return s
	}
	*count -= min(*count, n)
	l.store(&s)
	return s
}

// Renew keeps n requests (0 to MaxUnits) in flight that are registered in the
// given window, and returns the window in which they are registered from now on.
// Those that have lapsed, because their holder was late, are registered again,
// whether or not others have been admitted in their place: for as long as they
// last, more than the limit may be in flight then.
func (c *Concurrency) Renew(s *State, now Time, n, window int64) (newWindow int64) {
	l := loadLeases(s, now)
	if window == l.slice || n <= 0 {
		return l.slice
	}
	if count := l.in(window); count != nil {
		*count -= min(*count, n)
	}
	l.current += n
	l.store(s)
	return l.slice
}

// Quota is the limit; it is for no time.
func (c *Concurrency) Quota() (units int64, window time.Duration) {
	return c.limit, 0
}

// UsesWall says that leases need the monotonic clock only.
func (c *Concurrency) UsesWall() bool { return false }

// leases is a bucket of requests in flight, in one slice.
type leases struct {
	slice             int64
	current, previous int64 // registered in the slice, and in the one before it
}

// maxInFlight is more than ever are, and little enough for sums.
const maxInFlight = math.MaxInt64 / 4

// loadLeases returns what s holds at now. On a clock that is in an earlier slice
// than another worker's was, that slice goes on.
func loadLeases(s *State, now Time) leases {
	l := leases{
		slice:    min(int64(s[0]), lastSlice),
		current:  int64(min(s[1], maxInFlight)),
		previous: int64(min(s[2], maxInFlight)),
	}
	switch slice := sliceAt(now.Mono); {
	case slice <= l.slice:
		return l
	case slice-1 == l.slice:
		return leases{slice: slice, previous: l.current}
	default:
		return leases{slice: slice}
	}
}

func (l leases) store(s *State) {
	*s = State{uint64(l.slice), uint64(l.current), uint64(l.previous)}
}

func (l leases) inFlight() int64 { return l.current + l.previous }

// in returns the count of those registered in a window, nil where it has lapsed.
func (l *leases) in(window int64) *int64 {
	switch window {
	case l.slice:
		return &l.current
	case l.slice - 1:
		return &l.previous
	default:
		return nil
	}
}

// reset returns the time until nobody is in flight if no holder renews.
func (l leases) reset(now int64) time.Duration {
	switch {
	case l.current > 0:
		return until(sliceStart(l.slice+2), now)
	case l.previous > 0:
		return until(sliceStart(l.slice+1), now)
	default:
		return 0
	}
}

// Slices are numbered so that all numbers are above 0: a Window of 0 is none, and
// a State of zeros is from before all of them.
const (
	sliceOfZero = 1 << 32
	lastSlice   = sliceOfZero + math.MaxInt64/int64(LeaseSlice)
)

// sliceAt returns the number of the slice that a moment is in.
func sliceAt(mono int64) int64 {
	slice := mono / int64(LeaseSlice)
	if mono%int64(LeaseSlice) < 0 {
		slice--
	}
	return sliceOfZero + slice
}

// sliceStart returns the moment at which a slice begins, or the last one that an
// int64 holds.
func sliceStart(slice int64) int64 {
	if slice > lastSlice {
		return math.MaxInt64
	}
	return (slice - sliceOfZero) * int64(LeaseSlice)
}
