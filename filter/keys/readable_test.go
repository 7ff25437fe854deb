package keys

import (
	"hash/fnv"
	"strings"
	"testing"
)

func sum(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

func readable(t testing.TB, r request, texts ...string) string {
	t.Helper()
	return string(AppendReadable(nil, "login", parts(t, texts...), r, sum))
}

func TestAKeyReadsAsItIsDocumented(t *testing.T) {
	for _, c := range []struct {
		part string
		r    request
		want string
	}{
		{"ip", request{"ip": "203.0.113.10"}, "ip-203.0.113.10"},
		{"ip", request{"ip": "2001:db8:1:2:3::4"}, "ip-2001:db8:1:2::/64"},
		{"ip", request{}, "ip-missing"},
		{"user=header:x-user-id", request{"header:x-user-id": "42"}, "user-42"},
		{"user=header:x-user-id", request{}, "user-missing"},
		{"q=query:page", request{"query:page": "3"}, "q-3"},
		{"metadata:f/a", request{"metadata:f\x00a": "alice@example.com"}, "metadata-alice@example.com"},
		{"org=metadata_number:f/a", request{"metadata_number:f\x00a": "-5"}, "org--5"},
		{"method", request{"method": "GET"}, "method-GET"},
		{"host", request{"host": "example.com"}, "host-example.com"},
		{"path", request{"path": "/a/b"}, "path-/a/b"},
		{"route", request{"route": "r"}, "route-r"},
		{"virtual_host", request{"virtual_host": "v"}, "virtual_host-v"},
		{"rule", request{"rule": "login"}, "rule-login"},
		{"const:all", request{}, "const-all"},
		{"who=header:x-user-id|ip", request{"ip": "203.0.113.10"}, "who-203.0.113.10"},
	} {
		if got := readable(t, c.r, c.part); got != "rate-limit:login:"+c.want {
			t.Errorf("%s of %v reads %s, want %s", c.part, c.r, got, c.want)
		}
	}
	if got := readable(t, request{"ip": "203.0.113.10", "method": "GET"}, "method", "ip"); got != "rate-limit:login:method-GET:ip-203.0.113.10" {
		t.Errorf("two parts read %s", got)
	}
	if got := readable(t, request{}); got != "rate-limit:login" {
		t.Errorf("no part reads %s", got)
	}
	wide := []Part{{Label: "ip", Sources: []Source{{Kind: IP, IPv4Bits: 24, IPv6Bits: 128}}}}
	for address, want := range map[string]string{"203.0.113.10": "203.0.113.0/24", "2001:db8::1": "2001:db8::1"} {
		if got := string(AppendReadable(nil, "l", wide, request{"ip": address}, sum)); got != "rate-limit:l:ip-"+want {
			t.Errorf("%s reads %s", address, got)
		}
	}
}

func TestASecretIsShownOnlyAsAHash(t *testing.T) {
	const secret = "s3cr3t"
	hashes := map[string]string{}
	for _, part := range []string{
		"bearer", "token=bearer", "cookie:a", "c=cookie:a", "property:a/b", "p=property:a/b", "header:a", "query:a", "header:authorization",
		"h=header:authorization", "h=header:Cookie", "h=header:proxy-authorization", "query:b", "a=ip|bearer",
	} {
		r := request{}
		for _, name := range []string{"bearer", "cookie:a", "property:a\x00b", "header:a", "query:a", "query:b", "header:authorization", "header:cookie", "header:proxy-authorization"} {
			r[name] = secret
		}
		got := readable(t, r, part)
		label, hash, found := strings.Cut(strings.TrimPrefix(got, "rate-limit:login:"), "-#")
		if !found || strings.Contains(got, secret) || len(hash) != 8 || strings.Trim(hash, "0123456789abcdef") != "" {
			t.Errorf("%s reads %s", part, got)
		}
		for name := range r {
			r[name] = "another"
		}
		if other := readable(t, r, part); other == got {
			t.Errorf("%s reads %s for two secrets", part, got)
		}
		hashes[label] = hash
	}
	if hashes["bearer"] != hashes["token"] {
		t.Error("a label changes the hash of a token")
	}
	one := readable(t, request{"header:a": secret, "cookie:a": secret}, "header:a", "cookie:a")
	if parts := strings.Split(one, ":"); parts[2] == parts[3] {
		t.Errorf("one secret in two places reads %s", one)
	}
}

func TestNoValueCanBreakALogLineOrPretendToBeAnother(t *testing.T) {
	long := strings.Repeat("x", 64)
	for value, want := range map[string]string{
		"missing":                     `"missing"`,
		"a b":                         `"a b"`,
		"a\nrate-limit:b":             `"a\nrate-limit:b"`,
		"\x1b[31m":                    `"\x1b[31m"`,
		"x:user-42":                   `"x:user-42"`,
		`"a"`:                         `"\"a\""`,
		`\n`:                          `"\\n"`,
		"#0123abcd":                   `"#0123abcd"`,
		"\u202egnp":                   `"\u202egnp"`,
		"\xff":                        `"\xff"`,
		"\x7f":                        `"\x7f"`,
		"Анна":                        `"Анна"`,
		long:                          long,
		long + "y":                    `"` + long + `…"`,
		long[:63] + "é":               `"` + long[:63] + `…"`,
		strings.Repeat("\x00", 1<<16): `"` + strings.Repeat(`\x00`, 64) + `…"`,
	} {
		if got := readable(t, request{"header:a": value}, "user=header:a"); got != "rate-limit:login:user-"+want {
			t.Errorf("%q reads %s, want %s", value, got, want)
		}
	}
	if got := readable(t, request{}, "query:a\nb"); got != `rate-limit:login:"a\nb"-missing` {
		t.Errorf("a label with a line feed reads %s", got)
	}
}
