package field

import (
	"bytes"
	"net/netip"
	"unsafe"
)

// longestIPv6 is how long the text of an IPv6 address can be (RFC 4291, 2.2):
// six groups of four digits and an IPv4 address.
const longestIPv6 = len("0000:0000:0000:0000:0000:0000:255.255.255.255")

// Address reads an IP address, with or without a port: "192.0.2.1:80",
// "[2001:db8::1]:80" (RFC 3986, 3.2.2), "[2001:db8::1]", or "2001:db8::1", behind
// which a port could not be told from the address. An IPv4-mapped address is the
// IPv4 address in it, and a zone ("%eth0") is dropped. What is no address, such
// as the path of a socket, is the zero Addr.
func Address(text []byte) netip.Addr {
	if octets, end := parseIPv4(text); end > 0 && isPort(text[end:]) {
		return AddressOf(octets)
	}
	if len(text) > 0 && text[0] == '[' {
		end := bytes.IndexByte(text, ']')
		if end < 0 || !isPort(text[end+1:]) {
			return netip.Addr{}
		}
		text = text[1:end]
	}
	// The zone goes first: netip would keep a copy of each that it ever sees.
	if zone := bytes.IndexByte(text, '%'); zone >= 0 {
		text = text[:zone]
	}
	if len(text) > longestIPv6 {
		return netip.Addr{}
	}
	// Of what it parses, netip keeps no more than a zone, so it may look at the
	// bytes where they are.
	address, err := netip.ParseAddr(unsafe.String(unsafe.SliceData(text), len(text)))
	if err != nil || !address.Is6() {
		return netip.Addr{}
	}
	return address.Unmap()
}

// AddressOf is the IPv4 address that PeerIPv4 gave as a number.
func AddressOf(octets uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(octets >> 24), byte(octets >> 16), byte(octets >> 8), byte(octets)})
}

// PeerIPv4 reads an IPv4 address and port as Envoy writes them, as a number. That
// Envoy's ports are ports is taken for granted. ok is false of what else Address
// may be able to read.
func PeerIPv4(text []byte) (octets uint32, ok bool) {
	octets, end := parseIPv4(text)
	return octets, end > 0 && end < len(text) && text[end] == ':'
}

// isPort says whether what follows an address is a port, or nothing.
func isPort(rest []byte) bool {
	if len(rest) == 0 {
		return true
	}
	if rest[0] != ':' {
		return false
	}
	for _, c := range rest[1:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// parseIPv4 reads four decimal numbers at the beginning of text, which end there,
// or at 0 where there is no address. Almost every address is of this form, and
// netip.ParseAddr takes ten times as long for it in WebAssembly (BenchmarkAddress),
// where turns of a loop and checks of an index are what costs: so there is a turn
// for each number, not for each digit.
func parseIPv4(text []byte) (octets uint32, end int) {
	// What is behind the text is no digit, and indices below 32 need no check.
	var b [32]byte
	copy(b[:], text)
	at := 0
	for shift := 24; ; shift -= 8 {
		octet := uint32(b[at&31]) - '0'
		if octet > 9 {
			return 0, 0
		}
		at++
		if digit := uint32(b[at&31]) - '0'; digit <= 9 {
			if octet == 0 {
				return 0, 0 // 01 is octal to some, decimal to others
			}
			octet = octet*10 + digit
			at++
			if digit := uint32(b[at&31]) - '0'; digit <= 9 {
				octet = octet*10 + digit
				at++
			}
		}
		if octet > 255 {
			return 0, 0
		}
		octets |= octet << shift
		if shift == 0 {
			break
		}
		if b[at&31] != '.' {
			return 0, 0
		}
		at++
	}
	return octets, at
}
