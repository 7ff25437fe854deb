// Package algorithms holds the rate-limiting algorithms: pure, deterministic
// arithmetic on a small fixed-size state, with the time as an argument.
//
// A Limiter is built once from its settings and never changes. It is given a
// bucket's State, the time and a cost, and answers with the next State and a
// Decision. It reads no clock, does no I/O and does not allocate, so the same
// code runs in the filter, in tools and in reference tests. The package may
// import nothing but the standard library.
package algorithms

import (
	"math"
	"time"
)

// MaxUnits is the largest capacity, limit, burst and cost: 1e9 units.
const MaxUnits = 1_000_000_000

// Forever is what durations saturate at: 2^63-1 ns, about 292 years.
const Forever = time.Duration(math.MaxInt64)

// Time is one moment, read from two clocks, both in nanoseconds.
type Time struct {
	// Mono is the monotonic clock, which all users of a State must share. It
	// measures every duration. One that stands still or steps back is
	// tolerated: it gives nothing and takes nothing.
	Mono int64
	// Wall is the time since 1970-01-01 UTC. It only aligns windows to the
	// calendar (see Limiter.UsesWall).
	Wall int64
}

// State is what is known of one bucket: 32 bytes whose meaning belongs to the
// algorithm that wrote them. The zero State is a bucket that nobody has used.
// A State written by a Limiter may be read by another one of the same
// algorithm (and window) with other numbers: what was spent stays spent.
type State [4]uint64

// Set makes s another state, word by word: WebAssembly copies an array by a call
// of the host's.
func (s *State) Set(t *State) { s[0], s[1], s[2], s[3] = t[0], t[1], t[2], t[3] }

// Decision is what a Limiter says about one request.
type Decision struct {
	// Allowed says whether the request is admitted.
	Allowed bool
	// Never is set on a refusal that no waiting would help: the cost is above
	// what the limit could ever admit.
	Never bool
	// Wait is how long an admitted request has to wait for its departure; only
	// a leaky bucket used as a queue returns anything but 0.
	Wait time.Duration
	// Limit is the capacity, limit or burst in units, 1 to MaxUnits.
	Limit int64
	// Remaining is how many whole units are left after this decision, rounded
	// down, 0 to Limit.
	Remaining int64
	// Reset is the time until the bucket is whole again, that is until it is
	// indistinguishable from one that nobody has used, rounded up to 1 ns. Of
	// requests in flight it is the time until all leases have lapsed if no holder
	// renews.
	Reset time.Duration
	// RetryAfter, on a refusal that is not Never, is the shortest time after
	// which a request of the same cost is admitted if nobody else takes
	// anything: at least 1 ns, and exact to the nanosecond. Only of a Concurrency
	// it is a guess, always 1 s. 0 otherwise.
	RetryAfter time.Duration
	// Window says where in the bucket's time an admitted request was counted,
	// so that GiveBack can tell how much of it is still there. Its meaning
	// belongs to the algorithm: in one that counts in windows it is the
	// window's beginning, in a continuous bucket the moment of the admission,
	// in a queue the end of the request's places, of requests in flight the slice
	// in which this one was registered. 0 where nothing was taken.
	Window int64
}

// begin makes d a decision about a limit, of which the rest is to be said. It goes
// field by field for the reason of State.Set.
func (d *Decision) begin(limit int64) {
	d.Allowed, d.Never = false, false
	d.Wait, d.RetryAfter, d.Window = 0, 0, 0
	d.Limit, d.Remaining, d.Reset = limit, 0, 0
}

// Limiter decides by one algorithm under one set of numbers. Implementations
// are immutable and safe for concurrent use.
type Limiter interface {
	// Decide says in d whether a request of the given cost (0 to MaxUnits units)
	// is admitted at now, and makes s the state that follows. A refused request
	// and a request of cost 0 leave the state as it is, bit for bit. Both are
	// pointers because they are large for WebAssembly, where results are copied
	// in memory, several times; package function Decide is easier to read.
	//
	// Cost 0 looks without taking: it is admitted unless the bucket is in
	// debt (a queue has no debt and always admits it). A cost above
	// Decision.Limit is refused for ever, but by a Concurrency, to which all costs
	// above 0 are one request.
	Decide(s *State, now Time, cost int64, d *Decision)

	// GiveBack undoes an admission: it returns the state without the cost that
	// Decide took. window is the Decision's Window. What can't be given back
	// any more, since the window has passed or the bucket is whole, is dropped;
	// so giving back never lets in more than would have been let in without
	// the admission. A request of the same limit that would be admitted before
	// GiveBack is admitted after it. To a Concurrency, cost is how many requests
	// end.
	GiveBack(s State, now Time, cost, window int64) State

	// Quota is the limit as clients are told it: so many units (1 to MaxUnits,
	// always Decision.Limit) in so much time. Of a bucket that is the time in
	// which it gets back all that it can hold, rounded up to 1 ns and at most
	// Forever; of a limit that counts in windows, their length; 0 of one that
	// knows no time, which is a Concurrency. It is what
	// draft-ietf-httpapi-ratelimit-headers-10, section 3.1, calls a quota and its
	// window.
	Quota() (units int64, window time.Duration)

	// UsesWall says whether Decide looks at Time.Wall; where it does not, the
	// caller need not read that clock.
	UsesWall() bool
}

// Decide returns the state that follows s by a limiter's Decide, and its
// decision.
func Decide(l Limiter, s State, now Time, cost int64) (State, Decision) {
	var d Decision
	l.Decide(&s, now, cost, &d)
	return s, d
}
