package wasmtest_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// TestWaitingRequestsLeaveAsAQueueOnPaperSays drives several workers through
// whatever can happen to requests that wait, and compares each decision and each
// departure with lines kept in exact arithmetic.
func TestWaitingRequestsLeaveAsAQueueOnPaperSays(t *testing.T) {
	module := wasmtest.Module(t)
	rapid.Check(t, func(r *rapid.T) {
		host := wasmtest.New(t, module)
		defer host.Close()
		s := newSimulation(r, host)
		r.Repeat(map[string]func(*rapid.T){
			"arrive": func(r *rapid.T) { s.arrive(r, s.drawClient(r), false) },
			"arrive together": func(r *rapid.T) {
				c := s.drawClient(r)
				for range rapid.IntRange(2, 5).Draw(r, "requests") {
					s.arrive(r, c, false)
				}
			},
			"arrive where the tick cannot be set": func(r *rapid.T) { s.arrive(r, s.drawClient(r), true) },
			"leave, and another arrives": func(r *rapid.T) {
				q := s.drawWaiting(r)
				s.leave(r, q, false)
				s.arrive(r, q.client, false)
			},
			"advance":                                 s.advance,
			"advance to a departure":                  s.advanceToDeparture,
			"leave while waiting":                     func(r *rapid.T) { s.leave(r, s.drawWaiting(r), false) },
			"leave where the place cannot be freed":   func(r *rapid.T) { s.leave(r, s.drawWaiting(r), true) },
			"end after the response":                  s.respond,
			"push a config":                           s.push,
			"a worker dies":                           s.die,
			"the clock fails in the next tick of one": s.clockWillFail,
			"": s.check,
		})
		s.finish(r)
	})
}

// A request takes the way that its path says: past a queue and a token bucket,
// past another queue and a limit in shadow, or past a queue in shadow.
const (
	queueA, queueB, queueShadow = "a", "b", "c"
	users                       = 2
)

// simulation is the workers and what is known of them on paper.
type simulation struct {
	host   *wasmtest.Host
	denies bool // on_error

	limits map[string]lineLimit // by the queue's name
	lines  map[string]*line     // by queue and user
	tokens struct {
		limiter algorithms.Limiter
		states  map[string]algorithms.State // by user
	}
	workers  []*simWorker
	requests []*simRequest
	lost     map[string]int    // requests that waited in workers that died, by queue
	metrics  map[string]uint64 // what the filter should have counted

	failTick, failStore, failClock bool          // the next such call
	failed                         bool          // since the last action
	moments                        map[int]int64 // when recorded calls came, by their index
}

// simWorker is a worker with its plugins, the newest last.
type simWorker struct {
	vm      *wasmtest.VM
	plugins []*simPlugin
}

type simPlugin struct {
	*wasmtest.Plugin
	streams          int
	lastTick, before int64 // when the last two ticks came
	mayTickOnce      bool  // a waiter has left: nobody has stopped the timer yet
}

type simRequest struct {
	*wasmtest.Stream
	client   simClient
	name     string
	worker   *simWorker
	plugin   *simPlugin
	queue    string
	line     *line
	place    place
	waits    bool
	released bool // by a tick that did not know the time
}

func newSimulation(r *rapid.T, host *wasmtest.Host) *simulation {
	s := &simulation{
		host:    host,
		denies:  rapid.Bool().Draw(r, "denies"),
		lines:   map[string]*line{},
		lost:    map[string]int{},
		metrics: map[string]uint64{},
		moments: map[int]int64{},
	}
	s.tokens.states = map[string]algorithms.State{}
	host.Recording = true
	host.Fail = s.hostcall
	s.drawLimits(r)
	host.OnTrap = func(vm *wasmtest.VM, err error) { r.Fatalf("VM %d trapped: %v", vm.Index(), err) }
	for range rapid.IntRange(1, 3).Draw(r, "workers") {
		s.workers = append(s.workers, s.newWorker(r))
	}
	return s
}

