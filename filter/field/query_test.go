package field

import (
	"net/url"
	"strings"
	"testing"
)

func TestQueryParametersAreDecoded(t *testing.T) {
	for path, want := range map[string]string{
		"/?key=a":                   "a",
		"/x?key=a&key=b":            "a",
		"/?key=&key=b":              "",
		"/?key&key=b":               "",
		"/?x=1&key=a&y=2":           "a",
		"/?%6bey=a":                 "a",
		"/?k%65y=%61":               "a",
		"/?key=a+b":                 "a b",
		"/?key=a%20b":               "a b",
		"/?key=a%2Bb":               "a+b",
		"/?key=a%26key%3Db":         "a&key=b",
		"/?key=a=b":                 "a=b",
		"/?key=a?b":                 "a?b",
		"/?key=a;x=b":               "a;x=b",
		"/?x=1;key=b&key=a":         "a",
		"/?key=%":                   "%",
		"/?key=%4":                  "%4",
		"/?key=%zz%41":              "%zzA",
		"/?key=%2541":               "%41",
		"/?key=%c3%a9":              "é",
		"/?&&key=a":                 "a",
		"/?key=a#&key=b":            "a",
		"/?x#?key=b":                "",
		"/#?key=b":                  "",
		"/key=b":                    "",
		"/?xkey=b":                  "",
		"/?keyx=b":                  "",
		"/?KEY=b":                   "",
		"/?ke=b":                    "",
		"/?key%00=b":                "",
		"":                          "",
		"?":                         "",
		"http://example.com/?key=a": "a",
	} {
		if got := string(AppendQuery([]byte("x"), []byte(path), "key")); got != "x"+want {
			t.Errorf("%q: got %q, want %q behind the x", path, got, want)
		}
	}
	if got := string(AppendQuery(nil, []byte("/?a+b=1"), "a b")); got != "1" {
		t.Errorf("a name with a space is %q", got)
	}
}

func FuzzAppendQuery(f *testing.F) {
	for _, path := range []string{"/?key=a", "/?%6bey=%zz&key=b", "?key#key", "/?k+ey;key=1&&key=%"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got := AppendQuery(nil, []byte(path), "key")
		if len(got) > len(path) {
			t.Fatalf("%q: got %q, which is longer", path, got)
		}
		beforeFragment, _, _ := strings.Cut(path, "#")
		_, query, _ := strings.Cut(beforeFragment, "?")
		want, err := url.ParseQuery(query)
		if err == nil && string(got) != want.Get("key") {
			t.Errorf("%q: got %q, want %q", path, got, want.Get("key"))
		}
	})
}
