package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/filter/keys"
)

// mustMatch reads the match of an override, where every key part may stand.
func mustMatch(t *testing.T, match string) *Override {
	t.Helper()
	c := mustParse(t, `{"limits": {"x": {"algorithm": "gcra", "rate": 1, "key": [], "overrides": [{"match": {`+match+`}, "burst": 2}]}}}`)
	return &c.Limits[0].Overrides[0]
}

func prefixes(all ...string) (networks []netip.Prefix) {
	for _, s := range all {
		networks = append(networks, netip.MustParsePrefix(s))
	}
	return networks
}

func TestEveryFieldOfAMatchMayBeOneOrAnArray(t *testing.T) {
	for one, many := range map[string]string{
		`"route": "a"`:                              `"route": ["a"]`,
		`"virtual_host": "a"`:                       `"virtual_host": ["a", "a"]`,
		`"host": "a.test"`:                          `"host": ["A.test.", "a.test"]`,
		`"path": "/a"`:                              `"path": ["/a/"]`,
		`"path_prefix": "/a"`:                       `"path_prefix": ["/%61"]`,
		`"path_regex": "/a+"`:                       `"path_regex": ["/a+", "/a+"]`,
		`"method": "GET"`:                           `"method": ["GET"]`,
		`"ip": "10.0.0.1"`:                          `"ip": ["10.0.0.1/32", "::ffff:10.0.0.1"]`,
		`"headers": {"x-a": "b"}`:                   `"headers": {"X-A": ["b"]}`,
		`"headers": {"a": {"not": "b"}}`:            `"headers": {"a": [{"not": "b"}]}`,
		`"value": {"header:a": "b"}`:                `"value": {"label=header:A": ["b", "b"]}`,
		`"value": {"ip": "::FFFF:1.2.3.4"}`:         `"value": {"ip": ["1.2.3.4"]}`,
		`"value": {"metadata_number:f/a": 5}`:       `"value": {"metadata_number:f/a": [5.0, "5"]}`,
		`"value": {"path": "/a"}`:                   `"value": {"path": ["/b/../a/"]}`,
		`"value": {"host": "a.test"}`:               `"value": {"host": ["A.TEST."]}`,
		`"method": "GET", "path": "/a"`:             `"path": ["/a"], "method": ["GET"]`,
		`"method": ["GET", "PUT"]`:                  `"method": ["PUT", "GET"]`,
		`"ip": ["10.0.0.0/8", "::/0"]`:              `"ip": ["::/0", "10.1.2.3/8"]`,
		`"headers": {"a": ["b", "c"], "d": "e"}`:    `"headers": {"D": "e", "a": ["c", "b"]}`,
		`"value": {"header:a": "b", "method": "A"}`: `"value": {"method": "A", "header:a": "b"}`,
	} {
		a, b := mustMatch(t, one), mustMatch(t, many)
		if a.Identity == "" || a.Identity != b.Identity {
			t.Errorf("%s is %s\n%s is %s", one, a.Identity, many, b.Identity)
		}
	}
}

func TestMatchesThatDifferHaveIdentitiesThatDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, match := range []string{
		``, `"route": "a"`, `"virtual_host": "a"`, `"route": "b"`, `"route": ["a", "b"]`, `"route": "a b"`, `"route": "a\" \"b"`, `"route": "a\u0000"`,
		`"host": "a.test"`, `"host": "*.a.test"`, `"path": "/a"`, `"path": "/A"`, `"path_prefix": "/a"`, `"path_regex": "/a"`, `"path_regex": "(?i)/a"`,
		`"method": "GET"`, `"ip": "10.0.0.0/8"`, `"ip": "10.0.0.0/9"`, `"ip": "10.0.0.0"`,
		`"headers": {"a": "b"}`, `"headers": {"b": "b"}`, `"headers": {"a": {"prefix": "b"}}`, `"headers": {"a": {"regex": "b"}}`,
		`"headers": {"a": {"present": true}}`, `"headers": {"a": "present"}`, `"headers": {"a": {"not": {"present": true}}}`, `"headers": {"a": {"not": "b"}}`,
		`"headers": {"a": {"not": {"prefix": "b"}}}`, `"headers": {"a": ["b", "c"]}`, `"headers": {"a": "b", "c": "b"}`, `"headers": {"a": "b) \"c\"(\"b"}`,
		`"value": {"header:a": "b"}`, `"value": {"cookie:a": "b"}`, `"value": {"header:a|cookie:a": "b"}`, `"value": {"header:a": ["b", "c"]}`,
		`"value": {"header:a": "b", "header:c": "b"}`,
		`"route": "a", "virtual_host": "a"`,
	} {
		id := mustMatch(t, match).Identity
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s are both %q", match, other, id)
		}
		if strings.Contains(id, "\x00") {
			t.Errorf("%s has a zero byte: %q", match, id)
		}
		seen[id] = match
	}
}

