// Package policy is a config made ready to decide about requests: rules to
// match, keys to build and limits to take from. It may import packages
// algorithms, config, keys and table; of the host it knows only what keys.Request,
// table.Store and Host give it.
package policy

import (
	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/keys"
	"github.com/sluice-proxy/sluice/filter/response"
	"github.com/sluice-proxy/sluice/filter/table"
)

// Limit is one limit of a policy.
type Limit struct {
	Name string
	// Details are the response code details of a refusal by this limit.
	Details string

	limiter  algorithms.Limiter
	key      []keys.Part
	missing  config.Missing
	identity string
	seed     table.Seed // of the limit's buckets; set by Attach
}

// use is a limit with what a request takes from it.
type use struct {
	limit *Limit
	cost  int64
}

// Rule is what applies to the requests that it matches.
type Rule struct {
	Name     string // "" if it has none
	Response config.Response

	match    config.Match
	uses     []use // the rule's limits, then those that apply always
	usesWall bool  // one of them needs the wall clock
}

// Policy decides about requests. It is not safe for concurrent use.
type Policy struct {
	Limits []*Limit
	// AllHeaders says to read all request headers at once where any is needed:
	// it costs what one and a half single reads cost.
	AllHeaders bool

	rules    []*Rule
	fallback *Rule // for a request that no rule matches
	failure  config.OnError
	table    *table.Table

	// Scratch of one decision, kept so that deciding does not allocate.
	takings []taking
	key     []byte
}

// New compiles a config.
func New(c *config.Config) *Policy {
	p := &Policy{failure: c.OnError}
	for i := range c.Limits {
		p.Limits = append(p.Limits, newLimit(&c.Limits[i]))
	}
	p.fallback = p.newRule(config.Rule{Response: c.Response}, c.Always)
	for _, r := range c.Rules {
		p.rules = append(p.rules, p.newRule(r, c.Always))
	}
	p.AllHeaders = headerReads(c) > 1
	return p
}

func newLimit(l *config.Limit) *Limit {
	// What two limits must have in common to share buckets. No piece can
	// contain a zero byte.
	identity := l.Name + "\x00" + l.Shape
	for _, part := range l.Key {
		identity += "\x00" + part.Identity()
	}
	return &Limit{
		Name:     l.Name,
		Details:  response.DetailsPrefix + l.Name,
		limiter:  l.Limiter,
		key:      l.Key,
		missing:  l.Missing,
		identity: identity,
	}
}

// newRule merges a rule's limits with those that apply always: a limit that
// both name counts once, at the larger cost.
func (p *Policy) newRule(r config.Rule, always []config.Use) *Rule {
	rule := &Rule{Name: r.Name, Response: r.Response, match: r.Match}
	at := map[int]int{}
	for _, u := range append(append([]config.Use(nil), r.Limits...), always...) {
		i, named := at[u.Limit]
		if !named {
			at[u.Limit] = len(rule.uses)
			limit := p.Limits[u.Limit]
			rule.uses = append(rule.uses, use{limit: limit, cost: u.Cost})
			rule.usesWall = rule.usesWall || limit.limiter.UsesWall()
			continue
		}
		rule.uses[i].cost = max(rule.uses[i].cost, u.Cost)
	}
	p.takings = append(p.takings, make([]taking, max(0, len(rule.uses)-len(p.takings)))...)
	return rule
}

// FallbackRule is the one of requests that no rule matches.
func (p *Policy) FallbackRule() *Rule { return p.fallback }

// Attach gives the policy the table that its buckets lie in.
func (p *Policy) Attach(t *table.Table) {
	for _, l := range p.Limits {
		l.seed = t.Seed(l.identity)
	}
	p.table = t
}

// headerReads counts the request headers, pseudo-headers included, that the
// rules and keys of a config can read. A header of a key counts as more than
// one, since all its values must be seen.
func headerReads(c *config.Config) int {
	var method, path, host, other int
	for _, r := range c.Rules {
		if len(r.Match.Method) > 0 {
			method = 1
		}
		if len(r.Match.Path) > 0 || len(r.Match.PathPrefix) > 0 {
			path = 1
		}
		if len(r.Match.Host) > 0 {
			host = 1
		}
	}
	for _, l := range c.Limits {
		for _, part := range l.Key {
			for _, s := range part.Sources {
				switch s.Kind {
				case keys.Method:
					method = 1
				case keys.Path:
					path = 1
				case keys.Host:
					host = 1
				case keys.Header:
					other = 2
				}
			}
		}
	}
	return method + path + host + other
}
