package algorithms

import (
	"errors"
	"strconv"
	"time"
)

// bucket is the continuous bucket that refuses what does not fit: a request of
// cost n is admitted if the level and n together are at most the capacity. In
// any interval of length T it admits at most capacity + rate × T units, which
// is the token bucket of RFC 2215, section 3.6, and it refuses nothing that
// stays within this.
type bucket struct {
	capacity int64
	rate     Rate
}

// NewTokenBucket returns a token bucket: it holds at most capacity tokens (1 to
// MaxUnits), is full at first, and gains tokens continuously at the refill
// rate. A request of cost n takes n tokens or is refused. An error says what to
// write instead.
func NewTokenBucket(capacity int64, refill Rate) (Limiter, error) {
	return newBucket("capacity", capacity, refill)
}

// NewGCRA returns the generic cell rate algorithm of Recommendation ITU-T
// I.371: requests of cost 1 conform if they are 1/rate apart, or come earlier
// by no more than (burst-1)/rate in all; burst is 1 to MaxUnits. That is a
// token bucket of capacity burst, seen from the other side: the theoretical
// arrival time is the moment at which the bucket is full again. An error says
// what to write instead.
func NewGCRA(rate Rate, burst int64) (Limiter, error) {
	return newBucket("burst", burst, rate)
}

// NewLeakyMeter returns a leaky bucket that refuses what would overflow it: a
// request of cost n pours in n units, the bucket holds at most capacity (1 to
// MaxUnits) and leaks continuously at the leak rate. It decides exactly like a
// token bucket; NewLeakyQueue makes requests wait instead. An error says what
// to write instead.
func NewLeakyMeter(capacity int64, leak Rate) (Limiter, error) {
	return newBucket("capacity", capacity, leak)
}

func newBucket(name string, capacity int64, rate Rate) (Limiter, error) {
	if err := checkUnits(name, capacity); err != nil {
		return nil, err
	}
	if err := rate.check(); err != nil {
		return nil, err
	}
	return &bucket{capacity, rate}, nil
}

// checkUnits refuses a capacity, limit or burst that is out of range.
func checkUnits(name string, n int64) error {
	if n < 1 || n > MaxUnits {
		return errors.New("want a " + name + " from 1 to " + strconv.Itoa(MaxUnits))
	}
	return nil
}

// Decide does not allocate: BenchmarkDecide.
func (b *bucket) Decide(s *State, now Time, cost int64, d *Decision) {
	l := loadLevel(s, b.rate).fallenAt(now.Mono, b.rate)
	left := b.capacity - l.units() // below 0 in debt
	d.begin(b.capacity)
	switch {
	case cost > b.capacity:
		d.Never = true
	case cost > left:
		d.RetryAfter = l.timeTo(b.capacity-cost, now.Mono, b.rate)
	default:
		d.Allowed = true
		if cost > 0 {
			l = l.plus(cost)
			left -= cost
			l.store(s, b.rate, 0)
			d.Window = l.at
		}
	}
	d.Remaining = max(left, 0)
	d.Reset = l.timeTo(0, now.Mono, b.rate)
}

// GiveBack takes the cost out of the level, less what the bucket may have got
// back of it since it was taken, which is all that it would have got back had
// nobody else been there. If nobody has taken anything since, that restores
// the bucket exactly. Otherwise it may give back too little by at most the
// rate times the time in between; giving back the whole cost would let others
// have twice what has come back already.
func (b *bucket) GiveBack(s State, _ Time, cost, window int64) State {
	l := loadLevel(&s, b.rate)
	if l.empty() {
		return s
	}
	taken := level{at: window}.plus(cost)
	l.minus(taken.fallenAt(l.at, b.rate), b.rate).store(&s, b.rate, 0)
	return s
}

// Quota is the capacity and the time in which an empty bucket fills, or a full
// one leaks dry.
func (b *bucket) Quota() (units int64, window time.Duration) {
	return b.capacity, b.rate.TimeFor(b.capacity)
}

// UsesWall says that a bucket needs the monotonic clock only.
func (b *bucket) UsesWall() bool { return false }
