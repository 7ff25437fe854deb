package wasmtest_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// Requests that race are correct if there is an order in which they could have
// come one after the other (Herlihy and Wing, "Linearizability", 1990). Here
// that order is known from the recorded hostcalls: a request takes effect when
// its write to shared data succeeds or, where it writes nothing, when it last
// reads. Run in this order, at the times that each of them read, the native
// algorithm must say exactly the same to every client.

// raced is one request of a race.
type raced struct {
	client  string
	vm      int
	context uint32
	got     answer

	moment int    // index of the hostcall with which it took effect
	page   string // the key of its bucket's page
	wrote  bool
	time   algorithms.Time
}

// locate finds out from the trace when requests took effect and what time they
// had read before, and puts them into that order.
func locate(requests []*raced, calls []wasmtest.Call) {
	type id struct {
		vm      int
		context uint32
	}
	byID := map[id]*raced{}
	for _, r := range requests {
		r.moment = -1
		byID[id{r.vm, r.context}] = r
	}
	for i, c := range calls {
		r := byID[id{c.VM, c.Context}]
		if r == nil || c.Callback != "proxy_on_request_headers" {
			continue
		}
		switch {
		case c.Name == "clock_time_get" && c.Clock == 1:
			r.time.Mono = c.Time
		case c.Name == "clock_time_get" && c.Clock == 0:
			r.time.Wall = c.Time
		case c.Name == "proxy_get_shared_data", c.Name == "proxy_set_shared_data" && c.Status == wasmtest.OK:
			r.moment, r.page, r.wrote = i, c.Subject, c.Name == "proxy_set_shared_data"
		}
	}
	slices.SortFunc(requests, func(a, b *raced) int { return cmp.Compare(a.moment, b.moment) })
}

// compare decides the requests one after the other with the native limiters,
// those of each VM with its own, and returns an error for
// the first client that was told something else.
func compare(limiterOfVM func(vm int) algorithms.Limiter, requests []*raced, calls []wasmtest.Call) error {
	states := map[string]algorithms.State{}
	written := map[string]int64{} // when each page was last written
	for i, r := range requests {
		if r.moment < 0 || r.time.Mono == 0 {
			return fmt.Errorf("request %d of %s read no clock or no shared data", i, r.client)
		}
		// The time of a page never steps back.
		if late := written[r.page] - r.time.Mono; late > 0 {
			r.time.Mono += late
			r.time.Wall += late
		}
		if r.wrote {
			written[r.page] = r.time.Mono
		}
		next, decision := algorithms.Decide(limiterOfVM(r.vm), states[r.client], r.time, 1)
		states[r.client] = next
		if want := answerTo(decision); r.got != want {
			return fmt.Errorf("request %d, of %s on VM %d at %+v: got %+v, want %+v\n%s", i, r.client, r.vm, r.time, r.got, want, trace(calls[:r.moment+1]))
		}
	}
	return nil
}

// race has every worker send perWorker requests of clients that pick chooses,
// all workers at once, and compares them with the limiters. Those take turns
// over the VMs: with one, all have it.
func race(host *wasmtest.Host, workers []*wasmtest.Plugin, random *rand.Rand, perWorker int, pick func() string, between func(), limiters ...algorithms.Limiter) error {
	host.Recording, host.Calls = true, host.Calls[:0]
	var requests []*raced
	var tasks []wasmtest.Task
	for _, worker := range workers {
		tasks = append(tasks, wasmtest.Task{VM: worker.VM(), Run: func() {
			for range perWorker {
				r := &raced{client: pick(), vm: worker.VM().Index()}
				r.got, r.context = askStream(worker, request{address: r.client})
				requests = append(requests, r)
			}
		}})
	}
	host.Race(random, between, tasks...)
	locate(requests, host.Calls)
	return compare(func(vm int) algorithms.Limiter { return limiters[vm%len(limiters)] }, requests, host.Calls)
}

// ticking returns a function that moves the clocks in a race: to a whole second
// later on, or to the nanosecond before or after it. All that happens at some
// moment happens at a whole second here, so that requests meet that very moment
// and its neighbours. With steps, the wall clock steps now and then.
func ticking(host *wasmtest.Host, random *rand.Rand, steps bool) func() {
	second := host.Clock
	return func() {
		if random.IntN(3) > 0 {
			return
		}
		if steps && random.IntN(30) == 0 {
			second.Wall += int64(random.IntN(31)-15) * int64(time.Second)
		}
		second.Advance([]time.Duration{1, 1, 2, 5}[random.IntN(4)] * time.Second)
		host.Clock = second
		host.Clock.Advance(time.Duration(random.IntN(3) - 1))
	}
}

