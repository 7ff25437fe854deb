//go:build !wasip1

package plugin

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/bridge"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/policy"
)

// In "rare" a client runs out now and then, so that it refuses what the limits of
// requests in flight would admit.
const (
	flightsOnly = `
		"a-flight": {"algorithm": "concurrency", "limit": 20, "key": ["ip"]},
		"b-all":    {"algorithm": "concurrency", "limit": 300, "key": []},
		"c-shadow": {"algorithm": "concurrency", "limit": 5, "key": ["ip"], "shadow": true}`
	perClient, inAll, inShadow = 20, 300, 5

	flightsAlone = `{"namespace": "crew", "limits": {` + flightsOnly + `}, "rules": [{"limits": ["a-flight", "b-all", "c-shadow"]}]}`
	flightsMixed = `{"namespace": "crew", "on_error": "deny", "limits": {` + flightsOnly + `,
		"b-rare": {"algorithm": "token_bucket", "capacity": 200, "refill_rate": "190/s", "key": ["ip"]}},
		"rules": [{"limits": ["a-flight", "b-all", "b-rare", "c-shadow"]}]}`
)

// crew is several workers on one host whose shared data is a map. While one of
// them writes, another may get in between.
type crew struct {
	*testing.T
	random  *rand.Rand
	now     int64
	address []byte // of the request that is being decided
	state   string // what filter state says of it
	gauges  map[string]int64
	lastID  uint32

	pages   map[string]*page
	buffers [32][]byte // what was read last: the reader may write on it
	next    int
	between func()      // runs ahead of a write
	fails   func() bool // says whether a write fails
	workers []*flyer    // those that live
	held    map[string]int
	total   int
}

type page struct {
	value   []byte
	version uint32
}

// flyer is a worker and what it has in flight.
type flyer struct {
	vm     *VM
	plugin *Plugin
	held   []flying
}

type flying struct {
	id      uint32
	address string
	n       int // how often it counts
}

func newFleet(t *testing.T, workers int) *crew {
	// The SDK's emulator answers what the stubs do not: local responses, ticks. A
	// request that has no limits is the one that it speaks of.
	e := started(t, `{"limits": {}}`)
	e.request()
	f := &crew{T: t, random: rand.New(rand.NewPCG(1, 0)), now: int64(time.Hour), gauges: map[string]int64{}, pages: map[string]*page{}, held: map[string]int{}}
	host.Clocks = func() (mono, wall int64) { return f.now, f.now }
	host.Stub = host.Stubs{
		Property: func(path string) ([]byte, host.Status) {
			if path == "source\x00address" {
				return f.address, host.OK
			}
			return nil, host.NotFound
		},
		SetProperty:           func(_ string, value []byte) host.Status { f.state = string(value); return host.OK },
		ReplaceResponseHeader: func(string, []byte) host.Status { return host.OK },
		SharedData:            f.get,
		SetSharedData:         f.set,
	}
	names := []string{}
	host.Stub.DefineMetric = func(name string) uint32 { names = append(names, name); return uint32(len(names) - 1) }
	host.Stub.AddMetric = func(id uint32, n int64) host.Status { f.gauges[names[id]] += n; return host.OK }
	for range workers {
		f.workers = append(f.workers, f.start(flightsMixed))
	}
	return f
}

func (f *crew) start(document string) *flyer {
	f.Helper()
	c, err := config.Parse([]byte(document))
	if err != nil {
		f.Fatal(err)
	}
	w := &flyer{vm: New()}
	w.plugin = &Plugin{vm: w.vm, id: 1, config: c, policy: policy.New(c)}
	w.vm.plugins[1] = w.plugin
	return w
}

func (f *crew) get(key []byte) ([]byte, uint32, host.Status) {
	p := f.pages[string(key)]
	if p == nil {
		return nil, 0, host.NotFound
	}
	f.next = (f.next + 1) % len(f.buffers)
	f.buffers[f.next] = append(f.buffers[f.next][:0], p.value...)
	return f.buffers[f.next], p.version, host.OK
}

func (f *crew) set(key, value []byte, version uint32) host.Status {
	if between := f.between; between != nil {
		f.between = nil
		between()
	}
	if f.fails != nil && f.fails() {
		return host.InternalFailure
	}
	p := f.pages[string(key)]
	if p == nil {
		p = &page{}
		f.pages[string(key)] = p
	} else if version != 0 && version != p.version {
		return host.CASMismatch
	}
	p.value, p.version = append(p.value[:0], value...), p.version+1
	return host.OK
}