func TestAnAddressOrANetworkOfThem(t *testing.T) {
	got := mustMatch(t, `"ip": ["192.0.2.1", "10.1.2.3/8", "::ffff:192.0.2.2", "::ffff:10.0.0.0/112", "2001:DB8::1", "2001:db8::f/32", "0.0.0.0/0", "::ffff:0:0/96"]`).Match.IP
	want := prefixes("192.0.2.1/32", "10.0.0.0/8", "192.0.2.2/32", "10.0.0.0/16", "2001:db8::1/128", "2001:db8::/32", "0.0.0.0/0")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestARegexMatchesThePathWholeOrNotAtAll(t *testing.T) {
	for regex, paths := range map[string]struct{ hit, miss string }{
		`/a`:            {"/a", "/ab"},
		`/a|/b`:         {"/b", "/a/b"},
		`/b`:            {"/b", "/a/b"},
		`(?m)/a$`:       {"/a", "/a\n/b"},
		`/files/.*`:     {"/files/x\ny", "/filesx"},
		`(?i)/A`:        {"/a", "/b"},
		`/\d+`:          {"/42", "/x42"},
		`/[^/]+/edit`:   {"/x/edit", "/x/y/edit"},
		`\Q/a.b\E`:      {"/a.b", "/axb"},
		`/x{3}`:         {"/xxx", "/xx"},
		`/.`:            {"/é", "/"},
		`/api\*`:        {"/api*", "/api"},
		`(?-s)/a.*`:     {"/ab", "/a\n"},
		`(?:/a)(?:/b)?`: {"/a/b", "/a/b/"},
	} {
		re := mustMatch(t, fmt.Sprintf(`"path_regex": %q`, regex)).Match.PathRegex[0]
		if !re.MatchString(paths.hit) || re.MatchString(paths.miss) {
			t.Errorf("%s: matches %q: %v, %q: %v", regex, paths.hit, re.MatchString(paths.hit), paths.miss, re.MatchString(paths.miss))
		}
	}
}

func TestHeadersAreMatchedByTheirValue(t *testing.T) {
	got := mustMatch(t, `"headers": {"X-Plan": ["gold", {"prefix": "silver"}], "host": {"present": true}, "b": {"not": {"regex": "x+"}}, "c": {"not": "d"}}`).Match.Headers
	if len(got) != 4 || got[0].Name != "x-plan" || got[1].Name != "b" || got[2].Name != "c" || got[3].Name != ":authority" {
		t.Fatalf("got %+v", got)
	}
	if plan := got[0].Any; len(plan) != 2 || *plan[0].Exact != "gold" || *plan[1].Prefix != "silver" || plan[0].Not {
		t.Errorf("x-plan is %+v", plan)
	}
	if b := got[1].Any[0]; !b.Not || b.Regex == nil || !b.Regex.MatchString("xx") || b.Regex.MatchString("xxy") {
		t.Errorf("b is %+v", b)
	}
	if c := got[2].Any[0]; !c.Not || *c.Exact != "d" {
		t.Errorf("c is %+v", c)
	}
	if host := got[3].Any[0]; host != (Condition{Present: true}) {
		t.Errorf("host is %+v", host)
	}
}

func TestValuesAreComparedInTheSpellingOfRequests(t *testing.T) {
	for value, want := range map[string][]string{
		`"ip": "2001:DB8:0::1"`:                        {"2001:db8::1"},
		`"ip": "::ffff:1.2.3.4"`:                       {"1.2.3.4"},
		`"path": "/%61//b/"`:                           {"/a/b"},
		`"host": "EXAMPLE.com."`:                       {"example.com"},
		`"method": ["PUT", "GET"]`:                     {"GET", "PUT"},
		`"header:x": "A b"`:                            {"A b"},
		`"metadata:f/a": ["gold", "silver"]`:           {"gold", "silver"},
		`"metadata_number:f/a": [-0, 1e3, "-7", 7]`:    {"-7", "0", "1000", "7"},
		`"metadata_number:f/a": 9007199254740991`:      {"9007199254740991"},
		`"header:x|ip": "::FFFF:1.2.3.4"`:              {"1.2.3.4", "::FFFF:1.2.3.4"},
		`"metadata:f/a|metadata_number:f/a": [5, "x"]`: {"5", "x"},
		`"rule": "login"`:                              {"login"},
		`"const:x": "x"`:                               {"x"},
	} {
		values := mustMatch(t, `"value": {`+value+`}`).Match.Values
		if len(values) != 1 || !reflect.DeepEqual(values[0].Any, want) {
			t.Errorf("%s: got %+v, want %v", value, values, want)
		}
	}
	for _, s := range mustMatch(t, `"value": {"ip": "2001:db8::1"}`).Match.Values[0].Part.Sources {
		if s != (keys.Source{Kind: keys.IP}) {
			t.Errorf("the address is widened: %+v", s)
		}
	}
}

func TestAMistakeInTheNewerFieldsOfAMatchSaysWhereAndWhatInstead(t *testing.T) {
	const network = `want an address such as "192.0.2.1" or a network such as "10.0.0.0/8"`
	const regex = `want a regular expression in RE2's syntax`
	const condition = `want a value such as "gold", or an object such as {"prefix": "gold-"}`
	const headers = `want an object such as {"x-plan": "gold"}`
	const values = `want an object such as {"header:x-plan": "gold"}`
	const number = `want a whole number from -(2^53-1) to 2^53-1`
	const three = `"present", "prefix" and "regex"`
	const four = `"present", "prefix", "regex" and "not"`
	for match, want := range map[string]string{
		`"ip": "10.0.0.0/33"`:                             `ip: "10.0.0.0/33": ` + network,
		`"ip": "10.0.0.1:80"`:                             `ip: "10.0.0.1:80": ` + network,
		`"ip": ["10.0.0.1", "10.0.0"]`:                    `ip[1]: "10.0.0": ` + network,
		`"ip": ""`:                                        `ip: "": ` + network,
		`"ip": "example.com"`:                             `ip: "example.com": ` + network,
		`"ip": "fe80::1%eth0"`:                            `ip: "fe80::1%eth0": want the address without its zone, the % and what follows`,
		`"ip": "::ffff:0:0/90"`:                           `ip: "::ffff:0:0/90": want at least /96 for IPv4 addresses in IPv6's form`,
		`"ip": 10`:                                        `ip: the number 10: ` + network,
		`"ip": []`:                                        `ip: an empty array, which nothing equals: want at least one value, or leave the field out`,
		`"path_regex": "("`:                               `path_regex: "(": missing closing ): ` + regex,
		`"path_regex": "a)(b"`:                            `path_regex: "a)(b": unexpected ): ` + regex,
		`"path_regex": "(?=x)"`:                           `path_regex: "(?=x)": invalid or unsupported Perl syntax: ` + regex,
		`"path_regex": "\\Q/a"`:                           `path_regex: "\\Q/a": a \Q stands open: want \E after the text that it quotes`,
		`"path_regex": ["/a", ""]`:                        `path_regex[1]: "": ` + regex,
		`"path_regex": "login"`:                           `path_regex: "login": matches no path, since it is matched whole: want one that begins with / or .*`,
		`"path_regex": "^(v1/a|v1/b)$"`:                   `path_regex: "^(v1/a|v1/b)$": matches no path, since it is matched whole: want one that begins with / or .*`,
		`"path_regex": "(/a|b)|c"`:                        ``,
		`"path_regex": "\\*"`:                             ``,
		`"path_regex": "/a\\?b"`:                          ``,
		`"path_regex": 5`:                                 `path_regex: the number 5: ` + regex,
		`"path_regex": "` + strings.Repeat("a", 1001):     `path_regex: "` + strings.Repeat("a", 64) + `…": 1001 bytes long: want a regular expression of no more than 1000`,
		`"path_regex": "(a{99}){9}"`:                      ``,
		`"path_regex": "(a{99}){11}"`:                     `path_regex: "(a{99}){11}": invalid repeat count: ` + regex,
		`"path_regex": "a{999}b{999}"`:                    `path_regex: "a{999}b{999}": 1999 steps long, with classes and repetitions written out: want no more than 1000`,
		`"path_regex": "/\\pL+"`:                          ``,
		`"path_regex": "(?:a{2,}b?|[c-e]*){90}"`:          ``,
		`"path_regex": "(?:a{2,}b?|[c-e]*){200}"`:         `path_regex: "(?:a{2,}b?|[c-e]*){200}": 1600 steps long, with classes and repetitions written out: want no more than 1000`,
		`"headers": "x"`:                                  `headers: a string: ` + headers,
		`"headers": {}`:                                   `headers: an empty object, which everything fits: ` + headers + `, or leave the field out`,
		`"headers": {"x y": "a"}`:                         `headers["x y"]: "x y": want a header's name, of letters, digits and -`,
		`"headers": {":method": "GET"}`:                   `headers[":method"]: ":method": want a header's name; the path, method and host that HTTP/2 spells so are fields and key parts of their own`,
		`"headers": {"x-a": "a", "X-A": "b"}`:             `headers.x-a: the same header as rules[0].match.headers.X-A: keep one`,
		`"headers": {"x": 5}`:                             `headers.x: a number: ` + condition,
		`"headers": {"x": []}`:                            `headers.x: an empty array, which nothing equals: want at least one value, or leave the field out`,
		`"headers": {"x": ["a", null]}`:                   `headers.x[1]: null: ` + condition,
		`"headers": {"x": ""}`:                            `headers.x: "": an empty value counts as an absent header: want {"not": {"present": true}}`,
		`"headers": {"x": " a"}`:                          `headers.x: a string: want no space around a header's value: it would be cut off on the way`,
		`"headers": {"x": "a\nb"}`:                        `headers.x: a string: want no control characters, such as line breaks, in a header's value`,
		`"headers": {"x": {}}`:                            `headers.x: has none of ` + four + `: want exactly one`,
		`"headers": {"x": {"prefix": "a", "regex": "b"}}`: `headers.x: has more than one of ` + four + `: want exactly one`,
		`"headers": {"x": {"present": false}}`:            `headers.x.present: the boolean false: want true, or the field left out`,
		`"headers": {"x": {"prefix": ""}}`:                `headers.x.prefix: "": every value begins so: want {"present": true}`,
		`"headers": {"x": {"prefix": ["a"]}}`:             `headers.x.prefix: an array: want the beginning of a header's value`,
		`"headers": {"x": {"regex": "["}}`:                `headers.x.regex: a string: missing closing ]: ` + regex,
		`"headers": {"x": {"exact": "a"}}`:                `headers.x.exact: no such field: want "present", "prefix", "regex" or "not"`,
		`"headers": {"x": {"not": ["a", "b"]}}`:           `headers.x.not: an array, under "not": want one condition, such as {"regex": "a|b"}`,
		`"headers": {"x": {"not": {"not": "a"}}}`:         `headers.x.not.not: no such field: want "present", "prefix" or "regex"`,
		`"headers": {"x": {"not": {}}}`:                   `headers.x.not: has none of ` + three + `: want exactly one`,
		`"value": "x"`:                                    `value: a string: ` + values,
		`"value": {}`:                                     `value: an empty object, which everything fits: ` + values + `, or leave the field out`,
		`"value": {"heeder:x": "a"}`:                      `value["heeder:x"]: "heeder:x": "heeder" is no key part: want ` + keys.Spellings(),
		`"value": {"header:x": 5}`:                        `value["header:x"]: a number: want a string`,
		`"value": {"header:x": ""}`:                       `value["header:x"]: "": an empty value counts as missing: want a text`,
		`"value": {"header:x": ["a", true]}`:              `value["header:x"][1]: the boolean true: want a string`,
		`"value": {"header:x": {"prefix": "a"}}`:          `value["header:x"]: an object: want a string`,
		`"value": {"ip": "10.0.0.0/8"}`:                   `value.ip: a string: want an address such as "192.0.2.1"; for networks there is the field "ip"`,
		`"value": {"path": "login"}`:                      `value.path: a string: want a path such as "/login", beginning with /`,
		`"value": {"host": "*.example.com"}`:              `value.host: a string: want one host; for all under a name there is the field "host"`,
		`"value": {"method": "get"}`:                      `value.method: a string: want a method in capitals such as "POST"`,
		`"value": {"metadata_number:f/a": "five"}`:        `value["metadata_number:f/a"]: a string: ` + number,
		`"value": {"metadata_number:f/a": 5.5}`:           `value["metadata_number:f/a"]: a number: ` + number,
		`"value": {"metadata_number:f/a": 1e17}`:          `value["metadata_number:f/a"]: a number: ` + number,
		`"value": {"metadata_number:f/a": 1e999}`:         `value["metadata_number:f/a"]: a number: ` + number,
		`"value": {"metadata_number:f/a": true}`:          `value["metadata_number:f/a"]: the boolean true: want a whole number`,
		`"value": {"rule": "login"}`:                      `value.rule: the rule is not known before one has matched: want it in overrides only`,
	} {
		if strings.Count(match, `"`)%2 == 1 {
			match += `"`
		}
		document := `{"limits": {}, "rules": [{"limits": [], "match": {` + match + `}}]}`
		if want == "" {
			mustParse(t, document)
		} else {
			wantMistakes(t, document, "rules[0].match."+want)
		}
	}
}

func TestADocumentHasNoMoreRegularExpressionsThanAVMCanHold(t *testing.T) {
	document := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"/%d"`, i%(maxRegexes+2)))
		}
		return `{"limits": {}, "exempt": [{"path_regex": [` + strings.Join(all, ",") + `]}]}`
	}
	mustParse(t, document(maxRegexes))
	wantMistakes(t, document(maxRegexes+1), `exempt[0].path_regex[200]: "/200": one regular expression too many: want no more than 200 different ones in a document`)
	wantMistakes(t, `{"limits": {}, "exempt": [{"path_regex": "("}, {"path_regex": ["/a", "("]}]}`,
		`exempt[0].path_regex: "(": missing closing ): want a regular expression in RE2's syntax`,
		`exempt[1].path_regex[1]: "(": missing closing ): want a regular expression in RE2's syntax`)
	if _, err := Parse([]byte(`{"limits": {}, "exempt": [{"path_regex": "[/\\pL]{2}"}]}`)); err == nil || !strings.Contains(err.Error(), "steps long") {
		t.Errorf("a class of hundreds of ranges counts as little: %v", err)
	}
	c := mustParse(t, `{"limits": {}, "exempt": [{"path_regex": ["/a"`+strings.Repeat(`, "/a"`, 500)+`]}, {"path_regex": "/a"}]}`)
	if a, b := c.Exempt[0].PathRegex, c.Exempt[1].PathRegex; len(a) != 1 || len(b) != 1 || a[0] != b[0] {
		t.Errorf("one regular expression is compiled more than once")
	}
}

func TestAMistakeDoesNotShowWhatMayBeACredential(t *testing.T) {
	const secret = "s3cr3t"
	for _, field := range []string{
		`"match": {"headers": {"x": " ` + secret + `"}}`, `"match": {"headers": {"x": {"prefix": "` + secret + `", "regex": 5}}}`,
		`"match": {"headers": {"x": {"not": "` + secret + `\n"}}}`, `"match": {"headers": {"x": {"regex": "` + secret + `["}}}`,
		`"match": {"headers": {"x": {"present": "` + secret + `"}}}`, `"match": {"value": {"ip|header:x": ["\n` + secret + `"]}}`,
		`"match": {"value": {"method": "` + secret + `"}}`, `"match": {"value": "` + secret + `"}`,
		`"response": {"headers": {"x": "` + secret + ` "}}`,
	} {
		_, err := Parse([]byte(`{"limits": {}, "rules": [{"limits": [], ` + field + `}]}`))
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", field, err)
		}
	}
	_, err := Parse([]byte(`{"limits": {"headers": {"algorithm": "shown", "key": []}}}`))
	if err == nil || !strings.Contains(err.Error(), `"shown"`) {
		t.Errorf("in a limit named headers: %v", err)
	}
}
