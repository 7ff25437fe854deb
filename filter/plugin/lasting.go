package plugin

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/field"
	"github.com/sluice-proxy/sluice/filter/fleet"
	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/policy"
	"github.com/sluice-proxy/sluice/filter/response"
)

// lasting is what an admitted request still has to do with its limits: to wait
// for its departure, to be charged or given back by what its response says, to
// count as in flight. Most requests have none of it.
type lasting struct {
	asking  *asking // nil unless it waits for a service
	waiter  waiter
	flights []*flight // of the limits under which it is in flight
	dues    []due     // of the limits that its response has a say in

	answered bool             // its response's headers have come
	shares   []response.Share // what the response tells of limits, the smallest first,
	limits   []*policy.Limit  // which are these
}

// due is a limit in which a request may get back what it took, or pay for more.
type due struct {
	policy.Claim
	charges bool // what it costs besides is still to be known
	// Of a limit that a service counts: what it counts, and for whom.
	counter *fleet.Counter
	key     []byte
}

// last begins what an outcome leaves to be done, and says whether the request has
// to wait. The outcome is another one where it has to and cannot.
func (p *Plugin) last(s *stream, chosen *policy.Policy, o *policy.Outcome, now algorithms.Time) (outcome *policy.Outcome, waits bool) {
	if queue := o.Waiting(); queue != nil {
		if waits = p.await(s, queue, now.Mono); !waits {
			o = chosen.CannotWait(queue, o.Rulings, now)
		}
	}
	if o.Verdict == policy.Admitted || o.Verdict == policy.Unlimited {
		p.keep(s, o, now)
	}
	o.HideResets()
	return o, waits
}

// keep keeps what an admitted request has to do with its limits, but for waiting.
func (p *Plugin) keep(s *stream, o *policy.Outcome, now algorithms.Time) {
	for i := range o.Rulings {
		limit := o.Rulings[i].Limit
		if !limit.Lasts() {
			continue
		}
		claim, ok := o.Rulings[i].Claim()
		if !ok {
			continue
		}
		switch {
		case limit.Concurrency:
			l := s.lastingOf()
			l.flights = append(l.flights, p.takeOff(&claim, now))
		case !limit.Queue:
			l := s.lastingOf()
			d := due{Claim: claim, charges: limit.Charge != nil, counter: o.Rulings[i].Counter()}
			if d.counter != nil {
				d.key = limit.AppendServiceKey(nil, &p.request)
			}
			l.dues = append(l.dues, d)
		}
	}
}

// lastingOf is what the stream still has to do, made if it had nothing.
func (s *stream) lastingOf() *lasting {
	if s.lasting == nil {
		s.lasting = &lasting{}
	}
	return s.lasting
}

// settle lets a response's headers decide what the request is charged. end says
// that nothing follows them: a gRPC answer of trailers only has those in its
// headers.
func (p *Plugin) settle(s *stream, end bool) {
	l := s.lasting
	if l.answered {
		return
	}
	l.answered = true
	status := 0
	for i := range l.dues {
		d := &l.dues[i]
		if d.Limit.CountStatus != nil {
			if status == 0 {
				status = responseStatus()
			}
			switch {
			case status < 0: // nobody knows, so it stays charged
				p.metrics.limit(d.Limit, countErrors, 1)
			case !d.Limit.Counts(status):
				if left, ok := p.giveBack(&d.Claim); ok {
					s.retell(d.Limit, &left)
				}
			}
		}
		if !d.charges {
			continue
		}
		switch c := d.Limit.Charge; {
		case c.ResponseHeader != "":
			p.charge(s, d, host.ResponseHeaders, c.ResponseHeader)
		case c.ResponseTrailer != "" && end:
			p.charge(s, d, host.ResponseHeaders, c.ResponseTrailer)
		}
	}
}

// settleTrailers charges what a response's trailers say.
func (p *Plugin) settleTrailers(s *stream) {
	for i := range s.lasting.dues {
		if d := &s.lasting.dues[i]; d.charges && d.Limit.Charge.ResponseTrailer != "" {
			p.charge(s, d, host.ResponseTrailers, d.Limit.Charge.ResponseTrailer)
		}
	}
}

// responseStatus is the response's status, or -1.
func responseStatus() int {
	text, _ := host.ResponseHeader(":status")
	if status, ok := field.Whole(text); ok {
		return int(min(status, 1000))
	}
	return -1
}

// giveBack gives back what a claim took. left is what the limit then is, if the
// claim took anything.
func (p *Plugin) giveBack(c *policy.Claim) (left algorithms.Decision, ok bool) {
	now, ok := p.time(c.UsesWall())
	if ok = ok && p.policy.GiveBack(c, now, &left); !ok {
		p.metrics.limit(c.Limit, countErrors, 1)
	}
	return left, ok
}

