package normal

import (
	"strings"
	"testing"
)

func TestEverySpellingOfAHostIsOneHost(t *testing.T) {
	spellings := map[string][]string{
		"api.example.com": {
			"api.example.com", "API.Example.COM", "api.example.com.", "api.example.com:443", "api.example.com.:443",
			"api.example.com:", "api.example.com:http", "api.example.com:80:80", "Api.Example.Com.:",
		},
		"[2001:db8::a]":      {"[2001:db8::a]", "[2001:DB8::A]", "[2001:db8::a]:443", "[2001:db8::a]:", "[2001:db8::a]x", "[2001:db8::a]."},
		"192.0.2.1":          {"192.0.2.1", "192.0.2.1:80", "192.0.2.1."},
		"":                   {"", ":80", "."},
		"a.":                 {"a.."},
		"[::1":               {"[::1", "[::1."},
		"me@example.com":     {"me@example.com", "ME@example.com:1"},
		"b\xc3\x9ccher.test": {"b\xc3\x9ccher.test"},
	}
	for want, hosts := range spellings {
		for _, host := range hosts {
			if got := Host(host); got != want {
				t.Errorf("%q becomes %q, want %q", host, got, want)
			}
		}
	}
}

func TestAppendHostKeepsWhatIsInTheBuffer(t *testing.T) {
	if got := string(AppendHost([]byte("A."), []byte("."))); got != "A." {
		t.Errorf("appending to %q gives %q", "A.", got)
	}
}

func FuzzHost(f *testing.F) {
	for _, host := range []string{"", "Example.com.:80", "[::1]:80", "[", "a:b:c", "..", "]:["} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		got := Host(host)
		if appended := string(AppendHost([]byte("x."), []byte(host))); appended != "x."+got {
			t.Fatalf("%q is %q alone and %q behind a prefix", host, got, appended)
		}
		if len(got) > len(host) {
			t.Errorf("%q becomes %q, which is longer", host, got)
		}
		if strings.ContainsAny(got, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			t.Errorf("%q becomes %q, which has capitals", host, got)
		}
		if strings.Contains(got, ":") && !strings.HasPrefix(got, "[") {
			t.Errorf("%q becomes %q, which has a colon outside brackets", host, got)
		}
		if again := Host(got); again != got && !strings.HasSuffix(got, ".") {
			t.Errorf("%q becomes %q, and that becomes %q", host, got, again)
		}
	})
}