// arrive sends a request of a client, and returns it if it was let through.
func (f *crew) arrive(w *flyer, address string) (r flying, ok bool) {
	f.lastID++
	r = flying{id: f.lastID, address: address}
	w.vm.Create(r.id, 1)
	if !f.headers(w, &r) {
		f.delete(w, r.id)
		return r, false
	}
	return r, true
}

// headers passes a request's headers, once or once more.
func (f *crew) headers(w *flyer, r *flying) bool {
	before := f.address
	defer func() { f.address = before }()
	f.address = []byte(r.address)
	if w.vm.RequestHeaders(r.id) != uint32(host.Continue) {
		return false
	}
	r.n++
	f.count(r.address, 1)
	return true
}

// count counts requests that are surely in flight from now on, or no more.
func (f *crew) count(address string, n int) {
	f.held[address] += n
	f.total += n
	if f.held[address] > perClient || f.total > inAll {
		f.Fatalf("%d of one client are in flight, want at most %d; %d in all, want at most %d", f.held[address], perClient, f.total, inAll)
	}
}

func (f *crew) delete(w *flyer, id uint32) {
	if w.vm.Delete(id) == bridge.NotYet {
		w.vm.End(id)
	}
}

// end ends a request in any way that there is.
func (f *crew) end(w *flyer, r flying) {
	how := f.random.IntN(9)
	if how == 0 && f.headers(w, &r) { // Envoy never does that
		how = f.random.IntN(9)
	}
	f.count(r.address, -r.n)
	switch how {
	case 1:
		w.vm.ResponseHeaders(r.id, true)
	case 2:
		w.vm.ResponseHeaders(r.id, false)
		w.vm.ResponseTrailers(r.id)
	case 3:
		w.vm.ResponseHeaders(r.id, false)
		w.vm.ResponseHeaders(r.id, true)
	case 4:
		f.delete(w, r.id)
	case 5:
		w.vm.RequestHeadersFailed(r.id) // after a panic
	case 6:
		w.vm.ResponseTrailers(r.id)
	}
	f.delete(w, r.id)
	if how == 7 {
		w.vm.ResponseHeaders(r.id, true)
		f.delete(w, r.id)
	}
}

// step is one thing that happens on a worker. It returns how many requests came.
func (f *crew) step(w *flyer) int {
	switch f.random.IntN(20) {
	case 0: // streams whose request headers this filter never sees
		f.lastID++
		w.vm.Create(f.lastID, 1)
		if f.random.IntN(2) == 0 {
			w.vm.ResponseHeaders(f.lastID, true)
		}
		f.delete(w, f.lastID)
		return 1
	default:
		leave := f.random.IntN(len(w.held)+150) >= 150
		if i := len(w.held) - 1; leave {
			j := f.random.IntN(i + 1)
			r := w.held[j]
			w.held[j] = w.held[i]
			w.held = w.held[:i]
			f.end(w, r)
			return 0
		}
		if r, ok := f.arrive(w, clientAddress(min(f.random.IntN(24), f.random.IntN(40)))); ok {
			w.held = append(w.held, r)
		}
		return 1
	}
}

func clientAddress(n int) string { return "10.0.0." + strconv.Itoa(n) + ":4711" }

// run lets requests come and go until there were so many. Time goes on, and
// everybody has its ticks.
func (f *crew) run(requests int) {
	ticked := f.now
	for requests > 0 {
		f.now += int64(f.random.IntN(200)) * int64(time.Microsecond)
		if f.now > ticked+int64(500*time.Millisecond) {
			ticked = f.now
			for _, w := range f.workers {
				w.plugin.OnTick()
			}
		}
		i := f.random.IntN(len(f.workers))
		if len(f.workers) > 1 && f.random.IntN(4) == 0 {
			another := f.workers[(i+1)%len(f.workers)]
			f.between = func() { requests -= f.step(another) }
		}
		requests -= f.step(f.workers[i])
		f.between = nil
	}
}

func (f *crew) endAll() {
	for _, w := range f.workers {
		for _, r := range w.held {
			f.end(w, r)
		}
		w.held = nil
	}
}

// isEmpty checks that nothing at all is counted any more: of each client, and of
// all together, exactly as many are admitted as the limits say.
func (f *crew) isEmpty() {
	f.Helper()
	w := f.start(flightsAlone)
	for n := range 24 {
		var held []flying
		for i := range perClient + 3 {
			r, ok := f.arrive(w, clientAddress(n))
			if want := i < perClient; ok != want {
				f.Fatalf("client %d: request %d went on: %t", n, i, ok)
			}
			if want := i >= inShadow; ok && (f.state != "allowed") != want {
				f.Fatalf("client %d: request %d was %s", n, i, f.state)
			}
			if ok {
				held = append(held, r)
			}
		}
		for _, r := range held {
			f.end(w, r)
		}
	}
	admitted := 0
	for n := range 24 * perClient {
		if r, ok := f.arrive(w, clientAddress(n/perClient)); ok {
			admitted++
			defer f.end(w, r)
		}
	}
	if admitted != inAll {
		f.Errorf("of all clients together %d are admitted, want %d", admitted, inAll)
	}
}

