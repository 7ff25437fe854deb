package policy

import (
	"net/netip"
	"regexp"
	"slices"

	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/keys"
)

// longSubject is how many bytes of a subject a regex is run on. What is longer
// is decided by where the regex stands, so that length frees nobody.
const longSubject = 2048

// match is a config's match, ready to be asked.
type match struct {
	*config.Match
	// always is set where the match has no fields, as most of last rules have.
	always bool
	// long is what a regex says of a subject that is too long to be looked at.
	long bool
	// plainPath has no ambiguous path match, so that none frees anybody.
	plainPath bool
	// text is scratch for the text of an address.
	text [64]byte
}

func newMatch(m *config.Match, long bool) match {
	return match{Match: m, long: long, plainPath: !long && asksForPath(m), always: len(m.Route)+len(m.VirtualHost)+len(m.Host)+len(m.Path)+len(m.PathPrefix)+
		len(m.PathRegex)+len(m.Method)+len(m.Headers)+len(m.IP)+len(m.Values) == 0}
}

// holds reads nothing of the request that the match does not ask for, and what
// is cheap first. It is not inlined: what has no fields need not be asked.
//
//go:noinline
func (m *match) holds(r keys.Request) bool {
	return m.always ||
		(len(m.Method) == 0 || equalsAny(m.Method, r.Method())) &&
			(len(m.Path) == 0 || equalsAny(m.Path, r.Path())) &&
			(len(m.PathPrefix) == 0 || hasAnyPrefix(m.PathPrefix, r.Path())) &&
			(len(m.Host) == 0 || isAnyHost(m.Host, r.Host())) &&
			(len(m.Headers) == 0 || m.headersHold(r)) &&
			(len(m.IP) == 0 || isInAny(m.IP, r)) &&
			(len(m.Route) == 0 || equalsAny(m.Route, r.Route())) &&
			(len(m.VirtualHost) == 0 || equalsAny(m.VirtualHost, r.VirtualHost())) &&
			(len(m.Values) == 0 || m.valuesHold(r)) &&
			(len(m.PathRegex) == 0 || m.pathRegexHolds(r)) &&
			(!m.plainPath || !isAmbiguous(r.Path()))
}

// asksForPath says whether the path has to do with whether m holds.
func asksForPath(m *config.Match) bool {
	if len(m.Path)+len(m.PathPrefix)+len(m.PathRegex) > 0 {
		return true
	}
	for i := range m.Values {
		if slices.ContainsFunc(m.Values[i].Part.Sources, func(s keys.Source) bool { return s.Kind == keys.Path }) {
			return true
		}
	}
	return false
}

// isAmbiguous says whether an upstream may read a normalised path as another
// one: by decoding an escaped slash, or by folding a backslash or a parameter.
func isAmbiguous(path []byte) bool {
	for i, b := range path {
		if b == '\\' || b == ';' || b == '%' && i+2 < len(path) && path[i+1] == '2' && path[i+2]|0x20 == 'f' {
			return true
		}
	}
	return false
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

func isInAny(networks []netip.Prefix, r keys.Request) bool {
	address, ok := r.Address()
	if !ok {
		return false
	}
	for _, network := range networks {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

func (m *match) pathRegexHolds(r keys.Request) bool {
	path := r.Path()
	for _, regex := range m.PathRegex {
		if m.matches(regex, path) {
			return true
		}
	}
	return false
}

func (m *match) matches(regex *regexp.Regexp, subject []byte) bool {
	if len(subject) > longSubject {
		return m.long
	}
	return regex.Match(subject)
}

func (m *match) headersHold(r keys.Request) bool {
	for i := range m.Headers {
		if !m.anyHolds(m.Headers[i].Any, r.Header(m.Headers[i].Name)) {
			return false
		}
	}
	return true
}

func (m *match) anyHolds(conditions []config.Condition, value []byte) bool {
	for i := range conditions {
		if m.conditionHolds(&conditions[i], value) {
			return true
		}
	}
	return false
}

// conditionHolds says whether a header's value fits; an empty one is missing.
func (m *match) conditionHolds(c *config.Condition, value []byte) bool {
	present := len(value) > 0
	var fits bool
	switch {
	case c.Present:
		fits = present
	case c.Exact != nil:
		fits = present && string(value) == *c.Exact
	case c.Prefix != nil:
		fits = present && len(value) >= len(*c.Prefix) && string(value[:len(*c.Prefix)]) == *c.Prefix
	case len(value) > longSubject:
		return m.long // under "not" as well
	default:
		fits = present && c.Regex.Match(value)
	}
	return fits != c.Not
}

func (m *match) valuesHold(r keys.Request) bool {
	for i := range m.Values {
		v := &m.Values[i]
		value, present := v.Part.Value(m.text[:0], r)
		if !present || !equalsAny(v.Any, value) {
			return false
		}
	}
	return true
}
