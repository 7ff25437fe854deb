package config

import (
	"errors"
	"net/netip"
	"strings"

	"github.com/sluice-proxy/sluice/filter/normal"
)

var matchValue = objectOf(`an object such as {"path": "/login"}`, members[Match]{
	fields: []field[Match]{
		optional("path", oneOrMore(stringAs(wantPath, parsePath)), func(m *Match) *[]string { return &m.Path }),
		optional("path_prefix", oneOrMore(stringAs(wantPathPrefix, parsePathPrefix)), func(m *Match) *[]string { return &m.PathPrefix }),
		optional("method", oneOrMore(stringAs(wantMethod, parseMethod)), func(m *Match) *[]string { return &m.Method }),
		optional("host", oneOrMore(stringAs(wantHost, parseHost)), func(m *Match) *[]HostPattern { return &m.Host }),
		optional("route", oneOrMore(stringAs(wantRoute, parseRoute)), func(m *Match) *[]string { return &m.Route }),
	},
	refused: notYetMatch,
})

const (
	wantPath       = `a path such as "/login"`
	wantPathPrefix = `the beginning of paths such as "/api"`
	wantMethod     = `a method in capitals such as "POST"`
	wantHost       = `a host's name such as "example.com" or "*.example.com"`
	wantRoute      = `the name of an Envoy route`
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

// parseHost reads a name, an address or a pattern to compare hosts with. It
// refuses what no request's host could equal.
func parseHost(s string) (HostPattern, error) {
	name, under := strings.CutPrefix(s, "*.")
	if address, ok := bracketed(name); ok && !under {
		if ip, err := netip.ParseAddr(address); err != nil || !ip.Is6() {
			return HostPattern{}, errors.New("want an IPv6 address in the brackets")
		}
		return HostPattern{Name: normal.Host(name)}, nil
	}
	if strings.Contains(name, ":") {
		return HostPattern{}, errors.New("want the host without its port; an IPv6 address stands in brackets")
	}
	if strings.Trim(name, hostCharacters) != "" {
		return HostPattern{}, errors.New(`want letters, digits, dots and -, as in the Host header (for other letters their "xn--" form), and "*." only in front`)
	}
	name = normal.Host(name)
	if name == "" || name[0] == '.' || strings.Contains(name, "..") {
		return HostPattern{}, wantError(wantHost)
	}
	return HostPattern{Name: name, Under: under}, nil
}

const hostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

// bracketed returns what stands in the brackets around s.
func bracketed(s string) (inside string, ok bool) {
	inside, opens := strings.CutPrefix(s, "[")
	inside, closes := strings.CutSuffix(inside, "]")
	return inside, opens && closes
}

func parseRoute(s string) (string, error) {
	if s == "" {
		return "", wantError(wantRoute)
	}
	return s, nil
}
