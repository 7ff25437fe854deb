package policy

import (
	"fmt"
	"strings"
	"testing"
)

// matched is whether a request falls under a match, wherever a match can stand:
// under all of them a request that matches is told from one that does not.
type matched struct{ rule, exempt, override bool }

const everywhere, nowhere = true, false

func (m matched) String() string {
	return fmt.Sprintf("in rules %v, in exempt %v, in overrides %v", m.rule, m.exempt, m.override)
}

// asks finds out whether a match, as JSON, holds for a request.
func asks(t *testing.T, match string, r request) matched {
	t.Helper()
	const limit = `"limits": {"a": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": []`
	override := limit + `, "overrides": [{"match": ` + match + `, "unlimited": true}]}}, "rules": [{"limits": ["a"]}]`
	return matched{
		rule:     start(t, `{`+limit+`}}, "rules": [{"match": `+match+`, "limits": ["a"]}]}`).ask(r).Verdict == Admitted,
		exempt:   start(t, `{`+limit+`}}, "exempt": [`+match+`]}`).policy.Exempts(r),
		override: start(t, `{`+override+`}`).ask(r).Verdict == Unlimited,
	}
}

func all(holds bool) matched { return matched{holds, holds, holds} }

func TestEveryFieldOfAMatchHoldsForWhatItNames(t *testing.T) {
	const client = "192.0.2.7"
	for _, c := range []struct {
		match string
		request
		want bool
	}{
		{`{}`, request{}, everywhere},
		{`{"route": "api"}`, request{route: "api"}, everywhere},
		{`{"route": "api"}`, request{route: "apis"}, nowhere},
		{`{"route": "api"}`, request{virtualHost: "api"}, nowhere},
		{`{"route": ["web", "api"]}`, request{route: "api"}, everywhere},
		{`{"virtual_host": "shop"}`, request{virtualHost: "shop"}, everywhere},
		{`{"virtual_host": "shop"}`, request{route: "shop"}, nowhere},
		{`{"virtual_host": ["blog", "shop"]}`, request{virtualHost: "Shop"}, nowhere},
		{`{"host": ["example.org", "*.example.com"]}`, request{host: "A.B.Example.COM.:443"}, everywhere},
		{`{"host": "*.example.com"}`, request{host: "example.com"}, nowhere},
		{`{"method": ["PUT", "POST"]}`, request{method: "POST"}, everywhere},
		{`{"method": "POST"}`, request{method: "post"}, nowhere},
		{`{"path": ["/a", "/login/"]}`, request{path: "//x/../%6cogin?next=/"}, everywhere},
		{`{"path": "/login"}`, request{path: "/Login"}, nowhere},
		{`{"path": "/"}`, request{path: "/?a"}, everywhere},
		{`{"path_prefix": ["/b", "/api/"]}`, request{path: "/api"}, everywhere},
		{`{"path_prefix": "/api"}`, request{path: "/apix"}, nowhere},
		{`{"path_prefix": "/"}`, request{path: "/anything"}, everywhere},
		{`{"path_regex": "/users/[0-9]+"}`, request{path: "/users/42/"}, everywhere},
		{`{"path_regex": "/users/[0-9]+"}`, request{path: "/users/42/orders"}, nowhere},
		{`{"path_regex": "/users/[0-9]+"}`, request{path: "/v1/users/42"}, nowhere},
		{`{"path_regex": "/a|/b"}`, request{path: "/ab"}, nowhere},
		{`{"path_regex": ["/a", "/b"]}`, request{path: "/b?/c"}, everywhere},
		{`{"ip": "192.0.2.0/24"}`, request{address: client}, everywhere},
		{`{"ip": ["198.51.100.0/24", "192.0.2.7"]}`, request{address: client}, everywhere},
		{`{"ip": "192.0.2.8/29"}`, request{address: client}, nowhere},
		{`{"ip": "::/0"}`, request{address: client}, nowhere},
		{`{"ip": "0.0.0.0/0"}`, request{}, nowhere},
		{`{"ip": "2001:db8::/32"}`, request{address: "2001:db8:1::1"}, everywhere},
		{`{"method": "GET", "path": "/a"}`, request{method: "GET", path: "/a"}, everywhere},
		{`{"method": "GET", "path": "/a"}`, request{method: "GET", path: "/b"}, nowhere},
		{`{"method": "GET", "path": "/a"}`, request{method: "PUT", path: "/a"}, nowhere},
	} {
		if got := asks(t, c.match, c.request); got != all(c.want) {
			t.Errorf("%s for %+v holds %v, want %v", c.match, c.request, got, c.want)
		}
	}
}

