package config

import (
	"testing"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/keys"
)

// first is what the first request of one unit finds.
func first(limiter algorithms.Limiter) algorithms.Decision {
	_, d := algorithms.Decide(limiter, algorithms.State{}, algorithms.Time{Mono: 1, Wall: 1}, 1)
	return d
}

func TestAnOverrideReplacesNumbersAndInheritsTheRest(t *testing.T) {
	for limit, want := range map[string]struct {
		limit int64
		reset string // of a bucket from which one was taken
	}{
		`"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/s", "overrides": [{"match": {}, "capacity": 9}]`:                       {9, "1s"},
		`"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/s", "overrides": [{"match": {}, "refill_rate": "1/m"}]`:                {5, "1m0s"},
		`"algorithm": "token_bucket", "overrides": [{"refill_rate": 0.1, "capacity": 7.0, "match": {}}], "capacity": 5, "refill_rate": "1/s"`: {7, "10s"},
		`"algorithm": "leaky_bucket", "mode": "meter", "capacity": 5, "leak_rate": "1/s", "overrides": [{"match": {}, "leak_rate": "1/h"}]`:   {5, "1h0m0s"},
		`"algorithm": "gcra", "rate": "1/s", "burst": 4, "overrides": [{"match": {}, "rate": "1/m"}]`:                                         {4, "1m0s"},
		`"algorithm": "gcra", "rate": "1/s", "overrides": [{"match": {}, "burst": 3}]`:                                                        {3, "1s"},
		`"algorithm": "fixed_window", "limit": 5, "window": "1m", "overrides": [{"match": {}, "limit": 8}]`:                                   {8, "59.999999999s"},
		`"algorithm": "sliding_window", "limit": 5, "window": "1h", "utc_offset": "+00:30", "overrides": [{"match": {}, "limit": 6}]`:         {6, "1h29m59.999999999s"},
	} {
		c := mustParse(t, `{"limits": {"x": {"key": [], `+limit+`}}}`)
		overrides := c.Limits[0].Overrides
		if len(overrides) != 1 {
			t.Fatalf("%s: %+v", limit, overrides)
		}
		if d := first(overrides[0].Limiter); d.Limit != want.limit || d.Reset.String() != want.reset {
			t.Errorf("%s: a limit of %d, whole again in %v; want %d and %s", limit, d.Limit, d.Reset, want.limit, want.reset)
		}
	}
}

func TestTheLimitKeepsItsOwnNumbersBesideItsOverrides(t *testing.T) {
	l := mustParse(t, `{"limits": {"x": {"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/s", "key": ["ip"], "missing": "skip", "overrides": [
		{"match": {"ip": "10.0.0.0/8"}, "unlimited": true},
		{"match": {"value": {"metadata:jwt/plan": "gold"}}, "capacity": 9},
		{"match": {}, "capacity": 3}]}}}`).Limits[0]
	if d := first(l.Limiter); d.Limit != 5 || l.Shape != "token_bucket" || l.Missing != MissingSkip || len(l.Overrides) != 3 {
		t.Errorf("got %+v", l)
	}
	if o := l.Overrides[0]; o.Limiter != nil || len(o.Match.IP) != 1 {
		t.Errorf("the first is %+v", o)
	}
	for i, want := range []int64{9, 3} {
		if got := first(l.Overrides[i+1].Limiter).Limit; got != want {
			t.Errorf("override %d has a limit of %d, want %d", i+1, got, want)
		}
	}
}

func TestAMistakeInAnOverrideSaysWhereAndWhatInstead(t *testing.T) {
	for override, want := range map[string]string{
		`5`:                            `: the number 5: want an object such as {"match": {"ip": "10.0.0.0/8"}, "unlimited": true}`,
		`{"capacity": 5}`:              `.match: missing: want an object such as {"path": "/login"}`,
		`{"match": {}}`:                `: changes nothing: want "capacity", "refill_rate" or "unlimited"`,
		`{"match": {}, "capacity": 0}`: `.capacity: 0: want a whole number from 1 to 1000000000`,
		`{"match": {}, "unlimited": true, "capacity": 5}`:          `: replaces numbers and is "unlimited": want one of them`,
		`{"match": {}, "unlimited": false}`:                        `.unlimited: the boolean false: want true, or the field left out`,
		`{"match": {}, "unlimited": "yes"}`:                        `.unlimited: the string "yes": want true, or the field left out`,
		`{"match": {}, "capacity": 5, "rate": "1/s"}`:              `.rate: can't be overridden: want "capacity", "refill_rate" or "unlimited"`,
		`{"match": {}, "capacity": 5, "key": []}`:                  `.key: can't be overridden: want "capacity", "refill_rate" or "unlimited"`,
		`{"match": {}, "capacity": 5, "algorithm": "gcra"}`:        `.algorithm: can't be overridden: want "capacity", "refill_rate" or "unlimited"`,
		`{"match": {}, "capacity": 5, "overrides": []}`:            `.overrides: can't be overridden: want "capacity", "refill_rate" or "unlimited"`,
		`{"match": {}, "capacity": 5, "shadow": true}`:             `.shadow: can't be overridden: want "capacity", "refill_rate" or "unlimited"`,
		`{"match": {}, "capasity": 5}`:                             `.capasity: no such field; did you mean "capacity"?`,
		`{"match": {"path": "a"}, "capacity": 5}`:                  `.match.path: "a": want a path such as "/login", beginning with /`,
		`{"ip": "10.0.0.0/8", "unlimited": true, "match": {}}`:     `.ip: no such field: want "match", "unlimited", "capacity" or "refill_rate"`,
		`{"match": {"value": {"rul": "a"}}, "refill_rate": "1/s"}`: `.match.value.rul: "rul": "rul" is no key part: want ` + keys.Spellings(),
	} {
		wantMistakes(t, `{"limits": {"x": {"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/s", "key": [], "overrides": [`+override+`]}}}`,
			"limits.x.overrides[0]"+want)
	}
}

func TestOverridesOfALimitWithMistakesAreCheckedAsWell(t *testing.T) {
	wantMistakes(t, `{"limits": {"x": {"algorithm": "nope", "key": [], "overrides": [{"match": {"ip": "x"}, "capacity": 5}, {"match": {}, "burst": 0}, {"match": {}}]}}}`,
		`limits.x.algorithm: "nope": want "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "gcra" or "concurrency"`,
		`limits.x.overrides[0].match.ip: "x": want an address such as "192.0.2.1" or a network such as "10.0.0.0/8"`,
		`limits.x.overrides[1].burst: 0: want a whole number from 1 to 1000000000`,
		`limits.x.overrides[2]: changes nothing: want "capacity", "refill_rate", "leak_rate", "max_wait", "limit", "rate", "burst" or "unlimited"`)
	wantMistakes(t, `{"limits": {"x": {"algorithm": "gcra", "rate": "x", "key": [], "overrides": [{"match": {}, "rate": "y"}]}}}`,
		`limits.x.rate: "x": want N/unit with unit s, m, h, d or a duration such as 10s`,
		`limits.x.overrides[0].rate: "y": want N/unit with unit s, m, h, d or a duration such as 10s`)
}