// drawLimits draws the numbers of all queues anew, but for their rates, for which
// the backlog would have to be converted.
func (s *simulation) drawLimits(r *rapid.T) {
	before := s.limits
	s.limits = map[string]lineLimit{}
	for _, queue := range []string{queueA, queueB, queueShadow} {
		rate := rapid.SampledFrom([]int64{1, 2, 3, 7, 50, 300}).Draw(r, "rate of "+queue)
		period := rapid.SampledFrom([]time.Duration{time.Second, 3 * time.Second}).Draw(r, "its period")
		if before != nil {
			rate, period = before[queue].rate, before[queue].period
		}
		capacity := rapid.Int64Range(1, 6).Draw(r, "capacity of "+queue)
		place := period / time.Duration(rate)
		s.limits[queue] = lineLimit{rate, capacity, period, rapid.SampledFrom([]time.Duration{
			0, place - 1, place, 2*place + 1, 4*place - 1, time.Minute, time.Minute, time.Minute,
		}).Draw(r, "max_wait of "+queue)}
	}
	parsed, err := config.Parse([]byte(s.config()))
	if err != nil {
		r.Fatal(err)
	}
	for i := range parsed.Limits {
		if l := &parsed.Limits[i]; l.Name == "tokens" {
			s.tokens.limiter = l.Limiter
		}
	}
}

func (s *simulation) config() string {
	queue := func(name, more string) string {
		l := s.limits[name]
		return fmt.Sprintf(`"%s":{"algorithm":"leaky_bucket","capacity":%d,"leak_rate":"%d/%s","max_wait":"%s","key":["header:x-user"]%s}`,
			name, l.capacity, l.rate, l.period, l.maxWait, more)
	}
	use := func(name string) string {
		return fmt.Sprintf(`{"limit":"%s","cost":{"header":"x-cost","max":100}}`, name)
	}
	onError := "allow"
	if s.denies {
		onError = "deny"
	}
	return `{"limits":{` + queue(queueA, "") + `,` + queue(queueB, "") + `,` + queue(queueShadow, `,"shadow":true`) + `,
		"tokens":{"algorithm":"token_bucket","capacity":8,"refill_rate":"3/s","key":["header:x-user"]},
		"watch":{"algorithm":"gcra","rate":"1/s","key":["ip"],"shadow":true}},
	"rules":[
		{"match":{"path":"/a"},"limits":[` + use(queueA) + `,"tokens"]},
		{"match":{"path":"/b"},"limits":["watch",` + use(queueB) + `]},
		{"match":{"path":"/c"},"limits":[` + use(queueShadow) + `,"tokens"]}],
	"state":{"max_buckets":1000},"on_error":"` + onError + `"}`
}

func (s *simulation) newWorker(r *rapid.T) *simWorker {
	w := &simWorker{vm: s.host.NewVM()}
	s.startPlugin(r, w)
	return w
}

func (s *simulation) startPlugin(r *rapid.T, w *simWorker) {
	plugin, ok := w.vm.StartPlugin(wasmtest.PluginConfig{Name: "sluice", RootID: "sluice", Config: s.config()})
	if !ok {
		r.Fatalf("the config is refused: %v", w.vm.Logs())
	}
	w.plugins = append(w.plugins, &simPlugin{Plugin: plugin})
}

// hostcall is Host.Fail.
func (s *simulation) hostcall(c *wasmtest.Call) (wasmtest.Status, bool) {
	fails := false
	switch c.Name {
	case "proxy_set_tick_period_milliseconds":
		fails, s.failTick = s.failTick, false
	case "proxy_set_shared_data":
		fails, s.failStore = s.failStore, false
	case "clock_time_get":
		if c.Callback == "proxy_on_tick" {
			fails, s.failClock = s.failClock, false
		}
	case "proxy_continue_stream":
		s.moments[len(s.host.Calls)] = s.host.Clock.Mono
	}
	s.failed = s.failed || fails
	return wasmtest.InternalFailure, fails
}

func (s *simulation) lineOf(queue, user string) *line {
	l := s.lines[queue+user]
	if l == nil {
		l = &line{}
		s.lines[queue+user] = l
	}
	return l
}

func (s *simulation) count(limit, what string, n uint64) {
	s.metrics["sluice.limit."+limit+"."+what] += n
}

// simClient is who a request is of and which way it takes.
type simClient struct{ queue, user string }

