package config

import (
	"errors"
	"net/netip"
	"regexp"
	"strings"

	"github.com/sluice-proxy/sluice/filter/keys"
	"github.com/sluice-proxy/sluice/filter/normal"
)

var matchMembers = members[Match]{
	fields: []field[Match]{
		optional("path", distinct(stringAs(wantPath, parsePath).as(patternSchema(`^(\*$|/[^?#*]*$)`))), func(m *Match) *[]string { return &m.Path }).
			explain("The path, without its query, equals it. Another spelling of a path is the same path."),
		optional("path_prefix", distinct(stringAs(wantPathPrefix, parsePathPrefix).as(patternSchema(`^/[^?#*]*$`))), func(m *Match) *[]string { return &m.PathPrefix }).
			explain("The path begins with it, in whole segments: /api holds for /api/x, not for /apix."),
		optional("path_regex", distinct(pathRegexValue), func(m *Match) *[]*regexp.Regexp { return &m.PathRegex }).
			explain("The whole path, without its query, matches it (RE2)."),
		optional("method", distinct(stringAs(wantMethod, parseMethod).as(patternSchema("^[A-Z0-9_-]+$"))), func(m *Match) *[]string { return &m.Method }).
			explain("The method equals it."),
		optional("host", distinct(stringAs(wantHost, parseHost)), func(m *Match) *[]HostPattern { return &m.Host }).
			explain("The :authority without its port equals it; \"*.example.com\" is any name under example.com."),
		optional("route", distinct(stringAs(wantRoute, parseEnvoyName(wantRoute)).as(textSchema)), func(m *Match) *[]string { return &m.Route }).
			explain("The name of the Envoy route equals it."),
		optional("virtual_host", distinct(stringAs(wantVirtualHost, parseEnvoyName(wantVirtualHost)).as(textSchema)), func(m *Match) *[]string { return &m.VirtualHost }).
			explain("The name of the Envoy virtual host equals it."),
		optional("headers", headersValue, func(m *Match) *[]HeaderMatch { return &m.Headers }).
			explain("Every request header that is named here fits."),
		optional("ip", distinct(networkValue), func(m *Match) *[]netip.Prefix { return &m.IP }).
			explain("The client's address equals it or is in it."),
		optional("value", valuesValue, func(m *Match) *[]ValueMatch { return &m.Values }).
			explain("Every key part that is named here has the value."),
	},
	refused: []refusal{{"match", "is what this object is: want its fields here, without it"}},
}

// matchElsewhere are the refusals of a match's fields in an object that has them
// under "match".
func matchElsewhere() []refusal {
	var all []refusal
	for _, f := range matchMembers.fields {
		all = append(all, refusal{f.name, `belongs under "match": want "match": {` + quote(f.name) + ": …}"})
	}
	return all
}

var matchValue = value[Match]{wantMatch, defined("match", matchMembers.schema()), func(r *reader, n *node, to *Match) bool {
	return matchMembers.read(r, n, wantMatch, to)
}}

// earlyMatchValue is a match that is tried before a rule has matched.
var earlyMatchValue = value[Match]{wantMatch, matchValue.schema, func(r *reader, n *node, to *Match) bool {
	ok := matchValue.read(r, n, to)
	if values := n.member("value"); values != nil {
		for _, child := range values.children {
			if part, err := keys.Parse(child.name); err == nil && reads(part, keys.Rule) {
				r.mistake(child, "the rule is not known before one has matched: want it in overrides only")
				ok = false
			}
		}
	}
	return ok
}}

const (
	wantMatch       = `an object such as {"path": "/login"}`
	wantPath        = `a path such as "/login"`
	wantPathPrefix  = `the beginning of paths such as "/api"`
	wantMethod      = `a method in capitals such as "POST"`
	wantRoute       = `the name of an Envoy route`
	wantVirtualHost = `the name of an Envoy virtual host`
)

// parsePath reads a path to compare with. "*" is the target of OPTIONS *.
func parsePath(s string) (string, error) {
	if s != "*" {
		if err := checkPath(s, wantPath); err != nil {
			return "", err
		}
	}
	return normal.Path(s), nil
}

func parsePathPrefix(s string) (string, error) {
	if err := checkPath(s, wantPathPrefix); err != nil {
		return "", err
	}
	return normal.Path(s), nil
}

// checkPath refuses what could only be meant in another way than normal.Path
// takes it.
func checkPath(s, want string) error {
	switch {
	case !strings.HasPrefix(s, "/"):
		return wantError(want + ", beginning with /")
	case strings.ContainsAny(s, "?#"):
		return errors.New("paths are compared without what follows ? or #: leave it out")
	case strings.Contains(s, "*"):
		return errors.New("there are no wildcards in paths: want path_prefix or path_regex, or %2A for a * itself")
	}
	return nil
}

// parseMethod refuses lower case: methods are case-sensitive (RFC 9110, 9.1),
// and "post" would never equal a request's.
func parseMethod(s string) (string, error) {
	if s == "" || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return "", wantError(wantMethod)
	}
	return s, nil
}

// parseEnvoyName reads a name that was given in Envoy's own config.
func parseEnvoyName(want string) func(string) (string, error) {
	return func(s string) (string, error) {
		if s == "" {
			return "", wantError(want)
		}
		return s, nil
	}
}
