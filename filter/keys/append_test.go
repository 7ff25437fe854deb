package keys

import (
	"net/netip"
	"strings"
	"testing"
)

func TestEveryKindOfPartTellsItsValuesApart(t *testing.T) {
	for text, r := range everyKind {
		part := parts(t, text)
		one, present := key(part, r)
		if !present {
			t.Errorf("%s: missing in %v", text, r)
		}
		lacking, present := key(part, request{})
		if present || lacking == one {
			t.Errorf("%s: %q where it is missing (%v), %q where it is there", text, lacking, present, one)
		}
		for name := range r {
			other := request{name: "192.0.2.2"}
			if two, present := key(part, other); !present || two == one {
				t.Errorf("%s: %q for %v and %q for %v", text, one, r, two, other)
			}
			if name == "ip" {
				continue
			}
			if empty, present := key(part, request{name: ""}); present || empty != lacking {
				t.Errorf("%s: %q where it is empty (%v), %q where it is missing", text, empty, present, lacking)
			}
		}
	}
	if _, present := key(parts(t, "const:x"), request{}); !present {
		t.Error("a constant is missing")
	}
}

func TestClientsThatDifferInAnyPartHaveDifferentKeys(t *testing.T) {
	seen := map[string]request{}
	ab := parts(t, "header:a", "header:b")
	for _, r := range []request{
		{"header:a": "x", "header:b": "yz"}, {"header:a": "xy", "header:b": "z"}, {"header:a": "xyz"}, {"header:b": "xyz"}, {},
		{"header:a": "yz", "header:b": "x"}, {"header:a": "\x00"}, {"header:b": "\x00"}, {"header:a": "x\x01\x02yz"}, {"header:a": "x\x00"},
		{"header:a": "x", "header:b": strings.Repeat("y", 300)}, {"header:a": "x" + strings.Repeat("y", 300)},
	} {
		k, _ := key(ab, r)
		if other, taken := seen[k]; taken {
			t.Errorf("%v and %v have the same key", r, other)
		}
		seen[k] = r
	}
}

func TestNoHeaderCanSpellAnAddressOrAMissingPart(t *testing.T) {
	part := parts(t, "header:a|ip|header:b|const:c")
	seen := map[string]bool{}
	address := netip.MustParseAddr("1.2.3.4").As4()
	for _, r := range []request{
		{"ip": "1.2.3.4"}, {"header:a": "1.2.3.4"}, {"header:b": "1.2.3.4"}, {"header:a": string(address[:])}, {"header:b": string(address[:])},
		{"header:a": "\x04" + string(address[:])}, {"header:b": "c"}, {"header:a": "\x00"}, {},
	} {
		k, _ := key(part, r)
		if seen[k] {
			t.Errorf("%v has another's key", r)
		}
		seen[k] = true
	}
}

func TestTheFirstSourceThatARequestHasCounts(t *testing.T) {
	part := parts(t, "metadata:a/b|header:a|ip")
	full := request{"metadata:a\x00b": "m", "header:a": "h", "ip": "192.0.2.1"}
	for _, without := range []string{"header:a", "ip"} {
		r := request{}
		for name, value := range full {
			r[name] = value
		}
		delete(r, without)
		whole, _ := key(part, full)
		if k, _ := key(part, r); k != whole {
			t.Errorf("without %s, which comes later, the key is %q, not %q", without, k, whole)
		}
	}
	if value, _ := part[0].Value(nil, request{"header:a": "h", "ip": "192.0.2.1"}); string(value) != "h" {
		t.Errorf("the value is %q, want the header's", value)
	}
}

func TestAnAddressIsAsWideAsTheConfigSays(t *testing.T) {
	for _, c := range []struct {
		ipv4, ipv6 uint8
		a, b       string
		same       bool
	}{
		{0, 0, "192.0.2.1", "192.0.2.1", true},
		{0, 0, "192.0.2.1", "192.0.2.2", false},
		{24, 0, "192.0.2.1", "192.0.2.2", true},
		{24, 0, "192.0.2.1", "192.0.3.1", false},
		{23, 0, "192.0.2.1", "192.0.3.1", true},
		{23, 0, "192.0.2.1", "192.0.4.1", false},
		{31, 0, "192.0.2.2", "192.0.2.3", true},
		{31, 0, "192.0.2.1", "192.0.2.2", false},
		{1, 0, "192.0.2.1", "255.255.255.255", true},
		{1, 0, "192.0.2.1", "127.255.255.255", false},
		{0, 0, "2001:db8:1234:5678::1.2.3.4", "2001:db8:1234:5678::1", true},
		{0, 0, "2001:db8:1234:5678::1", "2001:db8:1234:5679::1", false},
		{0, 48, "2001:db8:1234:5678::1", "2001:db8:1234:5679::1", true},
		{0, 48, "2001:db8:1234::1", "2001:db8:1235::1", false},
		{0, 49, "2001:db8:1234:8000::", "2001:db8:1234:7fff::", false},
		{0, 128, "2001:db8::1", "2001:db8::2", false},
		{0, 128, "2001:db8::1", "2001:db8::1", true},
		{0, 127, "2001:db8::2", "2001:db8::3", true},
		{0, 1, "8000::", "ffff::", true},
		{0, 1, "7fff::", "8000::", false},
		// The versions of IP are never one client.
		{0, 32, "1.2.3.4", "102:304::", false},
		{8, 8, "32.0.0.0", "2000::", false},
		{1, 1, "0.0.0.0", "::", false},
	} {
		part := []Part{{Label: "ip", Sources: []Source{{Kind: IP, IPv4Bits: c.ipv4, IPv6Bits: c.ipv6}}}}
		a, _ := key(part, request{"ip": c.a})
		b, _ := key(part, request{"ip": c.b})
		if (a == b) != c.same {
			t.Errorf("/%d and /%d: %s has %q, %s has %q", c.ipv4, c.ipv6, c.a, a, c.b, b)
		}
	}
}

