package plugin

import (
	"net/netip"

	"github.com/sluice-proxy/sluice/filter/field"
	"github.com/sluice-proxy/sluice/filter/host"
)

// Address implements keys.Request: the client's address as the config says to
// find it.
func (r *request) Address() (netip.Addr, bool) {
	if r.first(address) {
		r.address = netip.Addr{}
		if r.clientIP.Header != "" {
			r.address = r.addressInHeader()
		}
		if !r.address.IsValid() {
			// The downstream remote address as Envoy has worked it out.
			value, _ := host.Property("source\x00address")
			r.address = field.Peer(value)
		}
	}
	return r.address, r.address.IsValid()
}

// addressInHeader returns the zero Addr where the header does not say.
func (r *request) addressInHeader() netip.Addr {
	list := r.joined(r.clientIP.Header)
	if hops := r.clientIP.TrustedHops; hops > 0 {
		return field.Hop(list, hops)
	}
	return field.Untrusted(list, r.clientIP.TrustedProxies)
}
