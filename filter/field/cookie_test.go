package field

import (
	"net/http"
	"strings"
	"testing"
)

func TestARepeatedCookieCountsOnceByItsFirstValue(t *testing.T) {
	for line, want := range map[string]string{
		"sid=a; sid=b":           "a",
		"x=1; sid=a; y=2; sid=b": "a",
		"sid=; sid=b":            "",
		"xsid=1; sidx=2; sid=a":  "a",
		"SID=1; Sid=2; sid=a":    "a",
		"sid; sid=a":             "a",
		"=sid; sid=a":            "a",
	} {
		if got, found := Cookie([]byte(line), "sid"); string(got) != want || !found {
			t.Errorf("%q: got %q, %v; want %q", line, got, found, want)
		}
	}
}

func TestEverySpellingOfACookieIsOneValue(t *testing.T) {
	for _, line := range []string{
		"sid=a b", `sid="a b"`, "sid = a b ", ";sid=a b", "\tsid=\ta b\t;", "x=1;sid=a b", "x=1;  sid=a b;y", `sid= "a b" ;`,
	} {
		if got, found := Cookie([]byte(line), "sid"); string(got) != "a b" || !found {
			t.Errorf("%q: got %q, %v", line, got, found)
		}
	}
	for line, want := range map[string]string{
		`sid="`: `"`, `sid="a`: `"a`, `sid=a"`: `a"`, `sid=""`: "", "sid=a=b=": "a=b=", "sid=%61+b,c": "%61+b,c",
	} {
		if got, _ := Cookie([]byte(line), "sid"); string(got) != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

func TestACookieThatIsNotSentIsNotFound(t *testing.T) {
	for _, line := range []string{"", ";", "sid", "SID=a", "xsid=a", "x=sid=a", "x=a,sid=b", `"sid"=a`} {
		if got, found := Cookie([]byte(line), "sid"); found {
			t.Errorf("%q: found %q", line, got)
		}
	}
}

func FuzzCookie(f *testing.F) {
	for _, line := range []string{"a=b; sid=c", `sid="x"; sid=y`, "sid=;;=; sid", "\t=", "sid= a ;"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, found := Cookie([]byte(line), "sid")
		// What net/http takes for a cookie with a value is one here. It refuses
		// more, and trims less.
		request := http.Request{Header: http.Header{"Cookie": {line}}}
		if want, err := request.Cookie("sid"); err == nil && !strings.ContainsAny(line, "\r\n\v\f") {
			first := strings.Count(line, "sid") == 1
			if first && want.Value != "" && (!found || strings.Trim(string(got), " \t") != strings.Trim(want.Value, " \t")) {
				t.Errorf("%q: got %q, %v; want %q", line, got, found, want.Value)
			}
		}
		if !strings.Contains(line, string(got)) {
			t.Errorf("%q: got %q, which is not in it", line, got)
		}
	})
}
