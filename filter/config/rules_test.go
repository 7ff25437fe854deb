package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestAMistakeInARuleSaysWhereAndWhatInstead(t *testing.T) {
	const entry = `want a name such as "login", or an object such as {"limit": "login", "cost": 5}`
	const units = "want a whole number from 0 to 1000000000"
	const cost = units + `, or an object such as {"header": "x-cost", "max": 100}`
	const name = "want a name of 1 to 64 characters of a-z, 0-9, _ and -, beginning with a letter or digit"
	for rule, want := range map[string]string{
		`5`:                                     `rules[0]: the number 5: want an object such as {"limits": ["login"]}`,
		`{}`:                                    `rules[0].limits: missing: want an array such as ["login"]`,
		`{"path": "/login", "limits": []}`:      `rules[0].path: belongs under "match": want "match": {"path": …}`,
		`{"limits": "login"}`:                   `rules[0].limits: the string "login": want an array such as ["login"]`,
		`{"limits": ["lgin"]}`:                  `rules[0].limits[0]: "lgin": no such limit; did you mean "login"?`,
		`{"limits": ["Login"]}`:                 `rules[0].limits[0]: "Login": no such limit; did you mean "login"?`,
		`{"limits": ["upload"]}`:                `rules[0].limits[0]: "upload": no such limit: want "login" or "read"`,
		`{"limits": [""]}`:                      `rules[0].limits[0]: "": no such limit: want "login" or "read"`,
		`{"limits": ["read", "login", "read"]}`: `rules[0].limits[2]: "read": stands twice in one list: keep one`,
		`{"limits": ["read", {"limit": "r\u0065ad", "cost": 2}]}`: `rules[0].limits[1].limit: "read": stands twice in one list: keep one`,
		`{"limits": [null]}`:                                                       `rules[0].limits[0]: null: ` + entry,
		`{"limits": [["read"]]}`:                                                   `rules[0].limits[0]: an array: ` + entry,
		`{"limits": [{}]}`:                                                         `rules[0].limits[0].limit: missing: want a limit's name such as "login"`,
		`{"limits": [{"limit": 1}]}`:                                               `rules[0].limits[0].limit: the number 1: want a limit's name such as "login"`,
		`{"limits": [{"limit": "red"}]}`:                                           `rules[0].limits[0].limit: "red": no such limit; did you mean "read"?`,
		`{"limits": [{"limit": "read", "cots": 1}]}`:                               `rules[0].limits[0].cots: no such field; did you mean "cost"?`,
		`{"limits": [{"limit": "read", "cost": -1}]}`:                              `rules[0].limits[0].cost: -1: ` + units,
		`{"limits": [], "cost": 0.5}`:                                              `rules[0].cost: 0.5: ` + units,
		`{"limits": [], "cost": 1000000001}`:                                       `rules[0].cost: 1000000001: ` + units,
		`{"limits": [], "cost": {"max": 3}}`:                                       `rules[0].cost.header: missing: want a header's name such as "x-cost"`,
		`{"limits": [], "cost": {"header": "x-cost"}}`:                             `rules[0].cost.max: missing: want a whole number from 1 to 1000000000`,
		`{"limits": [], "cost": {"header": "x-cost", "max": 0}}`:                   `rules[0].cost.max: 0: want a whole number from 1 to 1000000000`,
		`{"limits": [], "cost": {"header": "x-cost", "max": 3, "default": -1}}`:    `rules[0].cost.default: -1: ` + units,
		`{"limits": [], "cost": {"header": "x cost", "max": 3}}`:                   `rules[0].cost.header: "x cost": want a header's name, of letters, digits and -`,
		`{"limits": [], "cost": {"header": ":path", "max": 3}}`:                    `rules[0].cost.header: ":path": want a header's name; the path, method and host that HTTP/2 spells so are fields and key parts of their own`,
		`{"limits": [{"limit": "read", "cost": {"header": "a"}}]}`:                 `rules[0].limits[0].cost.max: missing: want a whole number from 1 to 1000000000`,
		`{"limits": [], "cost": [1]}`:                                              `rules[0].cost: an array: ` + cost,
		`{"limits": [], "cost": "1"}`:                                              `rules[0].cost: the string "1": ` + cost,
		`{"limits": [], "name": ""}`:                                               `rules[0].name: "": ` + name,
		`{"limits": [], "name": "-a"}`:                                             `rules[0].name: "-a": ` + name,
		`{"limits": [], "name": "Read all"}`:                                       `rules[0].name: "Read all": ` + name,
		`{"limits": [], "name": "` + strings.Repeat("a", 65) + `"}`:                `rules[0].name: "` + strings.Repeat("a", 64) + `…": ` + name,
		`{"limits": [], "name": 5}`:                                                `rules[0].name: the number 5: ` + name,
		`{"limits": [], "name": "a"}, {"limits": []}, {"limits": [], "name": "a"}`: `rules[2].name: "a": already the name of rules[0]: want another, or none`,
		`{"limits": [], "match": []}`:                                              `rules[0].match: an array: want an object such as {"path": "/login"}`,
		`{"limits": [], "response": "no"}`:                                         `rules[0].response: the string "no": want an object such as {"status": 429}`,
		`{"limits": [], "response": {"status": 399}}`:                              `rules[0].response.status: 399: want a whole number from 400 to 599`,
		`{"limits": [], "limit": "read"}`:                                          `rules[0].limit: no such field; did you mean "limits"?`,
		`{"limits": [], "algorithm": "gcra"}`:                                      `rules[0].algorithm: no such field: want "name", "match", "limits", "cost" or "response"`,
	} {
		wantMistakes(t, `{"limits": {"login": `+bucket+`, "read": `+bucket+`}, "rules": [`+rule+`]}`, want)
	}
}

