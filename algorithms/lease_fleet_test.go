package algorithms_test

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
)

// leasePause is how long the filter leaves a service alone that has failed.
const leasePause = 250 * time.Millisecond

// leaseFleet is Envoys that share a limit, one bucket of it each, on a virtual
// clock: ns since some midnight.
type leaseFleet struct {
	counting
	random *rand.Rand
	now    int64
	events events
	order  int
	envoys []*leasingEnvoy
	fate   func(sent int64) fate // of a call

	calls    int64
	requests map[int64]int64 // by window
	admitted map[int64]int64 // units, by window
	granted  map[int64]int64 // units that the service allowed, by window
	used     map[int64]int64 // tokens that were spent, by window
	lapsed   int64           // debts that were forgotten, of a bucket
	edge     int64           // units that came when their window might have been over
	lost     int64           // calls that were allowed and came to nothing
	late     int64           // answers after their deadline
	log      []admission     // of all admissions, where it is wanted
	logs     bool
	// givesBack is the share of admissions that come to nothing.
	givesBack float64
}

type admission struct{ at, cost int64 }

// leasingEnvoy has clocks of its own.
type leasingEnvoy struct {
	lease      *algorithms.Lease
	state      algorithms.State
	mono, wall int64 // what its clocks are ahead
	admitted   int64
	refused    int64
	away       int64
	// firstAdmitted is when it admitted first since the test has set it to 0.
	firstAdmitted int64
}

// fate is what becomes of a call.
type fate struct {
	reaches  bool
	toServer time.Duration
	answer   time.Duration // until the Envoy hears, 0 for never
	fails    bool
}

type event struct {
	at    int64
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// midnight is the time of day at the virtual clock's 0.
const midnight = 20_000 * 24 * int64(time.Hour)

func newLeaseFleet(t interface{ Fatal(...any) }, c counting, envoys int, seed uint64) *leaseFleet {
	f := &leaseFleet{
		counting: c,
		random:   rand.New(rand.NewPCG(seed, 1)),
		requests: map[int64]int64{}, admitted: map[int64]int64{}, granted: map[int64]int64{}, used: map[int64]int64{},
	}
	f.fate = f.goodNetwork
	for range envoys {
		lease, err := algorithms.NewLease(c.terms)
		if err != nil {
			t.Fatal(err)
		}
		f.envoys = append(f.envoys, &leasingEnvoy{
			lease: lease,
			mono:  f.random.Int64N(int64(1000 * time.Hour)),
			wall:  f.random.Int64N(int64(80*time.Millisecond)) - int64(40*time.Millisecond),
		})
	}
	return f
}

func (f *leaseFleet) after(d time.Duration, do func()) {
	f.order++
	heap.Push(&f.events, event{f.now + int64(max(d, 0)), f.order, do})
}

// runUntil has happen what does before a moment.
func (f *leaseFleet) runUntil(moment int64) {
	for len(f.events) > 0 && f.events[0].at < moment {
		e := heap.Pop(&f.events).(event)
		f.now = e.at
		e.do()
	}
	f.now = moment
}

// goodNetwork answers in 0.2 to 50 ms, mostly in 1 or 2.
func (f *leaseFleet) goodNetwork(int64) fate {
	d := 200*time.Microsecond + time.Duration(f.random.ExpFloat64()*float64(time.Millisecond))
	if f.random.IntN(100) == 0 {
		d += time.Duration(f.random.Int64N(int64(45 * time.Millisecond)))
	}
	d = min(d, 50*time.Millisecond-1)
	return fate{reaches: true, toServer: time.Duration(f.random.Int64N(int64(d))), answer: d}
}

func (f *leaseFleet) windowOf(at int64) int64 { return at / int64(time.Minute) }

// load has an Envoy get requests of cost 1 at random, so many a second.
func (f *leaseFleet) load(e *leasingEnvoy, perSecond float64, from, to int64) {
	var next func()
	wait := func() time.Duration {
		return time.Duration(f.random.ExpFloat64() / perSecond * float64(time.Second))
	}
	next = func() {
		if f.now >= to {
			return
		}
		f.request(e, 1)
		f.after(wait(), next)
	}
	f.after(time.Duration(from-f.now)+wait(), next)
}

func (f *leaseFleet) request(e *leasingEnvoy, cost int64) {
	now := algorithms.Time{Mono: f.now + e.mono}
	f.requests[f.windowOf(f.now)]++
	if e.lease.Away(&e.state, now) {
		e.away++
		return
	}
	held := e.lease.Tokens(e.state, now)
	if f.terms.Window == 0 && held == 0 {
		f.lapsed += max(-e.lease.Tokens(e.state, algorithms.Time{}), 0)
	}
	next, d := algorithms.Decide(e.lease, e.state, now, cost)
	if d.Allowed || d.Window > 0 {
		e.state = next
	}
	f.used[f.windowOf(f.now)] += max(held, 0) - max(e.lease.Tokens(e.state, now), 0)
	if d.Allowed {
		e.admitted += cost
		if e.firstAdmitted == 0 {
			e.firstAdmitted = f.now
		}
		f.admitted[f.windowOf(f.now)] += cost
		if f.logs {
			f.log = append(f.log, admission{f.now, cost})
		}
	} else {
		e.refused++
	}
	if d.Window > 0 {
		f.call(e, d.Window)
	}
	if d.Allowed && f.givesBack > 0 && f.random.Float64() < f.givesBack {
		f.giveBack(e, now, cost)
	}
}

// giveBack takes back an admission, as of a request that another limit refuses.
func (f *leaseFleet) giveBack(e *leasingEnvoy, now algorithms.Time, cost int64) {
	window, before := f.windowOf(f.now), e.lease.Tokens(e.state, now)
	e.state = e.lease.GiveBack(e.state, now, cost, 0)
	after := e.lease.Tokens(e.state, now)
	f.used[window] -= max(after, 0) - max(before, 0)
	f.admitted[window] -= cost
	e.admitted -= cost
	if f.logs {
		f.log = f.log[:len(f.log)-1]
	}
}

func (f *leaseFleet) call(e *leasingEnvoy, units int64) {
	f.calls++
	sent, fate := f.now, f.fate(f.now)
	var allowed bool
	var message []byte
	if fate.reaches {
		f.after(fate.toServer, func() {
			if allowed, message = f.service.hit(midnight+f.now, units); allowed {
				f.granted[f.windowOf(f.now)] += units
			}
			if allowed && (fate.fails || fate.answer == 0) {
				f.lost++
			}
		})
	}
	if fate.answer == 0 {
		return
	}
	if fate.answer > f.terms.Timeout+50*time.Millisecond {
		f.late++
	}
	f.after(fate.answer, func() {
		now := algorithms.Time{Mono: f.now + e.mono}
		a, ok := f.counter.ReadAnswer(message, units, sent+e.mono, now.Mono, midnight+f.now+e.wall)
		ok = ok && !fate.fails
		before := e.lease.Tokens(e.state, now)
		e.lease.Answer(&e.state, now, algorithms.LeaseAnswer{
			Asked: units, Failed: !ok, Pause: leasePause, Allowed: a.Allowed,
			Remaining: a.Remaining, EndsAfter: a.EndsAfter, EndsBefore: a.EndsBefore,
		})
		if a.Allowed && a.EndsAfter != 0 && a.EndsAfter <= now.Mono {
			f.edge += units
		}
		// Some of a debt may be forgiven too, with its window.
		if held := e.lease.Tokens(e.state, now); a.Allowed && before < 0 && held-before >= units {
			f.used[f.windowOf(f.now)] += units - max(held, 0)
		}
	})
}
