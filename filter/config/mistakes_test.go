package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/filter/keys"
)

// wantMistakes checks that a document is refused with exactly these lines.
func wantMistakes(t *testing.T, document string, want ...string) {
	t.Helper()
	c, err := Parse([]byte(document))
	if err == nil {
		t.Errorf("%s\nis accepted as %+v", document, c)
		return
	}
	var mistakes Mistakes
	if !errors.As(err, &mistakes) {
		t.Errorf("%s\nfails with a %T: %v", document, err, err)
	}
	if got := err.Error(); got != strings.Join(want, "\n") {
		t.Errorf("%s\n--- got\n%s\n--- want\n%s", document, got, strings.Join(want, "\n"))
	}
}

func TestAMistakeAtTheTopSaysWhereAndWhatInstead(t *testing.T) {
	const name = "want a name of 1 to 64 characters of a-z, 0-9, _ and -, beginning with a letter or digit"
	for document, want := range map[string]string{
		`[]`:                                    `document: an array: want a JSON object with "limits" and "rules"`,
		`"limits"`:                              `document: the string "limits": want a JSON object with "limits" and "rules"`,
		`null`:                                  `document: null: want a JSON object with "limits" and "rules"`,
		`{}`:                                    `limits: missing: want an object of limits by their names`,
		`{"limits": []}`:                        `limits: an array: want an object of limits by their names`,
		`{"limits": 5, "always": ["a"]}`:        `limits: the number 5: want an object of limits by their names`,
		`{"always": ["a"]}`:                     `limits: missing: want an object of limits by their names`,
		`{"limits": {"a": 5}, "always": ["a"]}`: `limits.a: the number 5: want an object such as {"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/s", "key": ["ip"]}`,
		`{"limits": {"": ` + bucket + `}}`:      `limits[""]: "": ` + name,
		`{"limits": {"Login": ` + bucket + `}}`: `limits.Login: "Login": ` + name,
		`{"limits": {"_a": ` + bucket + `}}`:    `limits._a: "_a": ` + name,
		`{"limits": {"a b": ` + bucket + `}}`:   `limits["a b"]: "a b": ` + name,
		`{"limits": {"` + strings.Repeat("a", 65) + `": ` + bucket + `}}`: `limits["` + strings.Repeat("a", 64) + `…"]: "` + strings.Repeat("a", 64) + `…": ` + name,
		`{"limits": {"a": ` + bucket + `, "\u0061": {}}}`:                 `limits.a: stands twice in one object: keep one`,
		`{"limits": {}, "limits": {}}`:                                    `limits: stands twice in one object: keep one`,
		`{"limits": {}, "rules": {}}`:                                     `rules: an object: want an array of rules`,
		`{"limits": {}, "always": "a"}`:                                   `always: the string "a": want an array of names of limits`,
		`{"limits": {}, "always": ["a"]}`:                                 `always[0]: "a": no such limit: there are none`,
		`{"limits": {"a": ` + bucket + `}, "always": [{"limit": "a"}]}`:   `always[0]: an object: want a limit's name such as "login"`,
		`{"limits": {"a": ` + bucket + `}, "always": ["a", "a"]}`:         `always[1]: "a": stands twice in one list: keep one`,
		`{"limits": {}, "state": {"max_buckets": 999}}`:                   `state.max_buckets: 999: want a whole number from 1000 to 10000000`,
		`{"limits": {}, "state": {"max_buckets": 1e8}}`:                   `state.max_buckets: 1e8: want a whole number from 1000 to 10000000`,
		`{"limits": {}, "state": {"maxBuckets": 1e4}}`:                    `state.maxBuckets: no such field; did you mean "max_buckets"?`,
		`{"limits": {}, "state": 1e4}`:                                    `state: the number 1e4: want an object such as {"max_buckets": 100000}`,
		`{"limits": {}, "namespace": "Team"}`:                             `namespace: "Team": want a string of at most 63 characters of a-z, 0-9, _ and -`,
		`{"limits": {}, "namespace": "` + strings.Repeat("a", 64) + `"}`:  `namespace: "` + strings.Repeat("a", 64) + `": want a string of at most 63 characters of a-z, 0-9, _ and -`,
		`{"limits": {}, "namespace": null}`:                               `namespace: null: want a string of at most 63 characters of a-z, 0-9, _ and -`,
		`{"limits": {}, "on_error": "open"}`:                              `on_error: "open": want "allow" or "deny"`,
		`{"limits": {}, "on_error": false}`:                               `on_error: the boolean false: want "allow" or "deny"`,
		`{"limits": {}, "response": {"status": 600}}`:                     `response.status: 600: want a whole number from 400 to 599`,
		`{"limits": {}, "response": {"status": "429"}}`:                   `response.status: the string "429": want a whole number from 400 to 599`,
		`{"limits": {}, "response": {"body": {"a": 1}}}`:                  `response.body: an object: want a string`,
		`{"limits": {}, "rule": []}`:                                      `rule: no such field; did you mean "rules"?`,
		`{"limits": {}, "quotas": []}`:                                    `quotas: no such field: want "limits", "response", "rules", "exempt", "$schema", "always", "client_ip", "state", "global", "route_metadata", "shadow", "on_error" or "namespace"`,
	} {
		wantMistakes(t, document, want)
	}
}

