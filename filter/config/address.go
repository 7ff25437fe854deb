package config

import (
	"errors"
	"net/netip"
	"strconv"
)

// networkValue is an address, or a network in CIDR notation (RFC 4632, RFC 4291).
var networkValue = stringAs(wantNetwork, parseNetwork)

const wantNetwork = `an address such as "192.0.2.1" or a network such as "10.0.0.0/8"`

// parseNetwork reads an address, which is a network of one, or a network. Bits
// behind the prefix do not count, as in Envoy's CidrRange: 10.1.2.3/8 is
// 10.0.0.0/8. IPv4-mapped IPv6 addresses are IPv4.
func parseNetwork(s string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(s); err == nil {
		if address.Zone() != "" {
			return netip.Prefix{}, errors.New("want the address without its zone, the % and what follows")
		}
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	network, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, wantError(wantNetwork)
	}
	if network.Addr().Is4In6() {
		const mapped = 96 // bits ahead of the IPv4 address
		if network.Bits() < mapped {
			return netip.Prefix{}, errors.New("want at least /" + strconv.Itoa(mapped) + " for IPv4 addresses in IPv6's form")
		}
		network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-mapped)
	}
	return network.Masked(), nil
}
