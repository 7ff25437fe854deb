package wasmtest_test

import (
	"slices"
	"sort"
	"time"
)

// lineLimit is a queue's numbers. rate units leave in each period.
type lineLimit struct {
	rate, capacity  int64
	period, maxWait time.Duration
}

// line is one client's queue as one would keep it with pencil and paper: when it
// ends, and when each place in it begins that somebody has to wait for. Moments
// are in 1/rate ns, so that a place is a whole number of them: the period.
type line struct {
	end      int64
	places   []int64
	departed int64 // the departure of the last that has left, in ns
}

// place is what a request has got. begins is its departure in ns, rounded up.
type place struct {
	begins int64
	end    int64
	units  []int64 // when its places begin, if it has to wait
}

// verdict is what a queue says to a request.
type verdict struct {
	admitted bool
	never    bool // to a request that is refused: no waiting helps
	wait     time.Duration
}

// ask says what a request of the given cost would be told at now, in ns.
func (l *line) ask(limit lineLimit, now, cost int64) verdict {
	at := now * limit.rate
	waiting := int64(0)
	for _, begins := range l.places {
		if begins > at {
			waiting++
		}
	}
	wait := time.Duration(roundUp(max(l.end-at, 0), limit.rate))
	switch {
	case cost == 0:
		return verdict{admitted: true}
	case cost > limit.capacity:
		return verdict{never: true}
	case wait == 0:
		return verdict{admitted: true}
	}
	return verdict{admitted: waiting+cost <= limit.capacity && wait <= limit.maxWait, wait: wait}
}

// retryAfter is the time until a request that is refused now would not be, by
// trying.
func (l *line) retryAfter(limit lineLimit, now, cost int64) time.Duration {
	longest := int(roundUp(l.end, limit.rate) - now)
	return time.Duration(sort.Search(longest, func(after int) bool {
		return l.ask(limit, now+int64(after), cost).admitted
	}))
}

// take puts an admitted request into the line.
func (l *line) take(limit lineLimit, now, cost int64) place {
	at := now * limit.rate
	begins := max(l.end, at)
	p := place{begins: roundUp(begins, limit.rate), end: begins + cost*int64(limit.period)}
	if cost == 0 {
		return place{begins: now}
	}
	if l.end > at {
		for i := range cost {
			p.units = append(p.units, begins+i*int64(limit.period))
		}
	}
	l.end = p.end
	l.places = append(l.places, p.units...)
	return p
}

// leave is the end of a request that waits. Only the last in line frees its place.
func (l *line) leave(p place) (freed bool) {
	if l.end != p.end {
		return false
	}
	l.end = p.units[0]
	l.places = slices.DeleteFunc(l.places, func(begins int64) bool { return begins >= l.end })
	return true
}

func roundUp(n, by int64) int64 { return (n + by - 1) / by }
