package plugin

import (
	"encoding/binary"
	"net/netip"

	"github.com/sluice-proxy/sluice/filter/field"
	"github.com/sluice-proxy/sluice/filter/host"
)

// Address implements keys.Request: the client's address as the config says to
// find it.
func (r *request) Address() (netip.Addr, bool) {
	if octets, ok := r.IPv4(); ok {
		return field.AddressOf(octets), true
	}
	return r.address, r.address.IsValid()
}

// IPv4 implements keys.Request.
func (r *request) IPv4() (octets uint32, ok bool) {
	if r.first(address) {
		r.readAddress()
	}
	return r.ipv4, r.isIPv4
}

func (r *request) readAddress() {
	if r.clientIP.Header != "" {
		if a := r.addressInHeader(); a.IsValid() {
			r.setAddress(a)
			return
		}
	}
	// The downstream remote address as Envoy has worked it out.
	value, _ := host.Property("source\x00address")
	if r.ipv4, r.isIPv4 = field.PeerIPv4(value); !r.isIPv4 {
		r.setAddress(field.Address(value))
	}
}

// setAddress is not inlined, as most addresses have been read without it.
//
//go:noinline
func (r *request) setAddress(a netip.Addr) {
	if r.isIPv4 = a.Is4(); r.isIPv4 {
		octets := a.As4()
		r.ipv4 = binary.BigEndian.Uint32(octets[:])
	}
	r.address = a
}

// addressInHeader returns the zero Addr where the header does not say.
func (r *request) addressInHeader() netip.Addr {
	list := r.joined(r.clientIP.Header)
	if hops := r.clientIP.TrustedHops; hops > 0 {
		return field.Hop(list, hops)
	}
	return field.Untrusted(list, r.clientIP.TrustedProxies)
}
