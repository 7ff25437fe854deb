package config

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
	"pgregory.net/rapid"
)

// service is a fleet-wide service without the closing brace.
const service = `"global": {"cluster": "ratelimit", "protocol": "rls"`

func TestAFleetWideServiceGetsTheDefaults(t *testing.T) {
	want := Global{
		Cluster: "ratelimit", Protocol: RLS, Domain: "sluice", Lease: false, LeaseShare: 50_000_000,
		Timeout: 50 * time.Millisecond, OnFailure: FailLocal,
	}
	for _, fields := range []string{
		``, `, "domain": "sluice"`, `, "mode": "strict"`, `, "lease": 0.05`, `, "lease": 5e-2`, `, "timeout": "50ms"`, `, "on_failure": "local"`,
		`, "domain": "sluice", "mode": "strict", "lease": 0.05, "timeout": "0.05s", "on_failure": "local"`,
	} {
		if c := mustParse(t, `{"limits": {}, `+service+fields+`}}`); c.Global == nil || *c.Global != want {
			t.Errorf("%s: got %+v, want %+v", fields, c.Global, want)
		}
	}
	if c := mustParse(t, `{"limits": {}}`); c.Global != nil {
		t.Errorf("a config that names no service has %+v", c.Global)
	}
}

func TestEveryFieldOfAFleetWideServiceIsRead(t *testing.T) {
	for fields, want := range map[string]Global{
		`"cluster": "gub", "protocol": "gubernator", "domain": "a b/é", "mode": "lease", "lease": 1, "timeout": "1ms", "on_failure": "allow"`: {
			"gub", Gubernator, "a b/é", true, 1_000_000_000, time.Millisecond, FailAllow,
		},
		`"on_failure": "deny", "timeout": "10s", "lease": 0.25, "mode": "lease", "domain": "x", "protocol": "rls", "cluster": "outbound|8081||rl.svc"`: {
			"outbound|8081||rl.svc", RLS, "x", true, 250_000_000, 10 * time.Second, FailDeny,
		},
		// A share without leases is not used, and no mistake: "mode" is a switch.
		`"cluster": " ", "protocol": "rls", "lease": 0.5, "timeout": "1.5s"`: {" ", RLS, "sluice", false, 500_000_000, 1500 * time.Millisecond, FailLocal},
	} {
		if c := mustParse(t, `{"limits": {}, "global": {`+fields+`}}`); c.Global == nil || *c.Global != want {
			t.Errorf("%s: got %+v, want %+v", fields, c.Global, want)
		}
	}
}

