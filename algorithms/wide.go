package algorithms

import (
	"math"
	"math/bits"
	"time"
)

// wide is an unsigned integer of 128 bits: the product of two words. Levels,
// leaks and weights are compared in it, so that nothing is ever rounded on the
// way to a decision.
type wide struct{ hi, lo uint64 }

// mul returns a*b. In WebAssembly bits.Mul64 and bits.Div64 are loops of
// smaller steps, while counting leading zeros is one instruction; nearly every
// product of a sensible limit fits one word, so it is worth asking first.
func mul(a, b uint64) wide {
	if bits.Len64(a)+bits.Len64(b) <= 64 {
		return wide{lo: a * b}
	}
	hi, lo := bits.Mul64(a, b)
	return wide{hi, lo}
}

// add returns w+n; the sum must be below 2^128.
func (w wide) add(n uint64) wide {
	lo, carry := bits.Add64(w.lo, n, 0)
	return wide{w.hi + carry, lo}
}

// sub returns w-v; v must not be above w.
func (w wide) sub(v wide) wide {
	lo, borrow := bits.Sub64(w.lo, v.lo, 0)
	return wide{w.hi - v.hi - borrow, lo}
}

func (w wide) less(v wide) bool {
	return w.hi < v.hi || w.hi == v.hi && w.lo < v.lo
}

// div returns the quotient and the remainder of w/d. A quotient of 2^64 and
// more saturates, with remainder 0; d must not be 0.
func (w wide) div(d uint64) (quotient, remainder uint64) {
	switch {
	case w.hi == 0:
		return w.lo / d, w.lo % d
	case w.hi < d:
		return bits.Div64(w.hi, w.lo, d)
	default:
		return math.MaxUint64, 0
	}
}

// ceilDiv returns w/d rounded up, saturating like div.
func (w wide) ceilDiv(d uint64) uint64 {
	quotient, remainder := w.div(d)
	if remainder > 0 && quotient < math.MaxUint64 {
		quotient++
	}
	return quotient
}

// duration returns ns nanoseconds, Forever if that is more than a
// time.Duration holds.
func duration(ns uint64) time.Duration {
	return time.Duration(min(ns, uint64(Forever)))
}

// later returns the moment d after t, both in nanoseconds. It saturates at the
// last moment that an int64 holds; d must not be below 0.
func later(t int64, d time.Duration) int64 {
	if t > math.MaxInt64-int64(d) {
		return math.MaxInt64
	}
	return t + int64(d)
}

// until returns the time from now to t: 0 if t is over, at most Forever. The
// difference of two int64 always fits a uint64, even where it overflows an
// int64.
func until(t, now int64) time.Duration {
	if t <= now {
		return 0
	}
	return duration(uint64(t) - uint64(now))
}

// sum returns a+b, saturating at Forever; neither may be below 0.
func sum(a, b time.Duration) time.Duration {
	return duration(uint64(a) + uint64(b))
}
