// Package policy is a config made ready to decide about requests: rules to
// match, keys to build and limits to take from. It may import packages
// algorithms, config, field, keys, response and table; of the host it knows only
// what keys.Request and table.Store give it.
package policy

import (
	"slices"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/keys"
	"github.com/sluice-proxy/sluice/filter/response"
	"github.com/sluice-proxy/sluice/filter/table"
)

// Policy decides about requests. It is not safe for concurrent use.
type Policy struct {
	// AllHeaders says to read all request headers at once where any is needed:
	// it costs what one and a half single reads cost.
	AllHeaders bool

	limits   []*Limit // its own; those of Always may be another policy's
	always   []use
	exempt   []match
	rules    []*Rule
	fallback *Rule // for a request that no rule matches
	failure  config.OnError
	// onFailure is for limits of the fleet whose service is away.
	onFailure config.OnFailure
	table     *table.Table

	// Scratch of one decision, kept so that deciding does not allocate.
	rulings []Ruling
	outcome Outcome
	key     []byte
	rest    algorithms.Decision // of a bucket that is changed after the decision
	record  table.Record        // of a claim's bucket
}

// New compiles a plugin's config.
func New(c *config.Config) *Policy {
	return compile(c, "", nil)
}

// NewRoute compiles a route's own config. Its limits are its own: no other
// route's, told apart by name, share their buckets. The plugin's limits that
// apply always apply here too, and share the plugin's buckets.
func (p *Policy) NewRoute(c *config.Config, name string) *Policy {
	route := compile(c, name, p.always)
	route.failure = p.failure
	route.Attach(p.table)
	return route
}

// compile makes a policy of a config. owner is part of its limits' identity, and
// always applies besides what the config itself says.
func compile(c *config.Config, owner string, always []use) *Policy {
	p := &Policy{failure: c.OnError, always: always}
	if c.Global != nil {
		p.onFailure = c.Global.OnFailure
	}
	costs := largestCosts(c)
	for i := range c.Limits {
		p.limits = append(p.limits, newLimit(&c.Limits[i], owner, c.Global, costs[i]))
	}
	for _, u := range c.Always {
		p.always = append(p.always, p.newUse(u))
	}
	for i := range c.Exempt {
		p.exempt = append(p.exempt, newMatch(&c.Exempt[i], false))
	}
	p.fallback = p.newRule(&config.Rule{Response: c.Response})
	for i := range c.Rules {
		p.rules = append(p.rules, p.newRule(&c.Rules[i]))
	}
	p.AllHeaders = headerReads(c) > 1
	return p
}

// Attach gives the policy the table that its buckets lie in.
func (p *Policy) Attach(t *table.Table) {
	p.table = t
	for _, l := range p.limits {
		l.attach(t)
	}
}

// Exempts says whether a request is none of the filter's business.
func (p *Policy) Exempts(r keys.Request) bool {
	for i := range p.exempt {
		if p.exempt[i].holds(r) {
			return true
		}
	}
	return false
}

// HasExemptions says whether any request may be exempt.
func (p *Policy) HasExemptions() bool { return len(p.exempt) > 0 }

// Match returns the first rule that matches a request, or the one of no limits
// but those that apply always.
func (p *Policy) Match(r keys.Request) *Rule {
	for _, rule := range p.rules {
		if rule.match.always || rule.match.holds(r) {
			return rule
		}
	}
	return p.fallback
}

// Rule returns the rule of that name, or nil.
func (p *Policy) Rule(name []byte) *Rule {
	for _, rule := range p.rules {
		if rule.Name != "" && rule.Name == string(name) {
			return rule
		}
	}
	return nil
}

// FallbackRule is the one of requests that no rule matches.
func (p *Policy) FallbackRule() *Rule { return p.fallback }

// Rule is what applies to the requests that it matches.
type Rule struct {
	Name     string // "" if it has none
	Response *response.Template

	// UsesWall says that one of its limits needs the wall clock.
	UsesWall bool
	// Lasts says that one of its limits has more to do with a request that it
	// has admitted.
	Lasts bool
	// Removes are the response headers that no client is to see.
	Removes []string
	// Global says that a service has to do with one of its limits.
	Global bool

	match match
	uses  []use // in one order for all rules: compareLimits
}

// largestCosts returns the most that one request takes of each limit.
func largestCosts(c *config.Config) []int64 {
	largest := make([]int64, len(c.Limits))
	note := func(uses []config.Use) {
		for _, u := range uses {
			largest[u.Limit] = max(largest[u.Limit], u.Cost.Units, u.Cost.Max)
		}
	}
	note(c.Always)
	for i := range c.Rules {
		note(c.Rules[i].Limits)
	}
	return largest
}

// HasLimits says whether any limit may apply under the rule.
func (r *Rule) HasLimits() bool { return len(r.uses) > 0 }

// use is a limit with what a request takes from it.
type use struct {
	limit *Limit
	cost  config.Cost
	// least is the cost that the limit has besides, by another list.
	least int64
	// plain says that of a request the key alone matters to the limit, and that
	// cost.Units is what it takes.
	plain bool
}

func (p *Policy) newUse(u config.Use) use {
	limit := p.limits[u.Limit]
	if limit.Concurrency {
		return use{limit: limit, cost: config.Cost{Units: 1}}
	}
	return use{limit: limit, cost: u.Cost}
}

// newRule merges a rule's limits with those that apply always: a limit that
// both name counts once, at the larger cost.
func (p *Policy) newRule(r *config.Rule) *Rule {
	rule := &Rule{Name: r.Name, Response: response.Compile(&r.Response), match: newMatch(&r.Match, true)}
	for _, u := range r.Limits {
		rule.uses = append(rule.uses, p.newUse(u))
	}
	for _, u := range p.always {
		if i := slices.IndexFunc(rule.uses, func(v use) bool { return v.limit == u.limit }); i >= 0 {
			rule.uses[i].least = u.cost.Units
		} else {
			rule.uses = append(rule.uses, u)
		}
	}
	// One order for all rules: two requests that take from the same limits, each
	// the other's last unit first, would both be refused.
	slices.SortStableFunc(rule.uses, func(a, b use) int { return compareLimits(a.limit, b.limit) })
	for i := range rule.uses {
		u := &rule.uses[i]
		u.plain = u.cost.Header == "" && u.limit.isPlain()
		if u.plain {
			u.cost.Units = max(u.cost.Units, u.least)
		}
		rule.UsesWall = rule.UsesWall || u.limit.usesWall()
		rule.Lasts = rule.Lasts || u.limit.Lasts()
		rule.Global = rule.Global || u.limit.global
		if c := u.limit.Charge; c != nil && c.Remove {
			rule.Removes = append(rule.Removes, c.ResponseHeader)
		}
	}
	p.rulings = append(p.rulings, make([]Ruling, max(0, len(rule.uses)-len(p.rulings)))...)
	return rule
}