func TestAMistakeInAMatchSaysWhereAndWhatInstead(t *testing.T) {
	const host = `want a host's name such as "example.com" or "*.example.com"`
	const letters = `want letters, digits, dots and -, as in the Host header (for other letters their "xn--" form), and "*." only in front`
	const port = "want the host without its port; an IPv6 address stands in brackets"
	const slash = `want a path such as "/login", beginning with /`
	for match, want := range map[string]string{
		`"path": "login"`:            `path: "login": ` + slash,
		`"path": ""`:                 `path: "": ` + slash,
		`"path": "http://a/login"`:   `path: "http://a/login": ` + slash,
		`"path": "/login?a=b"`:       `path: "/login?a=b": paths are compared without what follows ? or #: leave it out`,
		`"path": "/#top"`:            `path: "/#top": paths are compared without what follows ? or #: leave it out`,
		`"path": []`:                 `path: an empty array, which nothing equals: want at least one value, or leave the field out`,
		`"path": ["/a", 5]`:          `path[1]: the number 5: want a path such as "/login"`,
		`"path": {}`:                 `path: an object: want a path such as "/login"`,
		`"path": [["/a"]]`:           `path[0]: an array: want a path such as "/login"`,
		`"path": "/api/*"`:           `path: "/api/*": there are no wildcards in paths: want path_prefix or path_regex, or %2A for a * itself`,
		`"path_prefix": ["/*/x"]`:    `path_prefix[0]: "/*/x": there are no wildcards in paths: want path_prefix or path_regex, or %2A for a * itself`,
		`"virtual_host": ""`:         `virtual_host: "": want the name of an Envoy virtual host`,
		`"virtual_host": [1]`:        `virtual_host[0]: the number 1: want the name of an Envoy virtual host`,
		`"path_prefix": "*"`:         `path_prefix: "*": want the beginning of paths such as "/api", beginning with /`,
		`"path_prefix": "api/"`:      `path_prefix: "api/": want the beginning of paths such as "/api", beginning with /`,
		`"path_prefix": "/a?"`:       `path_prefix: "/a?": paths are compared without what follows ? or #: leave it out`,
		`"path_prefix": []`:          `path_prefix: an empty array, which nothing equals: want at least one value, or leave the field out`,
		`"method": "post"`:           `method: "post": want a method in capitals such as "POST"`,
		`"method": ["GET", "GET "]`:  `method[1]: "GET ": want a method in capitals such as "POST"`,
		`"method": ""`:               `method: "": want a method in capitals such as "POST"`,
		`"method": null`:             `method: null: want a method in capitals such as "POST"`,
		`"host": "example.com:8080"`: `host: "example.com:8080": ` + port,
		`"host": "::1"`:              `host: "::1": ` + port,
		`"host": "*.[::1]"`:          `host: "*.[::1]": ` + port,
		`"host": "[1.2.3.4]"`:        `host: "[1.2.3.4]": want an IPv6 address in the brackets`,
		`"host": "[]"`:               `host: "[]": want an IPv6 address in the brackets`,
		`"host": "*"`:                `host: "*": ` + letters,
		`"host": "api.*.com"`:        `host: "api.*.com": ` + letters,
		`"host": "*.*.com"`:          `host: "*.*.com": ` + letters,
		`"host": "bücher.example"`:   `host: "bücher.example": ` + letters,
		`"host": "http://a"`:         `host: "http://a": ` + port,
		`"host": "a/b"`:              `host: "a/b": ` + letters,
		`"host": ""`:                 `host: "": ` + host,
		`"host": "*."`:               `host: "*.": ` + host,
		`"host": ".example.com"`:     `host: ".example.com": ` + host,
		`"host": "a..b"`:             `host: "a..b": ` + host,
		`"host": 1`:                  `host: the number 1: ` + host,
		`"route": ""`:                `route: "": want the name of an Envoy route`,
		`"route": true`:              `route: the boolean true: want the name of an Envoy route`,
		`"methods": "GET"`:           `methods: no such field; did you mean "method"?`,
		`"pathprefix": "/"`:          `pathprefix: no such field; did you mean "path_prefix"?`,
		`"cookie": "a"`:              `cookie: no such field: want "path", "path_prefix", "path_regex", "method", "host", "route", "virtual_host", "headers", "ip" or "value"`,
		`"path": "/a", "path": "/b"`: `path: stands twice in one object: keep one`,
	} {
		wantMistakes(t, `{"limits": {}, "rules": [{"limits": [], "match": {`+match+`}}]}`, "rules[0].match."+want)
	}
}

