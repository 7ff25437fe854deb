//go:build !wasip1

package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:generate go test . -run TestTheShippedSchemaIsThatOfThisCode -update

var update = flag.Bool("update", false, "write docs/sluice.schema.json anew")

const schemaFile = "../../docs/sluice.schema.json"

func TestTheShippedSchemaIsThatOfThisCode(t *testing.T) {
	want, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(schemaFile); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what this code accepts (%v): run go generate ./filter/config", schemaFile, err)
	}
}

// compiledSchema is the schema as an implementation of JSON Schema understands it.
var compiledSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	text, err := Schema()
	if err != nil {
		return nil, err
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	const name = "sluice.schema.json"
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, schema); err != nil {
		return nil, err
	}
	return c.Compile(name)
})

// validate says what the schema thinks of a document.
func validate(t testing.TB, document string) error {
	t.Helper()
	schema, err := compiledSchema()
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
	if err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	return schema.Validate(value)
}

func TestWhateverIsAcceptedFitsTheSchema(t *testing.T) {
	for _, document := range []string{readExample(t, "smallest.json"), readExample(t, "full.json")} {
		mustParse(t, document)
	}
	for place, values := range map[string][]string{
		`{"limits": {"x": {"algorithm": "gcra", "key": [], "rate": %}}}`:                                               {`1`, `0.5`, `1e9`, `"5"`, `"0.5/s"`, `"5/1m30s"`, `"5/1.5h"`, `"1/1d"`, `"1000000000/s"`, `"5/500ms"`},
		`{"limits": {"x": {"algorithm": "fixed_window", "key": [], "limit": 1, "window": %}}}`:                         {`"1s"`, `"1m"`, `"24h"`, `"1d"`, `"1w"`, `"1mo"`, `"1y"`, `"1h30m"`, `"0.5s"`},
		`{"limits": {"x": {"algorithm": "sliding_window", "key": [], "limit": 5.0, "window": "1d", "utc_offset": %}}}`: {`"+00:00"`, `"-14:00"`, `"+05:45"`},
		`{"limits": {"x": {"algorithm": "gcra", "key": %, "rate": 1}}}`:                                                {`[]`, `["ip"]`, `["a=header:x|ip", "const:~0"]`},
		`{"limits": {"x": {"algorithm": "leaky_bucket", "key": [], "capacity": 9, "leak_rate": 5, %}}}`: {
			`"mode": "queue"`, `"max_wait": "4m"`, `"max_wait": "0"`, `"max_wait": "0s"`, `"max_wait": "1m30s"`, `"overrides": [{"match": {}, "max_wait": "1s"}]`,
			`"mode": "queue", "scope": "process"`, `"mode": "meter", "count_status": ["401"]`, `"mode": "meter", "charge": {"metadata": "a/b", "max": 1}`,
		},
		`{"limits": {"x": {"algorithm": "concurrency", "key": [], "limit": 9, %}}}`: {`"missing": "deny"`, `"overrides": [{"match": {}, "limit": 1}, {"match": {}, "unlimited": true}]`, `"shadow": true`},
		`{"limits": {"x": {"algorithm": "gcra", "rate": 1, "key": [], %}}}`: {
			`"scope": "process"`, `"count_status": ["100", "599", "1xx", "5xx", "404", "4xx"]`, `"charge": {"response_header": "X-Used", "max": 1e9, "remove": true}`,
			`"charge": {"response_header": "a", "max": 1, "remove": false}`, `"charge": {"response_trailer": "grpc-x", "max": 5.0}, "count_status": ["200"]`, `"charge": {"metadata": "f.a/b~1c/~0~2", "max": 1}`,
		},
		`{"limits": {}, "exempt": [{"path": %}]}`:                           {`"/"`, `"*"`, `["/a", "/%2A", "/é"]`},
		`{"limits": {}, "exempt": [{"headers": {"x": %}}]}`:                 {`"a"`, `["a", {"not": {"regex": "b"}}]`, `{"present": true}`, `{"not": "a"}`},
		`{"limits": {}, "exempt": [{"value": {"metadata_number:f/a": %}}]}`: {`5`, `"5"`, `[5, "6"]`},
		`{"limits": {}, "response": {"content_type": %}}`:                   {`"text/plain"`, `"text/plain ; charset=utf-8"`, `"application/problem+json"`},
		`{"limits": {}, "response": {"retry_after_jitter": %}}`:             {`"0s"`, `"1d"`, `"1m30s"`, `"500ms"`, `"1.5s"`, `"0"`},
		`{"limits": {}, "client_ip": %}`:                                    {`{}`, `{"source": "envoy"}`, `{"source": "header", "header": "a", "trusted_hops": 1}`},
		`{"limits": {}, "namespace": %}`:                                    {`""`, `"a_-1"`},
		`{"limits": {}, "global": {"cluster": "c", "protocol": "gubernator", %}}`: {
			`"domain": "a\u00a0b"`, `"mode": "lease"`, `"lease": 1`, `"lease": 1e-12`, `"timeout": "1ms"`, `"timeout": "10s"`, `"on_failure": "deny"`,
		},
		`{"global": {"cluster": "c", "protocol": "gubernator"}, "limits": {"x": {"key": [], "scope": "global", %}}}`: {
			`"algorithm": "fixed_window", "limit": 1, "window": "1440m", "utc_offset": "-00:00"`, `"algorithm": "leaky_bucket", "mode": "meter", "capacity": 1, "leak_rate": 1`,
		},
		`{"limits": {}, "$schema": %}`: {`1`, `"x"`, `null`},
	} {
		for _, value := range values {
			mustParse(t, strings.Replace(place, "%", value, 1))
		}
	}
}

