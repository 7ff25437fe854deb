package plugin

import (
	"bytes"
	"net/netip"

	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/normal"
)

// request reads what rules and keys ask for, what costs a hostcall at most once.
// It is good for one stream callback and is used again for the next. It
// implements keys.Request.
type request struct {
	clientIP   config.ClientIP // how the client's address is found
	allHeaders bool            // read them together where any is needed
	rule       string          // the name of the rule that matched

	headers     host.Pairs
	address     netip.Addr // unless it isIPv4
	ipv4        uint32
	isIPv4      bool
	method      []byte
	path        []byte
	host        []byte
	route       []byte
	virtualHost []byte
	metadata    []byte // all of the stream's, serialized
	properties  []property
	known       attribute // what has been read

	// Kept from request to request, so that reading does not allocate. What is
	// made of several pieces lies in text, one behind the other.
	pathBuffer, hostBuffer, text []byte
}

type attribute uint8

const (
	headers attribute = 1 << iota
	address
	method
	path
	authority
	route
	virtualHost
	streamMetadata
)

// property is an attribute of Envoy's that has been read.
type property struct {
	path  string
	value []byte
}

// begin forgets the previous request.
func (r *request) begin(allHeaders bool) {
	r.allHeaders = allHeaders
	r.known, r.rule = 0, ""
	r.properties, r.text = r.properties[:0], r.text[:0]
}

// first says whether a is asked for the first time.
func (r *request) first(a attribute) bool {
	seen := r.known&a != 0
	r.known |= a
	return !seen
}

// list is all headers.
func (r *request) list() host.Pairs {
	if r.first(headers) {
		r.headers, _ = host.RequestHeaders()
	}
	return r.headers
}

// Header implements keys.Request. Where headers are not read together it sees
// the first value only.
func (r *request) Header(name string) []byte {
	if !r.allHeaders && r.known&headers == 0 {
		value, _ := host.RequestHeader(name)
		return value
	}
	return r.joined(name)
}

// joined returns all values of a header, joined by ",".
func (r *request) joined(name string) []byte {
	found, rest, _ := r.list().Find(name)
	value, rest, more := rest.Find(name)
	if !more {
		return found
	}
	start := len(r.text)
	r.text = append(r.text, found...)
	for ; more; value, rest, more = rest.Find(name) {
		r.text = append(append(r.text, ','), value...)
	}
	return r.text[start:]
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

// VirtualHost implements keys.Request.
func (r *request) VirtualHost() []byte {
	if r.first(virtualHost) {
		r.virtualHost, _ = host.Property("xds\x00virtual_host_name")
	}
	return r.virtualHost
}

// Rule implements keys.Request.
func (r *request) Rule() []byte {
	start := len(r.text)
	r.text = append(r.text, r.rule...)
	return r.text[start:]
}

// isGRPC says whether Envoy will answer the request in gRPC's terms: its
// content-type is application/grpc, or that with a "+" and more behind it, in
// lower case and without parameters. Envoy looks when the request arrives. Where
// an earlier filter has changed the content-type since, this is not what Envoy
// goes by.
func (r *request) isGRPC() bool {
	const grpc = "application/grpc"
	contentType := r.Header("content-type")
	return bytes.HasPrefix(contentType, []byte(grpc)) &&
		(len(contentType) == len(grpc) || contentType[len(grpc)] == '+')
}
