package config

import (
	"reflect"
	"testing"

	"github.com/sluice-proxy/sluice/filter/keys"
)

// gcra is a limit without its closing brace.
const gcra = `{"algorithm": "gcra", "rate": 1, "key": []`

func TestAChargeIsReadFromOnePlace(t *testing.T) {
	for charge, want := range map[string]Charge{
		`{"response_header": "X-Tokens-Used", "max": 100000}`:           {ResponseHeader: "x-tokens-used", Max: 100_000},
		`{"max": 1.0e9, "remove": true, "response_header": "host"}`:     {ResponseHeader: "host", Max: 1_000_000_000, Remove: true},
		`{"response_header": "a", "max": 1, "remove": false}`:           {ResponseHeader: "a", Max: 1},
		`{"response_trailer": "Grpc-Cost", "max": 5}`:                   {ResponseTrailer: "grpc-cost", Max: 5},
		`{"metadata": "envoy.filters.http.ext_proc/usage/x", "max": 5}`: {Metadata: "envoy.filters.http.ext_proc\x00usage\x00x", Max: 5},
		`{"metadata": "f~1g/a~0~2b/c=d:e", "max": 5}`:                   {Metadata: "f/g\x00a~|b\x00c=d:e", Max: 5},
	} {
		for _, algorithm := range []string{
			`"algorithm": "gcra", "rate": 1`, `"algorithm": "token_bucket", "capacity": 1, "refill_rate": 1`, `"algorithm": "leaky_bucket", "mode": "meter", "capacity": 1, "leak_rate": 1`,
			`"algorithm": "fixed_window", "limit": 1, "window": "1d"`, `"algorithm": "sliding_window", "limit": 1, "window": "1d", "count_status": ["5xx"]`,
		} {
			l := mustParse(t, `{"limits": {"x": {"key": [], "charge": `+charge+`, `+algorithm+`}}}`).Limits[0]
			if l.Charge == nil || *l.Charge != want {
				t.Errorf("%s with %s: got %+v, want %+v", charge, algorithm, l.Charge, want)
			}
		}
	}
	if l := mustParse(t, `{"limits": {"x": `+bucket+`}}`).Limits[0]; l.Charge != nil || l.CountStatus != nil {
		t.Errorf("a limit that says nothing of it has %+v and %v", l.Charge, l.CountStatus)
	}
}

func TestAChargesMetadataIsSpelledAsInAKey(t *testing.T) {
	for _, path := range []string{"f/a", "f.g/a/b/c", "a~0/~1~2", "f/=", "ü/ü"} {
		part, err := keys.Parse("metadata_number:" + path)
		if err != nil {
			t.Fatal(err)
		}
		c := mustParse(t, `{"limits": {"x": `+gcra+`, "charge": {"metadata": "`+path+`", "max": 1}}}}`).Limits[0].Charge
		if c.Metadata != part.Sources[0].Name {
			t.Errorf("%s: got %q, want %q", path, c.Metadata, part.Sources[0].Name)
		}
	}
}

