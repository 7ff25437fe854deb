package plugin

import (
	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/policy"
	"github.com/sluice-proxy/sluice/filter/table"
)

// flight is the requests of this worker that are in flight under one bucket of
// a concurrency limit. They are held under leases, which this worker renews for
// as long as it lives.
type flight struct {
	claim policy.Claim
	// counts are how many are counted in which of the bucket's windows. There are
	// two of them, unless renewing is late.
	counts []counted
}

type counted struct{ n, window int64 }

// renewEvery is short enough for a lease to be renewed in each slice even if
// ticks are late by as much.
const renewEvery = int64(algorithms.LeaseSlice / 2)

// takeOff counts a request in flight.
func (p *Plugin) takeOff(claim *policy.Claim, now algorithms.Time) *flight {
	f := p.flights[claim.Bucket()]
	if f == nil {
		f = &flight{claim: *claim}
		if p.flights == nil {
			p.flights = map[table.Bucket]*flight{}
		}
		if len(p.flights) == 0 {
			p.renewAt = now.Mono + renewEvery
		}
		p.flights[claim.Bucket()] = f
	}
	f.add(1, claim.Window())
	p.metrics.limit(claim.Limit, countInFlight, 1)
	if p.period == 0 || p.renewAt < p.wakeAt {
		p.wake(now.Mono) // else the leases lapse: too much is admitted, nobody hangs
	}
	return f
}

func (f *flight) add(n, window int64) {
	for i := range f.counts {
		if f.counts[i].window == window {
			f.counts[i].n += n
			return
		}
	}
	f.counts = append(f.counts, counted{n, window})
}

// land is the end of a request in flight. All of a bucket are alike, so the one
// counted longest ago is taken off.
func (p *Plugin) land(f *flight) {
	p.metrics.limit(f.claim.Limit, countInFlight, -1)
	window := f.counts[0].window
	if f.counts[0].n--; f.counts[0].n == 0 {
		f.counts = f.counts[1:]
	}
	if len(f.counts) == 0 {
		delete(p.flights, f.claim.Bucket())
	}
	now, ok := p.time(f.claim.UsesWall())
	if !ok || !p.policy.Release(&f.claim, 1, window, now) {
		p.metrics.limit(f.claim.Limit, countErrors, 1) // it lapses with its lease
	}
}

// renew renews all leases.
func (p *Plugin) renew(now algorithms.Time) {
	p.renewAt = now.Mono + renewEvery
	for _, f := range p.flights {
		before := f.counts
		f.counts = nil
		for _, c := range before {
			window, ok := p.policy.Renew(&f.claim, c.n, c.window, now)
			if !ok {
				window = c.window
				p.metrics.limit(f.claim.Limit, countErrors, 1)
			}
			f.add(c.n, window)
		}
	}
}
