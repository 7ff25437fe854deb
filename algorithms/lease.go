package algorithms

import (
	"errors"
	"math"
	"time"
)

// LeaseTerms say what is leased.
type LeaseTerms struct {
	Limit   int64         // units of the fleet-wide limit (capacity, limit or burst), 1 to MaxUnits
	Largest int64         // the most asked for at a time, and the most admitted on credit; 1 to Limit
	Window  time.Duration // of a calendar window (1m, 1h, 24h); 0 for a continuous bucket
	Rate    Rate          // of a continuous bucket; the zero Rate for a window
	Spends  bool          // the service consumes what it refuses (Envoy's rate limit server does)
	Timeout time.Duration // of a call, above 0
}

// Overshoot is how many units more than the service lets through a fleet of so
// many processes admits at most, while the service answers: in one window of the
// service, which lets through Limit,
//
//	processes × Largest
//
// as a token is spent before its window can be over, and no process lets its
// credit grow above Largest; and of a continuous bucket, which lets through
// Limit + Rate × T in any interval of length T,
//
//	processes × 3 × Largest
//
// as a process begins the interval with at most 2 × Largest tokens, and ends it
// owing Largest. To the latter are added Largest for each answer that comes later
// than its deadline, and what debts lapse: one of n units does after leaseIdle
// without use, and not before n units have refilled.
func (t LeaseTerms) Overshoot(processes int64) int64 {
	if t.Window > 0 {
		return processes * t.Largest
	}
	return processes * 3 * t.Largest
}

// Stranded is how many units of one window a fleet of so many processes has taken
// at most without using them:
//
//	processes × 2 × Largest, and Largest - 1 where the service Spends
//
// as a process asks with half a lease left, which makes 3/2 × Largest, or up to 2
// where requests are given back to its stock; and once a refusal spends what was
// left. Each lost or late answer adds Largest, and while a window may or may not
// be over each process may take 1 more every edgePause. Leases double as they are
// used up, so that processes that use little strand little.
func (t LeaseTerms) Stranded(processes int64) int64 {
	stranded := processes * 2 * t.Largest
	if t.Spends {
		stranded += t.Largest - 1
	}
	return stranded
}

// LeaseAnswer is what became of one call to the service.
type LeaseAnswer struct {
	Asked   int64         // units, 1 to MaxUnits
	Failed  bool          // no answer: Asked counts as taken and credits nothing
	Pause   time.Duration // after a failure: how long nobody asks
	Allowed bool
	// Remaining is what the service had left after it, by its own word.
	Remaining int64
	// EndsAfter and EndsBefore hold the end of the window between them, in
	// monotonic ns. Both are 0 of a continuous bucket.
	EndsAfter, EndsBefore int64
}

// Lease is one process' part of a limit that a service counts for the whole
// fleet. It takes tokens in batches, before they run out, and hands them out to
// requests, none of which waits: with neither a token nor a known refusal a
// request is admitted on credit, up to Largest, which the next lease repays.
//
// What a fleet admits beyond its limit is credit that the service did not cover:
// see Overshoot. What it takes and does not use is the stocks of processes that
// stop being used: see Stranded. Nothing is given back to the service.
//
// What is given back after another request's window has begun is taken for that
// request's, so it must be given back at once.
//
// Its State is
//
//	s[0]  end of the stock, monotonic ns: the earliest end of its window, of a
//	      continuous bucket when it has been idle for leaseIdle
//	s[1]  low half: tokens, an int32, below 0 for credit; 31 bits: size of a
//	      lease; 1: the last call that came to an end has failed
//	s[2]  low half: what the service said remains, and 1, or 0 if unknown; high
//	      half: units used since the last lease
//	s[3]  2 bits: phase; 1: the stock's window may be over; 9: how much later it
//	      ends at the latest, in steps of 2^22 ns; 52: until when the phase lasts
//	      or since when there is a lease, in steps of 2^10 ns
type Lease struct {
	terms LeaseTerms
	// pace is how long a lease should last.
	pace time.Duration
	// rest is how long a continuous bucket is not asked that has run dry, and
	// share what one process asks for then: its part of what has come back.
	rest  time.Duration
	share int64
}