func TestAHeaderIsMatchedByItsValueItsBeginningAPatternOrItsBeingThere(t *testing.T) {
	for condition, holds := range map[string]map[string]bool{
		`"gold"`:                                   {"gold": true, "Gold": false, "gold ": false, "": false},
		`["gold", "silver"]`:                       {"gold": true, "silver": true, "bronze": false, "": false},
		`{"present": true}`:                        {"x": true, "": false},
		`{"prefix": "go"}`:                         {"gold": true, "go": true, "g": false, "ago": false, "": false},
		`{"regex": "g.*d"}`:                        {"gold": true, "gd": true, "golden": false, "agold": false, "": false},
		`{"regex": "gold|silver"}`:                 {"gold": true, "silver": true, "goldsilver": false},
		`{"not": {"present": true}}`:               {"x": false, "": true},
		`{"not": "gold"}`:                          {"gold": false, "silver": true, "": true},
		`{"not": {"prefix": "go"}}`:                {"gold": false, "silver": true, "": true},
		`{"not": {"regex": "g.*"}}`:                {"gold": false, "silver": true, "": true},
		`[{"not": {"present": true}}, "internal"]`: {"": true, "internal": true, "x": false},
		`[{"prefix": "a"}, {"regex": ".*z"}]`:      {"a": true, "z": true, "bz": true, "b": false, "": false},
	} {
		for value, want := range holds {
			r := request{headers: map[string]string{"x-plan": value}}
			if got := asks(t, `{"headers": {"X-Plan": `+condition+`}}`, r); got != all(want) {
				t.Errorf("%s for %q holds %v, want %v", condition, value, got, want)
			}
		}
	}
	both := `{"headers": {"a": "1", "b": {"not": "2"}}}`
	for _, c := range []struct {
		a, b string
		want bool
	}{{"1", "", true}, {"1", "2", false}, {"", "", false}} {
		if got := asks(t, both, request{headers: map[string]string{"a": c.a, "b": c.b}}); got != all(c.want) {
			t.Errorf("%s for %q and %q holds %v, want %v", both, c.a, c.b, got, c.want)
		}
	}
}

func TestAValueIsMatchedWhereverKeysCanReadIt(t *testing.T) {
	const gold = `{"metadata:envoy.filters.http.jwt_authn/payload/plan": ["gold", "silver"]}`
	plan := func(value string) request {
		return request{values: map[string]string{"metadata:envoy.filters.http.jwt_authn/payload/plan": value}}
	}
	value := func(part, value string) request { return request{values: map[string]string{part: value}} }
	for _, c := range []struct {
		value string
		request
		want bool
	}{
		{gold, plan("gold"), everywhere},
		{gold, plan("silver"), everywhere},
		{gold, plan("bronze"), nowhere},
		{gold, plan(""), nowhere},
		{`{"metadata_number:f/level": 7}`, value("metadata_number:f/level", "7"), everywhere},
		{`{"metadata_number:f/level": [6, 7.0]}`, value("metadata_number:f/level", "7"), everywhere},
		{`{"metadata_number:f/level": 7}`, value("metadata:f/level", "7"), nowhere},
		{`{"header:X-Api-Key": "partner-7"}`, request{headers: map[string]string{"x-api-key": "partner-7"}}, everywhere},
		{`{"header:x-api-key": "partner-7"}`, request{headers: map[string]string{"x-api-key": "partner-70"}}, nowhere},
		{`{"cookie:plan": "gold"}`, value("cookie:plan", "gold"), everywhere},
		{`{"cookie:plan": "gold"}`, value("query:plan", "gold"), nowhere},
		{`{"query:plan": "gold"}`, value("query:plan", "gold"), everywhere},
		{`{"bearer": "token"}`, value("bearer", "token"), everywhere},
		{`{"property:connection/requested_server_name": "a.example"}`, value("property:connection/requested_server_name", "a.example"), everywhere},
		{`{"ip": "::ffff:192.0.2.7"}`, request{address: "192.0.2.7"}, everywhere},
		{`{"ip": "2001:0db8::0001"}`, request{address: "2001:db8::1"}, everywhere},
		{`{"ip": "2001:db8::1"}`, request{address: "2001:db8::2"}, nowhere}, // though one client to keys
		{`{"method": "PUT"}`, request{method: "PUT"}, everywhere},
		{`{"host": "Example.com"}`, request{host: "example.com:80"}, everywhere},
		{`{"path": "/a/"}`, request{path: "/x/../a"}, everywhere},
		{`{"route": "api"}`, request{route: "api"}, everywhere},
		{`{"virtual_host": "shop"}`, request{virtualHost: "shop"}, everywhere},
		{`{"header:a|header:b": "1"}`, request{headers: map[string]string{"b": "1"}}, everywhere},
		{`{"header:a|header:b": "1"}`, request{headers: map[string]string{"a": "2", "b": "1"}}, nowhere},
		{`{"header:a|const:none": "none"}`, request{}, everywhere},
		{`{"header:a": "1", "header:b": "2"}`, request{headers: map[string]string{"a": "1", "b": "2"}}, everywhere},
		{`{"header:a": "1", "header:b": "2"}`, request{headers: map[string]string{"a": "1"}}, nowhere},
	} {
		if got := asks(t, `{"value": `+c.value+`}`, c.request); got != all(c.want) {
			t.Errorf("%s for %+v holds %v, want %v", c.value, c.request, got, c.want)
		}
	}
}