func TestTheSchemaSeesMistakesOfNameTypeAndRange(t *testing.T) {
	for place, values := range map[string][]string{
		`%`: {`5`, `[]`, `{}`, `{"limits": []}`, `{"limits": {}, "rulez": []}`, `{"limits": {}, "global": {}}`, `{"limits": {}, "global": true}`},
		`{"limits": {}, "global": {"cluster": "c", "protocol": "gubernator", %}}`: {
			`"domain": ""`, `"domain": "a\u0000"`, `"domain": 5`, `"mode": "leases"`, `"lease": 0`, `"lease": -1`, `"lease": 1.5`, `"lease": "5%"`,
			`"timeout": 50`, `"timeout": "50"`, `"on_failure": "open"`, `"on_error": "allow"`,
		},
		`{"limits": {}, "global": {%}}`: {`"cluster": "c"`, `"protocol": "rls"`, `"cluster": "", "protocol": "rls"`, `"cluster": "c\n", "protocol": "rls"`, `"cluster": "c", "protocol": "RLS"`},
		`{"global": {"cluster": "c", "protocol": "gubernator"}, "limits": {"x": {"key": [], "scope": "global", %}}}`: {
			`"algorithm": "sliding_window", "limit": 1, "window": "1m"`, `"algorithm": "concurrency", "limit": 1`, `"algorithm": "gcra", "rate": 1, "count_status": ["5xx"]`,
			`"algorithm": "leaky_bucket", "capacity": 1, "leak_rate": 1`, `"algorithm": "leaky_bucket", "mode": "queue", "capacity": 1, "leak_rate": 1`,
		},
		`{"limits": {"x": %}}`: {
			`5`, `{}`, `{"algorithm": "gcra", "rate": 1}`, `{"algorithm": "nope", "key": []}`, `{"algorithm": "gcra", "key": []}`,
			`{"algorithm": "gcra", "key": [], "rate": 1, "capacity": 5}`, `{"algorithm": "gcra", "key": [], "rate": 1, "burst": 0}`,
			`{"algorithm": "gcra", "key": [], "rate": 1, "burst": 1.5}`, `{"algorithm": "gcra", "key": [], "rate": 1, "x": 1}`,
			`{"algorithm": "gcra", "key": ["ip", 5], "rate": 1}`, `{"algorithm": "gcra", "key": [], "rate": 1, "enforce_percent": 101}`,
			`{"algorithm": "gcra", "key": [], "rate": 1, "shadow": "yes"}`, `{"algorithm": "gcra", "key": [], "rate": 1, "missing": "Skip"}`,
			`{"algorithm": "leaky_bucket", "key": [], "capacity": 1, "leak_rate": 1, "mode": "metre"}`, `{"algorithm": "sliding_window", "key": [], "limit": 1, "window": "1w"}`,
		},
		`{"limits": {"x": {"algorithm": "leaky_bucket", "key": [], "capacity": 1, "leak_rate": 1, %}}}`: {
			`"max_wait": 5`, `"max_wait": "5"`, `"max_wait": "-1s"`, `"mode": "meter", "max_wait": "1s"`, `"mode": "meter", "overrides": [{"match": {}, "max_wait": "1s"}]`,
			`"count_status": ["401"]`, `"mode": "queue", "count_status": ["401"]`, `"charge": {"response_header": "x", "max": 1}`, `"overrides": [{"match": {}, "max_wait": 1}]`,
		},
		`{"limits": {"x": {"algorithm": "concurrency", "key": [], %}}}`: {
			`"limit": 0`, `"limit": "1"`, `"limit": 1, "window": "1s"`, `"limit": 1, "scope": "process"`, `"limit": 1, "count_status": ["401"]`,
			`"limit": 1, "charge": {"response_header": "x", "max": 1}`, `"limit": 1, "overrides": [{"match": {}, "burst": 1}]`,
		},
		`{"limits": {"x": {"algorithm": "gcra", "rate": 1, "key": [], %}}}`: {
			`"scope": "fleet"`, `"scope": 1`, `"max_wait": "1s"`, `"count_status": "401"`, `"count_status": []`, `"count_status": [401]`, `"count_status": ["600"]`,
			`"count_status": ["099"]`, `"count_status": ["4XX"]`, `"count_status": ["40x"]`, `"count_status": ["401", "401"]`, `"charge": 5`, `"charge": {}`,
			`"charge": {"max": 1}`, `"charge": {"response_header": "x"}`, `"charge": {"response_header": "x", "max": 0}`, `"charge": {"response_header": "x y", "max": 1}`,
			`"charge": {"response_header": "x", "response_trailer": "x", "max": 1}`, `"charge": {"metadata": "", "max": 1}`, `"charge": {"metadata": "f/a", "max": 1, "remove": true}`,
			`"charge": {"response_trailer": ":status", "max": 1}`, `"charge": {"response_header": "x", "max": 1, "remove": "yes"}`, `"charge": {"response_header": "x", "max": 1, "min": 0}`,
		},
		`{"limits": {"Login": %}}`:                                       {bucket},
		`{"limits": {"x": {"algorithm": "gcra", "key": [], "rate": %}}}`: {`0`, `-1`, `1e10`, `"5/fortnight"`, `"5/2d"`, `true`, `"-5/s"`, `""`},
		`{"limits": {"x": {"algorithm": "gcra", "key": [], "rate": 1, "overrides": [%]}}}`: {
			`5`, `{"burst": 2}`, `{"match": {}}`, `{"match": {}, "unlimited": false}`, `{"match": {}, "unlimited": true, "burst": 2}`,
			`{"match": {}, "capacity": 2}`, `{"match": {}, "burst": 2, "key": []}`, `{"match": {}, "burst": 0}`,
		},
		`{"limits": {}, "exempt": [%]}`: {
			`5`, `{"path": "login"}`, `{"path": "/a/*"}`, `{"path": "/a?b"}`, `{"path": []}`, `{"paths": "/"}`, `{"method": "get"}`, `{"route": ""}`,
			`{"headers": {}}`, `{"headers": {"x y": "a"}}`, `{"headers": {"x": {}}}`, `{"headers": {"x": {"present": false}}}`, `{"headers": {"x": 5}}`,
			`{"headers": {"x": {"prefix": "a", "regex": "b"}}}`, `{"headers": {"x": {"not": {"not": "a"}}}}`, `{"headers": {"x": {"not": ["a"]}}}`,
			`{"value": {}}`, `{"value": {"header:x": true}}`, `{"value": {"header:x": []}}`, `{"ip": 5}`, `{"path_regex": ""}`,
		},
		`{"limits": {}, "rules": [%]}`: {
			`5`, `{}`, `{"limits": "a"}`, `{"limits": [5]}`, `{"limits": [{}]}`, `{"limits": [{"limit": "a", "cost": -1}]}`, `{"limits": [], "name": "A"}`,
			`{"limits": [], "cost": {"header": "x"}}`, `{"limits": [], "cost": {"max": 1}}`, `{"limits": [], "cost": {"header": "x", "max": 0}}`, `{"limits": [], "cost": "1"}`,
		},
		`{"limits": {}, "response": {%}}`: {
			`"status": 399`, `"status": "429"`, `"body": {}`, `"content_type": "json"`, `"rate_limit_headers": "draft"`, `"rate_limit_headers": ["x"]`,
			`"rate_limit_headers": ["draft", "draft"]`, `"retry_after_jitter": 5`, `"retry_after_jitter": "5"`, `"headers": {"x": 5}`, `"headers": {"x y": ""}`,
		},
		`{"limits": {}, "client_ip": {%}}`: {
			`"source": "x"`, `"trusted_hops": 1`, `"source": "header", "header": "a"`, `"source": "header", "trusted_hops": 1`, `"ipv4_prefix": 33`,
			`"source": "header", "header": "a", "trusted_hops": 1, "trusted_proxies": ["::1"]`, `"source": "header", "header": "a", "trusted_proxies": []`,
		},
		`{"limits": {}, %}`: {
			`"always": "a"`, `"always": [1]`, `"always": ["a", "a"]`, `"state": {"max_buckets": 999}`, `"state": {"x": 1}`, `"on_error": "open"`, `"shadow": 1`,
			`"route_metadata": "yes"`, `"namespace": "Team"`, `"exempt": {}`,
		},
	} {
		for _, value := range values {
			document := strings.Replace(place, "%", value, 1)
			if _, err := Parse([]byte(document)); err == nil {
				t.Errorf("%s is accepted", document)
			}
			if err := validate(t, document); err == nil {
				t.Errorf("%s fits the schema", document)
			}
		}
	}
}

