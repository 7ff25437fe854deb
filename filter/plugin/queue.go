package plugin

import (
	"container/heap"
	"slices"
	"time"

	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/policy"
)

// waiter is a request that waits for its departure.
type waiter struct {
	stream  uint32
	waits   bool
	place   policy.Claim
	arrived int64 // by the monotonic clock, ns
	departs int64
	index   int // in the queue
	tries   int // to resume it
}

// queue is the waiting requests of this worker, the first to leave in front. It
// implements heap.Interface.
type queue []*waiter

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].departs < q[j].departs }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *queue) Push(w any) {
	w.(*waiter).index = len(*q)
	*q = append(*q, w.(*waiter))
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return w
}

// await has a request wait for the departure that a queue has given it. It
// returns false where it could not be resumed then.
func (p *Plugin) await(s *stream, ruling *policy.Ruling, now int64) bool {
	place, ok := ruling.Claim()
	if !ok {
		return false
	}
	w := &s.lastingOf().waiter
	if w.waits {
		p.giveUp(w)
	}
	*w = waiter{stream: s.id, waits: true, place: place, arrived: now, departs: ruling.Departs()}
	heap.Push(&p.queue, w)
	if p.period == 0 || w.departs < p.wakeAt {
		p.steps.restart()
		if !p.wake(now) {
			p.takeOut(w)
			return false
		}
	}
	p.metrics.limit(place.Limit, countWaiting, 1)
	return true
}

// leave is the end of a waiter's wait.
func (p *Plugin) leave(w *waiter) {
	p.takeOut(w)
	p.metrics.limit(w.place.Limit, countWaiting, -1)
}

// takeOut takes a waiter out of the queue.
func (p *Plugin) takeOut(w *waiter) {
	w.waits = false
	heap.Remove(&p.queue, w.index)
}

// depart resumes the requests whose time has come.
func (p *Plugin) depart(now int64) {
	for len(p.queue) > 0 && p.steps.hold(p.queue[0].departs) <= now {
		w := p.queue[0]
		// Those behind do not depend on how this one fares.
		w.tries++
		w.departs = now + int64(time.Millisecond)<<w.tries
		heap.Fix(&p.queue, w.index)
		if !p.effective(w, func() bool { return host.ResumeRequest() == host.OK }) && w.tries < resumeTries {
			continue
		}
		p.leave(w)
		p.metrics.limit(w.place.Limit, recordWaited, (now-w.arrived)/int64(time.Millisecond))
	}
}

// resumeTries is how often a request is tried to be resumed.
const resumeTries = 5

// effective calls f with the waiter's stream as the one that hostcalls speak of,
// unless that is gone: then they would hit another one.
func (p *Plugin) effective(w *waiter, f func() bool) (ok bool) {
	if host.SetEffectiveContext(w.stream) != host.OK {
		return false
	}
	ok = f()
	host.SetEffectiveContext(p.id)
	return ok
}

// giveUp is the end of a request that was still waiting. Its place is free again
// if it was the last in line.
func (p *Plugin) giveUp(w *waiter) {
	p.leave(w)
	p.metrics.limit(w.place.Limit, countGivenUp, 1)
	p.giveBack(&w.place)
}

// stopWaiting ends all waiting, as there is no telling when anybody departs: the
// requests go on or are denied, as the config says. One that cannot be reached is
// tried again at the next tick.
func (p *Plugin) stopWaiting() {
	for _, w := range slices.Clone(p.queue) {
		w.tries++
		if !p.effective(w, func() bool { return p.stop(w) }) && w.tries < resumeTries {
			continue
		}
		p.leave(w)
		p.metrics.limit(w.place.Limit, countErrors, 1)
	}
}

// stop has a request go on, or denies it. It returns false if the host does
// neither.
func (p *Plugin) stop(w *waiter) bool {
	if p.config.OnError == config.Deny && p.denyWaiter(w) == uint32(host.Pause) {
		return true
	}
	return host.ResumeRequest() == host.OK
}

// denyWaiter answers a request that waited in vain: no limit has anything to tell
// of it.
func (p *Plugin) denyWaiter(w *waiter) uint32 {
	if s := p.vm.streams.find(w.stream); s != nil {
		s.told = false
	}
	return p.deny()
}
