package field

import (
	"net/netip"
	"testing"
)

func TestTheNthHopFromTheRightSaysWhoTheClientIs(t *testing.T) {
	const list = "198.51.100.7, 203.0.113.9"
	for _, c := range []struct {
		list string
		hop  int
		want string
	}{
		{list, 1, "203.0.113.9"},
		{list, 2, "198.51.100.7"},
		{list, 3, ""},
		{"198.51.100.7,203.0.113.9", 1, "203.0.113.9"},
		{"198.51.100.7 ,\t203.0.113.9 ", 1, "203.0.113.9"},
		{"unknown, 203.0.113.9:4711", 1, "203.0.113.9"},
		{"unknown, 203.0.113.9:4711", 2, ""},
		{"198.51.100.7, [2001:db8::1]:4711, 2001:db8::2", 1, "2001:db8::2"},
		{"198.51.100.7, [2001:db8::1]:4711, 2001:db8::2", 2, "2001:db8::1"},
		{"203.0.113.9", 1, "203.0.113.9"},
		{"203.0.113.9", 2, ""},
		{"", 1, ""},
		{"", 2, ""},
		{",", 1, ""},
		{"198.51.100.7,", 1, ""},
		{"198.51.100.7,,203.0.113.9", 2, ""},
		{"198.51.100.7,,203.0.113.9", 3, "198.51.100.7"},
	} {
		if got := text(Hop([]byte(c.list), c.hop)); got != c.want {
			t.Errorf("hop %d of %q is %q, want %q", c.hop, c.list, got, c.want)
		}
	}
}

func TestTheFirstFromTheRightThatIsNoTrustedProxyIsTheClient(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:ffff::/48")}
	for list, want := range map[string]string{
		"198.51.100.7, 203.0.113.9":                        "203.0.113.9",
		"198.51.100.7, 203.0.113.9, 10.1.2.3":              "203.0.113.9",
		"203.0.113.9, 10.1.2.3:80, [2001:db8:ffff::1]:443": "203.0.113.9",
		"203.0.113.9, ::ffff:10.1.2.3":                     "203.0.113.9",
		"10.9.9.9, 203.0.113.9, 10.1.2.3":                  "203.0.113.9",
		"2001:db8::1, 10.1.2.3":                            "2001:db8::1",
		"10.3.3.3, 10.2.2.2, 10.1.1.1":                     "10.3.3.3",
		"10.1.1.1":                                         "10.1.1.1",
		"198.51.100.7, unknown, 10.1.1.1":                  "",
		"198.51.100.7, , 10.1.1.1":                         "",
		"198.51.100.7, 10.1.1.1,":                          "",
		"":                                                 "",
		"unknown":                                          "",
		"unknown, 10.1.1.1":                                "",
	} {
		if got := text(Untrusted([]byte(list), trusted)); got != want {
			t.Errorf("%q is %q, want %q", list, got, want)
		}
	}
}

// text is an address as text, and nothing where there is none.
func text(address netip.Addr) string {
	if !address.IsValid() {
		return ""
	}
	return address.String()
}