func TestWhatChangesAKeysMeaningIsInItsIdentity(t *testing.T) {
	wide := func(ipv4, ipv6 uint8) Part {
		return Part{Label: "ip", Sources: []Source{{Kind: IP, IPv4Bits: ipv4, IPv6Bits: ipv6}}}
	}
	seen := map[string]Part{}
	for _, part := range append(parts(t,
		"header:a", "header:b", "cookie:a", "query:a", "bearer", "metadata:a/b", "metadata_number:a/b", "metadata:a/b/c", "property:a/b",
		"method", "host", "path", "route", "virtual_host", "rule", "const:a", "header:a|ip", "ip|header:a", "header:a|header:b",
		`header:a|const:header"b"`, `const:a"const"b`, "const:a|const:b",
	), wide(0, 0), wide(24, 0), wide(0, 48), wide(4, 64), wide(46, 4)) {
		identity := part.Identity()
		if other, taken := seen[identity]; taken {
			t.Errorf("%+v and %+v are %s", part, other, identity)
		}
		if strings.Contains(identity, "\x00") {
			t.Errorf("%+v has a zero byte in its identity", part)
		}
		seen[identity] = part
	}
	for _, same := range [][]Part{
		parts(t, "header:a", "user=header:a"), parts(t, "header:A", "header:a"), {wide(0, 0), wide(32, 64)},
	} {
		if a, b := same[0].Identity(), same[1].Identity(); a != b {
			t.Errorf("%+v is %s, %+v is %s", same[0], a, same[1], b)
		}
	}
}

func TestAValueIsWhatAMatchCanBeWrittenFor(t *testing.T) {
	for text, r := range everyKind {
		part := parts(t, text)
		for _, want := range r {
			if got, present := part[0].Value(nil, r); string(got) != want || !present {
				t.Errorf("%s: got %q, %v; want %q", text, got, present, want)
			}
		}
		if got, present := part[0].Value(nil, request{}); present {
			t.Errorf("%s: got %q of a request that lacks it", text, got)
		}
	}
	for address, want := range map[string]string{
		"2001:DB8:0:0:0:0:0:1":                    "2001:db8::1",
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff": "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	} {
		if got, _ := parts(t, "ip")[0].Value(make([]byte, 39), request{"ip": address}); string(got) != want {
			t.Errorf("%s is %q, want it in full", address, got)
		}
	}
	if got, present := parts(t, "const:x~1y")[0].Value(nil, request{}); string(got) != "x/y" || !present {
		t.Errorf("the constant is %q, %v", got, present)
	}
}

// fixed is a request that has one value for everything.
type fixed struct {
	address netip.Addr
	value   []byte
}

func (r *fixed) Address() (netip.Addr, bool)  { return r.address, true }
func (r *fixed) IPv4() (uint32, bool)         { return ipv4(r.address, true) }
func (r *fixed) Header(string) []byte         { return r.value }
func (r *fixed) Cookie(string) []byte         { return r.value }
func (r *fixed) Query(string) []byte          { return r.value }
func (r *fixed) Bearer() []byte               { return r.value }
func (r *fixed) Metadata(string) []byte       { return r.value }
func (r *fixed) MetadataNumber(string) []byte { return r.value }
func (r *fixed) Property(string) []byte       { return r.value }
func (r *fixed) Method() []byte               { return r.value }
func (r *fixed) Host() []byte                 { return r.value }
func (r *fixed) Path() []byte                 { return r.value }
func (r *fixed) Route() []byte                { return r.value }
func (r *fixed) VirtualHost() []byte          { return r.value }
func (r *fixed) Rule() []byte                 { return r.value }

func TestKeysAndValuesDoNotAllocate(t *testing.T) {
	all := parts(t, "const:x")
	for text := range everyKind {
		all = append(all, parts(t, text)...)
	}
	var r Request = &fixed{address: netip.MustParseAddr("2001:db8::1"), value: []byte("value")}
	buffer := make([]byte, 0, 300)
	if n := testing.AllocsPerRun(100, func() {
		k := buffer
		for i := range all {
			k, _ = all[i].Append(k, r)
			all[i].Value(buffer, r)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
