package plugin

import (
	"encoding/binary"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/policy"
	"github.com/sluice-proxy/sluice/filter/response"
)

// decide decides about a request, tells operators what came of it, and says
// whether the request goes on.
func (p *Plugin) decide(s *stream) uint32 {
	r := &p.request
	r.begin(p.policy.AllHeaders)
	if !p.plain {
		return p.decideAny(s)
	}
	return p.decideBy(s, p.policy, p.policy.Match(r))
}

// decideAny is decide where not only the plugin's own rules have a say, and for
// the first request.
//
//go:noinline
func (p *Plugin) decideAny(s *stream) uint32 {
	r := &p.request
	if p.policy.Exempts(r) {
		return uint32(host.Continue)
	}
	if p.table == nil && !p.attach() {
		p.metrics.add("sluice.table.errors", 1)
		rule := p.policy.Match(r)
		if !rule.HasLimits() {
			return uint32(host.Continue)
		}
		s.removes = rule.Removes
		return p.failed()
	}
	chosen, rule := p.policy, (*policy.Rule)(nil)
	if p.routes != nil {
		chosen, rule = p.routes.choose(p)
		if chosen != p.policy && chosen.Exempts(r) {
			return uint32(host.Continue)
		}
	}
	if rule == nil {
		rule = chosen.Match(r)
	}
	return p.decideBy(s, chosen, rule)
}

// decideBy decides by a rule.
func (p *Plugin) decideBy(s *stream, chosen *policy.Policy, rule *policy.Rule) uint32 {
	r := &p.request
	r.rule, s.removes = rule.Name, rule.Removes
	rulings := chosen.Prepare(rule, r)
	if len(rulings) == 0 {
		return uint32(host.Continue)
	}
	now, ok := p.time(rule.UsesWall)
	o := chosen.Decide(rulings, now, ok)
	if o.Verdict == policy.Pending {
		p.callAhead(o)
		return p.ask(s, chosen, rule, o)
	}
	return p.conclude(s, chosen, rule, o, now)
}

// conclude does what follows from a decision, and says whether the request goes
// on.
func (p *Plugin) conclude(s *stream, chosen *policy.Policy, rule *policy.Rule, o *policy.Outcome, now algorithms.Time) uint32 {
	if o.Verdict != policy.Admitted || len(o.Rulings) > 1 || rule.Global || rule.Lasts {
		return p.concludeAny(s, chosen, rule, o, now)
	}
	// By far most requests: their only limit admits them, and is done with them.
	p.metrics.limit(o.Limit, countAllowed, 1)
	p.report(s, o, true)
	s.admitted(rule, o)
	return uint32(host.Continue)
}

// concludeAny is conclude for any outcome.
//
//go:noinline
func (p *Plugin) concludeAny(s *stream, chosen *policy.Policy, rule *policy.Rule, o *policy.Outcome, now algorithms.Time) uint32 {
	if rule.Global {
		p.callAhead(o)
	}
	waits := false
	if rule.Lasts {
		o, waits = p.last(s, chosen, o, now)
	}
	ordinary := p.metrics.count(o)
	p.report(s, o, ordinary && !waits)
	switch o.Verdict {
	case policy.Admitted:
		s.admitted(rule, o)
		if waits {
			return uint32(host.Pause)
		}
		return uint32(host.Continue)
	case policy.Refused, policy.MissingKey:
		return p.refuse(s, rule, o)
	case policy.Undecided:
		return p.deny()
	default:
		return uint32(host.Continue)
	}
}

// report tells operators of a decision. ordinary says that all limits admit the
// request, now.
func (p *Plugin) report(s *stream, o *policy.Outcome, ordinary bool) {
	if p.table.Counts != p.metrics.reported {
		p.metrics.table(p.table)
	}
	s.inner = p.publish(o, ordinary)
	if p.verbose() {
		p.logDecision(o)
	}
}

// failed lets a request about which nothing could be decided go on, or denies
// it, as the config says.
func (p *Plugin) failed() uint32 {
	if p.policy.Failed().Verdict == policy.Undecided {
		return p.deny()
	}
	return uint32(host.Continue)
}

// refuse answers with a refusal, as the rule asks for it.
func (p *Plugin) refuse(s *stream, rule *policy.Rule, o *policy.Outcome) uint32 {
	template := rule.Response
	refusal := response.Refusal{MissingKey: o.Verdict == policy.MissingKey, Name: o.Limit.Name, Rule: rule.Name}
	if template.HasJitter() {
		refusal.Jitter = template.Jitter(random())
	}
	if !refusal.MissingKey {
		refusal.Decision = o.Reported.Decision
		refusal.Shares, _ = shares(o)
	}
	s.refused(rule, &refusal)
	if s.inner {
		host.SetProperty(toldProperty, []byte(toldRefusal))
	}
	answer := template.Refuse(&refusal, p.request.isGRPC())
	action := sent(host.SendLocalResponse(answer.Status, o.Limit.Details, answer.Body,
		host.AppendPairs(nil, answer.Headers), response.GRPCResourceExhausted))
	s.told = action == uint32(host.Pause) // else the response is not ours
	return action
}

// deny answers a request that could not be decided.
func (p *Plugin) deny() uint32 {
	const message = "The request could not be checked against its limits."
	return sent(host.SendLocalResponse(503, "sluice_undecided", []byte(message), host.AppendPairs(nil, nil), response.GRPCUnavailable))
}

// sent says whether the request goes on after a local response. Where the host
// could not send it, pausing would leave the client waiting for ever.
func sent(status host.Status) uint32 {
	if status != host.OK {
		return uint32(host.Continue)
	}
	return uint32(host.Pause)
}

// random returns 64 random bits, or 0 where the host has none: then nothing is
// spread, which harms nobody.
func random() uint64 {
	var b [8]byte
	if !host.Random(b[:]) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// shares are what is left of all enforced limits, the reported one first.
func shares(o *policy.Outcome) (all []response.Share, limits []*policy.Limit) {
	all, limits = []response.Share{o.Reported.Share()}, []*policy.Limit{o.Limit}
	for i := range o.Rulings {
		g := &o.Rulings[i]
		if g != o.Reported && !g.Shadow && !g.Failed {
			all, limits = append(all, g.Share()), append(limits, g.Limit)
		}
	}
	return all, limits
}