func TestAMistakeInAFleetWideServiceSaysWhereAndWhatInstead(t *testing.T) {
	const object = `: want an object such as {"cluster": "ratelimit", "protocol": "rls"}`
	const cluster = `want a cluster's name such as "ratelimit"`
	const domain = `want a name such as "sluice"`
	const odd = `, not empty and without control characters`
	const share = `want a number above 0, and not above 1`
	const timeout = `want a duration from 1ms to 10s`
	const protocol = `want "rls" or "gubernator"`
	const both = `"cluster": "c", "protocol": "rls", `
	for global, want := range map[string][]string{
		`true`:                                   {`global: the boolean true` + object},
		`null`:                                   {`global: null` + object},
		`"ratelimit"`:                            {`global: the string "ratelimit"` + object},
		`[]`:                                     {`global: an array` + object},
		`{}`:                                     {`global.cluster: missing: ` + cluster, `global.protocol: missing: ` + protocol},
		`{"cluster": "c"}`:                       {`global.protocol: missing: ` + protocol},
		`{"protocol": "rls"}`:                    {`global.cluster: missing: ` + cluster},
		`{"cluster": "", "protocol": "rls"}`:     {`global.cluster: "": ` + cluster + odd},
		`{"cluster": "a\nb", "protocol": "rls"}`: {`global.cluster: "a\nb": ` + cluster + odd},
		`{"cluster": "\u0000", "protocol": "rls"}`: {`global.cluster: "\x00": ` + cluster + odd},
		`{"cluster": "\u009f", "protocol": "rls"}`: {`global.cluster: "\u009f": ` + cluster + odd},
		`{"cluster": 5, "protocol": "rls"}`:        {`global.cluster: the number 5: ` + cluster},
		`{"cluster": "c", "protocol": "RLS"}`:      {`global.protocol: "RLS": ` + protocol},
		`{"cluster": "c", "protocol": "redis"}`:    {`global.protocol: "redis": ` + protocol},
		`{"cluster": "c", "protocol": null}`:       {`global.protocol: null: ` + protocol},
		`{` + both + `"domain": ""}`:               {`global.domain: "": ` + domain + odd},
		`{` + both + `"domain": "\u007f"}`:         {`global.domain: "\x7f": ` + domain + odd},
		`{` + both + `"domain": ["a"]}`:            {`global.domain: an array: ` + domain},
		`{` + both + `"mode": "Lease"}`:            {`global.mode: "Lease": want "strict" or "lease"`},
		`{` + both + `"mode": true}`:               {`global.mode: the boolean true: want "strict" or "lease"`},
		`{` + both + `"lease": 0}`:                 {`global.lease: 0: ` + share},
		`{` + both + `"lease": -0.05}`:             {`global.lease: -0.05: ` + share},
		`{` + both + `"lease": 1.01}`:              {`global.lease: 1.01: ` + share},
		`{` + both + `"lease": 5}`:                 {`global.lease: 5: ` + share},
		`{` + both + `"lease": 1e999}`:             {`global.lease: 1e999: ` + share},
		`{` + both + `"lease": "5%"}`:              {`global.lease: the string "5%": ` + share},
		`{` + both + `"timeout": "999us"}`:         {`global.timeout: "999us": ` + timeout},
		`{` + both + `"timeout": "0s"}`:            {`global.timeout: "0s": ` + timeout},
		`{` + both + `"timeout": "10.000001s"}`:    {`global.timeout: "10.000001s": ` + timeout},
		`{` + both + `"timeout": "1d"}`:            {`global.timeout: "1d": ` + timeout},
		`{` + both + `"timeout": "soon"}`:          {`global.timeout: "soon": want a duration such as 500ms, 1m30s or 1d`},
		`{` + both + `"timeout": 50}`:              {`global.timeout: the number 50: want a duration such as "50ms"`},
		`{` + both + `"on_failure": "open"}`:       {`global.on_failure: "open": want "local", "allow" or "deny"`},
		`{` + both + `"on_failure": false}`:        {`global.on_failure: the boolean false: want "local", "allow" or "deny"`},
		`{` + both + `"on_error": "allow"}`:        {`global.on_error: no such field: want "cluster", "protocol", "domain", "mode", "lease", "timeout" or "on_failure"`},
		`{` + both + `"time_out": "1s"}`:           {`global.time_out: no such field; did you mean "timeout"?`},
	} {
		// A limit that the service would count does not lack it besides.
		for _, limits := range []string{``, `"x": {` + fleetWide + `, ` + windows + `, "window": "1m"}`} {
			wantMistakes(t, `{"limits": {`+limits+`}, "global": `+global+`}`, want...)
		}
	}
}

// NaN comes in a Struct only.
func TestAShareThatIsNoNumberIsRefused(t *testing.T) {
	for _, text := range []string{"NaN", "Inf", "-Inf"} {
		r := &reader{}
		var share int64
		if shareValue.read(r, &node{kind: numberKind, text: text}, &share) || share != 0 {
			t.Errorf("%s is a share of %d", text, share)
		}
	}
}

func TestTheLargestLeaseIsTheShareOfTheLimitInWholeUnits(t *testing.T) {
	for share, want := range map[string]map[int64]int64{
		`0.05`:  {1: 1, 19: 1, 20: 1, 39: 1, 40: 2, 1000: 50, 1_000_000_000: 50_000_000},
		`0.29`:  {100: 29, 1: 1, 10: 2},
		`1`:     {1: 1, 7: 7, 1_000_000_000: 1_000_000_000},
		`1e-9`:  {1_000_000_000: 1, 5: 1},
		`3e-9`:  {1_000_000_000: 3, 5: 1},
		`1e-30`: {1_000_000_000: 1, 5: 1},
		`0.999`: {1000: 999, 10: 9},
	} {
		g := mustParse(t, `{"limits": {}, `+service+`, "lease": `+share+`}}`).Global
		for units, lease := range want {
			if got := g.LargestLease(units); got != lease {
				t.Errorf("%s of %d: got %d, want %d", share, units, got, lease)
			}
		}
	}
}

func TestAShareIsRightToTheUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		billionths := rapid.Int64Range(1, wholeShare).Draw(t, "share")
		units := rapid.Int64Range(1, algorithms.MaxUnits).Draw(t, "units")
		n := node{kind: numberKind, text: big.NewRat(billionths, wholeShare).FloatString(9)}
		g := Global{}
		if !shareValue.read(&reader{}, &n, &g.LeaseShare) {
			t.Fatalf("%s is refused", n.text)
		}
		exact := new(big.Int).Mul(big.NewInt(billionths), big.NewInt(units))
		want := max(exact.Div(exact, big.NewInt(wholeShare)).Int64(), 1)
		if got := g.LargestLease(units); got != want {
			t.Errorf("%s of %d: got %d, want %d", n.text, units, got, want)
		}
	})
}

// fleetWide is what a fleet-wide limit has whatever counts it, and windows what
// one in windows has besides the window.
const (
	fleetWide = `"key": [], "scope": "global"`
	windows   = `"algorithm": "fixed_window", "limit": 9`
)

func mustParseRate(t *testing.T, s string) algorithms.Rate {
	t.Helper()
	rate, err := algorithms.ParseRate(s)
	if err != nil {
		t.Fatal(err)
	}
	return rate
}

// Every algorithm with every protocol, and for windows every kind of them. A line
// of a mistake is what it says after the limit's name.
func TestWhichServiceCountsWhat(t *testing.T) {
	const process = `, or "scope": "process"`
	const rls = `"rls" can't count it: want "fixed_window" with a window of "1s", "1m", "1h" or "1d"`
	const gub = `"gubernator" can't count it: want "token_bucket", "gcra", "leaky_bucket" in the mode "meter", or "fixed_window" with a window of "1m", "1h" or "1d"`
	const otherwise = `, "protocol": "gubernator"`
	const window = `can't count it: want "1s", "1m", "1h" or "1d"`
	const calendar = `can't count it: want "1m", "1h" or "1d"`
	rate := mustParseRate(t, "3/m")
	type outcome struct {
		counts *GlobalCount
		line   string
	}
	counted := func(units int64, window time.Duration, rate algorithms.Rate) outcome {
		return outcome{counts: &GlobalCount{units, window, rate}}
	}
	refused := func(line string) outcome { return outcome{line: line} }
	none := algorithms.Rate{}
	for limit, want := range map[string][2]outcome{
		`"algorithm": "token_bucket", "capacity": 7, "refill_rate": "3/m"`: {
			RLS: refused(`algorithm: "token_bucket": ` + rls + otherwise + process), Gubernator: counted(7, 0, rate),
		},
		`"algorithm": "gcra", "rate": "3/m"`: {
			RLS: refused(`algorithm: "gcra": ` + rls + otherwise + process), Gubernator: counted(1, 0, rate),
		},
		`"algorithm": "gcra", "rate": "3/m", "burst": 1e9`: {
			RLS: refused(`algorithm: "gcra": ` + rls + otherwise + process), Gubernator: counted(1_000_000_000, 0, rate),
		},
		`"algorithm": "leaky_bucket", "mode": "meter", "capacity": 8, "leak_rate": "3/m"`: {
			RLS: refused(`algorithm: "leaky_bucket": ` + rls + otherwise + process), Gubernator: counted(8, 0, rate),
		},
		`"algorithm": "leaky_bucket", "capacity": 8, "leak_rate": "3/m"`: {
			RLS:        refused(`algorithm: "leaky_bucket": ` + rls + process),
			Gubernator: refused(`scope: "global": can't be had with "leaky_bucket" in the mode "queue", whose requests wait in one process: want "mode": "meter"` + process),
		},
		`"algorithm": "leaky_bucket", "mode": "queue", "capacity": 8, "leak_rate": "3/m"`: {
			RLS:        refused(`algorithm: "leaky_bucket": ` + rls + process),
			Gubernator: refused(`scope: "global": can't be had with "leaky_bucket" in the mode "queue", whose requests wait in one process: want "mode": "meter"` + process),
		},
		`"algorithm": "sliding_window", "limit": 9, "window": "1m"`: {
			RLS: refused(`algorithm: "sliding_window": ` + rls + process), Gubernator: refused(`algorithm: "sliding_window": ` + gub + process),
		},
		`"algorithm": "concurrency", "limit": 9`: {
			RLS:        refused(`scope: can't be had with "concurrency", which counts within the process only: leave it out`),
			Gubernator: refused(`scope: can't be had with "concurrency", which counts within the process only: leave it out`),
		},
		windows + `, "window": "1s"`: {
			RLS: counted(9, time.Second, none), Gubernator: refused(`window: "1s": "gubernator" ` + calendar + `, "protocol": "rls"` + process),
		},
		windows + `, "window": "1m"`:                         {counted(9, time.Minute, none), counted(9, time.Minute, none)},
		windows + `, "window": "60s"`:                        {counted(9, time.Minute, none), counted(9, time.Minute, none)},
		windows + `, "window": "1h"`:                         {counted(9, time.Hour, none), counted(9, time.Hour, none)},
		windows + `, "window": "1d"`:                         {counted(9, 24*time.Hour, none), counted(9, 24*time.Hour, none)},
		windows + `, "window": "24h"`:                        {counted(9, 24*time.Hour, none), counted(9, 24*time.Hour, none)},
		windows + `, "window": "1d", "utc_offset": "+00:00"`: {counted(9, 24*time.Hour, none), counted(9, 24*time.Hour, none)},
		windows + `, "window": "1d", "utc_offset": "+02:00"`: {
			refused(`utc_offset: "+02:00": a service's windows are those of UTC: want "scope": "process", or leave it out`),
			refused(`utc_offset: "+02:00": a service's windows are those of UTC: want "scope": "process", or leave it out`),
		},
		windows + `, "window": "10s"`:   {refused(`window: "10s": "rls" ` + window + process), refused(`window: "10s": "gubernator" ` + calendar + process)},
		windows + `, "window": "500ms"`: {refused(`window: "500ms": "rls" ` + window + process), refused(`window: "500ms": "gubernator" ` + calendar + process)},
		windows + `, "window": "30m"`:   {refused(`window: "30m": "rls" ` + window + process), refused(`window: "30m": "gubernator" ` + calendar + process)},
		windows + `, "window": "1w"`:    {refused(`window: "1w": "rls" ` + window + process), refused(`window: "1w": "gubernator" ` + calendar + process)},
		windows + `, "window": "1mo"`:   {refused(`window: "1mo": "rls" ` + window + process), refused(`window: "1mo": "gubernator" ` + calendar + process)},
		windows + `, "window": "1y"`:    {refused(`window: "1y": "rls" ` + window + process), refused(`window: "1y": "gubernator" ` + calendar + process)},
	} {
		for p, protocol := range protocolNames {
			document := `{"limits": {"x": {` + fleetWide + `, ` + limit + `}}, "global": {"cluster": "c", "protocol": "` + protocol + `"}}`
			if line := want[p].line; line != "" {
				wantMistakes(t, document, "limits.x."+line)
				continue
			}
			l := mustParse(t, document).Limits[0]
			if !l.Global || l.Limiter == nil || !reflect.DeepEqual(l.Counts, want[p].counts) {
				t.Errorf("%s: got %+v that counts %+v, want %+v", document, l, l.Counts, want[p].counts)
			}
		}
	}
}

