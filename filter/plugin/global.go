package plugin

import (
	"slices"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/fleet"
	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/policy"
)

// asking is a request that waits for a service's answers.
type asking struct {
	stream  uint32
	policy  *policy.Policy
	rule    *policy.Rule
	rulings []policy.Ruling // a copy: the policy's own are the next request's
	open    int             // answers to come
}

// ask asks the service about the limits that need its word, and says whether the
// request goes on. It is over at once only where no call could be made.
func (p *Plugin) ask(s *stream, chosen *policy.Policy, rule *policy.Rule, o *policy.Outcome) uint32 {
	a := &asking{stream: s.id, policy: chosen, rule: rule, rulings: slices.Clone(o.Rulings)}
	for i := range a.rulings {
		if g := &a.rulings[i]; g.IsPending() && !g.Shadow {
			a.open++
		}
	}
	s.lastingOf().asking = a
	asked := a.open
	for i := range a.rulings {
		g := &a.rulings[i]
		if !g.IsPending() || g.Shadow {
			continue
		}
		sent := p.call(g.Limit, g.Counter(), (*fleet.Counter).AppendRequest, g.Limit.AppendServiceKey(nil, &p.request), g.Cost(), func(answer fleet.Answer, ok bool) {
			a.hear(g, &answer, ok)
			if a.open == 0 {
				p.heard(a)
			}
		})
		if !sent {
			a.hear(g, nil, false)
			asked--
		}
	}
	if asked > 0 {
		return uint32(host.Pause)
	}
	s.lasting.asking = nil
	now, ok := p.time(rule.UsesWall)
	outcome := chosen.Conclude(a.rulings, now, ok)
	return p.conclude(s, chosen, rule, outcome, now)
}

// hear notes an answer.
func (a *asking) hear(g *policy.Ruling, answer *fleet.Answer, ok bool) {
	a.open--
	if !ok {
		g.Untold()
		return
	}
	d := decision(answer, g.Counter())
	if isLook(g.Limit, g.Cost()) {
		d.Allowed, d.RetryAfter = true, 0
	}
	g.Told(&d)
}

// isLook says that a request of that cost can't be refused: it takes nothing, and
// the limit knows no debt. A service that has refused others may say otherwise.
func isLook(l *policy.Limit, cost int64) bool { return cost == 0 && l.Charge == nil }

// decision is what an answer says of a limit.
func decision(a *fleet.Answer, c *fleet.Counter) algorithms.Decision {
	return algorithms.Decision{
		Allowed:    a.Allowed,
		Never:      a.RetryAfter == algorithms.Forever,
		Limit:      c.Units(),
		Remaining:  a.Remaining,
		Reset:      a.Reset,
		RetryAfter: a.RetryAfter,
	}
}

// heard goes on with a request about which all has been heard, unless it is gone
// or has got a response meanwhile.
func (p *Plugin) heard(a *asking) {
	s := p.vm.streams.find(a.stream)
	if s == nil || s.lasting == nil || s.lasting.asking != a || s.lasting.answered || !reach(a.stream) {
		return
	}
	defer host.SetEffectiveContext(p.id)
	action, returned := uint32(host.Pause), false
	defer func() {
		if !returned { // but panicked, which must not leave it waiting
			action = p.vm.RequestHeadersFailed(s.id)
		}
		if action == uint32(host.Continue) {
			p.resume()
		}
	}()
	p.request.begin(a.policy.AllHeaders)
	p.request.rule = a.rule.Name
	testTrapAtAnswer()
	now, ok := p.time(a.rule.UsesWall)
	s.lasting.asking = nil
	o := a.policy.Conclude(a.rulings, now, ok)
	action = p.conclude(s, a.policy, a.rule, o, now)
	returned = true
}

// reach makes a stream the one that hostcalls speak of. It returns false where
// the host knows no such stream.
func reach(stream uint32) bool {
	for range resumeTries {
		if host.SetEffectiveContext(stream) == host.OK {
			return true
		}
	}
	return false
}

// resume has the effective stream's request go on. Where the host does not do
// that the request would hang, so it is denied.
func (p *Plugin) resume() {
	for range resumeTries {
		if host.ResumeRequest() == host.OK {
			return
		}
	}
	p.deny()
}

// abandon gives back what a request has taken that is gone before the answers.
func (p *Plugin) abandon(a *asking) {
	if now, ok := p.time(a.rule.UsesWall); ok {
		a.policy.Abandon(a.rulings, now)
	}
}

