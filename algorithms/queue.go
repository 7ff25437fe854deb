package algorithms

import (
	"errors"
	"math"
	"time"
)

// queue is the leaky bucket in which requests wait for their turn. Its level is
// the backlog: the places, each 1/rate long and one per unit, that are
// reserved and not over. They lie end to end from now on, the first of them
// perhaps partly over, so they end when the level is 0, and the next request's
// places begin there.
//
// A place waits until it begins; of a backlog of B > 0 units, all places but
// the one that is elapsing, ceil(B)-1, have not begun. The places of a request
// that found the queue idle begin with its departure and never wait. They are
// always the first of the backlog, so it is enough to keep how many units were
// waiting at the last write, w: at any later moment min(w, ceil(B)-1) of them
// still are.
type queue struct {
	capacity int64
	rate     Rate
	maxWait  time.Duration
}

// NewLeakyQueue returns a leaky bucket as a queue: one unit leaves every 1/leak
// rate, up to capacity units (1 to MaxUnits) wait for it, and no request waits
// longer than maxWait (0 and up; a wait of exactly maxWait is admitted). An
// admitted request is told its Wait. A request of cost n takes n consecutive
// places and leaves at the first of them; one that finds the queue idle leaves
// at once, and its places do not count as waiting. Remaining is the capacity
// less the units waiting, and cost 0 is always admitted and never waits. An
// error says what to write instead.
//
// This is the algorithm as J. S. Turner described it for packets ("New
// directions in communications", IEEE Communications Magazine, 1986), with
// departure times that are computed on arrival.
func NewLeakyQueue(capacity int64, leak Rate, maxWait time.Duration) (Limiter, error) {
	if err := checkUnits("capacity", capacity); err != nil {
		return nil, err
	}
	if err := leak.check(); err != nil {
		return nil, err
	}
	if maxWait < 0 {
		return nil, errors.New("want a longest wait of at least 0s")
	}
	return &queue{capacity, leak, maxWait}, nil
}

// Decide does not allocate: BenchmarkDecide.
func (q *queue) Decide(s *State, now Time, cost int64, d *Decision) {
	l := loadLevel(s, q.rate).fallenAt(now.Mono, q.rate)
	waiting := waitingUnits(s, l)
	wait := l.timeTo(0, now.Mono, q.rate)
	*d = Decision{Limit: q.capacity, Reset: wait}
	switch {
	case cost > q.capacity:
		d.Never = true
	case cost <= 0:
		d.Allowed = true
	case !l.empty() && (waiting+cost > q.capacity || wait > q.maxWait):
		d.RetryAfter = q.retryAfter(l, now.Mono, waiting, cost, wait)
	default:
		d.Allowed = true
		d.Wait = wait
		if !l.empty() {
			waiting += cost
		}
		l = l.plus(cost)
		l.store(s, q.rate, waiting)
		d.Reset = l.timeTo(0, now.Mono, q.rate)
		d.Window = later(now.Mono, d.Reset)
	}
	d.Remaining = max(q.capacity-waiting, 0)
}

// waitingUnits returns how many units of the backlog l have to wait, where s is
// the State that it comes from.
func waitingUnits(s *State, l level) int64 {
	if l.empty() {
		return 0
	}
	return min(int64(s[3]>>32), l.units()-1)
}

// retryAfter returns the time until neither reason to refuse holds any more,
// where wait is how long the request would have to wait now. The wait gets
// shorter by 1 ns each ns. No more than n units wait from the moment on at which
// the backlog is n+1 places: all of them but the one that begins just then.
func (q *queue) retryAfter(l level, now, waiting, cost int64, wait time.Duration) time.Duration {
	if wait == Forever {
		return Forever
	}
	tooLong := max(wait-q.maxWait, 0)
	if waiting+cost <= q.capacity {
		return tooLong
	}
	return max(tooLong, l.timeTo(q.capacity-cost+1, now, q.rate))
}

// GiveBack frees the places of the last request in line. The queue is known to
// end with that request if it still ends at the same moment; the places of one
// further ahead pass unused, since those behind it have been told when to
// leave.
func (q *queue) GiveBack(s State, _ Time, cost, window int64) State {
	l := loadLevel(&s, q.rate)
	end := later(l.at, l.timeTo(0, l.at, q.rate))
	if l.empty() || end != window || end == math.MaxInt64 {
		return s
	}
	l = l.minus(level{whole: uint64(cost)}, q.rate)
	l.store(&s, q.rate, max(int64(s[3]>>32)-cost, 0))
	return s
}

// Quota is the capacity and the time in which that many requests leave.
func (q *queue) Quota() (units int64, window time.Duration) {
	return q.capacity, q.rate.TimeFor(q.capacity)
}

// UsesWall says that a queue needs the monotonic clock only.
func (q *queue) UsesWall() bool { return false }