func TestALimitOfTheProcessHasNothingToDoWithTheService(t *testing.T) {
	for _, scope := range []string{``, `, "scope": "process"`} {
		for _, global := range []string{``, `, ` + service + `}`} {
			for _, limit := range []string{
				`"algorithm": "token_bucket", "capacity": 7, "refill_rate": 1`, `"algorithm": "leaky_bucket", "capacity": 7, "leak_rate": 1`,
				`"algorithm": "sliding_window", "limit": 9, "window": "1m", "count_status": ["5xx"]`, windows + `, "window": "1y", "utc_offset": "+02:00"`, `"algorithm": "gcra", "rate": 5`,
			} {
				c := mustParse(t, `{"limits": {"x": {"key": [], `+limit+`, "overrides": [{"match": {}, "unlimited": true}]`+scope+`}}`+global+`}`)
				if l := c.Limits[0]; l.Global || l.Counts != nil || l.Overrides[0].Counts != nil || strings.Contains(l.Shape, "global") || (c.Global != nil) != (global != "") {
					t.Errorf("%s: got %+v", limit, l)
				}
			}
		}
	}
}

func TestAnOverrideOfAFleetWideLimitHasNumbersOfItsOwn(t *testing.T) {
	hour := mustParseRate(t, "1/h")
	for limit, want := range map[string][]*GlobalCount{
		`"algorithm": "gcra", "rate": "1/h", "burst": 5, "overrides": [{"match": {}, "burst": 6}, {"match": {}, "unlimited": true}, {"match": {}, "rate": "3/m"}]`: {
			{5, 0, hour}, {6, 0, hour}, nil, {5, 0, mustParseRate(t, "3/m")},
		},
		`"algorithm": "token_bucket", "refill_rate": "1/h", "capacity": 5, "overrides": [{"match": {}, "capacity": 6, "refill_rate": 2}]`: {
			{5, 0, hour}, {6, 0, mustParseRate(t, "2/s")},
		},
		`"algorithm": "leaky_bucket", "mode": "meter", "leak_rate": "1/h", "capacity": 5, "overrides": [{"match": {}, "leak_rate": 2}]`: {
			{5, 0, hour}, {5, 0, mustParseRate(t, "2/s")},
		},
		`"overrides": [{"limit": 5, "match": {}}], ` + windows + `, "window": "1h"`: {
			{9, time.Hour, algorithms.Rate{}}, {5, time.Hour, algorithms.Rate{}},
		},
	} {
		l := mustParse(t, `{"global": {"cluster": "c", "protocol": "gubernator"}, "limits": {"x": {`+limit+`, `+fleetWide+`}}}`).Limits[0]
		got := []*GlobalCount{l.Counts}
		for _, o := range l.Overrides {
			got = append(got, o.Counts)
			if (o.Limiter == nil) != (o.Counts == nil) {
				t.Errorf("%s: override %+v", limit, o)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %s, want %s", limit, show(got), show(want))
		}
	}
}

func show(counts []*GlobalCount) string {
	var all []string
	for _, c := range counts {
		all = append(all, fmt.Sprintf("%+v", c))
	}
	return strings.Join(all, ", ")
}

func TestAFleetWideLimitNeedsAService(t *testing.T) {
	const line = `: there is no service to count it: want "global" at the top of the plugin's config, or "process"`
	limit := `{` + fleetWide + `, "algorithm": "gcra", "rate": 1}`
	wantMistakes(t, `{"limits": {"a": `+limit+`, "b": `+bucket+`, "c": `+limit+`}}`, `limits.a.scope: "global"`+line, `limits.c.scope: "global"`+line)
	// A service that is named with a mistake is not missing besides.
	wantMistakes(t, `{"limits": {"a": `+limit+`}, "globl": {}}`, `globl: no such field; did you mean "global"?`)
	wantMistakes(t, `{"limits": {"a": `+limit+`}, "Global": {}}`, `Global: no such field; did you mean "global"?`)
	mustParse(t, `{"limits": {"a": `+bucket+`}, `+service+`}}`) // nobody has to use it
}

func TestWhatAFleetWideLimitCannotHaveIsSaidAllAtOnce(t *testing.T) {
	const status = `limits.x.count_status: can't be had with "scope": "global", since services take nothing back: want "scope": "process", or leave it out`
	for _, global := range []string{service + `}`, strings.Replace(service, "rls", "gubernator", 1) + `}`} {
		wantMistakes(t, `{`+global+`, "limits": {"x": {`+fleetWide+`, `+windows+`, "window": "1m", "count_status": ["401"]}}}`, status)
		wantMistakes(t, `{`+global+`, "limits": {"x": {`+fleetWide+`, `+windows+`, "count_status": ["401"], "utc_offset": "-03:30", "window": "1m"}}}`,
			status, `limits.x.utc_offset: "-03:30": a service's windows are those of UTC: want "scope": "process", or leave it out`)
	}
	wantMistakes(t, `{`+service+`}, "limits": {"x": {"scope": "global", `+windows+`, "window": "1w", "count_status": ["401"]}}}`,
		`limits.x.key: missing: want an array of key parts such as ["ip"]`,
		`limits.x.window: "1w": "rls" can't count it: want "1s", "1m", "1h" or "1d", or "scope": "process"`, status)
	// Where the algorithm, the mode or the window is not known, nothing is said of
	// what they do not go with.
	for limit, want := range map[string]string{
		`"algorithm": "nope"`: `limits.x.algorithm: "nope": want "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "gcra" or "concurrency"`,
		`"algorithm": "leaky_bucket", "capacity": 1, "leak_rate": 1, "mode": "metre"`: `limits.x.mode: "metre": want "queue" or "meter"`,
		windows + `, "window": "7s"`: `limits.x.window: "7s": want a duration that divides a day, such as 10s, 1m or 1h, or 1d, 1w, 1mo, 1y`,
		windows:                      `limits.x.window: missing: want a window such as "1m", "1d" or "1mo"`,
		windows + `, "window": "1m", "utc_offset": "CET"`: `limits.x.utc_offset: "CET": want an offset from -14:00 to +14:00, such as +02:00`,
		`"algorithm": "gcra", "rate": 0`:                  `limits.x.rate: 0: want a rate from 1/d to 1000000000/s`,
	} {
		wantMistakes(t, `{"global": {"cluster": "c", "protocol": "gubernator"}, "limits": {"x": {`+fleetWide+`, `+limit+`}}}`, want)
	}
	for scope, want := range map[string]string{`"fleet"`: `"fleet"`, `true`: `the boolean true`, `null`: `null`, `"Global"`: `"Global"`} {
		wantMistakes(t, `{`+service+`}, "limits": {"x": {"key": [], `+windows+`, "window": "1m", "scope": `+scope+`}}}`, `limits.x.scope: `+want+`: want "process" or "global"`)
	}
	wantMistakes(t, `{`+service+`}, "limits": {"x": {`+fleetWide+`, `+windows+`, "window": "1m", "overrides": [{"match": {}, "limit": 5, "scope": "process"}]}}}`,
		`limits.x.overrides[0].scope: can't be overridden: want "limit" or "unlimited"`)
}

// What is charged when the response is known, costs, shadow and the rest are had
// with both scopes.
func TestAFleetWideLimitHasEverythingElse(t *testing.T) {
	c := mustParse(t, `{`+service+`}, "limits": {"x": {`+windows+`, "window": "1m", "scope": "global", "key": ["ip"], "missing": "deny", "shadow": true, "enforce_percent": 5,
		"charge": {"response_header": "x", "max": 5}}}, "always": ["x"], "rules": [{"limits": ["x"], "cost": {"header": "x-cost", "max": 100}}, {"limits": ["x"], "cost": 0}]}`)
	l := c.Limits[0]
	if !l.Global || l.Charge == nil || !l.Shadow || l.EnforcePercent != 5 || l.Missing != MissingDeny || len(c.Rules) != 2 || len(c.Always) != 1 {
		t.Errorf("got %+v", c)
	}
}

// A bucket of the process and what the service has to say are not one.
func TestAChangeOfScopeStartsAfresh(t *testing.T) {
	for limit, want := range map[string]string{
		windows + `, "window": "60s"`:                                                 "fixed_window/1m/+00:00",
		`"algorithm": "gcra", "rate": 1`:                                              "gcra",
		`"algorithm": "token_bucket", "capacity": 1, "refill_rate": 1`:                "token_bucket",
		`"algorithm": "leaky_bucket", "capacity": 1, "leak_rate": 1, "mode": "meter"`: "leaky_bucket/meter",
	} {
		protocol := "gubernator"
		shape := func(scope string) string {
			return mustParse(t, `{"global": {"cluster": "c", "protocol": "`+protocol+`"}, "limits": {"x": {"key": [], `+limit+`, "scope": "`+scope+`"}}}`).Limits[0].Shape
		}
		if process, global := shape("process"), shape("global"); process != want || global != want+"/global" {
			t.Errorf("%s: the shapes are %s and %s", limit, process, global)
		}
	}
}

func TestARateThatGubernatorCannotBeToldIsRefused(t *testing.T) {
	const line = `: "gubernator" can't be told this rate exactly: want one with fewer digits`
	const global = `"global": {"cluster": "c", "protocol": "gubernator"}`
	const strange = `"9999999999973/9999999999999ns"` // has no whole number below 2^63 in any whole milliseconds
	wantMistakes(t, `{`+global+`, "limits": {"x": {`+fleetWide+`, "algorithm": "gcra", "rate": `+strange+`}}}`, "limits.x"+line)
	wantMistakes(t, `{`+global+`, "limits": {"x": {`+fleetWide+`, "algorithm": "gcra", "rate": 1, "overrides": [{"match": {}, "burst": 5}, {"match": {}, "rate": `+strange+`}]}}}`, "limits.x.overrides[1]"+line)
	mustParse(t, `{`+global+`, "limits": {"x": {"key": [], "algorithm": "gcra", "rate": `+strange+`}}}`)
	for _, rate := range []string{`1`, `0.1`, `1e9`, `"1/d"`, `"10000/d"`, `"7/3h"`, `"0.123456789/s"`, `"999999999.9999/s"`, `"1/1ns"`, `"22/7ms"`, `"5/1m30s"`} {
		for _, burst := range []string{`1`, `1e9`} {
			mustParse(t, `{`+global+`, "limits": {"x": {`+fleetWide+`, "algorithm": "gcra", "rate": `+rate+`, "burst": `+burst+`}}}`)
		}
	}
}

func TestARateIsToldInWholeMillisecondsOrNotAtAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Fractions are long, and many of them too long, near the largest number.
		less := func(from int64) *rapid.Generator[int64] {
			return rapid.Map(rapid.Int64Range(0, from-1), func(by int64) int64 { return from - by })
		}
		per := rapid.OneOf(less(math.MaxInt64), less(1_000_000)).Draw(t, "per")
		units := rapid.OneOf(rapid.Int64Range(1+per/(1<<46), per), less(per)).Draw(t, "units")
		capacity := rapid.Int64Range(1, algorithms.MaxUnits).Draw(t, "capacity")
		rate, err := algorithms.ParseRate(fmt.Sprintf("%d/%dns", units, per))
		if err != nil {
			return
		}
		n, in := fraction(rate)
		exact := big.NewRat(units, per)
		if !slices.Equal([]string{exact.Num().String(), exact.Denom().String()}, []string{fmt.Sprint(n), fmt.Sprint(in)}) {
			t.Fatalf("%s is %d in %d ns", rate.String(), n, in)
		}
		perMs := exact.Mul(exact, big.NewRat(1_000_000, 1))
		times := new(big.Int).Sub(big.NewInt(capacity), big.NewInt(1))
		times.Add(times.Div(times, perMs.Num()), big.NewInt(1))
		ms := times.Mul(times, perMs.Denom())
		want := perMs.Num().IsInt64() && ms.Cmp(big.NewInt(math.MaxInt64/2)) <= 0
		if got := inMilliseconds(rate, capacity); got != want {
			t.Errorf("%s with a capacity of %d: got %v, want %v", rate.String(), capacity, got, want)
		}
	})
}