func (f *crew) wantGauges(inFlight, shadowed int) {
	f.Helper()
	for name, want := range map[string]int64{"a-flight": int64(inFlight), "b-all": int64(inFlight), "b-rare": 0, "c-shadow": int64(shadowed)} {
		if got := f.gauges["sluice.limit."+name+".in_flight"]; got != want {
			f.Errorf("%s: the gauge says that %d are in flight, want %d", name, got, want)
		}
	}
}

func (f *crew) wantErrors(some bool) {
	f.Helper()
	for _, name := range []string{"a-flight", "b-all", "c-shadow"} {
		if n := f.gauges["sluice.limit."+name+".errors"]; n > 0 != some {
			f.Errorf("%s: %d errors", name, n)
		}
	}
}

func TestAfterAMillionRequestsWithEveryKindOfEndingTheCountIsZero(t *testing.T) {
	requests := 1_000_000
	if testing.Short() {
		requests /= 20
	}
	f := newFleet(t, 3)
	f.run(requests)
	refused := f.gauges["sluice.limit.a-flight.refused"]
	byAll, byRare := f.gauges["sluice.limit.b-all.refused"], f.gauges["sluice.limit.b-rare.refused"]
	if refused == 0 || byAll == 0 || byRare == 0 || f.gauges["sluice.limit.c-shadow.shadow_refused"] == 0 || f.gauges["sluice.table.cas_retries"] == 0 {
		t.Errorf("this shows little: %v", f.gauges)
	}
	f.endAll()
	f.wantGauges(0, 0)
	f.wantErrors(false)
	f.isEmpty()
}

// What a worker that died had is gone when its leases have lapsed. Its part of
// the gauge stays: nobody can tell how much it was.
func TestOfManyRequestsOnlyThoseOfADeadWorkerLapse(t *testing.T) {
	f := newFleet(t, 3)
	f.run(30_000)
	dead := f.workers[0]
	f.workers = f.workers[1:]
	shadowed := 0
	for _, fl := range dead.plugin.flights {
		if fl.claim.Limit.Name == "c-shadow" {
			for _, c := range fl.counts {
				shadowed += int(c.n)
			}
		}
	}
	count := 0
	for _, r := range dead.held {
		f.count(r.address, -r.n) // they do count, for a while
		count += r.n
	}
	if count == 0 || shadowed == 0 {
		t.Fatal("this shows nothing")
	}
	f.run(1_000_000 / 10) // 10 s
	f.endAll()
	f.wantGauges(count, shadowed)
	f.isEmpty()
}

// Where a worker could not give back, its lease lapses, so that no error counts
// for ever.
func TestWhatCouldNotBeGivenBackLapses(t *testing.T) {
	f := newFleet(t, 3)
	f.fails = func() bool { return f.random.IntN(200) == 0 }
	f.run(50_000)
	f.endAll()
	f.fails = nil
	f.wantGauges(0, 0)
	f.wantErrors(true)
	f.now += int64(8 * time.Second)
	f.isEmpty()
	for _, w := range f.workers {
		w.plugin.OnTick()
		if len(w.plugin.flights) > 0 || w.plugin.period != 0 {
			t.Errorf("%d buckets are renewed every %d ms, and nothing is in flight", len(w.plugin.flights), w.plugin.period)
		}
	}
}

// A bucket's requests are renewed by one write, however many there are.
func TestRenewingCostsOneWriteForEachBucket(t *testing.T) {
	f := newFleet(t, 1)
	w := f.workers[0]
	for range perClient {
		if _, ok := f.arrive(w, clientAddress(1)); !ok {
			t.Fatal("refused")
		}
	}
	writes := 0
	f.fails = func() bool { writes++; return false }
	for i := range 4 {
		writes = 0
		f.now += int64(4 * time.Second)
		w.plugin.OnTick()
		if writes != 3 {
			t.Errorf("tick %d: %d writes, want one for each of three buckets", i, writes)
		}
	}
	windows := 0
	for _, fl := range w.plugin.flights {
		windows += len(fl.counts)
	}
	if windows != 3 || w.plugin.period != 2000 {
		t.Errorf("%d windows are kept for three buckets, ticks every %d ms", windows, w.plugin.period)
	}
}
