package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const limits = `{
	"limits": {
		"one":   {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/h", "key": ["ip"]},
		"three": {"algorithm": "token_bucket", "capacity": 3, "refill_rate": "1/h", "key": ["ip"]},
		"five":  {"algorithm": "fixed_window", "limit": 5, "window": "1d", "key": ["ip"]}
	},`

func TestTheFirstRuleThatMatchesDecides(t *testing.T) {
	document := limits + `"rules": [
		{"match": {"method": "POST", "path": "/login"}, "limits": ["one"]},
		{"match": {"path_prefix": "/api/"}, "limits": ["three"]},
		{"match": {"host": ["*.example.com", "example.org"]}, "limits": ["five"]},
		{"match": {"route": "special"}, "limits": ["one"]}
	]}`
	const client = "192.0.2.1"
	for name, c := range map[string]struct {
		request
		want int
	}{
		"method and path":            {request{method: "POST", path: "/login"}, 1},
		"another method":             {request{method: "GET", path: "/login"}, 10},
		"another spelling":           {request{method: "POST", path: "/x/..//%6cogin/?next=/"}, 1},
		"a longer name":              {request{method: "POST", path: "/login.css"}, 10},
		"under a prefix":             {request{path: "/api/users"}, 3},
		"the prefix itself":          {request{path: "/api"}, 3},
		"not a whole segment":        {request{path: "/apix"}, 10},
		"under a host, with port":    {request{path: "/", host: "A.Example.com.:8080"}, 5},
		"the host itself is not":     {request{path: "/", host: "example.com"}, 10},
		"not a whole label":          {request{path: "/", host: "badexample.com"}, 10},
		"nothing in front of a host": {request{path: "/", host: ".example.com"}, 10},
		"the other host":             {request{path: "/", host: "example.org"}, 5},
		"a route":                    {request{path: "/", route: "special"}, 1},
		"nothing":                    {request{path: "/"}, 10},
	} {
		c.address = client
		start(t, document).admits(name, c.request, c.want)
	}
}

func TestSeveralLimitsAreOneDecision(t *testing.T) {
	b := start(t, limits+`"rules": [
		{"match": {"path": "/both"}, "limits": ["five", "one"]},
		{"match": {"path": "/five"}, "limits": ["five"]}
	]}`)
	client := request{address: "192.0.2.1", path: "/both"}
	if o := b.ask(client); o.Verdict != Admitted || o.Limit.Name != "one" || o.Reported.Decision.Remaining != 0 {
		t.Errorf("got %v by %v, want admitted, reporting the limit with the smallest share left", o.Verdict, o.Limit)
	}
	for range 100 {
		if o := b.ask(client); o.Verdict != Refused || o.Limit.Name != "one" || o.Reported.Decision.RetryAfter != time.Hour {
			t.Fatalf("got %v by %v for %v, want refused by the limit that is used up", o.Verdict, o.Limit, o.Reported.Decision.RetryAfter)
		}
	}
	client.path = "/five"
	if o := b.ask(client); o.Reported.Decision.Remaining != 3 {
		t.Errorf("the other limit has %d left, want 3: refusals do not charge it", o.Reported.Decision.Remaining)
	}
}

// The worker looks at every limit first. Here another one takes the last place
// of the second limit after that, so the first has been charged already.
func TestWhatWasTakenIsGivenBackWhenAnotherLimitRefusesAfterAll(t *testing.T) {
	document := limits + `"rules": [
		{"match": {"path": "/both"}, "limits": ["five", "one"]},
		{"match": {"path": "/five"}, "limits": ["five"]},
		{"match": {"path": "/one"}, "limits": ["one"]}
	]}`
	b := start(t, document)
	other := startOn(t, b.store, document)
	b.store.BeforeSet = func() { other.ask(request{address: "192.0.2.1", path: "/one"}) }
	if o := b.ask(request{address: "192.0.2.1", path: "/both"}); o.Verdict != Refused || o.Limit.Name != "one" {
		t.Fatalf("got %v by %v, want refused", o.Verdict, o.Limit)
	}
	if o := b.ask(request{address: "192.0.2.1", path: "/five"}); o.Reported.Decision.Remaining != 4 {
		t.Errorf("the first limit has %d left, want 4: it was given back its unit", o.Reported.Decision.Remaining)
	}
}

func TestTheRefusalThatLastsLongestIsReportedAndNeverBeatsAll(t *testing.T) {
	b := start(t, `{
		"limits": {
			"short": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/s", "key": ["ip"]},
			"long":  {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/h", "key": ["ip"]}
		},
		"rules": [
			{"match": {"path": "/costly"}, "limits": [{"limit": "short", "cost": 2}, "long"]},
			{"limits": ["short", "long"]}
		]
	}`)
	client := request{address: "192.0.2.1", path: "/"}
	b.ask(client)
	if o := b.ask(client); o.Limit.Name != "long" || o.Reported.Decision.RetryAfter != time.Hour {
		t.Errorf("reported %s for %v, want long for 1h", o.Limit.Name, o.Reported.Decision.RetryAfter)
	}
	client.path = "/costly"
	if o := b.ask(client); o.Limit.Name != "short" || !o.Reported.Decision.Never {
		t.Errorf("reported %s, want short, which can never admit", o.Limit.Name)
	}
}

