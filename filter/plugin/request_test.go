package plugin

import (
	"net/netip"
	"testing"

	"github.com/sluice-proxy/sluice/filter/host"
)

func TestAddressesAreReadWithoutTheirPort(t *testing.T) {
	for text, want := range map[string]string{
		"203.0.113.10:4711":          "203.0.113.10",
		"203.0.113.10":               "203.0.113.10",
		"[2001:db8::1]:443":          "2001:db8::1",
		"2001:db8::1":                "2001:db8::1",
		"::ffff:1.2.3.4":             "1.2.3.4",
		"[::ffff:102:304]:1":         "1.2.3.4",
		"[fe80::1%eth0]:80":          "fe80::1",
		"":                           "",
		"@/var/run/envoy.sock":       "",
		"[2001:db8::1":               "",
		"1.2.3":                      "",
		"1.2.3.4.5":                  "",
		"1.2.3.256:1":                "",
		"01.2.3.4:1":                 "",
		"1..3.4":                     "",
		"1234.2.3.4":                 "",
		"1.2.3.4x":                   "",
		"99999999999999999999.1.1.1": "",
	} {
		got := parseAddress([]byte(text))
		if want == "" && got.IsValid() || want != "" && got != netip.MustParseAddr(want) {
			t.Errorf("%q: got %v, want %q", text, got, want)
		}
	}
}

func FuzzParseIPv4(f *testing.F) {
	for _, seed := range []string{"1.2.3.4", "255.255.255.255", "00.1.2.3", "1.2.3.4.", "256.1.1.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, rest, ok := parseIPv4([]byte(text))
		want, err := netip.ParseAddr(text)
		if theirs := err == nil && want.Is4(); theirs != (ok && len(rest) == 0) || theirs && got != want {
			t.Errorf("%q: got %v (%v, rest %q), want %v (%v)", text, got, ok, rest, want, err)
		}
	})
}

func BenchmarkParseAddress(b *testing.B) {
	text := []byte("203.0.113.10:4711")
	b.Run("ours", func(b *testing.B) {
		for range b.N {
			parseAddress(text)
		}
	})
	b.Run("netip", func(b *testing.B) {
		for range b.N {
			a, _ := netip.ParseAddrPort(string(text))
			_ = a.Addr().Unmap()
		}
	})
}

func requestOf(list ...[2]string) *request {
	return &request{allHeaders: true, known: headers, headers: host.ParsePairs(host.AppendPairs(nil, list))}
}

func TestAHeaderSentMoreThanOnceIsItsValuesJoined(t *testing.T) {
	r := requestOf([2]string{"a", "1"}, [2]string{"b", "x"}, [2]string{"a", "2"}, [2]string{"b", "y"}, [2]string{"a", ""}, [2]string{"c", ""})
	for name, want := range map[string]string{"a": "1,2,", "b": "x,y", "c": "", "d": ""} {
		if got := string(r.Header(name)); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	// Asking for both in turn, as a key of two parts does.
	a, b := r.Header("a"), r.Header("b")
	if string(a) != "1,2," || string(b) != "x,y" {
		t.Errorf("got %q and %q: one header's value ran over the other's", a, b)
	}
}
