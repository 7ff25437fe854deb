package config

import (
	"errors"
	"net/netip"
	"strings"
)

// clientIPDraft is "client_ip" as it is written.
type clientIPDraft struct {
	ClientIP
	source string
}

const (
	sourceEnvoy  = "envoy"
	sourceHeader = "header"
)

var clientIPMembers = members[clientIPDraft]{
	fields: []field[clientIPDraft]{
		optional("source", oneOf(choice[string]{sourceEnvoy, sourceEnvoy}, choice[string]{sourceHeader, sourceHeader}),
			func(d *clientIPDraft) *string { return &d.source }).
			explain("Whether the address is Envoy's downstream remote address or read from a header.").defaultsTo(`"envoy"`),
		optional("header", stringAs(`a header's name such as "x-forwarded-for"`, parseAddressHeader), func(d *clientIPDraft) *string { return &d.Header }).
			explain("The header that lists addresses, the nearest proxy's entry last. Only for the source \"header\"."),
		optional("trusted_hops", whole(1, maxInteger), func(d *clientIPDraft) *int { return &d.TrustedHops }).
			explain("The client is the entry that the last of so many trusted proxies appended, counted from the right."),
		optional("trusted_proxies", proxiesValue, func(d *clientIPDraft) *[]netip.Prefix { return &d.TrustedProxies }).
			explain("The client is the first entry from the right that is not one of these addresses and networks."),
		optional("ipv4_prefix", whole[uint8](1, 32), func(d *clientIPDraft) *uint8 { return &d.IPv4Prefix }).
			explain("How many bits of an IPv4 address tell clients apart in keys.").defaultsTo("32"),
		optional("ipv6_prefix", whole[uint8](1, 128), func(d *clientIPDraft) *uint8 { return &d.IPv6Prefix }).
			explain("How many bits of an IPv6 address tell clients apart in keys.").defaultsTo("64"),
	},
}

// parseAddressHeader reads the name of a header that may list addresses.
func parseAddressHeader(s string) (string, error) {
	switch strings.ToLower(s) {
	case "forwarded":
		return "", errors.New("it has the syntax of RFC 7239, which is not read: want x-forwarded-for or another header of plain addresses")
	case "host", "authorization", "cookie", "via", "user-agent":
		return "", errors.New("lists no addresses: want x-forwarded-for or another header of plain addresses")
	}
	return parseHeaderName(s)
}

var proxiesValue = value[[]netip.Prefix]{wantProxies, arraySchema(stringSchema, `,"minItems":1`), func(r *reader, n *node, to *[]netip.Prefix) bool {
	if n.kind == arrayKind && len(n.children) == 0 {
		r.mistake(n, "an empty array, which trusts nobody: want "+wantProxies)
		return false
	}
	return listOf(wantProxies, networkValue).read(r, n, to)
}}

const (
	wantClientIP = `an object such as {"source": "header", "header": "x-forwarded-for", "trusted_hops": 1}`
	wantProxies  = `an array of addresses and networks such as ["10.0.0.0/8"]`
)

var clientIPValue = value[ClientIP]{wantClientIP, clientIPSchema, func(r *reader, n *node, to *ClientIP) bool {
	d := clientIPDraft{ClientIP: *to, source: sourceEnvoy}
	if !clientIPMembers.read(r, n, wantClientIP, &d) || !checkSource(r, n, d.source) {
		return false
	}
	*to = d.ClientIP
	return true
}}

// checkSource checks that the object n has what its source needs and no more.
func checkSource(r *reader, n *node, source string) bool {
	before := r.count()
	hops, proxies := n.member("trusted_hops"), n.member("trusted_proxies")
	switch {
	case source == sourceEnvoy:
		for _, name := range []string{"header", "trusted_hops", "trusted_proxies"} {
			if child := n.member(name); child != nil {
				r.mistake(child, `belongs to the source "header": want "source": "header" as well, or leave it out`)
			}
		}
	case n.member("header") == nil:
		r.missing(n, "header", `a header's name such as "x-forwarded-for"`)
	case hops == nil && proxies == nil:
		r.mistake(n, `trusts no entry of the header: want "trusted_hops" or "trusted_proxies"`)
	case hops != nil && proxies != nil:
		r.mistake(n, `has both "trusted_hops" and "trusted_proxies": want one of them`)
	}
	return r.count() == before
}