func (s *simulation) drawClient(r *rapid.T) simClient {
	return simClient{
		queue: rapid.SampledFrom([]string{queueA, queueA, queueA, queueB, queueB, queueShadow}).Draw(r, "queue"),
		user:  strconv.Itoa(rapid.IntRange(1, users).Draw(r, "user")),
	}
}

// arrive is a new request at any worker. failTick says that no tick can be set
// while it is decided about.
func (s *simulation) arrive(r *rapid.T, c simClient, failTick bool) {
	w := rapid.SampledFrom(s.workers).Draw(r, "worker")
	queue, user := c.queue, c.user
	cost := rapid.SampledFrom([]int64{1, 1, 1, 1, 1, 1, 2, 2, 3, 0, 7}).Draw(r, "cost")
	limit, line := s.limits[queue], s.lineOf(queue, user)
	now := s.host.Clock.Mono

	plugin := w.plugins[len(w.plugins)-1]
	stream := plugin.NewStream(map[string]string{"source/address": client(1), "xds/route_name": "main"})
	s.failTick, s.failed = failTick, false
	result := stream.RequestHeaders(wasmtest.Headers{{":method", "GET"}, {":path", "/" + queue}, {":authority", "example.com"},
		{"x-user", user}, {"x-cost", strconv.Itoa(int(cost))}})
	failed := s.failed
	s.failTick, s.failed = false, false

	told := line.ask(limit, now, cost)
	retry := time.Duration(0)
	if !told.admitted && !told.never {
		retry = line.retryAfter(limit, now, cost)
	}
	refused, never := !told.admitted, told.never
	if queue == queueShadow {
		if refused {
			s.count(queue, "shadow_refused", 1)
		}
		refused, never, retry = false, false, 0
	}
	tokens := s.tokens.states[user]
	if queue != queueB {
		after, d := algorithms.Decide(s.tokens.limiter, tokens, s.time(), 1)
		if !d.Allowed {
			refused, retry = true, max(retry, d.RetryAfter)
		} else if !refused {
			tokens = after
		}
	}
	name := fmt.Sprintf("stream %d on VM %d, of user %s in %s at cost %d, at %d,", stream.ContextID(), w.vm.Index(), user, queue, cost, now)
	if refused {
		s.wantRefused(r, name, result, never, retry)
		stream.End()
		return
	}
	waits := told.wait > 0 && queue != queueShadow
	var got place
	if failed {
		if !waits {
			r.Fatalf("%s: a tick was set though it need not wait", name)
		}
		s.count(queue, "errors", 1)
		if s.denies {
			if result.Local == nil || result.Local.Status != 503 {
				r.Fatalf("%s: no tick could be set, got %+v, want 503", name, result)
			}
			stream.End()
			return
		}
		waits = false
	} else if told.admitted {
		got = line.take(limit, now, cost)
	}
	s.tokens.states[user] = tokens
	if waits != stream.Paused() || result.Local != nil {
		r.Fatalf("%s: got %+v and paused: %t, want waiting: %t of %v", name, result, stream.Paused(), waits, told.wait)
	}
	state, _ := stream.Property("sluice")
	state, _, _ = strings.Cut(state, ",") // what limits in shadow have to say
	wantState := "delayed:" + queue + ":" + (told.wait + time.Millisecond - 1).Truncate(time.Millisecond).String()
	if waits && state != wantState || !waits && strings.Contains(state, "delayed") {
		r.Fatalf("%s: filter state is %q, want %q where it waits, and it does: %t", name, state, wantState, waits)
	}
	plugin.streams++
	s.requests = append(s.requests, &simRequest{Stream: stream, client: c, name: name, worker: w, plugin: plugin, queue: queue, line: line, place: got, waits: waits})
}

func (s *simulation) time() algorithms.Time {
	return algorithms.Time{Mono: s.host.Clock.Mono, Wall: s.host.Clock.Wall}
}

func (s *simulation) wantRefused(r *rapid.T, name string, result wasmtest.Result, never bool, retry time.Duration) {
	if result.Local == nil {
		r.Fatalf("%s: got %+v, want 429", name, result)
	}
	got, want := answerOf(result.Local.Sent), int64(absent)
	if !never {
		want = max(1, roundUp(int64(retry), int64(time.Second)))
	}
	if got.status != 429 || got.retryAfter != want {
		r.Fatalf("%s: got %+v, want 429 and Retry-After %d (%v)", name, got, want, retry)
	}
}

