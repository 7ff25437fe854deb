package fleet

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// Every Envoy of a fleet has to say the same, whatever its version.
func TestKeysStayWhatTheyAre(t *testing.T) {
	for _, c := range []struct{ readable, exact, want string }{
		// The first half of SHA-256("abc"), FIPS 180-4's example.
		{"rate-limit:login:ip-203.0.113.10", "abc", "rate-limit:login:ip-203.0.113.10:ba7816bf8f01cfea414140de5dae2223"},
		{"", "", ":e3b0c44298fc1c149afbf4c8996fb924"},
		{"é\xff\xc3\ufffd", "abc", "é??\ufffd:ba7816bf8f01cfea414140de5dae2223"},
	} {
		if got := string(AppendKey([]byte("x"), []byte(c.readable), []byte(c.exact))); got != "x"+c.want {
			t.Errorf("%q, %q: %q, want %q", c.readable, c.exact, got, "x"+c.want)
		}
	}
}

func TestAKeyIsTextAndTellsClientsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		readable := rapid.SliceOf(rapid.Byte()).Draw(t, "readable")
		one := rapid.SliceOf(rapid.Byte()).Draw(t, "one")
		other := append(one[:len(one):len(one)], 0)
		key := string(AppendKey(nil, readable, one))
		if !utf8.ValidString(key) {
			t.Fatalf("%q is no text", key)
		}
		if utf8.Valid(readable) && !strings.HasPrefix(key, string(readable)+":") {
			t.Fatalf("%q does not begin with %q", key, readable)
		}
		if key == string(AppendKey(nil, readable, other)) {
			t.Fatal("two clients have one key")
		}
	})
}