func TestAMistakeInAChargeSaysWhereAndWhatInstead(t *testing.T) {
	const object = `want an object such as {"response_header": "x-tokens-used", "max": 100000}`
	const whole = "want a whole number from 1 to 1000000000"
	const name = "want a header's name, of letters, digits and -"
	const source = `does not say where the cost is: want "response_header", "response_trailer" or "metadata"`
	for charge, want := range map[string]string{
		`5`:                                        `: the number 5: ` + object,
		`null`:                                     `: null: ` + object,
		`["x"]`:                                    `: an array: ` + object,
		`"x-tokens-used"`:                          `: the string "x-tokens-used": ` + object,
		`{}`:                                       `.max: missing: ` + whole,
		`{"max": 5}`:                               `: ` + source,
		`{"max": 5, "remove": true}`:               `: ` + source,
		`{"response_header": "x"}`:                 `.max: missing: ` + whole,
		`{"response_header": "x", "max": 0}`:       `.max: 0: ` + whole,
		`{"response_header": "x", "max": -1}`:      `.max: -1: ` + whole,
		`{"response_header": "x", "max": 0.5}`:     `.max: 0.5: ` + whole,
		`{"response_header": "x", "max": 1e10}`:    `.max: 1e10: ` + whole,
		`{"response_header": "x", "max": "5"}`:     `.max: the string "5": ` + whole,
		`{"response_header": "", "max": 5}`:        `.response_header: "": ` + name,
		`{"response_header": "x y", "max": 5}`:     `.response_header: "x y": ` + name,
		`{"response_header": ":status", "max": 5}`: `.response_header: ":status": ` + name,
		`{"response_header": 5, "max": 5}`:         `.response_header: the number 5: want a header's name such as "x-tokens-used"`,
		`{"response_trailer": "é", "max": 5}`:      `.response_trailer: "é": ` + name,
		`{"metadata": "", "max": 5}`:               `.metadata: "": want "FILTER/path", the way to a value in a filter's metadata`,
		`{"metadata": "f", "max": 5}`:              `.metadata: "f": "f" names a filter alone: want FILTER/a/b, the way to a value in its metadata`,
		`{"metadata": "f//a", "max": 5}`:           `.metadata: "f//a": "f//a" is no path: want names with / between, as in a/b/c; a / in a name is ~1`,
		`{"metadata": "f/~3", "max": 5}`:           `.metadata: "f/~3": a ~ stands alone: want ~0 for ~, ~1 for / or ~2 for |`,
		`{"metadata": "f/a|ip", "max": 5}`:         `.metadata: "f/a|ip": there are no alternatives here: want one FILTER/path; a | in a name is ~2`,
		`{"metadata": {"f": "a"}, "max": 5}`:       `.metadata: an object: want "FILTER/path", the way to a value in a filter's metadata`,
		`{"response_header": "x", "response_trailer": "x", "max": 5}`:                    `: has "response_header" and "response_trailer": want one of them`,
		`{"metadata": "f/a", "response_header": "x", "response_trailer": "x", "max": 5}`: `: has "response_header", "response_trailer" and "metadata": want one of them`,
		`{"response_trailer": "x", "max": 5, "remove": true}`:                            `.remove: belongs to "response_header": leave it out`,
		`{"metadata": "f/a", "max": 5, "remove": false}`:                                 `.remove: belongs to "response_header": leave it out`,
		`{"response_header": "x", "max": 5, "remove": 1}`:                                `.remove: the number 1: want true or false`,
		`{"response_heder": "x", "max": 5}`:                                              `.response_heder: no such field; did you mean "response_header"?`,
		`{"response_header": "x", "max": 5, "default": 1}`:                               `.default: no such field: want "response_header", "response_trailer", "metadata", "max" or "remove"`,
	} {
		wantMistakes(t, `{"limits": {"x": `+gcra+`, "charge": `+charge+`}}}`, "limits.x.charge"+want)
	}
	wantMistakes(t, `{"limits": {"x": {"charge": {"metadata": "f/a", "max": 5}, `+bucket[1:len(bucket)-1]+`, "overrides": [{"match": {}, "capacity": 5, "charge": {}}, {"match": {}, "count_status": []}]}}}`,
		`limits.x.overrides[0].charge: can't be overridden: want "capacity", "refill_rate" or "unlimited"`,
		`limits.x.overrides[1].count_status: can't be overridden: want "capacity", "refill_rate" or "unlimited"`)
}

func TestTheStatusesThatCount(t *testing.T) {
	for statuses, want := range map[string][]StatusRange{
		`["401", "403", "5xx"]`:        {{401, 401}, {403, 403}, {500, 599}},
		`["1xx"]`:                      {{100, 199}},
		`["100", "599"]`:               {{100, 100}, {599, 599}},
		`["4xx", "404", "2xx", "200"]`: {{400, 499}, {404, 404}, {200, 299}, {200, 200}},
	} {
		if l := mustParse(t, `{"limits": {"x": `+gcra+`, "count_status": `+statuses+`}}}`).Limits[0]; !reflect.DeepEqual(l.CountStatus, want) {
			t.Errorf("%s: got %v, want %v", statuses, l.CountStatus, want)
		}
	}
}

func TestAMistakeInTheStatusesSaysWhereAndWhatInstead(t *testing.T) {
	const array = `want an array of statuses such as ["401", "5xx"]`
	const status = `want a status such as "401", or a class of them such as "5xx"`
	for statuses, want := range map[string]string{
		`[]`:                    `: an empty array, by which nothing counts: ` + array + `, or leave the field out`,
		`"401"`:                 `: the string "401": ` + array,
		`{"401": true}`:         `: an object: ` + array,
		`null`:                  `: null: ` + array,
		`[401]`:                 `[0]: the number 401: ` + status,
		`["401", null]`:         `[1]: null: ` + status,
		`[""]`:                  `[0]: "": ` + status,
		`["40"]`:                `[0]: "40": ` + status,
		`["4011"]`:              `[0]: "4011": ` + status,
		`["099"]`:               `[0]: "099": ` + status,
		`["600"]`:               `[0]: "600": ` + status,
		`["0xx"]`:               `[0]: "0xx": ` + status,
		`["6xx"]`:               `[0]: "6xx": ` + status,
		`["5XX"]`:               `[0]: "5XX": ` + status,
		`["40x"]`:               `[0]: "40x": ` + status,
		`["x01"]`:               `[0]: "x01": ` + status,
		`["+40"]`:               `[0]: "+40": ` + status,
		`["4é"]`:                `[0]: "4é": ` + status,
		`["401-403"]`:           `[0]: "401-403": ` + status,
		`["5xx", "401", "5xx"]`: `[2]: "5xx": stands twice in one list: keep one`,
		`["401", "4\u00301"]`:   `[1]: "401": stands twice in one list: keep one`,
	} {
		wantMistakes(t, `{"limits": {"x": `+gcra+`, "count_status": `+statuses+`}}}`, "limits.x.count_status"+want)
	}
	wantMistakes(t, `{"limits": {"x": `+gcra+`, "count_status": ["a", 5, "401", "b"]}}}`,
		`limits.x.count_status[0]: "a": `+status, `limits.x.count_status[1]: the number 5: `+status, `limits.x.count_status[3]: "b": `+status)
}
