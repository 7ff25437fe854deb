package config

import (
	"reflect"
	"testing"

	"github.com/sluice-proxy/sluice/filter/keys"
)

func TestEveryModeOfTheClientsAddressIsRead(t *testing.T) {
	for document, want := range map[string]ClientIP{
		`{}`:                  {IPv4Prefix: 32, IPv6Prefix: 64},
		`{"source": "envoy"}`: {IPv4Prefix: 32, IPv6Prefix: 64},
		`{"ipv4_prefix": 24, "ipv6_prefix": 128}`:                                                           {IPv4Prefix: 24, IPv6Prefix: 128},
		`{"source": "envoy", "ipv4_prefix": 1, "ipv6_prefix": 1.0}`:                                         {IPv4Prefix: 1, IPv6Prefix: 1},
		`{"source": "header", "header": "X-Forwarded-For", "trusted_hops": 2}`:                              {Header: "x-forwarded-for", TrustedHops: 2, IPv4Prefix: 32, IPv6Prefix: 64},
		`{"trusted_proxies": ["10.0.0.1/8", "::ffff:1.2.3.4"], "header": "x-real-ip", "source": "header"}`:  {Header: "x-real-ip", TrustedProxies: prefixes("10.0.0.0/8", "1.2.3.4/32"), IPv4Prefix: 32, IPv6Prefix: 64},
		`{"source": "header", "header": "a", "trusted_proxies": ["2001:db8::/32"], "ipv6_prefix": 56}`:      {Header: "a", TrustedProxies: prefixes("2001:db8::/32"), IPv4Prefix: 32, IPv6Prefix: 56},
		`{"source": "header", "header": "a", "trusted_hops": 1e9, "ipv4_prefix": 32.0, "ipv6_prefix": 6e1}`: {Header: "a", TrustedHops: 1e9, IPv4Prefix: 32, IPv6Prefix: 60},
	} {
		c := mustParse(t, `{"client_ip": `+document+`, "limits": {"x": {"algorithm": "gcra", "rate": 1, "key": ["header:a|ip", "method"]}}}`)
		if !reflect.DeepEqual(c.ClientIP, want) {
			t.Errorf("%s: got %+v, want %+v", document, c.ClientIP, want)
		}
		key := c.Limits[0].Key
		if ip := key[0].Sources[1]; ip != (keys.Source{Kind: keys.IP, IPv4Bits: want.IPv4Prefix, IPv6Bits: want.IPv6Prefix}) {
			t.Errorf("%s: the key has %+v", document, ip)
		}
		if other := key[1].Sources[0]; other.IPv4Bits != 0 || other.IPv6Bits != 0 {
			t.Errorf("%s: the key has %+v", document, other)
		}
	}
}

func TestAMistakeInClientIPSaysWhereAndWhatInstead(t *testing.T) {
	const belongs = `: belongs to the source "header": want "source": "header" as well, or leave it out`
	const proxies = `want an array of addresses and networks such as ["10.0.0.0/8"]`
	for clientIP, want := range map[string]string{
		`5`:                   `client_ip: the number 5: want an object such as {"source": "header", "header": "x-forwarded-for", "trusted_hops": 1}`,
		`{"source": "xff"}`:   `client_ip.source: "xff": want "envoy" or "header"`,
		`{"trusted_hops": 1}`: `client_ip.trusted_hops` + belongs,
		`{"header": "a"}`:     `client_ip.header` + belongs,
		`{"source": "envoy", "trusted_proxies": ["10.0.0.0/8"]}`:                             `client_ip.trusted_proxies` + belongs,
		`{"source": "header", "trusted_hops": 1}`:                                            `client_ip.header: missing: want a header's name such as "x-forwarded-for"`,
		`{"source": "header", "header": "a"}`:                                                `client_ip: trusts no entry of the header: want "trusted_hops" or "trusted_proxies"`,
		`{"source": "header", "header": "a", "trusted_hops": 1, "trusted_proxies": ["::1"]}`: `client_ip: has both "trusted_hops" and "trusted_proxies": want one of them`,
		`{"source": "header", "header": "a", "trusted_hops": 0}`:                             `client_ip.trusted_hops: 0: want a whole number from 1 to 1000000000`,
		`{"source": "header", "header": "a", "trusted_proxies": []}`:                         `client_ip.trusted_proxies: an empty array, which trusts nobody: ` + proxies,
		`{"source": "header", "header": "a", "trusted_proxies": "10.0.0.0/8"}`:               `client_ip.trusted_proxies: the string "10.0.0.0/8": ` + proxies,
		`{"source": "header", "header": "a", "trusted_proxies": ["proxy"]}`:                  `client_ip.trusted_proxies[0]: "proxy": want an address such as "192.0.2.1" or a network such as "10.0.0.0/8"`,
		`{"source": "header", "header": "a b", "trusted_hops": 1}`:                           `client_ip.header: "a b": want a header's name, of letters, digits and -`,
		`{"source": "header", "header": "Forwarded", "trusted_hops": 1}`:                     `client_ip.header: "Forwarded": it has the syntax of RFC 7239, which is not read: want x-forwarded-for or another header of plain addresses`,
		`{"source": "header", "header": "host", "trusted_hops": 1}`:                          `client_ip.header: "host": lists no addresses: want x-forwarded-for or another header of plain addresses`,
		`{"source": "header", "header": ":path", "trusted_hops": 1}`:                         `client_ip.header: ":path": want a header's name; the path, method and host that HTTP/2 spells so are fields and key parts of their own`,
		`{"ipv4_prefix": 0}`:    `client_ip.ipv4_prefix: 0: want a whole number from 1 to 32`,
		`{"ipv4_prefix": 33}`:   `client_ip.ipv4_prefix: 33: want a whole number from 1 to 32`,
		`{"ipv6_prefix": 129}`:  `client_ip.ipv6_prefix: 129: want a whole number from 1 to 128`,
		`{"ipv6_prefix": 300}`:  `client_ip.ipv6_prefix: 300: want a whole number from 1 to 128`,
		`{"ipv6_prefix": -1}`:   `client_ip.ipv6_prefix: -1: want a whole number from 1 to 128`,
		`{"ipv6_prefix": "64"}`: `client_ip.ipv6_prefix: the string "64": want a whole number from 1 to 128`,
		`{"sources": "envoy"}`:  `client_ip.sources: no such field; did you mean "source"?`,
	} {
		wantMistakes(t, `{"limits": {}, "client_ip": `+clientIP+`}`, want)
	}
}