const (
	// leaseIdle is how long tokens of a continuous bucket outlive their last use:
	// longer than any pace, and short for an Envoy that nobody talks to any more.
	leaseIdle = 10 * time.Second
	// leaseMargin is how much later than its timeout a call may be answered; Envoy
	// was seen to say so 3 ms after it.
	leaseMargin = 50 * time.Millisecond
	// edgePause is between calls while the window may or may not be over.
	edgePause = 20 * time.Millisecond
	// leaseRetry is what those beyond the credit are told while a call is under
	// way: about what it takes.
	leaseRetry = time.Millisecond
	// leasesPerWindow is how many leases an evenly used key takes in a window, if
	// Largest lets it. 32 keeps calls few and what cold processes strand small.
	leasesPerWindow = 32
	// othersShare is the part of what remains that one process asks where a
	// refusal spends it: more, and refusals eat the end of the limit; less, and
	// there are many small calls.
	othersShare = 8
)

// Phases of a stock.
const (
	leaseIdling  = iota // no call is in flight; until is when the last lease came
	leaseCalling        // a call is in flight until its deadline
	leaseRefused        // the service has nothing
	leaseAway           // the service has failed
)

var (
	errLeaseKind    = errors.New("want either a window or a rate")
	errLeaseTimeout = errors.New("want a timeout above 0")
	errLeaseLargest = errors.New("want a largest lease from 1 to the limit")
)

// NewLease returns a lease under terms in which Largest is no less than the
// largest cost of one request. An error says what to write instead.
func NewLease(t LeaseTerms) (*Lease, error) {
	if err := checkUnits("limit", t.Limit); err != nil {
		return nil, err
	}
	switch {
	case t.Largest < 1 || t.Largest > t.Limit:
		return nil, errLeaseLargest
	case t.Window < 0 || (t.Window > 0) == (t.Rate.check() == nil):
		return nil, errLeaseKind
	case t.Timeout <= 0:
		return nil, errLeaseTimeout
	}
	l := &Lease{terms: t, pace: t.Window / leasesPerWindow}
	if t.Window == 0 {
		l.pace = min(max(t.Rate.TimeFor(t.Limit)/leasesPerWindow, 100*time.Millisecond), leaseIdle/2)
		most := t.Rate.TimeFor(t.Largest)
		l.rest = max(min(most, 2*l.pace), t.Rate.TimeFor(1))
		l.share = max(int64(float64(t.Largest)*min(float64(l.rest)/float64(most), 1))/othersShare, 1)
	}
	return l, nil
}

// Decide admits a request that has tokens or credit. Decision.Window is how many
// units to ask the service for, if this decision begins a call, else 0: whoever
// stores the state makes it. Unlike with other limiters a refused request may
// begin one too, and then changes the state. It does not allocate:
// TestLeasingDoesNotAllocate.
func (l *Lease) Decide(s *State, now Time, cost int64, d *Decision) {
	k := l.load(s, now.Mono)
	*d = Decision{Limit: l.terms.Limit}
	refused := k.phase == leaseRefused && now.Mono < k.until
	switch {
	case cost > l.terms.Limit:
		d.Never = true
	case cost <= 0:
		d.Allowed = k.tokens > 0 || !refused && k.tokens >= -l.terms.Largest
	default:
		d.Allowed = k.tokens >= cost || !refused && k.tokens-cost >= -l.terms.Largest
		if d.Allowed {
			l.take(&k, now.Mono, cost)
		}
		d.Window = l.call(&k, now.Mono)
		if d.Allowed || d.Window > 0 {
			k.store(s)
		}
	}
	l.tell(&k, now.Mono, d)
}