// charge charges what a header of the list says. One that is absent, repeated or
// no whole number charges nothing and is counted.
func (p *Plugin) charge(s *stream, d *due, list func() (host.Pairs, host.Status), header string) {
	pairs, _ := list()
	value, rest, _ := pairs.Find(header)
	if _, _, repeated := rest.Find(header); repeated {
		value = nil
	}
	p.chargeUnits(s, d, value)
}

func (p *Plugin) chargeUnits(s *stream, d *due, value []byte) {
	d.charges = false
	units, ok := field.Whole(value)
	if ok && d.counter != nil {
		if units > 0 {
			p.chargeService(d, units)
		}
		return
	}
	now, told := p.time(d.UsesWall())
	var left algorithms.Decision
	if !ok || !told || !p.policy.Charge(&d.Claim, units, now, &left) {
		p.metrics.limit(d.Limit, countErrors, 1)
		return
	}
	s.retell(d.Limit, &left)
}

// retell corrects what the response is to say of limits, by what has become of
// one since the request was decided about.
func (s *stream) retell(l *policy.Limit, left *algorithms.Decision) {
	if left.Limit == 0 || !s.told {
		return // nothing has changed, or is told
	}
	shares, limits := s.lasting.shares, s.lasting.limits
	i := slices.Index(limits, l)
	if i < 0 {
		return // in shadow
	}
	shares[i].Remaining, shares[i].Reset = left.Remaining, response.Seconds(left.Reset)
	if i = response.Smallest(shares); i > 0 {
		shares[0], shares[i], limits[0], limits[i] = shares[i], shares[0], limits[i], limits[0]
	}
	s.limit, s.remaining, s.reset = shares[0].Limit, shares[0].Remaining, shares[0].Reset
	if s.families&config.Draft != 0 {
		s.keepDraft(shares)
	}
}

// end is the end of a request, however it came: what it holds goes back, and
// what is not charged yet is charged now or never.
func (p *Plugin) end(s *stream) {
	l := s.lasting
	s.lasting = nil
	if l.asking != nil {
		p.abandon(l.asking)
	}
	if l.waiter.waits {
		p.giveUp(&l.waiter)
	}
	for _, f := range l.flights {
		p.land(f)
	}
	for i := range l.dues {
		d := &l.dues[i]
		if !d.charges {
			continue
		}
		var value []byte
		if path := d.Limit.Charge.Metadata; path != "" {
			value = p.endMetadata(path)
		}
		p.chargeUnits(s, d, value)
	}
}

// endMetadata is the number, or the text of one, that stands in a stream's
// metadata when it ends.
func (p *Plugin) endMetadata(path string) []byte {
	r := &p.request
	r.begin(false)
	if number := r.MetadataNumber(path); number != nil {
		return number
	}
	return r.Metadata(path)
}

// OnTick implements types.PluginContext: it resumes the requests whose departure
// has come, and renews the leases of those in flight. It runs only while there
// are any.
func (p *Plugin) OnTick() {
	now, ok := p.time(false)
	if !ok {
		p.stopWaiting()
		p.wakeAt = math.MaxInt64 // nobody knows when the next tick comes
		p.steps.restart()
		return
	}
	p.wakeAt = now.Mono + int64(p.period)*int64(time.Millisecond) // unless it is set
	p.steps.learn(now.Mono, p.period == 1)
	p.depart(now.Mono)
	if len(p.flights) > 0 && now.Mono >= p.renewAt {
		p.renew(now)
	}
	p.wake(now.Mono)
}

// wake has the next tick come when something is due, and none where nothing
// is. It returns false if the host does not do that.
func (p *Plugin) wake(now int64) bool {
	next, ok := p.nextDue()
	if !ok {
		return p.setPeriod(0)
	}
	const longest = int64(time.Hour) // a tick too many does no harm
	until := min(max(next-now, 1), longest)
	if !p.setPeriod(uint32((until + int64(time.Millisecond) - 1) / int64(time.Millisecond))) {
		return false
	}
	p.wakeAt = now + until
	return true
}

// nextDue is when the next tick has to come. Shortly before a departure that is
// at once: see steps.
func (p *Plugin) nextDue() (next int64, ok bool) {
	if len(p.queue) > 0 {
		next, ok = p.steps.hold(p.queue[0].departs)-stepLead, true
	}
	if len(p.flights) > 0 && (!ok || p.renewAt < next) {
		next, ok = p.renewAt, true
	}
	return next, ok
}

// setPeriod does nothing where the period is right already: the host starts it
// anew after each tick.
func (p *Plugin) setPeriod(ms uint32) bool {
	if ms == p.period {
		return true
	}
	if host.SetTickPeriod(ms) != host.OK {
		return false
	}
	p.period = ms
	return true
}