func TestAMisspeltFieldIsNotMissingBesides(t *testing.T) {
	wantMistakes(t, `{"limit": {}, "always": ["a"]}`, `limit: no such field; did you mean "limits"?`)
	wantMistakes(t, `{"limits": {"x": {"algorithm": "token_bucket", "capasity": 5, "refil_rate": "1/s", "ip": ["ip"]}}}`,
		`limits.x.key: missing: want an array of key parts such as ["ip"]`,
		`limits.x.capasity: no such field; did you mean "capacity"?`,
		`limits.x.refil_rate: no such field; did you mean "refill_rate"?`,
		`limits.x.ip: no such field: want "algorithm", "key", "missing", "shadow", "enforce_percent", "overrides", "scope", "charge", "count_status", "capacity" or "refill_rate"`)
	wantMistakes(t, `{"limits": {}, "rules": [{"limts": []}]}`, `rules[0].limts: no such field; did you mean "limits"?`)
}

func TestAllMistakesAreReportedAtOnceInTheOrderOfTheDocument(t *testing.T) {
	wantMistakes(t, `{
		"rules": [
			{"limits": ["lgin", "read"], "cost": -1},
			{"match": {"path": "login", "method": ["GET", "get"]}, "name": "A"}
		],
		"allways": [],
		"limits": {
			"read": {"burst": 0, "key": ["ip", "Ip"], "algorithm": "token_bucket", "capacity": 5, "capacity": 6},
			"login": {"algorithm": "gcra", "rate": "5/fortnight", "key": ["ip"]},
			"old": 1
		},
		"on_error": 1
	}`,
		`rules[0].limits[0]: "lgin": no such limit; did you mean "login"?`,
		`rules[0].cost: -1: want a whole number from 0 to 1000000000`,
		`rules[1].limits: missing: want an array such as ["login"]`,
		`rules[1].match.path: "login": want a path such as "/login", beginning with /`,
		`rules[1].match.method[1]: "get": want a method in capitals such as "POST"`,
		`rules[1].name: "A": want a name of 1 to 64 characters of a-z, 0-9, _ and -, beginning with a letter or digit`,
		`allways: no such field; did you mean "always"?`,
		`limits.read.refill_rate: missing: want a rate such as "5/s", "100/m" or "1/10s"`,
		`limits.read.burst: belongs to "gcra": "token_bucket" takes "capacity" and "refill_rate"`,
		`limits.read.key[1]: "Ip": "Ip" is no key part: want `+keys.Spellings(),
		`limits.read.capacity: stands twice in one object: keep one`,
		`limits.login.rate: "5/fortnight": want N/unit with unit s, m, h, d or a duration such as 10s`,
		`limits.old: the number 1: want an object such as {"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/s", "key": ["ip"]}`,
		`on_error: the number 1: want "allow" or "deny"`,
	)
}

func TestADocumentThatIsWrongAllOverDoesNotFloodTheLog(t *testing.T) {
	var document strings.Builder
	document.WriteString(`{"limits": {`)
	for i := range 5000 {
		fmt.Fprintf(&document, `"limit-%d": %s, `, i, bucket)
	}
	document.WriteString(`"x": ` + bucket + `}, "rules": [{"limits": ["limit-none"`)
	document.WriteString(strings.Repeat(`, "limit-nil"`, 30_000))
	document.WriteString(`]}]}`)
	_, err := Parse([]byte(document.String()))
	var lines Mistakes
	if !errors.As(err, &lines) {
		t.Fatal(err)
	}
	if len(lines) != 201 || lines[200] != "and 29801 more mistakes" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

func TestALongNameInCapitalsIsNoTrouble(t *testing.T) {
	// In lower case this letter takes a byte more.
	name := strings.Repeat("Ⱥ", 32)
	wantMistakes(t, `{"limits": {"`+name+`": `+bucket+`}, "always": ["`+name+`x"]}`,
		`limits["`+name+`"]: "`+name+`": want a name of 1 to 64 characters of a-z, 0-9, _ and -, beginning with a letter or digit`,
		`always[0]: "`+name+`x": no such limit: want "`+name+`"`)
}

func TestASuggestionIsCloseToWhatWasWritten(t *testing.T) {
	names := []string{"login", "read", "a", "capacity", "leak_rate", "rate", "refill_rate"}
	for misspelled, want := range map[string]string{
		"lgin": "login", "logni": "login", "LOGIN": "login", "loggin": "login", "lgoni": "login",
		"raed": "read", "reed": "read", "rates": "rate", "refillRate": "refill_rate", "leakrate": "leak_rate",
		"A": "a", "b": "", "": "", "logout": "", "capactiy": "capacity", "xyz": "",
		strings.Repeat("a", 65): "",
	} {
		if got, _ := nearest(misspelled, names); got != want {
			t.Errorf("%q: suggests %q, want %q", misspelled, got, want)
		}
	}
}

func TestSuggestionsEndWhereTheyWouldTakeLong(t *testing.T) {
	known := make([]string, maxCompared/10)
	for i := range known {
		known[i] = "login"
	}
	var c collector
	for i := range 12 {
		meant, remedy := c.instead("lgoin", known, 1)
		if want := i < 10; (meant == "login") != want || strings.Contains(remedy, "did you mean") != want {
			t.Errorf("mistake %d: meant %q, remedy %q", i, meant, remedy)
		}
	}
}
