package policy

import (
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/keys"
)

// Match returns the first rule that matches a request, or the one of no limits
// but those that apply always.
func (p *Policy) Match(r keys.Request) *Rule {
	for _, rule := range p.rules {
		if holds(&rule.match, r) {
			return rule
		}
	}
	return p.fallback
}

// holds reads nothing of the request that the match does not ask for.
func holds(m *config.Match, r keys.Request) bool {
	return (len(m.Method) == 0 || equalsAny(m.Method, r.Method())) &&
		(len(m.Path) == 0 || equalsAny(m.Path, r.Path())) &&
		(len(m.PathPrefix) == 0 || hasAnyPrefix(m.PathPrefix, r.Path())) &&
		(len(m.Host) == 0 || isAnyHost(m.Host, r.Host())) &&
		(len(m.Route) == 0 || equalsAny(m.Route, r.Route()))
}

func equalsAny(want []string, got []byte) bool {
	for _, w := range want {
		if w == string(got) {
			return true
		}
	}
	return false
}

// hasAnyPrefix compares whole segments: "/api" is a prefix of "/api" and
// "/api/x", not of "/apix".
func hasAnyPrefix(want []string, path []byte) bool {
	for _, w := range want {
		if len(path) < len(w) || string(path[:len(w)]) != w {
			continue
		}
		if len(path) == len(w) || w[len(w)-1] == '/' || path[len(w)] == '/' {
			return true
		}
	}
	return false
}

func isAnyHost(want []config.HostPattern, host []byte) bool {
	for _, w := range want {
		if w.Under && isUnder(host, w.Name) || !w.Under && string(host) == w.Name {
			return true
		}
	}
	return false
}

// isUnder says whether a host's name is something, a dot, and then name.
func isUnder(host []byte, name string) bool {
	at := len(host) - len(name) - 1
	return at > 0 && host[at] == '.' && string(host[at+1:]) == name
}