func (s *simulation) advance(r *rapid.T) {
	s.host.Advance(rapid.SampledFrom([]time.Duration{
		1, 999_999, time.Millisecond, 20 * time.Millisecond, 333_333_333, 500 * time.Millisecond, 2 * time.Second,
	}).Draw(r, "for"))
}

// advanceToDeparture goes to a departure, or next to it.
func (s *simulation) advanceToDeparture(r *rapid.T) {
	q := s.drawWaiting(r)
	d := q.place.begins - s.host.Clock.Mono + int64(rapid.IntRange(-1, 1).Draw(r, "beside"))
	s.host.Advance(time.Duration(max(d, 0)))
}

// drawWaiting draws a request that waits.
func (s *simulation) drawWaiting(r *rapid.T) *simRequest {
	return s.draw(r, func(q *simRequest) bool { return q.waits })
}

func (s *simulation) draw(r *rapid.T, which func(*simRequest) bool) *simRequest {
	var found []*simRequest
	for _, q := range s.requests {
		if which(q) {
			found = append(found, q)
		}
	}
	if len(found) == 0 {
		r.Skip("there is none")
	}
	return found[rapid.IntRange(0, len(found)-1).Draw(r, "request")]
}

// leave is a client that does not wait any longer. fails says that nothing can
// be written then.
func (s *simulation) leave(r *rapid.T, q *simRequest, fails bool) {
	s.failStore, s.failed = fails, false
	q.End()
	failed := s.failed
	s.failStore, s.failed = false, false
	s.count(q.queue, "given_up", 1)
	q.waits, q.plugin.mayTickOnce = false, true
	last := q.line.end == q.place.end
	if failed != (last && fails) {
		r.Fatalf("%s leaves, last in line: %t; it writes: %t", q.name, last, failed)
	}
	if failed {
		s.count(q.queue, "errors", 1)
	} else {
		q.line.leave(q.place)
	}
	s.gone(r, q)
}

// gone is what follows from the end of a request.
func (s *simulation) gone(r *rapid.T, q *simRequest) {
	s.requests = slices.DeleteFunc(s.requests, func(other *simRequest) bool { return other == q })
	q.plugin.streams--
	s.stopIfUnused(r, q.worker, q.plugin)
}

// stopIfUnused ends a plugin that is not the newest, when its last stream has
// ended.
func (s *simulation) stopIfUnused(r *rapid.T, w *simWorker, p *simPlugin) {
	if p.streams > 0 || p == w.plugins[len(w.plugins)-1] {
		return
	}
	if !p.Stop() {
		r.Fatal("an old plugin does not end")
	}
	w.plugins = slices.DeleteFunc(w.plugins, func(other *simPlugin) bool { return other == p })
	if p.TickPeriod() != 0 {
		r.Fatal("a plugin ended with its timer set")
	}
}

func (s *simulation) respond(r *rapid.T) {
	q := s.draw(r, func(q *simRequest) bool { return !q.waits })
	if q.Local() == nil {
		q.ResponseHeaders(wasmtest.Headers{{":status", "200"}})
	}
	q.End()
	s.gone(r, q)
}

func (s *simulation) push(r *rapid.T) {
	s.drawLimits(r)
	for _, w := range s.workers {
		s.startPlugin(r, w)
		s.stopIfUnused(r, w, w.plugins[len(w.plugins)-2])
	}
}

// die is the death of a worker's VM, and another in its place.
func (s *simulation) die(r *rapid.T) {
	i := rapid.IntRange(0, len(s.workers)-1).Draw(r, "worker")
	dead := s.workers[i]
	dead.vm.Kill()
	s.requests = slices.DeleteFunc(s.requests, func(q *simRequest) bool {
		if q.worker == dead && q.waits {
			s.lost[q.queue]++
		}
		return q.worker == dead
	})
	s.workers[i] = s.newWorker(r)
}

// clockWillFail lets the clock fail in the next tick of any worker.
func (s *simulation) clockWillFail(*rapid.T) { s.failClock = true }