// encode is a Counter's method that makes a request of a key and of units.
type encode func(c *fleet.Counter, dst, key []byte, units int64) []byte

// call asks the service for units of a limit. It returns false where the request
// could not be sent; else done is called once.
func (p *Plugin) call(limit *policy.Limit, counter *fleet.Counter, request encode, key []byte, units int64, done func(a fleet.Answer, ok bool)) bool {
	now, ok := p.time(false)
	if !ok || counter == nil || !p.circuit.Allows(now.Mono) {
		return false
	}
	service, sent := p.config.Global, now.Mono
	protocol := counter.Protocol()
	message := request(counter, nil, key, units)
	p.metrics.limit(limit, countCalls, 1)
	status := host.GRPCCall(p.id, service.Cluster, protocol.Service(), protocol.Method(), message, service.Timeout, func(status int, message []byte) {
		now, ok := p.time(true)
		var answer fleet.Answer
		if ok = ok && status == 0; ok {
			answer, ok = counter.ReadAnswer(message, units, sent, now.Mono, now.Wall)
		}
		if ok {
			p.circuit.Succeeded()
		} else {
			p.callFailed(limit, now.Mono)
		}
		done(answer, ok)
	})
	if status != host.OK {
		p.callFailed(limit, sent)
		return false
	}
	return true
}

// callFailed counts a call that has come to nothing.
func (p *Plugin) callFailed(l *policy.Limit, now int64) {
	p.metrics.limit(l, countCallErrors, 1)
	p.circuit.Failed(now)
}

// leasePause is how long a bucket's service is not asked again after a failure.
const leasePause = 250 * time.Millisecond

// callAhead makes the calls for which no request waits: for leases, and, where
// the request goes on, about limits in shadow.
func (p *Plugin) callAhead(o *policy.Outcome) {
	admitted := o.Verdict == policy.Admitted || o.Verdict == policy.Unlimited
	for i := range o.Rulings {
		g := &o.Rulings[i]
		if loan, ok := g.Loan(); ok {
			p.borrow(&loan)
		} else if g.IsPending() && g.Shadow && admitted {
			p.askInShadow(g)
		}
	}
}

// borrow asks the service for a lease, and puts what it answers into the stock.
func (p *Plugin) borrow(l *policy.Loan) {
	loan := *l
	put := func(a fleet.Answer, ok bool) {
		// A lease whose window nobody can tell could be spent in the next one.
		ok = ok && loan.Counter.KnowsEnd(&a)
		now, told := p.time(false)
		told = told && p.policy.Lease(&loan.Claim, algorithms.LeaseAnswer{
			Asked:      loan.Units,
			Failed:     !ok,
			Pause:      leasePause,
			Allowed:    a.Allowed,
			Remaining:  a.Remaining,
			EndsAfter:  a.EndsAfter,
			EndsBefore: a.EndsBefore,
		}, now)
		if !told {
			p.metrics.limit(loan.Limit, countErrors, 1)
		}
	}
	key := loan.Limit.AppendServiceKey(nil, &p.request)
	if !p.call(loan.Limit, loan.Counter, (*fleet.Counter).AppendRequest, key, loan.Units, put) {
		put(fleet.Answer{}, false)
	}
}

// askInShadow counts what the service says of a request that goes on meanwhile.
func (p *Plugin) askInShadow(g *policy.Ruling) {
	limit, look := g.Limit, isLook(g.Limit, g.Cost())
	sent := p.call(limit, g.Counter(), (*fleet.Counter).AppendRequest, limit.AppendServiceKey(nil, &p.request), g.Cost(), func(a fleet.Answer, ok bool) {
		switch {
		case !ok:
			p.metrics.limit(limit, countErrors, 1)
		case a.Allowed || look:
			p.metrics.limit(limit, countAllowed, 1)
		default:
			p.metrics.limit(limit, countShadowRefused, 1)
		}
	})
	if !sent {
		p.metrics.limit(limit, countErrors, 1)
	}
}

// chargeService has the service take what a request turned out to cost. What it
// then says concerns later requests only.
func (p *Plugin) chargeService(d *due, units int64) {
	limit := d.Limit
	sent := p.call(limit, d.counter, (*fleet.Counter).AppendCharge, d.key, min(units, limit.Charge.Max), func(_ fleet.Answer, ok bool) {
		if !ok {
			p.metrics.limit(limit, countErrors, 1)
		}
	})
	if !sent {
		p.metrics.limit(limit, countErrors, 1)
	}
}
