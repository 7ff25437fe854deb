package config

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// identity is the match in one canonical spelling: the same for two documents
// that say the same in another order, or with arrays of one, and another for
// every other match. It has no zero byte.
func (m *Match) identity() string {
	return spelled("route", each(m.Route, strconv.QuoteToASCII)) +
		spelled("virtual_host", each(m.VirtualHost, strconv.QuoteToASCII)) +
		spelled("host", each(m.Host, HostPattern.identity)) +
		spelled("path", each(m.Path, strconv.QuoteToASCII)) +
		spelled("path_prefix", each(m.PathPrefix, strconv.QuoteToASCII)) +
		spelled("path_regex", each(m.PathRegex, regexIdentity)) +
		spelled("method", each(m.Method, strconv.QuoteToASCII)) +
		spelled("headers", each(m.Headers, HeaderMatch.identity)) +
		spelled("ip", each(m.IP, netip.Prefix.String)) +
		spelled("value", each(m.Values, ValueMatch.identity))
}

// spelled is a field with its values, in an order of their own and each once.
func spelled(name string, values []string) string {
	if len(values) == 0 {
		return ""
	}
	slices.Sort(values)
	return name + "(" + strings.Join(slices.Compact(values), " ") + ")"
}

func each[T any](values []T, spell func(T) string) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = spell(v)
	}
	return all
}

func (h HostPattern) identity() string {
	if h.Under {
		return strconv.QuoteToASCII("*." + h.Name)
	}
	return strconv.QuoteToASCII(h.Name)
}

func regexIdentity(r *regexp.Regexp) string { return strconv.QuoteToASCII(r.String()) }

func (m HeaderMatch) identity() string {
	return spelled(strconv.QuoteToASCII(m.Name), each(m.Any, Condition.identity))
}

func (c Condition) identity() string {
	var text string
	if c.Not {
		text = "not "
	}
	switch {
	case c.Exact != nil:
		return text + strconv.QuoteToASCII(*c.Exact)
	case c.Prefix != nil:
		return text + "prefix " + strconv.QuoteToASCII(*c.Prefix)
	case c.Regex != nil:
		return text + "regex " + regexIdentity(c.Regex)
	}
	return text + "present"
}

func (m ValueMatch) identity() string {
	return spelled(m.Part.Identity(), each(m.Any, strconv.QuoteToASCII))
}