// Away says whether there are no tokens and the service, which has failed, is
// either not to be asked yet or has not answered since: then the caller follows
// its on_failure instead of Decide.
func (l *Lease) Away(s *State, now Time) bool {
	k := unpackStock(s)
	if !k.failing || now.Mono >= k.until || k.phase != leaseAway && k.phase != leaseCalling {
		return false
	}
	return l.load(s, now.Mono).tokens <= 0
}

// Answer puts the answer of a call into the stock. One that comes after its
// deadline adds its tokens if their window is not over, and never makes more
// than 2 × Largest of them.
func (l *Lease) Answer(s *State, now Time, a LeaseAnswer) {
	k := l.load(s, now.Mono)
	if k.phase != leaseAway || now.Mono >= k.until {
		k.phase, k.until = leaseIdling, now.Mono
	}
	k.failing = a.Failed || k.phase == leaseAway
	switch {
	case a.Failed:
		k.remaining = max(k.remaining-max(a.Asked, 0), min(k.remaining, 0))
		k.phase, k.until = leaseAway, later(now.Mono, max(a.Pause, 0))
	case l.terms.Window == 0:
		k.end = later(now.Mono, leaseIdle)
		l.credit(&k, now.Mono, a)
	case l.place(&k, now.Mono, a):
		l.credit(&k, now.Mono, a)
	}
	k.store(s)
}

// GiveBack returns tokens to this process' stock, never to the service, and no
// more than were used since the last lease and in this window.
func (l *Lease) GiveBack(s State, now Time, cost, _ int64) State {
	k := l.load(&s, now.Mono)
	back := min(max(cost, 0), k.used)
	if back == 0 {
		return s
	}
	k.used -= back
	k.tokens = min(k.tokens+back, 2*l.terms.Largest)
	if k.maybeOver {
		k.tokens = min(k.tokens, 0)
	}
	k.store(&s)
	return s
}

// Quota is the limit, and the window's length or the time in which the bucket
// fills.
func (l *Lease) Quota() (units int64, window time.Duration) {
	if l.terms.Window > 0 {
		return l.terms.Limit, l.terms.Window
	}
	return l.terms.Limit, l.terms.Rate.TimeFor(l.terms.Limit)
}

// UsesWall says that the service aligns windows, not this process.
func (l *Lease) UsesWall() bool { return false }

// take spends cost units at now.
func (l *Lease) take(k *stock, now, cost int64) {
	k.tokens -= cost
	k.used = min(k.used+cost, MaxUnits)
	switch {
	case l.terms.Window == 0:
		k.end = max(k.end, later(now, leaseIdle))
	case k.remaining == unknown:
		// Whichever window it is, it is over by then.
		k.end = max(k.end, later(now, l.terms.Window))
	}
}

// call begins a call if one is due, and returns the units to ask for, else 0.
func (l *Lease) call(k *stock, now int64) int64 {
	if now < k.until && (k.phase != leaseIdling || k.maybeOver) {
		return 0
	}
	size := l.sized(k, now)
	ask := l.ask(k, size)
	if k.tokens > ask/2 {
		return 0
	}
	k.size = size
	k.phase = leaseCalling
	k.until = later(now, sum(l.terms.Timeout, leaseMargin))
	return ask
}

// sized returns the size of the next lease: twice the last one where that was
// used up in less than the pace, or went into a debt that is back already, and
// smaller as it lasted longer than two.
func (l *Lease) sized(k *stock, now int64) int64 {
	size := min(max(k.size, 1), l.terms.Largest)
	if k.phase == leaseRefused && l.terms.Window == 0 {
		if k.used >= (size+1)/2 {
			size *= 2
		}
		return min(size, l.share)
	}
	if k.phase != leaseIdling || k.until == 0 || k.maybeOver {
		return size
	}
	lasted := until(now, k.until)
	switch {
	case lasted < l.pace && (k.used >= (size+1)/2 || k.tokens <= 0 && l.ask(k, size) >= size):
		return min(2*size, l.terms.Largest)
	case lasted > 2*l.pace:
		return max(size/2, min(size, k.used/max(int64(lasted/max(l.pace, 1)), 1)), 1)
	default:
		return size
	}
}