func TestARoutesLimitsAreCountedByThePluginsService(t *testing.T) {
	const route = `{"limits": {"x": {` + fleetWide + `, ` + windows + `, "window": "1s"}}, "rules": [{"limits": ["x"]}]}`
	plugin := mustParse(t, `{"limits": {}, `+service+`}}`)
	c := mustParseRoute(t, route, plugin)
	if l := c.Limits[0]; !l.Global || c.Global != plugin.Global || *l.Counts != (GlobalCount{Units: 9, Window: time.Second}) {
		t.Errorf("got %+v", c)
	}
	for config, want := range map[string]string{
		`{"limits": {}, "global": {"cluster": "c", "protocol": "gubernator"}}`: `limits.x.window: "1s": "gubernator" can't count it: want "1m", "1h" or "1d", "protocol": "rls", or "scope": "process"`,
		`{"limits": {}}`: `limits.x.scope: "global": there is no service to count it: want "global" at the top of the plugin's config, or "process"`,
	} {
		c, err := ParseRoute([]byte(route), mustParse(t, config))
		if c != nil || err == nil || err.Error() != want {
			t.Errorf("%s: got %+v and\n%v", config, c, err)
		}
	}
	_, err := ParseRoute([]byte(`{`+service+`}, `+route[1:]), mustParse(t, `{"limits": {}}`))
	if want := "global: belongs to the plugin's config, which is the same for all routes: leave it out here"; err == nil || err.Error() != want {
		t.Error(err)
	}
}
