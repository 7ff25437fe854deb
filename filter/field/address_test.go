package field

import (
	"net/netip"
	"strings"
	"testing"
)

func TestAddressesAreReadWithoutTheirPort(t *testing.T) {
	for text, want := range map[string]string{
		"203.0.113.10:4711":  "203.0.113.10",
		"203.0.113.10":       "203.0.113.10",
		"203.0.113.10:":      "203.0.113.10",
		"[2001:db8::1]:443":  "2001:db8::1",
		"[2001:db8::1]":      "2001:db8::1",
		"2001:db8::1":        "2001:db8::1",
		"2001:db8::1:443":    "2001:db8::1:443",
		"2001:DB8:0::0001":   "2001:db8::1",
		"::ffff:1.2.3.4":     "1.2.3.4",
		"[::ffff:102:304]:1": "1.2.3.4",
		"0000:0000:0000:0000:0000:ffff:255.255.255.255": "255.255.255.255",
		"2001:db8::1.2.3.4":                             "2001:db8::102:304",
		"[fe80::1%eth0]:80":                             "fe80::1",
		"::ffff:1.2.3.4%eth0":                           "1.2.3.4",

		"":                           "",
		"unknown":                    "",
		"_hidden":                    "",
		"@/var/run/envoy.sock":       "",
		"[2001:db8::1":               "",
		"[2001:db8::1]x":             "",
		"[2001:db8::1]:http":         "",
		"[1.2.3.4]:80":               "",
		"[]":                         "",
		`"1.2.3.4"`:                  "",
		"1.2.3":                      "",
		"1.2.3.4.5":                  "",
		"1.2.3.256:1":                "",
		"01.2.3.4:1":                 "",
		"1..3.4":                     "",
		"1234.2.3.4":                 "",
		"1.2.3.4x":                   "",
		"1.2.3.4:x":                  "",
		"1.2.3.4%eth0":               "",
		"99999999999999999999.1.1.1": "",
		strings.Repeat("0:", 100):    "",
	} {
		got := Address([]byte(text))
		if want == "" && got.IsValid() || want != "" && got != netip.MustParseAddr(want) {
			t.Errorf("%q: got %v, want %q", text, got, want)
		}
	}
}

func TestReadingAnAddressDoesNotAllocate(t *testing.T) {
	for _, text := range []string{"203.0.113.10:4711", "[2001:db8:1:2:3:4:5:6]:443", "[fe80::1%eth0]:80", "::ffff:1.2.3.4"} {
		text := []byte(text)
		if n := testing.AllocsPerRun(100, func() { Address(text) }); n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}

func FuzzParseIPv4(f *testing.F) {
	for _, seed := range []string{"1.2.3.4", "255.255.255.255", "00.1.2.3", "1.2.3.4.", "256.1.1.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		octets, end := parseIPv4([]byte(text))
		got := AddressOf(octets)
		want, err := netip.ParseAddr(text)
		if theirs := err == nil && want.Is4(); theirs != (end > 0 && end == len(text)) || theirs && got != want {
			t.Errorf("%q: got %v up to %d, want %v (%v)", text, got, end, want, err)
		}
	})
}

func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"1.2.3.4", "1.2.3.4:80", "[::1]:80", "::1", "fe80::1%eth0", "[::ffff:1.2.3.4]", "]:[", "%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Address([]byte(text))
		if got.Is4In6() || got.Zone() != "" {
			t.Errorf("%q is %v, which has a second spelling", text, got)
		}
		want, err := netip.ParseAddr(text)
		if err != nil {
			var both netip.AddrPort
			both, err = netip.ParseAddrPort(text)
			want = both.Addr()
		}
		if err == nil && (want.Zone() == "" || want.Is6() && !want.Is4In6()) && got != want.Unmap().WithZone("") {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	})
}

func BenchmarkAddress(b *testing.B) {
	text := []byte("203.0.113.10:4711")
	b.Run("ours", func(b *testing.B) {
		for range b.N {
			Address(text)
		}
	})
	b.Run("netip", func(b *testing.B) {
		for range b.N {
			a, _ := netip.ParseAddrPort(string(text))
			_ = a.Addr().Unmap()
		}
	})
}
