package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/normal"
)

func FuzzParse(f *testing.F) {
	for _, document := range []string{
		`{"limits": {}, "rules": []}`, "", "[", `{"a":1,"a":1}`, `{"limits":{"a":{"algorithm":"concurrency"}}}`,
		`{"limits": {"a": {"algorithm": "gcra", "rate": 1e0, "key": ["x=header:a|ip"]}}, "always": ["a"], "namespace": "",
		  "rules": [{"name": "n", "match": {"path": ["/a%2f/..", "*"], "host": "*.A.b."}, "limits": [{"limit": "a", "cost": 0}]}]}`,
		`{"limits": {"a": {"algorithm": "fixed_window", "limit": 5.0, "window": "1mo", "utc_offset": "-03:30", "key": []},
		             "b": {"algorithm": "leaky_bucket", "capacity": 5, "leak_rate": "0.5/m", "mode": "meter", "key": ["const:~1"]}},
		  "rules": [{"limits": ["a", "b"], "cost": 3, "response": {"status": 503, "body": "\ud83d\ude00"}}], "on_error": "deny"}`,
	} {
		f.Add(document)
	}
	f.Fuzz(func(t *testing.T, document string) {
		c, err := Parse([]byte(document))
		if err != nil {
			checkRefusal(t, c, err)
		} else {
			checkConfig(t, c)
		}
	})
}

// checkRefusal checks that an error is made of lines fit for a log.
func checkRefusal(t *testing.T, c *Config, err error) {
	var lines Mistakes
	if c != nil || !errors.As(err, &lines) || len(lines) == 0 || len(lines) > maxMistakes+1 {
		t.Fatalf("got %+v and a %T: %v", c, err, err)
	}
	for i, line := range lines {
		if slices.Contains(lines[:i], line) {
			t.Errorf("stands twice: %s", line)
		}
		if !utf8.ValidString(line) || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("not printable: %q", line)
		}
	}
}

// checkConfig checks what users of a Config rely on.
func checkConfig(t *testing.T, c *Config) {
	for i, l := range c.Limits {
		if !isName(l.Name) || i > 0 && c.Limits[i-1].Name >= l.Name {
			t.Errorf("limit %d is called %q", i, l.Name)
		}
		if l.Limiter == nil || !strings.HasPrefix(l.Shape, l.Algorithm) || l.Missing < MissingShared || l.Missing > MissingDeny {
			t.Errorf("limit %+v", l)
		}
		for _, part := range l.Key {
			if part.Label == "" || len(part.Sources) == 0 {
				t.Errorf("key part %+v", part)
			}
		}
	}
	if c.MaxBuckets < 1_000 || c.MaxBuckets > 10_000_000 || c.OnError != Allow && c.OnError != Deny {
		t.Errorf("%+v", c)
	}
	if c.Namespace != nil && (len(*c.Namespace) > 63 || !isWord(*c.Namespace)) {
		t.Errorf("namespace %q", *c.Namespace)
	}
	checkUses(t, c, c.Always)
	checkResponse(t, c.Response)
	names := map[string]bool{}
	for _, rule := range c.Rules {
		if rule.Name != "" && (!isName(rule.Name) || names[rule.Name]) {
			t.Errorf("a rule is called %q", rule.Name)
		}
		names[rule.Name] = true
		checkUses(t, c, rule.Limits)
		checkResponse(t, rule.Response)
		checkMatch(t, rule.Match)
	}
}

func checkUses(t *testing.T, c *Config, uses []Use) {
	seen := map[int]bool{}
	for _, use := range uses {
		if use.Limit < 0 || use.Limit >= len(c.Limits) || seen[use.Limit] || use.Cost < 0 || use.Cost > algorithms.MaxUnits {
			t.Errorf("uses %+v of %d limits", uses, len(c.Limits))
		}
		seen[use.Limit] = true
	}
}

func checkResponse(t *testing.T, r Response) {
	if r.Status < 400 || r.Status > 599 || r.Body != nil && !utf8.ValidString(*r.Body) {
		t.Errorf("response %+v", r)
	}
}

func checkMatch(t *testing.T, m Match) {
	for _, path := range slices.Concat(m.Path, m.PathPrefix) {
		if path != "*" && !strings.HasPrefix(path, "/") || len(path) > 1 && strings.HasSuffix(path, "/") {
			t.Errorf("path %q", path)
		}
	}
	for _, host := range m.Host {
		if host.Name == "" || normal.Host(host.Name) != host.Name || strings.HasPrefix(host.Name, "*") {
			t.Errorf("host %q", host.Name)
		}
	}
	if slices.Contains(m.Method, "") || slices.Contains(m.Route, "") {
		t.Errorf("match %+v", m)
	}
}