// TestEveryFieldOfTheSchemaIsExplained looks at what editors show.
func TestEveryFieldOfTheSchemaIsExplained(t *testing.T) {
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	explained := 0
	var walk func(at string, schema any)
	walk = func(at string, schema any) {
		switch s := schema.(type) {
		case map[string]any:
			for keyword, child := range s {
				properties, ok := child.(map[string]any)
				if keyword != "properties" || !ok {
					walk(at+"/"+keyword, child)
					continue
				}
				for name, p := range properties {
					property, ok := p.(map[string]any)
					conditional := strings.HasSuffix(at, "/if") || strings.HasSuffix(at, "/not") || strings.HasSuffix(at, "/then/then") || strings.HasSuffix(at, "/then/allOf/then") || !ok || len(property) == 0 // set by the algorithm, its mode and the scope
					description, _ := property["description"].(string)
					if !conditional && (len(description) < 10 || !strings.HasSuffix(description, ".")) {
						t.Errorf("%s/%s is described as %q", at, name, description)
					}
					explained++
					walk(at+"/"+name, p)
				}
			}
		case []any:
			for _, child := range s {
				walk(at, child)
			}
		}
	}
	walk("", schema)
	if explained < 60 {
		t.Errorf("only %d fields are in the schema", explained)
	}
}