// trace is the last calls that matter for an interleaving, a line each.
func trace(calls []wasmtest.Call) string {
	var lines []string
	for _, c := range calls {
		switch c.Name {
		case "clock_time_get", "proxy_get_shared_data", "proxy_set_shared_data":
			lines = append(lines, c.String())
		}
	}
	return strings.Join(lines[max(0, len(lines)-100):], "\n")
}

// everyAlgorithm has limits whose numbers show a fault within a few requests
// and a few seconds. 1/7s has no exact spelling as a decimal fraction.
var everyAlgorithm = map[string]string{
	"token_bucket":   `"algorithm":"token_bucket","capacity":5,"refill_rate":"1/7s"`,
	"gcra":           `"algorithm":"gcra","rate":"1/7s","burst":5`,
	"leaky_bucket":   `"algorithm":"leaky_bucket","mode":"meter","capacity":5,"leak_rate":"1/7s"`,
	"fixed_window":   `"algorithm":"fixed_window","limit":5,"window":"10s"`,
	"sliding_window": `"algorithm":"sliding_window","limit":5,"window":"10s"`,
}

func TestWorkersRacingOnOneKeyDecideAsOneWould(t *testing.T) {
	for name, limit := range everyAlgorithm {
		t.Run(name, func(t *testing.T) {
			limiter := limiterOf(t, oneLimit(limit))
			eachSeed(t, 8, func(random *rand.Rand) error {
				host := wasmtest.New(t, wasmtest.Module(t))
				defer host.Close()
				return raceOnOneKey(t, host, random, limit, limiter)
			})
		})
	}
}

// raceOnOneKey runs a hundred races on the same VMs, each on a key of its own.
func raceOnOneKey(t *testing.T, host *wasmtest.Host, random *rand.Rand, limit string, limiter algorithms.Limiter) error {
	workers := startWorkers(t, host, 8, oneLimit(limit))
	for round := range 100 {
		only := func() string { return client(round) }
		if err := race(host, workers, random, 3, only, ticking(host, random, true), limiter); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

// TestClientsThatShareAPageAreDecidedApart has 200 clients on the 42 pages of
// the table, where places are taken over from clients whose buckets are whole.
func TestClientsThatShareAPageAreDecidedApart(t *testing.T) {
	for name, limit := range everyAlgorithm {
		t.Run(name, func(t *testing.T) {
			limiter := limiterOf(t, oneLimit(limit))
			eachSeed(t, 4, func(random *rand.Rand) error {
				host := wasmtest.New(t, wasmtest.Module(t))
				defer host.Close()
				workers := startWorkers(t, host, 8, oneLimit(limit))
				pick := func() string { return client(random.IntN(200)) }
				return race(host, workers, random, 400, pick, ticking(host, random, false), limiter)
			})
		})
	}
}

func TestASeedGivesTheSameRaceOfTheFilterAgain(t *testing.T) {
	limit := everyAlgorithm["gcra"]
	limiter := limiterOf(t, oneLimit(limit))
	run := func(seed uint64) []wasmtest.Call {
		host := wasmtest.New(t, wasmtest.Module(t))
		if err := raceOnOneKey(t, host, rand.New(rand.NewPCG(seed, 0)), limit, limiter); err != nil {
			t.Fatal(err)
		}
		return host.Calls // of the last of a hundred races
	}
	first := run(1)
	if !slices.Equal(first, run(1)) {
		t.Error("the same seed gave another interleaving")
	}
	if slices.Equal(first, run(2)) {
		t.Error("another seed gave the same interleaving")
	}
}

func TestARaceShowsAHostThatIgnoresVersions(t *testing.T) {
	limit := everyAlgorithm["token_bucket"]
	limiter := limiterOf(t, oneLimit(limit))
	host := wasmtest.New(t, wasmtest.Module(t))
	host.Shared.IgnoreCAS = true
	if err := raceOnOneKey(t, host, rand.New(rand.NewPCG(1, 0)), limit, limiter); err == nil {
		t.Error("nothing was lost")
	}
}

// unsteady is a limiter whose clock is a nanosecond ahead every other time.
type unsteady struct {
	algorithms.Limiter
	ahead *bool
}

func (u unsteady) Decide(s *algorithms.State, now algorithms.Time, cost int64, d *algorithms.Decision) {
	if *u.ahead = !*u.ahead; *u.ahead {
		now.Mono++
		now.Wall++
	}
	u.Limiter.Decide(s, now, cost, d)
}

func TestARaceShowsAClockThatIsANanosecondAhead(t *testing.T) {
	for name, limit := range everyAlgorithm {
		t.Run(name, func(t *testing.T) {
			limiter := unsteady{limiterOf(t, oneLimit(limit)), new(bool)}
			host := wasmtest.New(t, wasmtest.Module(t))
			if err := raceOnOneKey(t, host, rand.New(rand.NewPCG(1, 0)), limit, limiter); err == nil {
				t.Error("nobody was told anything else")
			}
		})
	}
}
