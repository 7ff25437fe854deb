package keys

import (
	"encoding/binary"
	"net/netip"
	"strconv"
)

// Request is what keys and rules are read from. Each method returns nothing
// where the request lacks the thing, or where it is empty. Results are good for
// as long as the request is.
type Request interface {
	// Address is the client's address, never an IPv4-mapped one.
	Address() (netip.Addr, bool)
	// Header returns the values of a header, joined by "," where it was sent
	// more than once. name is lower-cased.
	Header(name string) []byte
	Method() []byte
	// Path is normalised, without query.
	Path() []byte
	// Host is normalised, without port.
	Host() []byte
	// Route is the name of the Envoy route.
	Route() []byte
}

// Widths of an address in a key. Whoever has one IPv6 address has a whole /64
// of them, so only the first half tells clients apart.
const ipv6PrefixBytes = 8

// Identity says in one canonical spelling what the part reads. Its label, which
// is for people, is not in it.
func (p Part) Identity() string {
	var text string
	for _, s := range p.Sources {
		text += strconv.Itoa(int(s.Kind)) + strconv.QuoteToASCII(s.Name)
	}
	return text
}

// Append appends the part's value to a key. No two requests that differ in any
// part have the same key: a value is preceded by the number of the source that
// gave it and by its length. present is false where the request lacks the part,
// which then has a value of its own that no request can spell.
func (p *Part) Append(key []byte, r Request) (extended []byte, present bool) {
	for i := range p.Sources {
		s := &p.Sources[i]
		var value []byte
		switch s.Kind {
		case IP:
			address, ok := r.Address()
			if !ok {
				continue
			}
			key = append(key, byte(i+1))
			return appendAddress(key, address), true
		case Header:
			value = r.Header(s.Name)
		case Method:
			value = r.Method()
		case Path:
			value = r.Path()
		case Host:
			value = r.Host()
		case Route:
			value = r.Route()
		case Const:
			// The same in every key of the limit; its name tells limits apart.
			return append(key, byte(i+1)), true
		}
		if len(value) > 0 {
			key = append(key, byte(i+1))
			key = binary.AppendUvarint(key, uint64(len(value)))
			return append(key, value...), true
		}
	}
	return append(key, 0), false
}

func appendAddress(key []byte, address netip.Addr) []byte {
	if address.Is4() {
		a := address.As4()
		return append(append(key, 4), a[:]...)
	}
	a := address.As16()
	return append(append(key, ipv6PrefixBytes), a[:ipv6PrefixBytes]...)
}