func TestALimitOfAlwaysAndTheRuleCountsOnceAtTheLargerCost(t *testing.T) {
	document := limits + `"always": ["five"], "rules": [
		{"match": {"path": "/two"}, "limits": [{"limit": "five", "cost": 2}]},
		{"match": {"path": "/look"}, "limits": [{"limit": "five", "cost": 0}]},
		{"match": {"path": "/plain"}, "limits": []}
	]}`
	for path, want := range map[string]int64{"/two": 3, "/look": 4, "/plain": 4, "/elsewhere": 4} {
		o := start(t, document).ask(request{address: "192.0.2.1", path: path})
		if o.Verdict != Admitted || o.Reported.Decision.Remaining != want {
			t.Errorf("%s: %v with %d left, want admitted with %d", path, o.Verdict, o.Reported.Decision.Remaining, want)
		}
	}
}

func TestAMissingKeyPartIsSharedSkippedOrDenied(t *testing.T) {
	document := func(missing string) string {
		return `{"limits": {"k": {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/h",
			"key": ["header:x-api-key", "ip"]` + missing + `}}, "rules": [{"limits": ["k"]}]}`
	}
	without := request{address: "192.0.2.1", path: "/"}
	for _, missing := range []string{"", `, "missing": "shared"`} {
		b := start(t, document(missing))
		b.admits("without a key", without, 2)
		b.admits("without a key, elsewhere", request{address: "192.0.2.2"}, 2)
		for _, spelling := range []string{"\x00", "null", "-"} {
			b.admits("a key that looks like none", request{address: "192.0.2.1", headers: map[string]string{"x-api-key": spelling}}, 2)
		}
	}
	start(t, document(`, "missing": "skip"`)).admits("skip", without, 10)
	o := start(t, document(`, "missing": "deny"`)).ask(without)
	if o.Verdict != MissingKey || o.Limit.Name != "k" {
		t.Errorf("deny: got %v, want a missing key", o.Verdict)
	}
}

func TestKeysDoNotRunIntoEachOther(t *testing.T) {
	b := start(t, `{"limits": {"k": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/h",
		"key": ["header:a|ip", "header:b"]}}, "rules": [{"limits": ["k"]}]}`)
	headers := func(a, b string) map[string]string { return map[string]string{"a": a, "b": b} }
	for _, r := range []request{
		{headers: headers("x", "yz")},
		{headers: headers("xy", "z")},
		{headers: headers("", "xyz")},
		{headers: headers("xyz", "")},
		{headers: headers("1.2.3.4", "z")},
		{address: "1.2.3.4", headers: headers("", "z")},
		{address: "1.2.3.5", headers: headers("", "z")},
		{headers: headers("\x01\x02\x03\x04", "z")},
		{headers: headers(strings.Repeat("x", 127), "z")},
		{headers: headers(strings.Repeat("x", 128), "z")},
		{address: "2001:db8::1", headers: headers("", "z")},
		{address: "2001:db8:0:1::1", headers: headers("", "z")},
	} {
		b.admits(fmt.Sprintf("%q", r), r, 1)
	}
}

func TestAnIPv6NetworkIsOneClient(t *testing.T) {
	b := start(t, limits+`"rules": [{"limits": ["three"]}]}`)
	b.admits("one address", request{address: "2001:db8:1234:5678::1"}, 3)
	b.admits("another of its /64", request{address: "2001:db8:1234:5678:ffff::2"}, 0)
	b.admits("ending like an IPv4 address", request{address: "2001:db8:1234:5678::1.2.3.4"}, 0)
	b.admits("that IPv4 address", request{address: "1.2.3.4"}, 3)
	b.admits("no address at all", request{}, 3)
}

func TestBucketsOutliveAPushThatKeepsTheLimit(t *testing.T) {
	document := func(name, numbers, key string) string {
		return fmt.Sprintf(`{"limits": {%q: {%s, "key": [%q]}}, "rules": [{"limits": [%q]}], "response": {"status": 430}}`, name, numbers, key, name)
	}
	before := document("a", `"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/h"`, "ip")
	for what, c := range map[string]struct {
		document string
		want     int
	}{
		"the same":          {before, 0},
		"a lower capacity":  {document("a", `"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/h"`, "ip"), 0},
		"a higher capacity": {document("a", `"algorithm": "token_bucket", "capacity": 7, "refill_rate": "1/h"`, "ip"), 2},
		"a label":           {document("a", `"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/h"`, "client=ip"), 0},
		"another name":      {document("b", `"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/h"`, "ip"), 5},
		"another key":       {document("a", `"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/h"`, "ip|path"), 5},
		"another algorithm": {document("a", `"algorithm": "gcra", "burst": 5, "rate": "1/h"`, "ip"), 5},
		"a window":          {document("a", `"algorithm": "fixed_window", "limit": 5, "window": "1d"`, "ip"), 5},
	} {
		client := request{address: "192.0.2.1"}
		old := start(t, before)
		old.admits("before the push", client, 5)
		startOn(t, old.store, c.document).admits(what, client, c.want)
	}
}