func TestALongSubjectFreesNobodyFromARegex(t *testing.T) {
	text := func(size int) string { return "/" + strings.Repeat("a", size-1) }
	const longest = 2048
	// A rule whose regex cannot be tried holds; what would free from a limit does not.
	strict := matched{rule: true}
	for _, c := range []struct {
		match string
		size  int
		want  matched
	}{
		{`{"path_regex": "/a*"}`, longest, all(true)},
		{`{"path_regex": "/a*"}`, longest + 1, strict},
		{`{"path_regex": "/b*"}`, longest, all(false)},
		{`{"path_regex": "/b*"}`, longest + 1, strict},
		{`{"path_regex": ["/b*", "/a*"]}`, 1 << 20, strict},
		{`{"headers": {"x": {"regex": "/a*"}}}`, longest, all(true)},
		{`{"headers": {"x": {"regex": "/a*"}}}`, longest + 1, strict},
		{`{"headers": {"x": {"regex": "/b*"}}}`, longest + 1, strict},
		{`{"headers": {"x": {"not": {"regex": "/b*"}}}}`, longest, all(true)},
		{`{"headers": {"x": {"not": {"regex": "/b*"}}}}`, longest + 1, strict},
		{`{"headers": {"x": {"not": {"regex": "/a*"}}}}`, longest + 1, strict},
		{`{"headers": {"x": ["nothing", {"not": {"regex": "/a*"}}]}}`, longest + 1, strict},
		// What needs no regex is told of a text of any length.
		{`{"headers": {"x": {"prefix": "/aa"}}}`, longest + 1, all(true)},
		{`{"headers": {"x": {"not": {"prefix": "/aa"}}}}`, longest + 1, all(false)},
		{`{"headers": {"x": {"present": true}}}`, longest + 1, all(true)},
		{`{"headers": {"x": {"not": "short"}}}`, longest + 1, all(true)},
		{`{"headers": {"x": ["short", {"prefix": "/a"}, {"regex": "/b*"}]}}`, longest + 1, all(true)},
		{`{"path_prefix": "/"}`, longest + 1, all(true)},
	} {
		r := request{path: text(c.size), headers: map[string]string{"x": text(c.size)}}
		if got := asks(t, c.match, r); got != c.want {
			t.Errorf("%s for %d bytes holds %v, want %v", c.match, c.size, got, c.want)
		}
	}
}

func TestALongPathIsDecidedByTheFirstRuleWithARegexForIt(t *testing.T) {
	b := start(t, limits+`"rules": [
		{"match": {"path_regex": "/never"}, "limits": ["one"]},
		{"limits": ["three"]}
	]}`)
	b.admits("a long path", request{address: "192.0.2.1", path: "/" + strings.Repeat("x", 5000)}, 1)
	b.admits("a short one", request{address: "192.0.2.1", path: "/x"}, 3)
}

func TestAnExemptRequestMeetsAnyOfTheMatches(t *testing.T) {
	b := start(t, limits+`"always": ["one"], "exempt": [{"ip": "10.0.0.0/8", "path": "/healthz"}, {"method": "OPTIONS"}]}`)
	for _, c := range []struct {
		request
		want bool
	}{
		{request{address: "10.1.2.3", path: "/healthz"}, true},
		{request{address: "10.1.2.3", path: "/"}, false},
		{request{address: "192.0.2.1", path: "/healthz"}, false},
		{request{address: "192.0.2.1", path: "/", method: "OPTIONS"}, true},
	} {
		if got := b.policy.Exempts(c.request); got != c.want {
			t.Errorf("%+v is exempt: %v, want %v", c.request, got, c.want)
		}
	}
}

func TestAPathThatAnUpstreamMayReadAsAnotherFreesNobody(t *testing.T) {
	strict := matched{rule: true}
	for _, c := range []struct {
		match, path string
		want        matched
	}{
		{`{"path_prefix": "/public"}`, "/public/..%2Flogin", strict},
		{`{"path_prefix": "/public"}`, "/public/..%2flogin", strict},
		{`{"path_prefix": "/public"}`, "/public/..%252flogin", strict},
		{`{"path_prefix": "/public"}`, "/public/a%5Clogin", strict},
		{`{"path_prefix": "/public"}`, "/public/a%5clogin", strict},
		{`{"path_prefix": "/public"}`, `/public/a\login`, strict},
		{`{"path_prefix": "/public"}`, "/public/..;/login", strict},
		{`{"path_prefix": "/public"}`, "/public/..%3B/login", strict},
		{`{"path_regex": "/public/.*"}`, "/public/..%2Flogin", strict},
		{`{"path": "/a%2Fb"}`, "/a%2Fb", strict},
		{`{"value": {"path": "/a%2Fb"}}`, "/a%2Fb", strict},
		{`{"path_prefix": "/public"}`, "/public/a?b=%2F;c", all(true)},
		{`{"path_prefix": "/public"}`, "/public/%25%2e2", all(true)},
		{`{"path_prefix": "/public"}`, "/other/..%2Fpublic", all(false)},
		{`{"method": "GET"}`, "/public/..%2Flogin", all(true)},
	} {
		if got := asks(t, c.match, request{method: "GET", path: c.path}); got != c.want {
			t.Errorf("%s for %s: got %v, want %v", c.match, c.path, got, c.want)
		}
	}
}
