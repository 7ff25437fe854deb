package wasmtest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// inFlight is a config of one limit of requests in flight by client address, and
// more of the limit's fields behind it.
func inFlight(limit int, further string) string {
	return oneLimit(fmt.Sprintf(`"algorithm":"concurrency","limit":%d%s`, limit, further))
}

// begin sends a request's headers and leaves it in flight, unless it is refused.
func begin(plugin *wasmtest.Plugin, r request) *wasmtest.Stream {
	stream := plugin.NewStream(map[string]string{"source/address": r.address})
	beginStream(stream, r)
	return stream
}

func beginStream(stream *wasmtest.Stream, r request) {
	path := r.path
	if path == "" {
		path = "/"
	}
	stream.RequestHeaders(append(wasmtest.Headers{{":method", "GET"}, {":path", path}, {":authority", "example.com"}}, r.headers...))
}

// wentOn says whether a request that has been sent was let through.
func wentOn(stream *wasmtest.Stream) bool { return stream.Local() == nil && !stream.Paused() }

// admits sends up to most requests at once and returns those that are in flight
// then. The others have ended.
func admits(plugin *wasmtest.Plugin, r request, most int) []*wasmtest.Stream {
	var admitted []*wasmtest.Stream
	for range most {
		if s := begin(plugin, r); wentOn(s) {
			admitted = append(admitted, s)
		} else {
			s.End()
		}
	}
	return admitted
}

func endAll(streams []*wasmtest.Stream) {
	for _, s := range streams {
		s.End()
	}
}

// room is how many more requests of a client would be admitted.
func room(plugin *wasmtest.Plugin, r request) int {
	admitted := admits(plugin, r, 20)
	endAll(admitted)
	return len(admitted)
}

// gauge is what a limit says of its requests in flight.
func gauge(host *wasmtest.Host, limit string) int64 {
	return int64(host.Metrics["sluice.limit."+limit+".in_flight"])
}

// endings are the ways in which a request may end that was let through.
var endings = map[string]func(*wasmtest.Stream){
	"with a response":             func(s *wasmtest.Stream) { s.ResponseHeaders(wasmtest.Headers{{":status", "200"}}); s.End() },
	"with a body and trailers":    withTrailers,
	"with an error":               func(s *wasmtest.Stream) { s.ResponseHeaders(wasmtest.Headers{{":status", "503"}}); s.End() },
	"without a response":          func(s *wasmtest.Stream) { s.End() },
	"in the middle of a response": func(s *wasmtest.Stream) { s.BeginResponse(wasmtest.Headers{{":status", "200"}}); s.End() },
	"with two responses": func(s *wasmtest.Stream) {
		s.BeginResponse(wasmtest.Headers{{":status", "200"}})
		withTrailers(s)
	},
	"with trailers alone": func(s *wasmtest.Stream) { s.ResponseTrailers(wasmtest.Headers{{"grpc-status", "0"}}); s.End() },
	"twice":               func(s *wasmtest.Stream) { s.End(); s.End() },
	"with a response after the end": func(s *wasmtest.Stream) {
		s.End()
		s.ResponseHeaders(wasmtest.Headers{{":status", "200"}})
	},
}

func withTrailers(s *wasmtest.Stream) {
	s.BeginResponse(wasmtest.Headers{{":status", "200"}})
	s.ResponseBody("body")
	s.ResponseTrailers(wasmtest.Headers{{"grpc-status", "0"}})
	s.End()
}

var endingNames = func() (names []string) {
	for name := range endings {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}()

func TestARequestIsInFlightUntilItsStreamEndsHoweverThatIs(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, inFlight(3, ""))
	r := request{address: client(1)}
	for _, name := range endingNames {
		admitted := admits(worker, r, 5)
		if n := gauge(host, "x"); len(admitted) != 3 || n != 3 {
			t.Fatalf("before ending %s: %d admitted, %d in flight, want 3", name, len(admitted), n)
		}
		endings[name](admitted[1])
		if n := gauge(host, "x"); n != 2 {
			t.Errorf("after one ended %s, %d are in flight, want 2", name, n)
		}
		if n := room(worker, r); n != 1 {
			t.Errorf("after one ended %s, %d are admitted in its place", name, n)
		}
		admitted[0].End()
		admitted[2].End()
	}
	if n := host.Metrics["sluice.limit.x.errors"]; n != 0 {
		t.Errorf("%d errors", n)
	}
}