func TestAPushKeepsWhatWasSpentUnlessItChangesTheShape(t *testing.T) {
	const bucket, gcra, meter, fixed, sliding = `"algorithm": "token_bucket", "capacity": %d, "refill_rate": "1/h"`,
		`"algorithm": "gcra", "burst": %d, "rate": "1/h"`,
		`"algorithm": "leaky_bucket", "mode": "meter", "capacity": %d, "leak_rate": "1/h"`,
		`"algorithm": "fixed_window", "limit": %d, "window": "1d"`,
		`"algorithm": "sliding_window", "limit": %d, "window": "1d"`
	document := func(fields string, numbers ...any) string {
		return `{"limits": {"a": {` + fmt.Sprintf(fields, numbers...) + `, "key": ["ip"]}}, "rules": [{"limits": ["a"]}]}`
	}
	for _, fields := range []string{bucket, gcra, meter, fixed, sliding} {
		for _, c := range []struct{ limit, want int }{{5, 0}, {3, 0}, {7, 2}} {
			old := start(t, document(fields, 5))
			old.admits("before the push", request{address: "192.0.2.1"}, 5)
			startOn(t, old.store, document(fields, c.limit)).admits(
				fmt.Sprintf("%s with %d", fields, c.limit), request{address: "192.0.2.1"}, c.want)
		}
	}
	for _, c := range []struct{ before, after string }{
		{fixed, `"algorithm": "fixed_window", "limit": %d, "window": "12h"`},
		{fixed, fixed + `, "utc_offset": "+02:00"`},
		{sliding, `"algorithm": "sliding_window", "limit": %d, "window": "12h"`},
		{sliding, sliding + `, "utc_offset": "+02:00"`},
		{fixed, sliding}, {bucket, meter},
	} {
		old := start(t, document(c.before, 5))
		old.admits("before the push", request{address: "192.0.2.1"}, 5)
		startOn(t, old.store, document(c.after, 5)).admits(c.before+" becomes "+c.after, request{address: "192.0.2.1"}, 5)
	}
	// Other spellings change nothing.
	old := start(t, document(fixed, 5))
	old.admits("before the push", request{address: "192.0.2.1"}, 5)
	startOn(t, old.store, document(`"algorithm": "fixed_window", "limit": %d.0, "window": "24h", "utc_offset": "-00:00", "missing": "skip"`, 5)).
		admits("24h for 1d", request{address: "192.0.2.1"}, 0)
}

func TestALimitThatCannotBeDecidedFollowsOnError(t *testing.T) {
	for _, onError := range []string{"allow", "deny"} {
		b := start(t, limits+`"on_error": "`+onError+`", "rules": [{"limits": ["five", "one"]}]}`)
		client := request{address: "192.0.2.1"}
		want := map[string]Verdict{"allow": Unlimited, "deny": Undecided}[onError]
		b.store.Broken = true
		if o := b.ask(client); o.Verdict != want || len(b.undecided) == 0 {
			t.Errorf("%s, store broken: %v, %d counted", onError, o.Verdict, len(b.undecided))
		}
		b.store.Broken, b.clockless = false, true
		if o := b.ask(client); o.Verdict != want {
			t.Errorf("%s, no clock: %v", onError, o.Verdict)
		}
		if o := b.policy.Failed(); o.Verdict != want {
			t.Errorf("%s, a panic: %v", onError, o.Verdict)
		}
		b.clockless = false
		if o := b.ask(client); o.Verdict != Admitted || o.Reported.Decision.Remaining != 0 {
			t.Errorf("%s: %v after the store had come back", onError, o.Verdict)
		}
	}
}

func TestOneLimitThatFailsLeavesTheOthersInForce(t *testing.T) {
	b := start(t, limits+`"rules": [{"limits": ["five", "one"]}]}`)
	client := request{address: "192.0.2.1"}
	// The store fails between the first limit's write and the second's.
	sets := 0
	var breakSecond func()
	breakSecond = func() {
		if sets++; sets == 2 {
			b.store.Broken = true
			return
		}
		b.store.BeforeSet = breakSecond
	}
	b.store.BeforeSet = breakSecond
	if o := b.ask(client); o.Verdict != Admitted || o.Limit.Name != "five" {
		t.Errorf("got %v by %v, want admitted by the limit that could be decided", o.Verdict, o.Limit)
	}
	if fmt.Sprint(b.undecided) != "[one]" {
		t.Errorf("counted %v as undecided, want [one]", b.undecided)
	}
}