// ask returns how many units to ask for: enough for a debt too, but not what
// others may have taken meanwhile.
func (l *Lease) ask(k *stock, size int64) int64 {
	if k.maybeOver {
		return 1
	}
	ask := min(max(size, -k.tokens), l.terms.Largest)
	switch {
	case k.remaining == unknown || l.terms.Window == 0 && k.phase == leaseRefused:
	case l.terms.Spends:
		ask = min(ask, k.remaining/othersShare)
	default:
		ask = min(ask, k.remaining)
	}
	return max(ask, 1)
}

// place finds the window that an answer names, and says whether its tokens may
// be spent. Ends of two windows are a window apart, those that are told for one
// differ by a call and a second, so half a window tells them apart.
func (l *Lease) place(k *stock, now int64, a LeaseAnswer) bool {
	half := l.terms.Window / 2
	switch {
	case k.remaining != unknown && until(k.end, a.EndsAfter) > half:
		return false // of an older window
	case k.remaining == unknown || until(a.EndsAfter, k.end) > half:
		k.tokens = min(k.tokens, 0)
		if k.maybeOver {
			k.tokens = max(k.tokens, -k.used)
		}
		k.end, k.latest = a.EndsAfter, max(a.EndsBefore, a.EndsAfter)
		// Where the window may be over already, nobody knows which one owes the debt.
		k.maybeOver, k.used = now >= k.end, -k.tokens
	default:
		k.end = max(k.end, a.EndsAfter)
		k.latest = max(min(k.latest, a.EndsBefore), k.end)
		k.maybeOver = k.maybeOver && now >= k.end
	}
	k.remaining = min(max(a.Remaining, 0), l.terms.Limit)
	if now < k.end && !k.maybeOver {
		return true
	}
	l.passEdge(k)
	if k.until = later(now, edgePause); !a.Allowed {
		k.phase = leaseRefused
	}
	return false
}

// credit adds what was allowed, or remembers the refusal.
func (l *Lease) credit(k *stock, now int64, a LeaseAnswer) {
	asked := min(max(a.Asked, 0), l.terms.Largest)
	k.remaining = min(max(a.Remaining, 0), l.terms.Limit)
	if a.Allowed {
		k.tokens = max(k.tokens, min(k.tokens+asked, 2*l.terms.Largest))
		k.used = 0
		if l.terms.Window == 0 && k.remaining < asked {
			l.restFrom(k, now)
		}
		return
	}
	k.remaining = min(k.remaining, asked/2)
	if l.terms.Spends {
		k.remaining = 0
	}
	switch {
	case l.terms.Window == 0 && k.remaining == 0:
		l.restFrom(k, now)
	case asked <= 1:
		k.phase, k.until = leaseRefused, k.end
	}
}

// restFrom has nobody ask from now on, until a continuous bucket has got some
// units back. What is left in stock is spent meanwhile.
func (l *Lease) restFrom(k *stock, now int64) {
	k.phase, k.until = leaseRefused, later(now, l.rest)
}

// tell fills in what a client is told.
func (l *Lease) tell(k *stock, now int64, d *Decision) {
	limit := l.terms.Limit
	d.Remaining = limit
	if k.remaining != unknown {
		d.Remaining = min(max(k.remaining+k.tokens, 0), limit)
	} else if k.tokens < 0 {
		d.Remaining = max(limit+k.tokens, 0)
	}
	if l.terms.Window > 0 {
		d.Reset = until(k.latest, now)
	} else {
		d.Reset = l.terms.Rate.TimeFor(limit - d.Remaining)
	}
	if d.Allowed || d.Never {
		return
	}
	switch {
	case k.phase == leaseRefused && now < k.until && l.terms.Window > 0:
		d.RetryAfter = until(max(k.latest, k.until), now)
	case k.phase == leaseRefused || k.phase == leaseAway:
		d.RetryAfter = until(k.until, now)
	default:
		d.RetryAfter = min(leaseRetry, until(k.until, now))
	}
	d.RetryAfter = max(d.RetryAfter, 1)
}

