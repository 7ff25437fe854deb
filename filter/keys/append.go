package keys

import (
	"cmp"
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
	// IPv4 is that address as a number, if it is an IPv4 one, as most are.
	IPv4() (octets uint32, ok bool)
	// Header returns the values of a header, joined by "," where it was sent
	// more than once. name is lower-cased.
	Header(name string) []byte
	Method() []byte
	// Path is normalised, without query.
	Path() []byte
	// Host is normalised, without port.
	Host() []byte
	// Route is the name of the Envoy route, VirtualHost that of its virtual host.
	Route() []byte
	VirtualHost() []byte
	// Cookie is the first cookie of this name (RFC 6265).
	Cookie(name string) []byte
	// Query is the first query parameter of this name, percent-decoded.
	Query(name string) []byte
	// Bearer is the token of an Authorization header of that scheme (RFC 6750).
	Bearer() []byte
	// Metadata is a string of the stream's dynamic metadata, MetadataNumber a
	// whole number in decimal; path is as in Source.Name.
	Metadata(path string) []byte
	MetadataNumber(path string) []byte
	// Property is an Envoy attribute that is a string.
	Property(path string) []byte
	// Rule is the name of the rule that matched; nothing before there is one.
	Rule() []byte
}

// Widths of addresses in a key where a Source does not say. Whoever has one IPv6
// address has a whole /64 of them, so only the first half tells clients apart.
const (
	defaultIPv4Bits = 32
	defaultIPv6Bits = 64
)

func (s *Source) ipv4Bits() int { return int(cmp.Or(s.IPv4Bits, defaultIPv4Bits)) }
func (s *Source) ipv6Bits() int { return int(cmp.Or(s.IPv6Bits, defaultIPv6Bits)) }

// Identity says in one canonical spelling what the part reads. Its label, which
// is for people, is not in it.
func (p Part) Identity() string {
	var text string
	for i := range p.Sources {
		s := &p.Sources[i]
		text += s.Kind.word() + strconv.QuoteToASCII(s.Name)
		if s.Kind == IP {
			text += strconv.Itoa(s.ipv4Bits()) + "," + strconv.Itoa(s.ipv6Bits())
		}
	}
	return text
}

// Append appends the part's value to a key. No two requests that differ in any
// part have the same key: a value is preceded by the number of the source that
// gave it and by its length. present is false where the request lacks the part,
// which then has a value of its own that no request can spell.
func (p *Part) Append(key []byte, r Request) (extended []byte, present bool) {
	if s := &p.Sources[0]; s.Kind == IP {
		if octets, ok := r.IPv4(); ok {
			return s.appendIPv4(key, 1, octets), true
		}
	}
	return p.appendAny(key, r)
}

// appendAny is Append for whatever the part reads.
//
//go:noinline
func (p *Part) appendAny(key []byte, r Request) (extended []byte, present bool) {
	for i := range p.Sources {
		s := &p.Sources[i]
		number := byte(i + 1)
		switch s.Kind {
		case IP:
			if address, ok := r.Address(); ok {
				return s.appendNetwork(key, number, address), true
			}
		case Const:
			// The same in every key of the limit; its name tells limits apart.
			return append(key, number), true
		default:
			if value := s.read(r); len(value) > 0 {
				key = binary.AppendUvarint(append(key, number), uint64(len(value)))
				return append(key, value...), true
			}
		}
	}
	return append(key, 0), false
}

// Value returns the part's value as text: of an address all of it, in its
// canonical spelling (RFC 5952). buffer is scratch for that, of which 39 bytes
// are used at most. present is false where the request lacks the part.
func (p *Part) Value(buffer []byte, r Request) (value []byte, present bool) {
	for i := range p.Sources {
		s := &p.Sources[i]
		switch s.Kind {
		case IP:
			if address, ok := r.Address(); ok {
				return address.AppendTo(buffer[:0]), true
			}
		case Const:
			return append(buffer[:0], s.Name...), true
		default:
			if value := s.read(r); len(value) > 0 {
				return value, true
			}
		}
	}
	return nil, false
}

// read returns what the request has as a source, which is neither IP nor Const.
func (s *Source) read(r Request) []byte {
	switch s.Kind {
	case Header:
		return r.Header(s.Name)
	case Cookie:
		return r.Cookie(s.Name)
	case Query:
		return r.Query(s.Name)
	case Bearer:
		return r.Bearer()
	case Metadata:
		return r.Metadata(s.Name)
	case MetadataNumber:
		return r.MetadataNumber(s.Name)
	case Property:
		return r.Property(s.Name)
	case Method:
		return r.Method()
	case Host:
		return r.Host()
	case Path:
		return r.Path()
	case Route:
		return r.Route()
	case VirtualHost:
		return r.VirtualHost()
	case Rule:
		return r.Rule()
	}
	return nil
}

// appendNetwork appends the source's number and the network that an address is
// in: the version of IP, so that no IPv4 address equals the beginning of an IPv6
// one, and as many bytes as the network's width has. The width is the same in all
// keys of the part.
func (s *Source) appendNetwork(key []byte, number byte, address netip.Addr) []byte {
	if !address.Is4() {
		a := address.As16()
		return appendBits(append(key, number, 6), a[:], s.ipv6Bits())
	}
	a := address.As4()
	return s.appendIPv4(key, number, binary.BigEndian.Uint32(a[:]))
}

func (s *Source) appendIPv4(key []byte, number byte, octets uint32) []byte {
	bits := s.ipv4Bits()
	if bits < 32 {
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], octets)
		return appendBits(append(key, number, 4), a[:], bits)
	}
	return append(key, number, 4, byte(octets>>24), byte(octets>>16), byte(octets>>8), byte(octets))
}

// appendBits appends the first bits of an address, and zeros up to a whole byte.
func appendBits(key, address []byte, bits int) []byte {
	key = append(key, address[:bits/8]...)
	if rest := bits % 8; rest > 0 {
		key = append(key, address[bits/8]&^(0xFF>>rest))
	}
	return key
}
