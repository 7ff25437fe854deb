package keys

import (
	"encoding/binary"
	"net/netip"
	"testing"
)

// request is a Request from text: each thing under the spelling of the source
// that reads it, such as "ip" or "header:a".
type request map[string]string

func (r request) Address() (netip.Addr, bool) {
	address, err := netip.ParseAddr(r["ip"])
	return address, err == nil
}

func (r request) IPv4() (uint32, bool) { return ipv4(r.Address()) }

// ipv4 is an address as a number, if it is an IPv4 one.
func ipv4(address netip.Addr, ok bool) (octets uint32, isIPv4 bool) {
	if !ok || !address.Is4() {
		return 0, false
	}
	bytes := address.As4()
	return binary.BigEndian.Uint32(bytes[:]), true
}

func (r request) get(what string) []byte {
	if value, ok := r[what]; ok {
		return []byte(value)
	}
	return nil
}

func (r request) Header(name string) []byte         { return r.get("header:" + name) }
func (r request) Cookie(name string) []byte         { return r.get("cookie:" + name) }
func (r request) Query(name string) []byte          { return r.get("query:" + name) }
func (r request) Bearer() []byte                    { return r.get("bearer") }
func (r request) Metadata(path string) []byte       { return r.get("metadata:" + path) }
func (r request) MetadataNumber(path string) []byte { return r.get("metadata_number:" + path) }
func (r request) Property(path string) []byte       { return r.get("property:" + path) }
func (r request) Method() []byte                    { return r.get("method") }
func (r request) Host() []byte                      { return r.get("host") }
func (r request) Path() []byte                      { return r.get("path") }
func (r request) Route() []byte                     { return r.get("route") }
func (r request) VirtualHost() []byte               { return r.get("virtual_host") }
func (r request) Rule() []byte                      { return r.get("rule") }

// parts reads key parts.
func parts(t testing.TB, texts ...string) []Part {
	t.Helper()
	var all []Part
	for _, text := range texts {
		part, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, part)
	}
	return all
}

// key is the key that the parts make of a request.
func key(all []Part, r Request) (key string, complete bool) {
	var k []byte
	complete = true
	for i := range all {
		var present bool
		k, present = all[i].Append(k, r)
		complete = complete && present
	}
	return string(k), complete
}

// everyKind has a part of every kind, and a request with a value for each of
// them but const.
var everyKind = map[string]request{
	"ip":                  {"ip": "192.0.2.1"},
	"header:a":            {"header:a": "x"},
	"cookie:a":            {"cookie:a": "x"},
	"query:a":             {"query:a": "x"},
	"bearer":              {"bearer": "x"},
	"metadata:a/b":        {"metadata:a\x00b": "x"},
	"metadata_number:a/b": {"metadata_number:a\x00b": "7"},
	"property:a/b":        {"property:a\x00b": "x"},
	"method":              {"method": "GET"},
	"host":                {"host": "x"},
	"path":                {"path": "/x"},
	"route":               {"route": "x"},
	"virtual_host":        {"virtual_host": "x"},
	"rule":                {"rule": "x"},
}
