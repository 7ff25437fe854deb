package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/normal"
)

func FuzzParse(f *testing.F) {
	for _, document := range []string{
		`{"limits": {}, "rules": []}`, "", "[", `{"a":1,"a":1}`, `{"limits":{"a":{"algorithm":"concurrency"}}}`,
		`{"limits": {"a": {"algorithm": "leaky_bucket", "mode": "queue", "capacity": 5, "leak_rate": 1, "max_wait": "1m30s", "key": []},
		             "b": {"algorithm": "leaky_bucket", "capacity": 5, "leak_rate": 1, "key": [], "overrides": [{"match": {}, "max_wait": "0s"}]},
		             "c": {"algorithm": "concurrency", "limit": 1e3, "key": []},
		             "d": {"algorithm": "gcra", "rate": 1, "key": [], "scope": "process", "count_status": ["401", "5xx"], "charge": {"metadata": "f~1/a", "max": 5}},
		             "e": {"algorithm": "gcra", "rate": 1, "key": [], "charge": {"response_header": "X-A", "max": 5, "remove": true}},
		             "f": {"algorithm": "gcra", "rate": 1, "key": [], "charge": {"response_trailer": "x-b", "max": 5}}},
		  "rules": [{"limits": ["a", "c"]}, {"limits": ["b", "d"]}], "always": ["e"]}`,
		`{"limits": {"a": {"algorithm": "gcra", "rate": 1e0, "key": ["x=header:a|ip"]}}, "always": ["a"], "namespace": "",
		  "rules": [{"name": "n", "match": {"path": ["/a%2f/..", "*"], "host": "*.A.b."}, "limits": [{"limit": "a", "cost": 0}]}]}`,
		`{"limits": {"a": {"algorithm": "fixed_window", "limit": 5.0, "window": "1mo", "utc_offset": "-03:30", "key": []},
		             "b": {"algorithm": "leaky_bucket", "capacity": 5, "leak_rate": "0.5/m", "mode": "meter", "key": ["const:~1"]}},
		  "rules": [{"limits": ["a", "b"], "cost": 3, "response": {"status": 503, "body": "\ud83d\ude00"}}], "on_error": "deny"}`,
		`{"global": {"cluster": "c", "protocol": "rls", "mode": "lease", "lease": 0.5, "timeout": "1s", "on_failure": "deny", "domain": "d"},
		  "limits": {"a": {"algorithm": "fixed_window", "limit": 5, "window": "1s", "scope": "global", "key": [], "overrides": [{"match": {}, "limit": 6}]}}, "always": ["a"]}`,
		`{"global": {"cluster": "c", "protocol": "gubernator"}, "limits": {"a": {"algorithm": "gcra", "rate": "5/7ns", "scope": "global", "key": []},
		             "b": {"algorithm": "leaky_bucket", "mode": "meter", "capacity": 5, "leak_rate": 1, "scope": "global", "key": []}}}`,
		readExample(f, "full.json"), readExample(f, "fuller.json"),
	} {
		f.Add(document)
	}
	for _, name := range []string{"full.json", "fuller.json", "smallest.json"} {
		f.Add(string(asStruct(f, readExample(f, name))))
	}
	plugin, err := Parse([]byte(readExample(f, "full.json")))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, document string) {
		c, err := Parse([]byte(document))
		if err != nil {
			checkRefusal(t, c, err)
		} else {
			checkConfig(t, c)
		}
		if c, err := ParseRoute([]byte(document), plugin); err != nil {
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
		if l.EnforcePercent < 0 || l.EnforcePercent > 100 || c.Shadow && !l.Shadow {
			t.Errorf("limit %+v", l)
		}
		checkAfter(t, &l)
		checkGlobal(t, c, &l)
		for _, o := range l.Overrides {
			checkMatch(t, o.Match)
			if again := o.Match.identity(); again != o.Identity || strings.Contains(again, "\x00") {
				t.Errorf("override %+v", o)
			}
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
	if ip := c.ClientIP; ip.IPv4Prefix < 1 || ip.IPv4Prefix > 32 || ip.IPv6Prefix < 1 || ip.IPv6Prefix > 128 ||
		(ip.Header != "") != (ip.TrustedHops > 0 || ip.TrustedProxies != nil) || ip.TrustedHops > 0 && ip.TrustedProxies != nil {
		t.Errorf("client IP %+v", ip)
	}
	for _, m := range c.Exempt {
		checkMatch(t, m)
	}
	if g := c.Global; g != nil && (g.Cluster == "" || g.Domain == "" || g.LeaseShare < 1 || g.LeaseShare > wholeShare || g.Timeout < time.Millisecond || g.Timeout > 10*time.Second ||
		strings.ContainsFunc(g.Cluster+g.Domain, unicode.IsControl)) {
		t.Errorf("service %+v", g)
	}
	if c.Namespace != nil && (len(*c.Namespace) > 63 || !isWord(*c.Namespace)) {
		t.Errorf("namespace %q", *c.Namespace)
	}
	checkUses(t, c, c.Always, nil)
	checkResponse(t, c.Response)
	names := map[string]bool{}
	for _, rule := range c.Rules {
		if rule.Name != "" && (!isName(rule.Name) || names[rule.Name]) {
			t.Errorf("a rule is called %q", rule.Name)
		}
		names[rule.Name] = true
		checkUses(t, c, rule.Limits, c.Always)
		checkResponse(t, rule.Response)
		checkMatch(t, rule.Match)
	}
}

// checkGlobal checks what a service is to count for a limit.
func checkGlobal(t *testing.T, c *Config, l *Limit) {
	if (l.Counts != nil) != l.Global || strings.HasSuffix(l.Shape, "/global") != l.Global || l.Global && (c.Global == nil || l.Queue || l.Concurrency || l.CountStatus != nil) {
		t.Errorf("limit %+v", l)
	}
	counts := []*GlobalCount{l.Counts}
	for _, o := range l.Overrides {
		if (o.Counts != nil) != (l.Global && o.Limiter != nil) {
			t.Errorf("override %+v", o)
		}
		counts = append(counts, o.Counts)
	}
	for _, n := range counts {
		if n == nil {
			continue
		}
		inWindows := n.Window == time.Minute || n.Window == time.Hour || n.Window == 24*time.Hour || n.Window == time.Second && c.Global.Protocol == RLS
		if n.Units < 1 || n.Units > algorithms.MaxUnits || inWindows == (n.Rate != algorithms.Rate{}) || !inWindows && (n.Window != 0 || c.Global.Protocol == RLS) {
			t.Errorf("limit %+v is counted as %+v", l, n)
		}
	}
}

// checkAfter checks what a limit has to do with requests that it has admitted.
func checkAfter(t *testing.T, l *Limit) {
	if l.Queue != (l.Shape == "leaky_bucket/queue") || l.Concurrency != (l.Shape == "concurrency") || (l.Queue || l.Concurrency) && (l.Charge != nil || l.CountStatus != nil) {
		t.Errorf("limit %+v", l)
	}
	if c := l.Charge; c != nil {
		sources := 0
		for _, source := range []string{c.ResponseHeader, c.ResponseTrailer, c.Metadata} {
			if source != "" {
				sources++
			}
		}
		if sources != 1 || c.Max < 1 || c.Max > algorithms.MaxUnits || c.Remove && c.ResponseHeader == "" || strings.ToLower(c.ResponseHeader+c.ResponseTrailer) != c.ResponseHeader+c.ResponseTrailer ||
			c.Metadata != "" && !strings.Contains(c.Metadata, "\x00") {
			t.Errorf("charge %+v", c)
		}
	}
	for _, r := range l.CountStatus {
		if r.From < 100 || r.To > 599 || r.From != r.To && (r.From%100 != 0 || r.To != r.From+99) {
			t.Errorf("statuses %+v", l.CountStatus)
		}
	}
	if l.CountStatus != nil && len(l.CountStatus) == 0 {
		t.Error("no status counts")
	}
}

// checkUses checks a list of limits, which apply besides those of always.
func checkUses(t *testing.T, c *Config, uses, always []Use) {
	queues := map[int]bool{}
	for _, use := range slices.Concat(uses, always) {
		if c.Limits[use.Limit].Queue {
			queues[use.Limit] = true
		}
	}
	if len(queues) > 1 {
		t.Errorf("%+v and %+v are %d queues", uses, always, len(queues))
	}
	seen := map[int]bool{}
	for _, use := range uses {
		cost := use.Cost
		if use.Limit < 0 || use.Limit >= len(c.Limits) || seen[use.Limit] || cost.Units < 0 || cost.Units > algorithms.MaxUnits ||
			(cost.Header != "") != (cost.Max > 0) || cost.Max > algorithms.MaxUnits {
			t.Errorf("uses %+v of %d limits", uses, len(c.Limits))
		}
		seen[use.Limit] = true
	}
}

func checkResponse(t *testing.T, r Response) {
	if r.Status < 400 || r.Status > 599 || r.Body != nil && !utf8.ValidString(*r.Body) || !strings.Contains(r.ContentType, "/") ||
		r.RateLimitHeaders > RateLimit|Draft|XRateLimit || r.RetryAfterJitter < 0 || r.RetryAfterJitter > maxJitter || len(r.Headers) > maxExtraHeaders {
		t.Errorf("response %+v", r)
	}
	for i, h := range r.Headers {
		if h[0] == "" || h[0] != strings.ToLower(h[0]) || strings.ContainsAny(h[0]+h[1], "\r\n\x00") || i > 0 && r.Headers[i-1][0] >= h[0] {
			t.Errorf("headers %q", r.Headers)
		}
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
	for _, h := range m.Headers {
		for _, c := range h.Any {
			set := 0
			for _, is := range []bool{c.Present, c.Exact != nil, c.Prefix != nil, c.Regex != nil} {
				if is {
					set++
				}
			}
			if set != 1 {
				t.Errorf("header %s: %+v", h.Name, c)
			}
		}
		if h.Name == "" || len(h.Any) == 0 {
			t.Errorf("header %+v", h)
		}
	}
	for _, network := range m.IP {
		if network != network.Masked() || network.Addr().Is4In6() {
			t.Errorf("network %s", network)
		}
	}
	for _, v := range m.Values {
		if len(v.Any) == 0 || len(v.Part.Sources) == 0 || slices.Contains(v.Any, "") {
			t.Errorf("value %+v", v)
		}
	}
	if slices.Contains(m.Method, "") || slices.Contains(m.Route, "") {
		t.Errorf("match %+v", m)
	}
}
