package policy

import (
	"bytes"

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
		name, isUnder := host, false
		if w.Under {
			var label []byte
			label, name, isUnder = cutSuffixName(host, len(w.Name))
			isUnder = isUnder && len(label) > 0
		}
		if isUnder == w.Under && string(name) == w.Name {
			return true
		}
	}
	return false
}

// cutSuffixName splits the last n bytes of a host name, and the dot before
// them, from what is in front.
func cutSuffixName(host []byte, n int) (label, name []byte, ok bool) {
	at := len(host) - n - 1
	if at < 0 || bytes.IndexByte(host[at:], '.') != 0 {
		return nil, nil, false
	}
	return host[:at], host[at+1:], true
}