// A document that spells out the defaults which the schema shows is the same as
// one that does not.
func TestTheDefaultsOfTheSchemaAreThoseOfTheCode(t *testing.T) {
	defaultsOf := func(properties []*property) map[string]any {
		all := map[string]any{}
		for _, p := range properties {
			if p.notes.fallback != "" {
				all[p.name] = json.RawMessage(p.notes.fallback)
			}
		}
		return all
	}
	limit := defaultsOf(members[limitDraft]{fields: commonFields}.properties())
	for _, a := range knownAlgorithms {
		for name, fallback := range defaultsOf(members[limitDraft]{fields: a.fields()}.properties()) {
			limit[name] = fallback
		}
	}
	with := func(all map[string]any, more string) string {
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Replace(string(text), "{", "{"+more+",", 1)
	}
	limitWith := func(names []string, more string) string {
		own := map[string]any{}
		for _, name := range append(names, "missing", "shadow", "enforce_percent", "overrides", "scope") {
			own[name] = limit[name]
		}
		return with(own, more)
	}
	const gcra, window = `"algorithm": "gcra", "rate": 1, "key": []`, `"algorithm": "fixed_window", "limit": 1, "window": "1m", "key": []`
	limits := func(a, b string) string { return `"limits": {"a": ` + a + `, "b": ` + b + `}` }
	queue := `{"key": [], "algorithm": "leaky_bucket", "capacity": 1, "leak_rate": 1}`
	if a, b := mustParse(t, `{`+limits(queue, queue)+`}`), mustParse(t, `{`+limits(queue, limitWith([]string{"mode"}, queue[1:len(queue)-1]))+`}`); !reflect.DeepEqual(a.Limits[1].Limiter, b.Limits[1].Limiter) || a.Limits[1].Shape != b.Limits[1].Shape {
		t.Errorf("got %+v", b.Limits)
	}
	global := defaultsOf(globalMembers.properties())
	if a, b := mustParse(t, `{"limits": {}, `+service+`}}`), mustParse(t, `{"limits": {}, "global": `+with(global, `"cluster": "ratelimit", "protocol": "rls"`)+`}`); len(global) != 5 || !reflect.DeepEqual(a, b) {
		t.Errorf("got %+v", b.Global)
	}
	charge := with(defaultsOf(chargeMembers.properties()), `"response_header": "x", "max": 5`)
	charging := mustParse(t, `{`+limits(`{`+gcra+`, "charge": {"response_header": "x", "max": 5}}`, `{`+gcra+`, "charge": `+charge+`}`)+`}`).Limits
	if !reflect.DeepEqual(charging[0].Charge, charging[1].Charge) {
		t.Errorf("got %+v", charging[1].Charge)
	}
	top := defaultsOf(topMembers.properties())
	top["client_ip"] = defaultsOf(clientIPMembers.properties())
	top["response"] = defaultsOf(responseMembers.properties())
	top["state"] = defaultsOf(stateMembers.properties())
	plain := mustParse(t, `{`+limits(`{`+gcra+`}`, `{`+window+`}`)+`}`)
	explicit := mustParse(t, with(top, limits(limitWith([]string{"burst"}, gcra), limitWith([]string{"utc_offset"}, window))))
	explicit.Rules, explicit.Exempt, explicit.Limits[0].Overrides, explicit.Limits[1].Overrides = nil, nil, nil, nil // empty and nil are one
	if !reflect.DeepEqual(plain, explicit) {
		t.Errorf("got  %+v\nwant %+v", explicit, plain)
	}
	rule := with(defaultsOf(ruleMembers.properties()), `"limits": ["a"]`)
	rules := `, "rules": [{"limits": ["a"]}, ` + rule + `, {"limits": ["a"], "cost": {"header": "x", "max": 5}}, {"limits": ["a"], "cost": ` + with(defaultsOf(costMembers.properties()), `"header": "x", "max": 5`) + `}]`
	r := mustParse(t, `{`+limits(`{`+gcra+`}`, `{`+window+`}`)+rules+`}`).Rules
	if !reflect.DeepEqual(r[0], r[1]) || !reflect.DeepEqual(r[2], r[3]) {
		t.Errorf("got %+v", r)
	}
	if len(top) < 9 {
		t.Errorf("only %d defaults at the top", len(top))
	}
}