// stock is an unpacked State.
type stock struct {
	end, latest int64 // of its window: it ends between them
	tokens      int64
	size        int64
	remaining   int64 // by the service's word, or unknown; then the window is too
	used        int64 // since the last lease, or since the window may be over
	phase       uint64
	until       int64
	maybeOver   bool
	failing     bool // the last call that came to an end
}

const unknown = -1

const (
	untilStep  = 10 // bits
	untilBits  = 52
	latestStep = 22 // bits
	latestMax  = 1<<9 - 1
)

// load returns the stock at now, without what has passed its end.
func (l *Lease) load(s *State, now int64) stock {
	k := unpackStock(s)
	k.tokens = min(max(k.tokens, -l.terms.Largest-MaxUnits), 2*l.terms.Largest)
	if l.terms.Window == 0 {
		l.expire(&k, now)
		return k
	}
	if now >= k.end && !k.maybeOver {
		l.passEdge(&k)
	}
	if k.maybeOver && now >= k.latest {
		k.tokens = max(k.tokens, -k.used)
		k.remaining, k.maybeOver = unknown, false
		k.end = later(now, l.terms.Window)
		k.latest = k.end
	}
	return k
}

// passEdge drops tokens whose window may be over. The debt stays until it is: it
// may belong to the next one as far as it is used from here on.
func (l *Lease) passEdge(k *stock) {
	if !k.maybeOver {
		k.tokens, k.used, k.maybeOver = min(k.tokens, 0), 0, true
	}
}

// expire drops idle tokens of a continuous bucket, and a debt that would have
// been refilled by now.
func (l *Lease) expire(k *stock, now int64) {
	if now < k.end {
		return
	}
	refilled := k.tokens >= 0 || until(now, k.end) >= l.terms.Rate.TimeFor(min(-k.tokens, MaxUnits))
	if !refilled {
		return
	}
	k.tokens, k.used, k.remaining = 0, 0, unknown
}

func unpackStock(s *State) stock {
	k := stock{
		end:       int64(s[0]),
		tokens:    int64(int32(uint32(s[1]))),
		size:      int64(s[1] >> 32 & math.MaxInt32),
		failing:   s[1]>>63 == 1,
		remaining: int64(s[2]&math.MaxUint32) - 1,
		used:      int64(s[2] >> 32),
		phase:     s[3] >> 62,
		maybeOver: s[3]>>61&1 == 1,
		until:     int64(s[3]&(1<<untilBits-1)) << untilStep,
	}
	k.latest = later(k.end, time.Duration(s[3]>>untilBits&latestMax<<latestStep))
	return k
}

// store packs the stock, the moments rounded up.
func (k *stock) store(s *State) {
	moment := uint64(max(k.until, 0))
	moment = min((moment+1<<untilStep-1)>>untilStep, 1<<untilBits-1)
	gap := (uint64(until(k.latest, k.end)) + 1<<latestStep - 1) >> latestStep
	s[0] = uint64(k.end)
	s[1] = uint64(uint32(int32(max(k.tokens, math.MinInt32)))) | uint64(min(k.size, MaxUnits))<<32
	s[2] = uint64(min(k.remaining, MaxUnits)+1) | uint64(min(k.used, MaxUnits))<<32
	s[3] = k.phase<<62 | min(gap, latestMax)<<untilBits | moment
	if k.failing {
		s[1] |= 1 << 63
	}
	if k.maybeOver {
		s[3] |= 1 << 61
	}
}
