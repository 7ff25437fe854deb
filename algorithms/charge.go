package algorithms

// Charger is a Limiter that can take what a request turned out to cost after it
// was admitted. Continuous buckets and windows are; a queue and a Concurrency
// are not.
type Charger interface {
	Limiter

	// Charge takes units (0 to MaxUnits) more from a bucket, whatever is in it,
	// and makes s the state that follows. The bucket may go into debt, of at most
	// maxDebt units (0 to MaxUnits); what would deepen it further is forgiven. A
	// bucket that is deeper in debt already, because its numbers have changed, is
	// left as it is. Where nothing is taken, the state stays as it is, bit for bit.
	//
	// The debt is what is spent beyond what the bucket holds: in a continuous
	// bucket the level less the capacity, fractions included; in a fixed window
	// the count less the limit, in the window that now is in, which forgets it when
	// it ends; in a sliding window
	//
	//	previous × (share of it still inside) + current - limit
	//
	// of which a charge takes whole units into the current window, so no more of
	// them than fit. Time alone never deepens it. While a bucket is in debt, Decide
	// refuses cost 0 as well and says exactly when it will not.
	//
	// What is to be given back of a request should be given back before it is
	// charged: what was forgiven because of it does not come back.
	Charge(s *State, now Time, units, maxDebt int64)
}

// charged returns what is spent after a charge, with most as the most that a
// charge may lead to.
func charged(spent, units, most int64) int64 {
	return max(spent, min(spent+units, most))
}

// Charge pours the units on top of the level. What is forgiven need not be
// whole: the level is at most the capacity and maxDebt together.
func (b *bucket) Charge(s *State, now Time, units, maxDebt int64) {
	l := loadLevel(s, b.rate).fallenAt(now.Mono, b.rate)
	whole, most := int64(l.whole), b.capacity+maxDebt
	after := charged(whole, units, most)
	if after == whole {
		return
	}
	l.whole = uint64(after)
	if after == most {
		l.frac = 0
	}
	l.store(s, b.rate, 0)
}

// Charge counts the units in the window that now is in, which need not be the
// one in which the request was admitted.
func (f *fixedWindow) Charge(s *State, now Time, units, maxDebt int64) {
	window, count := f.load(*s, now)
	after := charged(count, units, f.limit+maxDebt)
	if after == count {
		return
	}
	*s = State{uint64(window.label), uint64(window.end), uint64(after)}
}

// Charge counts the units in the window that now is in. As in Decide, rounding
// the weighted count up does the same as its fraction would, since all else is
// whole.
func (w *slidingWindow) Charge(s *State, now Time, units, maxDebt int64) {
	c := w.load(*s, now)
	after := charged(c.current, units, w.limit+maxDebt-w.weight(c))
	if after == c.current {
		return
	}
	c.current = after
	*s = c.state()
}
