package config

import (
	"errors"
	"net/netip"
	"strings"

	"github.com/sluice-proxy/sluice/filter/normal"
)

const wantHost = `a host's name such as "example.com" or "*.example.com"`

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