// A response alone ends nothing: its body may take hours.
func TestARequestWhoseResponseIsOnItsWayIsInFlight(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, inFlight(1, ""))
	s := begin(worker, request{address: client(1)})
	s.BeginResponse(wasmtest.Headers{{":status", "200"}})
	s.ResponseTrailers(wasmtest.Headers{{"grpc-status", "0"}})
	if a := ask(worker, request{address: client(1)}); a.admitted() {
		t.Error("the next one is admitted before the first has ended")
	}
	s.End()
	if a := ask(worker, request{address: client(1)}); !a.admitted() {
		t.Errorf("got %+v after the first has ended", a)
	}
}

func TestStreamsThatWereNotAdmittedGiveNothingBack(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, inFlight(2, ""))
	r := request{address: client(1)}
	held := admits(worker, r, 2)
	for range 10 {
		worker.NewStream(map[string]string{"source/address": client(1)}).End() // without headers
		alone := worker.NewStream(map[string]string{"source/address": client(1)})
		alone.ResponseHeaders(wasmtest.Headers{{":status", "400"}}) // of Envoy itself
		alone.ResponseTrailers(nil)
		alone.End()
		refused := begin(worker, r)
		if wentOn(refused) {
			t.Fatal("one too many is admitted")
		}
		refused.End()
		refused.End()
	}
	if n := gauge(host, "x"); n != 2 {
		t.Errorf("%d are in flight, want 2", n)
	}
	endAll(held)
	if n := room(worker, r); n != 2 {
		t.Errorf("%d are admitted, want 2", n)
	}
}

// Envoy never sends headers twice. What counts twice must be given back twice.
func TestRequestHeadersThatComeTwiceGiveBackAllThatTheyTook(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, inFlight(2, ""))
	r := request{address: client(1)}
	for range 10 {
		s := begin(worker, r)
		beginStream(s, r)
		beginStream(s, r) // this one is refused
		s.End()
	}
	if n := gauge(host, "x"); n != 0 {
		t.Errorf("%d are in flight, want none", n)
	}
	if n := room(worker, r); n != 2 {
		t.Errorf("%d are admitted, want 2", n)
	}
}

