package plugin

import (
	"bytes"
	"net/netip"

	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/normal"
)

// request reads what rules and keys ask for, each thing at most once. It is
// good for one stream callback and is used again for the next.
type request struct {
	allHeaders bool // read them together where any is needed

	headers host.Pairs
	address netip.Addr
	method  []byte
	path    []byte
	host    []byte
	route   []byte
	known   attribute // what has been read

	// Kept from request to request, so that normalising does not allocate.
	pathBuffer, hostBuffer, joinBuffer []byte
}

type attribute uint8

const (
	headers attribute = 1 << iota
	address
	method
	path
	authority
	route
)

// begin forgets the previous request.
func (r *request) begin() {
	r.known, r.joinBuffer = 0, r.joinBuffer[:0]
}

// first says whether a is asked for the first time.
func (r *request) first(a attribute) bool {
	seen := r.known&a != 0
	r.known |= a
	return !seen
}

// Address implements keys.Request: the downstream remote address as Envoy has
// worked it out.
func (r *request) Address() (netip.Addr, bool) {
	if r.first(address) {
		value, _ := host.Property("source\x00address")
		r.address = parseAddress(value)
	}
	return r.address, r.address.IsValid()
}

// parseAddress reads "192.0.2.1:80", "[2001:db8::1]:80" or either without a
// port. What is no address, such as the path of a socket, is the zero Addr.
func parseAddress(text []byte) netip.Addr {
	if address, rest, ok := parseIPv4(text); ok && (len(rest) == 0 || rest[0] == ':') {
		return address
	}
	if len(text) > 0 && text[0] == '[' {
		end := bytes.IndexByte(text, ']')
		if end < 0 {
			return netip.Addr{}
		}
		text = text[1:end]
	}
	parsed, err := netip.ParseAddr(string(text))
	if err != nil {
		return netip.Addr{}
	}
	return parsed.Unmap().WithZone("")
}

// parseIPv4 reads four decimal numbers at the beginning of text. Almost every
// address is of this form, and netip.ParseAddr takes seven times as long for it
// in WebAssembly (BenchmarkParseAddress).
func parseIPv4(text []byte) (address netip.Addr, rest []byte, ok bool) {
	var octets [4]byte
	at := 0
	for i := range octets {
		if i > 0 {
			if at == len(text) || text[at] != '.' {
				return address, nil, false
			}
			at++
		}
		n, start := 0, at
		for at < len(text) && text[at]-'0' <= 9 && at-start < 4 {
			n = n*10 + int(text[at]-'0')
			at++
		}
		if at == start || n > 255 || at-start > 1 && text[start] == '0' {
			return address, nil, false
		}
		octets[i] = byte(n)
	}
	return netip.AddrFrom4(octets), text[at:], true
}

// Header implements keys.Request.
func (r *request) Header(name string) []byte {
	if !r.allHeaders {
		value, _ := host.RequestHeader(name)
		return value
	}
	if r.first(headers) {
		r.headers, _ = host.RequestHeaders()
	}
	var found []byte
	many := false
	for rest := r.headers; ; {
		n, v, next, ok := rest.Next()
		if !ok {
			return found
		}
		rest = next
		switch {
		case string(n) != name:
		case found == nil:
			found = v
		case !many:
			many = true
			start := len(r.joinBuffer)
			r.joinBuffer = append(append(append(r.joinBuffer, found...), ','), v...)
			found = r.joinBuffer[start:]
		default:
			// found is the end of the buffer.
			start := len(r.joinBuffer) - len(found)
			r.joinBuffer = append(append(r.joinBuffer, ','), v...)
			found = r.joinBuffer[start:]
		}
	}
}

// Method implements keys.Request.
func (r *request) Method() []byte {
	if r.first(method) {
		r.method = r.Header(":method")
	}
	return r.method
}

// Path implements keys.Request.
func (r *request) Path() []byte {
	if r.first(path) {
		r.path = nil
		if raw := r.Header(":path"); len(raw) > 0 {
			r.pathBuffer = normal.AppendPath(r.pathBuffer[:0], raw)
			r.path = r.pathBuffer
		}
	}
	return r.path
}

// Host implements keys.Request.
func (r *request) Host() []byte {
	if r.first(authority) {
		r.hostBuffer = normal.AppendHost(r.hostBuffer[:0], r.Header(":authority"))
		r.host = r.hostBuffer
	}
	return r.host
}

// Route implements keys.Request.
func (r *request) Route() []byte {
	if r.first(route) {
		r.route, _ = host.Property("xds\x00route_name")
	}
	return r.route
}

// isGRPC says whether Envoy will answer the request in gRPC's terms.
func (r *request) isGRPC() bool {
	const grpc = "application/grpc"
	contentType := r.Header("content-type")
	return bytes.HasPrefix(contentType, []byte(grpc)) &&
		(len(contentType) == len(grpc) || contentType[len(grpc)] == '+')
}
