package config

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/keys"
)

// bucket is a limit without mistakes.
const bucket = `{"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/s", "key": ["ip"]}`

// mustParse reads a document that has to be right. It has to fit the schema then,
// too.
func mustParse(t *testing.T, document string) *Config {
	t.Helper()
	c, err := Parse([]byte(document))
	if err != nil {
		t.Fatalf("%s\nis refused:\n%v", document, err)
	}
	if err := validate(t, document); err != nil {
		t.Errorf("%s\nis accepted but does not fit the schema:\n%v", document, err)
	}
	return c
}

func readExample(t testing.TB, name string) string {
	t.Helper()
	document, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

// plainResponse is the response of a document that says nothing about it.
var plainResponse = Response{Status: 429, ContentType: "application/json", RateLimitHeaders: RateLimit}

// responding is plainResponse with another status and body.
func responding(status int, body *string) Response {
	r := plainResponse
	r.Status, r.Body = status, body
	return r
}

func units(n int64) Cost { return Cost{Units: n} }

func TestTheSmallestConfigGetsTheDefaults(t *testing.T) {
	c := mustParse(t, readExample(t, "smallest.json"))
	if len(c.Limits) != 1 || c.Limits[0].Limiter == nil {
		t.Fatalf("limits are %+v", c.Limits)
	}
	c.Limits[0].Limiter = nil
	want := &Config{
		Limits: []Limit{{
			Name: "per-ip", Algorithm: "token_bucket", Shape: "token_bucket",
			Key: []keys.Part{{Label: "ip", Sources: []keys.Source{{Kind: keys.IP, IPv4Bits: 32, IPv6Bits: 64}}}}, Missing: MissingShared,
			EnforcePercent: 100,
		}},
		Rules:      []Rule{{Limits: []Use{{Limit: 0, Cost: Cost{Units: 1}}}, Response: plainResponse}},
		Response:   plainResponse,
		ClientIP:   ClientIP{IPv4Prefix: 32, IPv6Prefix: 64},
		OnError:    Allow,
		MaxBuckets: 100000,
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestEveryFieldIsReadWhereverItStands(t *testing.T) {
	c := mustParse(t, `{
		"always": ["b"],
		"rules": [
			{"limits": ["a", {"limit": "c", "cost": 5}, {"limit": "b"}], "cost": 2, "name": "first",
			 "response": {"status": 503},
			 "match": {"path": "/Login/", "path_prefix": ["/a//b/", "/%61pi/.."], "method": ["GET", "PROPFIND"],
			           "host": ["API.example.com.", "*.Example.org", "[2001:DB8::1]"], "route": ["login route", "b"]}},
			{"limits": [], "response": {"body": ""}},
			{"limits": ["a"], "cost": 0, "response": {}}
		],
		"response": {"body": "slow down, {client}", "status": 420},
		"on_error": "deny", "namespace": "team_a-1", "state": {"max_buckets": 1000},
		"$schema": ["anything"],
		"limits": {
			"c": {"key": [], "missing": "deny", "burst": 3, "rate": 0.5, "algorithm": "gcra"},
			"a": {"key": ["user=header:X-User|ip", "path"], "missing": "skip", "algorithm": "fixed_window", "window": "60s", "limit": 9},
			"b": {"key": ["const:x"], "missing": "shared", "algorithm": "leaky_bucket", "mode": "meter", "capacity": 2, "leak_rate": "1/10s"}
		}
	}`)
	var names []string
	for _, l := range c.Limits {
		names = append(names, l.Name)
	}
	if got := strings.Join(names, " "); got != "a b c" {
		t.Errorf("limits are %s, not sorted by name", got)
	}
	a, b := c.Limits[0], c.Limits[1]
	wantKey := []keys.Part{
		{Label: "user", Labelled: true, Sources: []keys.Source{{Kind: keys.Header, Name: "x-user"}, {Kind: keys.IP, IPv4Bits: 32, IPv6Bits: 64}}},
		{Label: "path", Sources: []keys.Source{{Kind: keys.Path}}},
	}
	if !reflect.DeepEqual(a.Key, wantKey) {
		t.Errorf("the key is %+v", a.Key)
	}
	if a.Missing != MissingSkip || b.Missing != MissingShared || c.Limits[2].Missing != MissingDeny {
		t.Error("missing is not read")
	}
	body, empty, namespace := "slow down, {client}", "", "team_a-1"
	want := &Config{
		Limits: c.Limits,
		Always: []Use{{Limit: 1, Cost: units(1)}},
		Rules: []Rule{
			{
				Name: "first",
				Match: Match{
					Path: []string{"/Login"}, PathPrefix: []string{"/a/b", "/"}, Method: []string{"GET", "PROPFIND"},
					Host:  []HostPattern{{"api.example.com", false}, {"example.org", true}, {"[2001:db8::1]", false}},
					Route: []string{"login route", "b"},
				},
				Limits:   []Use{{0, units(2)}, {2, units(5)}, {1, units(2)}},
				Response: responding(503, &body),
			},
			{Response: responding(420, &empty)},
			{Limits: []Use{{0, units(0)}}, Response: responding(420, &body)},
		},
		Response: responding(420, &body), OnError: Deny, Namespace: &namespace, MaxBuckets: 1000, ClientIP: ClientIP{IPv4Prefix: 32, IPv6Prefix: 64},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestShapesSayWhatAChangeOfStartsAfresh(t *testing.T) {
	for fields, want := range map[string]string{
		`"algorithm": "token_bucket", "capacity": 1, "refill_rate": 1`:                                                   "token_bucket",
		`"algorithm": "gcra", "rate": "1/s"`:                                                                             "gcra",
		`"algorithm": "leaky_bucket", "mode": "meter", "capacity": 1, "leak_rate": "1/m"`:                                "leaky_bucket/meter",
		`"algorithm": "leaky_bucket", "mode": "queue", "capacity": 1, "leak_rate": "1/m"`:                                "leaky_bucket/queue",
		`"algorithm": "leaky_bucket", "capacity": 9, "leak_rate": "1/s", "max_wait": "2s"`:                               "leaky_bucket/queue",
		`"algorithm": "concurrency", "limit": 7`:                                                                         "concurrency",
		`"algorithm": "fixed_window", "limit": 1, "window": "1m"`:                                                        "fixed_window/1m/+00:00",
		`"algorithm": "fixed_window", "limit": 9, "window": "60s", "utc_offset": "-00:00"`:                               "fixed_window/1m/+00:00",
		`"algorithm": "fixed_window", "limit": 1, "window": "24h", "utc_offset": "-03:30"`:                               "fixed_window/1d/-03:30",
		`"algorithm": "fixed_window", "limit": 1, "window": "1mo", "utc_offset": "+14:00"`:                               "fixed_window/1mo/+14:00",
		`"algorithm": "sliding_window", "limit": 1, "window": "90m", "utc_offset": "+05:45"`:                             "sliding_window/1h30m/+05:45",
		`"algorithm": "sliding_window", "limit": 1e9, "window": "1d"`:                                                    "sliding_window/1d/+00:00",
		`"\u0061lgorithm": "g\u0063ra", "burst": 1.0e1, "rate": "1000000000/s"`:                                          "gcra",
		`"algorithm": "token_bucket", "capacity": 1000000000.0, "refill_rate": 1e9`:                                      "token_bucket",
		`"algorithm": "leaky_bucket", "mode": "meter", "capacity": 0.5E1, "leak_rate": 0.25`:                             "leaky_bucket/meter",
		`"utc_offset": "+01:00", "window": "1h", "limit": 5.0, "algorithm": "sliding_window", "missing": "\u0073hared" `: "sliding_window/1h/+01:00",
	} {
		c, err := Parse([]byte(`{"limits": {"x": {"key": [], ` + fields + `}}}`))
		if err != nil {
			t.Errorf("%s: %v", fields, err)
		} else if c.Limits[0].Shape != want || c.Limits[0].Limiter == nil {
			t.Errorf("%s: got %+v, want the shape %s", fields, c.Limits[0], want)
		}
	}
}

func TestTheLimiterHasTheNumbersOfTheDocument(t *testing.T) {
	for fields, want := range map[string]int64{
		`"algorithm": "token_bucket", "capacity": 7, "refill_rate": "1/d"`:                  7,
		`"algorithm": "leaky_bucket", "mode": "meter", "capacity": 8, "leak_rate": "1/d"`:   8,
		`"algorithm": "leaky_bucket", "capacity": 1, "leak_rate": "1/d"`:                    1,
		`"algorithm": "concurrency", "limit": 12`:                                           12,
		`"algorithm": "fixed_window", "limit": 9, "window": "1d"`:                           9,
		`"algorithm": "sliding_window", "limit": 10, "window": "1d"`:                        10,
		`"algorithm": "gcra", "rate": "1/d"`:                                                1,
		`"algorithm": "gcra", "rate": "1/d", "burst": 11`:                                   11,
		`"algorithm": "gcra", "rate": "1/d", "burst": 1e3`:                                  1000,
		`"algorithm": "fixed_window", "limit": 2, "window": "1d", "utc_offset": "+02:00"`:   2,
		`"algorithm": "sliding_window", "limit": 3, "window": "1h", "utc_offset": "-01:00"`: 3,
	} {
		c := mustParse(t, `{"limits": {"x": {"key": [], `+fields+`}}}`)
		limiter := c.Limits[0].Limiter
		_, d := algorithms.Decide(limiter, algorithms.State{}, algorithms.Time{Mono: 1, Wall: 1}, 1)
		left := want - 1
		if c.Limits[0].Queue {
			left = want // the first request leaves at once and does not wait
		}
		if !d.Allowed || d.Limit != want || d.Remaining != left {
			t.Errorf("%s: the first request finds %+v, want a limit of %d", fields, d, want)
		}
	}
}

func TestTheFullerExampleIsRightAsItStands(t *testing.T) {
	c := mustParse(t, readExample(t, "fuller.json"))
	var waits, counts []string
	for _, l := range c.Limits {
		if l.Queue {
			waits = append(waits, l.Name)
		}
		if l.CountStatus != nil {
			counts = append(counts, l.Name)
		}
	}
	if len(c.Limits) != 7 || len(c.Rules) != 4 || !slices.Equal(waits, []string{"export"}) || !slices.Equal(counts, []string{"guess"}) {
		t.Errorf("got %+v", c)
	}
}

func TestTwoSpellingsOfOneMatchAreOne(t *testing.T) {
	c := mustParse(t, `{"limits": {}, "rules": [{"limits": [], "match": {
		"path": ["/a", "/a/", "/%61", "//b/../a", "*"], "host": ["a.test", "A.TEST", "a.test.", "*.a.test"], "method": ["GET", "GET"]}}]}`)
	want := Match{Path: []string{"/a", "*"}, Host: []HostPattern{{"a.test", false}, {"a.test", true}}, Method: []string{"GET"}}
	if got := c.Rules[0].Match; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestALimitMayBeNamedByARuleAndByAlways(t *testing.T) {
	c := mustParse(t, `{"limits": {"a": `+bucket+`}, "always": ["a"], "rules": [{"limits": ["a"]}, {"limits": ["a"], "match": {}}]}`)
	if len(c.Always) != 1 || len(c.Rules) != 2 {
		t.Errorf("got %+v", c)
	}
}
