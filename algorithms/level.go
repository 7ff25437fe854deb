package algorithms

import (
	"math"
	"time"
)

// level is what has been spent of a bucket and has not come back yet, as of a
// moment on the monotonic clock. It is what all continuous buckets keep, and
// it falls at the bucket's rate until it is 0:
//
//   - the tokens of a token bucket are its capacity less the level,
//   - the content of a leaky bucket is the level,
//   - the theoretical arrival time of a GCRA is the moment at which the level
//     is 0.
//
// Recommendation ITU-T I.371 gives the last two as one algorithm in two
// spellings (continuous-state leaky bucket and virtual scheduling). Keeping
// what was spent, and not what is left, is what lets a limit change its
// numbers: what was spent stays spent.
//
// The level is whole + frac/den units, where den is the denominator of the
// Rate by which it falls: in a nanosecond it falls by exactly num/den.
type level struct {
	at    int64 // the moment, monotonic, in ns
	whole uint64
	frac  uint64 // below den
}

// A level is kept in a State as
//
//	s[0]  at, as an int64
//	s[1]  frac
//	s[2]  den of the rate that wrote it
//	s[3]  low half: whole, saturating; high half: units waiting, for a queue

// loadLevel returns the level that s holds. Where another rate's denominator
// wrote it, the fraction is rounded up, so that no reading ever forgives.
func loadLevel(s *State, r Rate) level {
	l := level{at: int64(s[0]), whole: s[3] & math.MaxUint32, frac: s[1]}
	den := s[2]
	if den == r.den && l.frac < den {
		return l
	}
	if den == 0 { // nobody has written it
		return level{at: math.MinInt64}
	}
	l.frac = mul(l.frac, r.den).ceilDiv(den)
	if l.frac >= r.den {
		l.whole, l.frac = l.whole+1, 0
	}
	return l
}

// store makes s the State that holds the level, with the units waiting.
func (l level) store(s *State, r Rate, waiting int64) {
	s[0], s[1], s[2] = uint64(l.at), l.frac, r.den
	s[3] = uint64(waiting)<<32 | min(l.whole, math.MaxUint32)
}

// fallenAt returns the level at now. On a clock that has stepped back nothing
// falls: the level stays where it is, at its own later moment.
func (l level) fallenAt(now int64, r Rate) level {
	if now <= l.at {
		return l
	}
	spent := mul(l.whole, r.den).add(l.frac)
	back := mul(uint64(now)-uint64(l.at), r.num)
	if !back.less(spent) {
		return level{at: now}
	}
	whole, frac := spent.sub(back).div(r.den)
	return level{now, whole, frac}
}

func (l level) empty() bool {
	return l.whole == 0 && l.frac == 0
}

// units returns the level in whole units, rounded up. A cost n fits on top of
// the level below a capacity c, both whole, if and only if units()+n <= c.
func (l level) units() int64 {
	if l.frac > 0 {
		return int64(l.whole) + 1
	}
	return int64(l.whole)
}

// timeTo returns how long after now the level will be at most the given number
// of units, rounded up to 1 ns, at most Forever. It counts on the caller's
// clock: after a step back the level begins to fall only when that clock has
// caught up.
func (l level) timeTo(units, now int64, r Rate) time.Duration {
	if l.units() <= units {
		return 0
	}
	falling := r.timeFor(l.whole-uint64(units), l.frac)
	return sum(until(l.at, now), falling)
}

// plus returns the level with a cost on top.
func (l level) plus(cost int64) level {
	l.whole += uint64(cost)
	return l
}

// minus returns the level without what v holds, at least 0, at l's moment.
func (l level) minus(v level, r Rate) level {
	if l.frac < v.frac {
		v.whole++
		l.frac += r.den
	}
	if l.whole < v.whole {
		return level{at: l.at}
	}
	return level{l.at, l.whole - v.whole, l.frac - v.frac}
}