func TestAListNamesNoMoreLimitsThanARequestCanAfford(t *testing.T) {
	var limits, names []string
	for i := range maxUses + 2 {
		name := fmt.Sprintf(`"l%02d"`, i)
		names = append(names, name)
		limits = append(limits, name+`: {"algorithm": "gcra", "rate": "1/s", "key": []}`)
	}
	document := func(n int) string {
		return `{"limits": {` + strings.Join(limits, ",") + `}, "always": [` + strings.Join(names[:n], ",") + `]}`
	}
	if _, err := Parse([]byte(document(maxUses))); err != nil {
		t.Error(err)
	}
	wantMistakes(t, document(maxUses+2), `always[32]: "l32": one limit too many: want no more than 32 in one list`)
}

func TestACostIsANumberOrWhatATrustedHeaderSays(t *testing.T) {
	c := mustParse(t, `{"limits": {"a": `+bucket+`, "b": `+bucket+`, "c": `+bucket+`}, "rules": [
		{"limits": ["a", {"limit": "b", "cost": {"header": "X-Cost", "default": 0, "max": 1e2}}, {"limit": "c", "cost": 0}], "cost": {"header": "host", "max": 5}},
		{"limits": ["a", {"limit": "b", "cost": 7}], "cost": 3},
		{"limits": ["a"]}]}`)
	for i, want := range [][]Use{
		{{0, Cost{Units: 1, Header: ":authority", Max: 5}}, {1, Cost{Units: 0, Header: "x-cost", Max: 100}}, {2, Cost{}}},
		{{0, units(3)}, {1, units(7)}},
		{{0, units(1)}},
	} {
		if got := c.Rules[i].Limits; !slices.Equal(got, want) {
			t.Errorf("rule %d: got %+v, want %+v", i, got, want)
		}
	}
}

func TestExemptIsAListOfMatches(t *testing.T) {
	c := mustParse(t, `{"limits": {}, "exempt": [{"ip": "10.0.0.0/8", "path": "/healthz"}, {}]}`)
	want := []Match{{IP: prefixes("10.0.0.0/8"), Path: []string{"/healthz"}}, {}}
	if !reflect.DeepEqual(c.Exempt, want) {
		t.Errorf("got %+v, want %+v", c.Exempt, want)
	}
	wantMistakes(t, `{"limits": {}, "exempt": {"path": "/healthz"}}`, `exempt: an object: want an array of matches such as [{"path": "/healthz"}]`)
	wantMistakes(t, `{"limits": {}, "exempt": ["/healthz", {"path": "x"}, {"match": {}}, {"value": {"rule|route": "a"}}]}`,
		`exempt[0]: the string "/healthz": want an object such as {"path": "/login"}`,
		`exempt[1].path: "x": want a path such as "/login", beginning with /`,
		`exempt[2].match: is what this object is: want its fields here, without it`,
		`exempt[3].value["rule|route"]: the rule is not known before one has matched: want it in overrides only`)
}

func TestShadowAtTheTopIsInEveryLimit(t *testing.T) {
	for document, want := range map[string][2]bool{
		`"shadow": true, "limits": {"a": ` + bucket + `, "b": {"shadow": false, ` + bucket[1:] + `}`:      {true, true},
		`"shadow": false, "limits": {"a": {"shadow": true, ` + bucket[1:] + `, "b": ` + bucket + `}`:      {true, false},
		`"limits": {"a": {"enforce_percent": 0, ` + bucket[1:] + `, "b": ` + bucket + `}`:                 {false, false},
		`"limits": {"a": ` + bucket + `, "b": {"shadow": true, "enforce_percent": 7, ` + bucket[1:] + `}`: {false, true},
	} {
		c := mustParse(t, `{`+document+`}`)
		if got := [2]bool{c.Limits[0].Shadow, c.Limits[1].Shadow}; got != want {
			t.Errorf("%s: got %v, want %v", document, got, want)
		}
	}
}

func TestACostWithoutTheHeaderIsNoMoreThanTheLargest(t *testing.T) {
	rule := func(cost string) string { return `{"limits": {}, "rules": [{"limits": [], "cost": ` + cost + `}]}` }
	mustParse(t, rule(`{"header": "x-cost", "default": 3, "max": 3}`))
	wantMistakes(t, rule(`{"header": "x-cost", "default": 5, "max": 3}`),
		"rules[0].cost.default: the cost without the header is above max: want a default of no more than max")
}

func TestTheShareOfClientsThatIsRefused(t *testing.T) {
	for fields, want := range map[string]int{``: 100, `"enforce_percent": 0, `: 0, `"enforce_percent": 1.0e1, `: 10, `"enforce_percent": 100, `: 100} {
		c := mustParse(t, `{"limits": {"a": {`+fields+bucket[1:]+`}}`)
		if got := c.Limits[0].EnforcePercent; got != want {
			t.Errorf("%s: got %d, want %d", fields, got, want)
		}
	}
}
