package field

import (
	"bytes"
	"net/netip"
)

// Hop returns the address that the nth hop from the right, counted from 1, has
// put into a list such as X-Forwarded-For: addresses separated by commas, to
// which each proxy appends whom it was asked by. No RFC defines that header (RFC
// 7239 tells its story and defines another). The zero Addr is an entry that is
// missing or is no address.
//
// An empty entry counts, although RFC 9110, 5.6.1.2 passes over them in lists:
// it is a hop that did not say whom it was asked by, and whoever stands left of
// it must not step into its place.
func Hop(list []byte, n int) netip.Addr {
	before, entry, more := lastEntry(list)
	for ; n > 1; n-- {
		if !more {
			return netip.Addr{}
		}
		before, entry, more = lastEntry(before)
	}
	return Address(entry)
}

// Untrusted returns the first address from the right that is in none of the
// trusted networks; if all are, the leftmost. The zero Addr means that an entry
// on the way is no address: what stands left of it was said by nobody known.
func Untrusted(list []byte, trusted []netip.Prefix) netip.Addr {
	for {
		before, entry, more := lastEntry(list)
		address := Address(entry)
		if !more || !address.IsValid() || !containedIn(trusted, address) {
			return address
		}
		list = before
	}
}

func containedIn(networks []netip.Prefix, address netip.Addr) bool {
	for _, network := range networks {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// lastEntry cuts the rightmost entry off a list. more says that there are
// others before it.
func lastEntry(list []byte) (before, entry []byte, more bool) {
	comma := bytes.LastIndexByte(list, ',')
	if comma < 0 {
		return nil, trimSpace(list), false
	}
	return list[:comma], trimSpace(list[comma+1:]), true
}
