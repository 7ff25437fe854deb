package wasmtest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// Three limits that recover by less than a unit during a test, one of each kind
// of state. A path of its own looks at each without taking anything.
const severalLimits = `{
  "limits": {
    "address": {"algorithm":"token_bucket","capacity":9,"refill_rate":"1/d","key":["ip"]},
    "user":    {"algorithm":"fixed_window","limit":7,"window":"1d","key":["header:x-user"]},
    "all":     {"algorithm":"leaky_bucket","mode":"meter","capacity":20,"leak_rate":"1/d","key":["header:x-round"]}
  },
  "rules": [
    {"match":{"path":"/look/address"}, "limits":[{"limit":"address","cost":0}]},
    {"match":{"path":"/look/user"},    "limits":[{"limit":"user","cost":0}]},
    {"match":{"path":"/look/all"},     "limits":[{"limit":"all","cost":0}]},
    {"match":{}, "limits":["address",{"limit":"user","cost":2},"all"]}
  ],
  "state": {"max_buckets":1000}
}`

// spent counts what admitted requests have taken from each bucket.
type spent struct{ address, user, all map[string]int64 }

func (s spent) add(r request) {
	user, _ := r.headers.Get("x-user")
	round, _ := r.headers.Get("x-round")
	s.address[r.address]++
	s.user[user] += 2
	s.all[round]++
}

func TestOfSeveralLimitsARefusalChargesNone(t *testing.T) {
	eachSeed(t, 4, func(random *rand.Rand) error {
		host := wasmtest.New(t, wasmtest.Module(t))
		defer host.Close()
		workers := startWorkers(t, host, 8, severalLimits)
		for round := range 50 {
			if err := raceOnSeveral(host, workers, random, round); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		return nil
	})
}

// raceOnSeveral lets two addresses and three users of a round race, and checks
// that in the end every bucket lacks what was admitted and next to nothing else.
func raceOnSeveral(host *wasmtest.Host, workers []*wasmtest.Plugin, random *rand.Rand, round int) error {
	taken := spent{map[string]int64{}, map[string]int64{}, map[string]int64{}}
	send := func(worker *wasmtest.Plugin) {
		r := request{address: client(2*round + random.IntN(2)), headers: wasmtest.Headers{
			{"x-user", fmt.Sprintf("user-%d-%d", round, random.IntN(3))},
			{"x-round", fmt.Sprintf("round-%d", round)},
		}}
		if ask(worker, r).admitted() {
			taken.add(r)
		}
	}
	const perWorker = 4
	var tasks []wasmtest.Task
	for _, worker := range workers {
		tasks = append(tasks, wasmtest.Task{VM: worker.VM(), Run: func() {
			for range perWorker {
				send(worker)
			}
		}})
	}
	began := host.Clock.Mono
	host.Race(random, func() { host.Clock.Advance(time.Millisecond) }, tasks...)
	if err := taken.check(workers[0], true); err != nil {
		return err
	}
	// Whoever gives back what it took loses what the bucket got back in the
	// meantime (see GiveBack of a bucket in package algorithms), so all that is
	// lost is back after as long as all requests together have taken.
	inFlight := time.Duration(host.Clock.Mono-began) * time.Duration(perWorker*len(workers))
	host.Clock.Advance(inFlight)
	if err := taken.check(workers[0], false); err != nil {
		return err
	}
	// What the race has left is there to be taken, one request at a time.
	for range 20 {
		send(workers[random.IntN(len(workers))])
	}
	return taken.check(workers[0], false)
}

// check looks at every bucket. No more may be left than what was not admitted,
// and no less; but where units have been given back late, the last whole one of a
// bucket that fills continuously may still be on its way.
func (s spent) check(worker *wasmtest.Plugin, late bool) error {
	look := func(limit string, capacity int64, late bool, buckets map[string]int64, r func(key string) request) error {
		for key, taken := range buckets {
			r := r(key)
			r.path = "/look/" + limit
			got, want := ask(worker, r).remaining, capacity-taken
			onItsWay := late && got == max(0, want-1)
			if got != want && !onItsWay {
				return fmt.Errorf("limit %s, client %s: %d admitted, so %d are left, but the filter says %d", limit, key, taken, want, got)
			}
		}
		return nil
	}
	if err := look("address", 9, late, s.address, func(key string) request { return request{address: key} }); err != nil {
		return err
	}
	if err := look("user", 7, false, s.user, func(key string) request {
		return request{address: client(0), headers: wasmtest.Headers{{"x-user", key}}}
	}); err != nil {
		return err
	}
	return look("all", 20, late, s.all, func(key string) request {
		return request{address: client(0), headers: wasmtest.Headers{{"x-round", key}}}
	})
}

func TestARaceOnSeveralLimitsShowsAHostThatIgnoresVersions(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	host.Shared.IgnoreCAS = true
	workers := startWorkers(t, host, 8, severalLimits)
	random := rand.New(rand.NewPCG(1, 0))
	for round := range 50 {
		if raceOnSeveral(host, workers, random, round) != nil {
			return
		}
	}
	t.Error("nothing was lost")
}

func TestARequestThatTheSecondLimitRefusesLeavesTheFirstAsItWas(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, severalLimits)
	r := request{address: client(1), headers: wasmtest.Headers{{"x-user", "u"}, {"x-round", "r"}}}
	for range 3 {
		if a := ask(worker, r); !a.admitted() {
			t.Fatalf("got %+v", a)
		}
	}
	for range 100 {
		a := ask(worker, r)
		if a.admitted() || a.limit != 7 || a.remaining != 1 {
			t.Fatalf("got %+v, want a refusal by the limit of 7 with 1 left", a)
		}
	}
	if a := ask(worker, request{address: client(1), path: "/look/address"}); a.remaining != 6 {
		t.Errorf("%d left, want 6", a.remaining)
	}
}