func TestARefusalByAConcurrencyLimitKnowsNoReset(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, inFlight(2, ""))
	held := admits(worker, request{address: client(1)}, 2)
	if got, want := ask(worker, request{address: client(1)}), (answer{429, 2, 0, absent, 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	endAll(held)
	if got, want := ask(worker, request{address: client(1)}), (answer{200, 2, 1, absent, absent}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// crowd is requests in flight on several workers, each by way of two instances of
// the filter in one chain, and how many there may be in each.
type crowd struct {
	host    *wasmtest.Host
	chains  [][2]*wasmtest.Plugin // one of each worker
	random  *rand.Rand
	limits  [2]int
	address string

	held  [][][]*wasmtest.Stream // by worker: the streams of each request
	count [2]int                 // in flight in each instance, as far as is sure
	err   error
}

func newCrowd(host *wasmtest.Host, random *rand.Rand, workers int) (*crowd, error) {
	c := &crowd{host: host, random: random, limits: [2]int{6, 4}, held: make([][][]*wasmtest.Stream, workers)}
	for range workers {
		vm := host.NewVM()
		var chain [2]*wasmtest.Plugin
		for i, name := range []string{"outer", "inner"} {
			plugin, ok := vm.StartPlugin(wasmtest.PluginConfig{Name: name, RootID: name, Config: inFlight(c.limits[i], "")})
			if !ok {
				return nil, fmt.Errorf("the config is refused: %v", vm.Logs())
			}
			chain[i] = plugin
		}
		c.chains = append(c.chains, chain)
	}
	return c, nil
}

// arrive sends a request on a worker. Some come by one instance only, as on a
// route that disables the other.
func (c *crowd) arrive(worker int) {
	r := request{address: c.address}
	first := c.random.IntN(2)
	s := c.chains[worker][first].NewStream(map[string]string{"source/address": c.address})
	beginStream(s, r)
	streams := []*wasmtest.Stream{s}
	if wentOn(s) {
		c.counted(first, 1)
		if first == 0 {
			behind := c.chains[worker][1].NewStreamBehind(s)
			streams = append(streams, behind)
			beginStream(behind, r)
			if wentOn(behind) {
				c.counted(1, 1)
			} else {
				s.ResponseHeaders(behind.Local().Sent) // a local reply by another filter
			}
		}
	}
	if last := streams[len(streams)-1]; !wentOn(last) {
		c.end(streams, "without a response")
		return
	}
	c.held[worker] = append(c.held[worker], streams)
}

// counted counts a request that is surely in flight from now on, or no more.
func (c *crowd) counted(instance, n int) {
	c.count[instance] += n
	if c.count[instance] > c.limits[instance] && c.err == nil {
		c.err = fmt.Errorf("%d are in flight in instance %d, want at most %d", c.count[instance], instance, c.limits[instance])
	}
}

// end ends the streams of one request in any order.
func (c *crowd) end(streams []*wasmtest.Stream, how string) {
	c.random.Shuffle(len(streams), func(i, j int) { streams[i], streams[j] = streams[j], streams[i] })
	for _, s := range streams {
		if wentOn(s) {
			for i := range c.limits {
				if s.Plugin() == c.chains[s.Plugin().VM().Index()%len(c.chains)][i] {
					c.counted(i, -1)
				}
			}
		}
		endings[how](s)
	}
}

// leave ends one of a worker's requests in any way, if it has any.
func (c *crowd) leave(worker int) {
	held := c.held[worker]
	if len(held) == 0 {
		return
	}
	i := c.random.IntN(len(held))
	streams := held[i]
	c.held[worker] = slices.Delete(held, i, i+1)
	c.end(streams, endingNames[c.random.IntN(len(endingNames))])
}

// run races the workers for a while of at most two seconds, in which ticks are
// late by as much.
func (c *crowd) run() error {
	var tasks []wasmtest.Task
	for i, chain := range c.chains {
		tasks = append(tasks, wasmtest.Task{VM: chain[0].VM(), Run: func() {
			for range 8 {
				switch c.random.IntN(8) {
				case 0, 1, 2, 3:
					c.arrive(i)
				case 4, 5, 6:
					c.leave(i)
				default:
					chain[c.random.IntN(2)].Tick()
				}
			}
		}})
	}
	end := c.host.Clock.Mono + int64(2*time.Second)
	c.host.Race(c.random, func() {
		c.host.Clock.Advance(min(time.Duration(c.random.IntN(20))*time.Millisecond, time.Duration(end-c.host.Clock.Mono)))
	}, tasks...)
	return c.err
}

// finish ends all requests and returns what is wrong then.
func (c *crowd) finish() error {
	for worker := range c.held {
		for len(c.held[worker]) > 0 {
			c.leave(worker)
		}
	}
	for i, limit := range c.limits {
		if n := gauge(c.host, "x"); n != 0 {
			return fmt.Errorf("all have ended, and the gauge says that %d are in flight", n)
		}
		plugin := c.chains[c.random.IntN(len(c.chains))][i]
		if n := room(plugin, request{address: c.address}); n != limit {
			return fmt.Errorf("all have ended, and instance %d admits %d, want %d", i, n, limit)
		}
	}
	return c.err
}

func TestWorkersRacingNeverHaveMoreInFlightThanTheLimitAndNoneInTheEnd(t *testing.T) {
	eachSeed(t, 12, func(random *rand.Rand) error {
		host := wasmtest.New(t, wasmtest.Module(t))
		defer host.Close()
		c, err := newCrowd(host, random, 4)
		if err != nil {
			return err
		}
		for round := range 20 {
			c.address = client(round / 5)
			if err := c.run(); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			host.Advance(time.Duration(random.IntN(10)) * time.Second) // with all ticks
			if round%5 == 4 {
				if err := c.finish(); err != nil {
					return fmt.Errorf("round %d: %w", round, err)
				}
			}
		}
		if host.StrayTicks > 0 {
			return fmt.Errorf("%d ticks of plugins that are gone", host.StrayTicks)
		}
		host.Advance(10 * time.Second)
		for _, chain := range c.chains {
			for _, p := range chain {
				if p.TickPeriod() != 0 {
					return fmt.Errorf("nobody is in flight, and there are ticks every %d ms", p.TickPeriod())
				}
			}
		}
		return nil
	})
}

// The test above means little if a host that loses writes passes it.
func TestARaceForRequestsInFlightShowsAHostThatIgnoresVersions(t *testing.T) {
	for seed := range uint64(20) {
		host := wasmtest.New(t, wasmtest.Module(t))
		host.Shared.IgnoreCAS = true
		c, err := newCrowd(host, rand.New(rand.NewPCG(seed, 0)), 4)
		if err != nil {
			t.Fatal(err)
		}
		c.address = client(1)
		for range 5 {
			if c.run() != nil || c.err != nil {
				return
			}
		}
		if c.finish() != nil {
			return
		}
		host.Close()
	}
	t.Error("nothing was lost")
}

// The gauge cannot be right about a VM that died: nobody tells it what that had.
func TestWhatADeadWorkerHeldIsBackInTenSecondsAndTheLivingKeepTheirs(t *testing.T) {
	r := request{address: client(1)}
	for phase := time.Duration(0); phase < 4*time.Second; phase += 400 * time.Millisecond {
		host := wasmtest.New(t, wasmtest.Module(t))
		workers := startWorkers(t, host, 2, inFlight(5, ""))
		host.Advance(phase)
		dying := admits(workers[0], r, 3)
		host.Advance(time.Duration(3*len(dying)) * time.Second)
		living := admits(workers[1], r, 9)
		if len(dying) != 3 || len(living) != 2 {
			t.Fatalf("phase %v: %d and %d are in flight, want 3 and 2", phase, len(dying), len(living))
		}
		host.Advance(3 * time.Minute)
		if n := room(workers[1], r); n != 0 {
			t.Fatalf("phase %v: after minutes, %d more are admitted", phase, n)
		}
		workers[0].VM().Kill()
		host.Advance(1900 * time.Millisecond) // it might have been late with a tick, not dead
		if n := room(workers[1], r); n != 0 {
			t.Errorf("phase %v: %d are admitted in place of those of a worker that was silent for 1.9 s", phase, n)
		}
		host.Advance(8100 * time.Millisecond)
		if n := room(workers[1], r); n != 3 {
			t.Errorf("phase %v: 10 s after the death %d more are admitted, want 3", phase, n)
		}
		host.Advance(5 * time.Minute)
		if n := room(workers[1], r); n != 3 {
			t.Errorf("phase %v: minutes after the death %d more are admitted, want 3", phase, n)
		}
		endAll(living)
		if n := room(workers[1], r); n != 5 {
			t.Errorf("phase %v: all have ended, and %d are admitted", phase, n)
		}
		host.Advance(10 * time.Second)
		if p := workers[1].TickPeriod(); p != 0 {
			t.Errorf("phase %v: nobody is in flight, and there are ticks every %d ms", phase, p)
		}
	}
}

// A worker that ticks late, as one does that is busy, keeps what it holds as long
// as it is late by less than a slice is long.
func TestLateTicksLoseNothing(t *testing.T) {
	eachSeed(t, 5, func(random *rand.Rand) error {
		host := wasmtest.New(t, wasmtest.Module(t))
		defer host.Close()
		workers := startWorkers(t, host, 2, inFlight(4, ""))
		r := request{address: client(1)}
		held := admits(workers[0], r, 4)
		for i := range 200 {
			host.Clock.Advance(2*time.Second + time.Duration(random.IntN(2000))*time.Millisecond)
			if n := room(workers[1], r); n != 0 {
				return fmt.Errorf("%d more are admitted before tick %d", n, i)
			}
			workers[0].Tick()
		}
		endAll(held)
		if n := room(workers[1], r); n != 4 {
			return fmt.Errorf("all have ended, and %d are admitted", n)
		}
		return nil
	})
}

// A worker that stood still for long has lost its leases, but not its count.
func TestAWorkerThatStoodStillCountsAgainAndGivesBackOnce(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	workers := startWorkers(t, host, 2, inFlight(3, ""))
	r := request{address: client(1)}
	held := admits(workers[0], r, 3)
	host.Clock.Advance(time.Minute) // without ticks
	others := admits(workers[1], r, 9)
	if len(others) != 3 {
		t.Fatalf("%d are admitted after a minute of silence, want 3", len(others))
	}
	workers[0].Tick()
	others[0].End()
	held[0].End()
	if n := room(workers[1], r); n != 0 {
		t.Errorf("%d are admitted with 4 in flight and a limit of 3", n)
	}
	held[1].End()
	others[1].End()
	if n := room(workers[1], r); n != 1 {
		t.Errorf("%d are admitted with 2 in flight, want 1", n)
	}
	held[2].End()
	others[2].End()
	if n := room(workers[0], r); n != 3 {
		t.Errorf("all have ended, and %d are admitted", n)
	}
}

func TestOldAndNewConfigCountTogetherWhatIsInFlight(t *testing.T) {
	for _, c := range []struct{ before, after int }{{5, 3}, {3, 5}, {4, 4}} {
		host := wasmtest.New(t, wasmtest.Module(t))
		both := startBoth(t, host, inFlight(c.before, ""), inFlight(c.after, ""))
		r := request{address: client(1)}
		old := admits(both[0], r, 9)
		if n := room(both[1], r); n != max(0, c.after-len(old)) || len(old) != c.before {
			t.Errorf("%d → %d: %d are in flight, and the new config admits %d", c.before, c.after, len(old), n)
		}
		host.Advance(3 * time.Minute) // both renew
		for len(old) > 1 {
			old[0].End()
			old = old[1:]
		}
		fresh := admits(both[1], r, 9)
		if len(fresh) != c.after-1 {
			t.Errorf("%d → %d: with one in flight of before, %d are admitted", c.before, c.after, len(fresh))
		}
		host.Advance(time.Minute)
		if n := room(both[1], r); n != 0 {
			t.Errorf("%d → %d: a minute later %d more are admitted", c.before, c.after, n)
		}
		old[0].End()
		if !both[0].Stop() {
			t.Error("the old plugin does not end")
		}
		if n := room(both[1], r); n != 1 {
			t.Errorf("%d → %d: %d are admitted when the last of before has ended", c.before, c.after, n)
		}
		host.Advance(3 * time.Minute)
		if n := room(both[1], r); n != 1 {
			t.Errorf("%d → %d: %d are admitted minutes after the old plugin's end, want 1", c.before, c.after, n)
		}
		endAll(fresh)
		if n := room(both[1], r); n != c.after || gauge(host, "x") != 0 || host.StrayTicks != 0 {
			t.Errorf("%d → %d: all have ended; %d are admitted, the gauge says %d, %d stray ticks", c.before, c.after, n, gauge(host, "x"), host.StrayTicks)
		}
	}
}

// withOthers has a limit of requests in flight between two others, and a path
// that looks at each.
const withOthers = `{"limits":{
	"a-day":{"algorithm":"fixed_window","limit":7,"window":"1d","key":["ip"]},
	"b-flight":{"algorithm":"concurrency","limit":3,"key":["ip"]},
	"c-day":{"algorithm":"fixed_window","limit":9,"window":"1d","key":["header:x-user"]}},
	"rules":[
		{"match":{"path":"/a"},"limits":[{"limit":"a-day","cost":0}]},
		{"match":{"path":"/b"},"limits":["b-flight"]},
		{"match":{"path":"/c"},"limits":[{"limit":"c-day","cost":0}]},
		{"limits":["a-day","b-flight","c-day"]}],
	"state":{"max_buckets":1000}}`

func TestARequestThatAnotherLimitRefusesIsNotInFlight(t *testing.T) {
	eachSeed(t, 10, func(random *rand.Rand) error {
		host := wasmtest.New(t, wasmtest.Module(t))
		defer host.Close()
		workers := startWorkers(t, host, 4, withOthers)
		for round := range 5 {
			if err := raceWithOthers(host, workers, random, round); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		return nil
	})
}

func raceWithOthers(host *wasmtest.Host, workers []*wasmtest.Plugin, random *rand.Rand, round int) error {
	user := wasmtest.Headers{{"x-user", fmt.Sprint(round)}}
	address := func(i int) string { return client(2*round + i) }
	admitted, held := [2]int{}, [2][]*wasmtest.Stream{}
	tooMany := 0
	var tasks []wasmtest.Task
	for _, worker := range workers {
		tasks = append(tasks, wasmtest.Task{VM: worker.VM(), Run: func() {
			for range 5 {
				i := random.IntN(2)
				s := begin(worker, request{address: address(i), headers: user})
				switch {
				case !wentOn(s):
					s.End()
				case random.IntN(2) == 0:
					admitted[i]++
					s.End()
				default:
					admitted[i]++
					held[i] = append(held[i], s)
					tooMany = max(tooMany, len(held[i])-3)
				}
			}
		}})
	}
	host.Race(random, nil, tasks...)
	if tooMany > 0 {
		return fmt.Errorf("%d are in flight, want at most 3", tooMany+3)
	}
	for i := range held {
		if n := room(workers[0], request{address: address(i), path: "/b"}); n != 3-len(held[i]) {
			return fmt.Errorf("client %d has %d in flight, and %d more are admitted, want 3 in all", i, len(held[i]), n)
		}
		if got, want := ask(workers[0], request{address: address(i), path: "/a"}).remaining, int64(7-admitted[i]); got != want {
			return fmt.Errorf("client %d: of the day %d are left, want %d", i, got, want)
		}
		endAll(held[i])
		if n := room(workers[0], request{address: address(i), path: "/b"}); n != 3 {
			return fmt.Errorf("client %d has none in flight, and %d are admitted", i, n)
		}
	}
	left := ask(workers[0], request{address: address(0), path: "/c", headers: user}).remaining
	if want := int64(9 - admitted[0] - admitted[1]); left != want {
		return fmt.Errorf("of the user's day %d are left, want %d", left, want)
	}
	if n := gauge(host, "b-flight"); n != 0 {
		return fmt.Errorf("all have ended, and the gauge says %d", n)
	}
	return nil
}

func TestAConcurrencyLimitInShadowRefusesNobodyAndCountsOnlyWhatItWouldAdmit(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, inFlight(2, `,"shadow":true`))
	r := request{address: client(1)}
	all := admits(worker, r, 5)
	state, _ := all[4].Property("sluice")
	if n := host.Metrics["sluice.limit.x.shadow_refused"]; len(all) != 5 || n != 3 || state != "shadow:x" || gauge(host, "x") != 2 {
		t.Fatalf("%d admitted, %d refused in shadow, state %q, %d in flight", len(all), n, state, gauge(host, "x"))
	}
	endAll(all[2:]) // they hold nothing
	next := begin(worker, r)
	if state, _ := next.Property("sluice"); state != "shadow:x" {
		t.Errorf("with two in flight the next is %q, want a refusal in shadow", state)
	}
	endAll(all[:2])
	next.End()
	after := admits(worker, r, 3)
	for i, want := range []string{"allowed", "allowed", "shadow:x"} {
		if state, _ := after[i].Property("sluice"); state != want {
			t.Errorf("request %d after all have ended: %q, want %q", i, state, want)
		}
	}
	endAll(after)
	if n := gauge(host, "x"); n != 0 {
		t.Errorf("all have ended, and the gauge says %d", n)
	}
}

func TestOverridesOfAConcurrencyLimitCountApart(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, inFlight(2, `,"overrides":[
		{"match":{"headers":{"x-plan":"gold"}},"limit":4},
		{"match":{"headers":{"x-plan":"free"}},"unlimited":true}]`))
	plan := func(name string) request {
		return request{address: client(1), headers: wasmtest.Headers{{"x-plan", name}}}
	}
	var all []*wasmtest.Stream
	for name, want := range map[string]int{"none": 2, "gold": 4, "free": 9} {
		admitted := admits(worker, plan(name), 9)
		if len(admitted) != want {
			t.Errorf("plan %s: %d are admitted, want %d", name, len(admitted), want)
		}
		all = append(all, admitted...)
	}
	host.Advance(time.Minute)
	if n := gauge(host, "x"); n != 6 || room(worker, plan("none")) != 0 || room(worker, plan("gold")) != 0 {
		t.Errorf("a minute later the gauge says %d, want 6, and others are admitted", n)
	}
	endAll(all)
	if n := gauge(host, "x"); n != 0 || room(worker, plan("none")) != 2 || room(worker, plan("gold")) != 4 {
		t.Errorf("all have ended, and the gauge says %d, or others than 2 and 4 are admitted", n)
	}
}

func TestARequestInFlightCountsAsOneWhateverItCosts(t *testing.T) {
	for _, cost := range []string{`0`, `1`, `5`, `{"header":"x-cost","default":7,"max":100}`} {
		host := wasmtest.New(t, wasmtest.Module(t))
		worker := start(t, host, `{"limits":{"x":{"algorithm":"concurrency","limit":3,"key":["ip"]}},
			"always":["x"],"rules":[{"cost":`+cost+`,"limits":["x"]}],"state":{"max_buckets":1000}}`)
		r := request{address: client(1), headers: wasmtest.Headers{{"x-cost", "50"}}}
		held := admits(worker, r, 9)
		if len(held) != 3 {
			t.Errorf("cost %s: %d are admitted, want 3", cost, len(held))
		}
		endAll(held)
		if n := room(worker, r); n != 3 || gauge(host, "x") != 0 {
			t.Errorf("cost %s: all have ended, and %d are admitted", cost, n)
		}
	}
}
