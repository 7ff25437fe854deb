package wasmtest_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// check compares the workers with what is on paper.
func (s *simulation) check(r *rapid.T) {
	s.readTrace(r)
	s.checkLogs(r)
	now := s.host.Clock.Mono
	waiting := maps.Clone(s.lost)
	for _, q := range s.requests {
		switch {
		case q.waits != q.Paused():
			r.Fatalf("%s waits: %t, and is paused: %t; departs at %d", q.name, q.waits, q.Paused(), q.place.begins)
		case q.waits && q.place.begins <= now-int64(time.Millisecond):
			r.Fatalf("%s is not resumed: departed at %d, and it is %d", q.name, q.place.begins, now)
		case q.waits:
			waiting[q.queue]++
		}
	}
	for _, w := range s.workers {
		for _, p := range w.plugins {
			s.checkTimer(r, p)
		}
	}
	for _, queue := range []string{queueA, queueB, queueShadow} {
		name := "sluice.limit." + queue + ".waiting"
		s.metrics[name] = uint64(waiting[queue])
	}
	for name, want := range s.metrics {
		if got := s.host.Metrics[name]; got != want {
			r.Fatalf("%s is %d, want %d", name, got, want)
		}
	}
}

func (s *simulation) checkLogs(r *rapid.T) {
	for _, w := range s.workers {
		for _, line := range w.vm.Logs() {
			if strings.Contains(line.Message, "panic") {
				r.Fatal(line.Message)
			}
		}
	}
}

// checkTimer checks that a plugin's timer is set only while requests of its wait.
// One that its last waiter has left runs out with the next tick.
func (s *simulation) checkTimer(r *rapid.T, p *simPlugin) {
	waits := slices.ContainsFunc(s.requests, func(q *simRequest) bool { return q.plugin == p && q.waits })
	if waits && p.TickPeriod() == 0 || !waits && !p.mayTickOnce && p.TickPeriod() > 0 {
		r.Fatalf("requests wait: %t, and the period of ticks is %d ms", waits, p.TickPeriod())
	}
}

// readTrace follows the ticks that have come: whom they resumed, and when.
func (s *simulation) readTrace(r *rapid.T) {
	effective := ""
	for i, c := range s.host.Calls {
		if c.Callback != "proxy_on_tick" {
			continue
		}
		switch p := s.pluginOf(c); c.Name {
		case "clock_time_get":
			if c.Status != wasmtest.OK {
				s.releaseAll(p)
				continue
			}
			p.before, p.lastTick, p.mayTickOnce = p.lastTick, c.Time, false
		case "proxy_set_effective_context":
			effective = c.Subject
		case "proxy_continue_stream":
			s.resumed(r, p, effective, s.moments[i])
		}
	}
	s.host.Calls = s.host.Calls[:0]
	clear(s.moments)
}

func (s *simulation) pluginOf(c wasmtest.Call) *simPlugin {
	for _, w := range s.workers {
		for _, p := range w.plugins {
			if w.vm.Index() == c.VM && p.ContextID() == c.Context {
				return p
			}
		}
	}
	return nil
}

// releaseAll is a tick that does not know the time.
func (s *simulation) releaseAll(p *simPlugin) {
	p.mayTickOnce = true
	for _, q := range s.requests {
		if q.plugin == p && q.waits {
			q.waits, q.released = false, true
			s.count(q.queue, "errors", 1)
		}
	}
}

// resumed is a request that a tick of its plugin has let go on.
func (s *simulation) resumed(r *rapid.T, p *simPlugin, context string, at int64) {
	i := slices.IndexFunc(s.requests, func(q *simRequest) bool {
		return q.plugin == p && strconv.Itoa(int(q.ContextID())) == context
	})
	if i < 0 {
		r.Fatalf("stream %s, which is none of its plugin's, is resumed at %d", context, at)
	}
	q := s.requests[i]
	if q.released && !s.denies {
		q.released = false
		return
	}
	switch late := at - q.place.begins; {
	case !q.waits:
		r.Fatalf("%s is resumed at %d though it does not wait", q.name, at)
	case late < 0 || late >= int64(time.Millisecond):
		r.Fatalf("%s is resumed %d ns after its departure", q.name, late)
	case p.before >= q.place.begins && p.before != at:
		r.Fatalf("%s is not resumed by the first tick after its departure", q.name)
	case q.place.begins <= q.line.departed:
		r.Fatalf("%s is resumed after another that had come later", q.name)
	}
	q.line.departed = q.place.begins
	q.waits = false
	s.count(q.queue, "waited_ms", 1)
}

// finish ends everything, and checks that nothing is left of it.
func (s *simulation) finish(r *rapid.T) {
	s.failClock = false
	for _, q := range slices.Clone(s.requests) {
		if q.waits {
			s.count(q.queue, "given_up", 1)
			q.plugin.mayTickOnce = true
			q.line.leave(q.place)
		}
		q.End()
		s.gone(r, q)
	}
	s.host.Advance(time.Minute) // longer than any queue here
	s.check(r)
	for _, w := range s.workers {
		for _, p := range w.plugins {
			if p.TickPeriod() != 0 {
				r.Fatalf("nobody waits, and the period of ticks is %d ms", p.TickPeriod())
			}
		}
	}
	if s.host.StrayTicks > 0 {
		r.Fatalf("%d ticks of plugins that have ended", s.host.StrayTicks)
	}
	s.host.Fail = nil
	for _, queue := range []string{queueA, queueB} {
		s.checkBurst(r, queue)
	}
}

// checkBurst checks that a queue which everybody has left is like a new one.
func (s *simulation) checkBurst(r *rapid.T, queue string) {
	fresh, limit, now := &line{}, s.limits[queue], s.host.Clock.Mono
	for n := 0; ; n++ {
		told := fresh.ask(limit, now, 1)
		w := s.workers[n%len(s.workers)]
		stream := w.plugins[len(w.plugins)-1].NewStream(map[string]string{"source/address": client(1)})
		result := stream.RequestHeaders(wasmtest.Headers{{":method", "GET"}, {":path", "/" + queue}, {"x-user", "1"}})
		defer stream.End()
		if told.admitted == (result.Local != nil) || stream.Paused() != (told.admitted && told.wait > 0) {
			r.Fatalf("in the end, request %d in %s of a burst: got %+v, want %+v", n, queue, result, told)
		}
		if !told.admitted {
			return
		}
		fresh.take(limit, now, 1)
	}
}
