package config

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
)

// queue is a limit that makes requests wait.
const queue = `{"algorithm": "leaky_bucket", "capacity": 10, "leak_rate": "2/s", "key": ["ip"]}`

// fill sends requests of one unit at one moment until one is refused, and returns
// how many were admitted and how long the last of them waits.
func fill(limiter algorithms.Limiter) (admitted int, wait time.Duration) {
	var s algorithms.State
	for {
		var d algorithms.Decision
		if s, d = algorithms.Decide(limiter, s, algorithms.Time{Mono: 1, Wall: 1}, 1); !d.Allowed {
			return admitted, wait
		}
		admitted++
		wait = d.Wait
	}
}

func TestTheLongestWaitIsWhatTheLimitSaysElseWhatItsCapacityTakes(t *testing.T) {
	for fields, want := range map[string]struct {
		admitted int
		wait     time.Duration
	}{
		`"capacity": 10, "leak_rate": "2/s"`:                                                                                 {11, 5 * time.Second},
		`"capacity": 10, "leak_rate": "2/s", "mode": "queue"`:                                                                {11, 5 * time.Second},
		`"capacity": 1000, "leak_rate": "1/s"`:                                                                               {241, 4 * time.Minute},
		`"capacity": 240, "leak_rate": "1/s"`:                                                                                {241, 4 * time.Minute},
		`"capacity": 3, "leak_rate": "3/s"`:                                                                                  {4, time.Second}, // a wait that is no whole number of ns is rounded up
		`"capacity": 10, "leak_rate": "2/s", "max_wait": "3s"`:                                                               {7, 3 * time.Second},
		`"capacity": 10, "leak_rate": "2/s", "max_wait": "4m"`:                                                               {11, 5 * time.Second},
		`"capacity": 10, "leak_rate": "2/s", "max_wait": "0s"`:                                                               {1, 0},
		`"capacity": 10, "leak_rate": "2/s", "max_wait": "499ms"`:                                                            {1, 0},
		`"capacity": 10, "leak_rate": "2/s", "overrides": [{"match": {}, "capacity": 100}]`:                                  {101, 50 * time.Second},
		`"capacity": 10, "leak_rate": "2/s", "overrides": [{"match": {}, "leak_rate": "1/s"}]`:                               {11, 10 * time.Second},
		`"capacity": 10, "leak_rate": "2/s", "overrides": [{"match": {}, "leak_rate": "1/m"}]`:                               {5, 4 * time.Minute},
		`"capacity": 10, "leak_rate": "2/s", "overrides": [{"match": {}, "max_wait": "1s"}]`:                                 {3, time.Second},
		`"capacity": 10, "leak_rate": "2/s", "overrides": [{"match": {}, "capacity": 100, "max_wait": "10s"}]`:               {21, 10 * time.Second},
		`"capacity": 10, "leak_rate": "2/s", "max_wait": "3s", "overrides": [{"match": {}, "capacity": 100}]`:                {7, 3 * time.Second},
		`"capacity": 10, "leak_rate": "2/s", "max_wait": "3s", "overrides": [{"match": {}, "max_wait": "4s"}]`:               {9, 4 * time.Second},
		`"overrides": [{"max_wait": "4s", "match": {}}], "max_wait": "0s", "leak_rate": "2/s", "capacity": 10`:               {9, 4 * time.Second},
		`"capacity": 10, "leak_rate": "2/s", "overrides": [{"match": {}, "capacity": 1000, "leak_rate": "1000/d"}]`:          {3, 172800 * time.Millisecond},
		`"capacity": 10, "leak_rate": "2/s", "overrides": [{"match": {}, "max_wait": "0"}, {"match": {}, "max_wait": "2s"}]`: {1, 0},
	} {
		l := mustParse(t, `{"limits": {"x": {"algorithm": "leaky_bucket", "key": [], `+fields+`}}}`).Limits[0]
		limiter := l.Limiter
		if len(l.Overrides) > 0 {
			limiter = l.Overrides[0].Limiter
		}
		if admitted, wait := fill(limiter); admitted != want.admitted || wait != want.wait || !l.Queue {
			t.Errorf("%s: admits %d at once, and the last waits %v; want %d and %v", fields, admitted, wait, want.admitted, want.wait)
		}
	}
}

// The places of a request that leaves an idle queue at once do not wait, but those
// behind wait for them: there the default decides and not the capacity.
func TestBehindALargeRequestTheDefaultWaitDecides(t *testing.T) {
	limiter := mustParse(t, `{"limits": {"x": `+queue+`}}`).Limits[0].Limiter
	now := algorithms.Time{Mono: 1, Wall: 1}
	s, _ := algorithms.Decide(limiter, algorithms.State{}, now, 10)
	s, d := algorithms.Decide(limiter, s, now, 1)
	if !d.Allowed || d.Wait != 5*time.Second {
		t.Errorf("the first behind it: %+v", d)
	}
	if _, d = algorithms.Decide(limiter, s, now, 1); d.Allowed {
		t.Errorf("the second waits %v", d.Wait)
	}
}

func TestOnlyALeakyBucketInItsOwnModeIsAQueue(t *testing.T) {
	for fields, want := range map[string][2]bool{
		`"algorithm": "leaky_bucket", "capacity": 1, "leak_rate": 1`:                  {true, false},
		`"algorithm": "leaky_bucket", "capacity": 1, "leak_rate": 1, "shadow": true`:  {true, false},
		`"algorithm": "leaky_bucket", "capacity": 1, "leak_rate": 1, "mode": "meter"`: {false, false},
		`"algorithm": "concurrency", "limit": 1`:                                      {false, true},
		`"algorithm": "gcra", "rate": 1`:                                              {false, false},
	} {
		l := mustParse(t, `{"limits": {"x": {"key": [], `+fields+`}}}`).Limits[0]
		if got := [2]bool{l.Queue, l.Concurrency}; got != want {
			t.Errorf("%s: queue and concurrency are %v, want %v", fields, got, want)
		}
	}
}

func TestAMistakeInAQueueSaysWhereAndWhatInstead(t *testing.T) {
	const tooLong = "want a duration from 0s to 4m: Envoy's stream_idle_timeout, 5m by default, ends a longer wait"
	const duration = "want a duration such as 500ms, 1m30s or 1d"
	const nobody = `belongs to the mode "queue", and in "meter" nobody waits: leave it out`
	const cant = `can't be had with "leaky_bucket" in the mode "queue", where those behind have been told when to leave: want "mode": "meter", or leave it out`
	for fields, want := range map[string]string{
		`"max_wait": "5m"`:                  `limits.x.max_wait: "5m": ` + tooLong,
		`"max_wait": "4m0.000000001s"`:      `limits.x.max_wait: "4m0.000000001s": ` + tooLong,
		`"max_wait": "1d"`:                  `limits.x.max_wait: "1d": ` + tooLong,
		`"max_wait": "-1s"`:                 `limits.x.max_wait: "-1s": ` + duration,
		`"max_wait": "soon"`:                `limits.x.max_wait: "soon": ` + duration,
		`"max_wait": ""`:                    `limits.x.max_wait: "": ` + duration,
		`"max_wait": 30`:                    `limits.x.max_wait: the number 30: want a duration such as "30s"`,
		`"max_wait": null`:                  `limits.x.max_wait: null: want a duration such as "30s"`,
		`"max_wate": "1s"`:                  `limits.x.max_wate: no such field; did you mean "max_wait"?`,
		`"wait": "1s"`:                      `limits.x.wait: no such field: want "algorithm", "key", "missing", "shadow", "enforce_percent", "overrides", "scope", "charge", "count_status", "capacity", "leak_rate", "max_wait" or "mode"`,
		`"mode": "meter", "max_wait": "1s"`: `limits.x.max_wait: ` + nobody,
		`"mode": "meter", "overrides": [{"match": {}, "max_wait": "1s"}]`:                `limits.x.overrides[0].max_wait: ` + nobody,
		`"mode": "meter", "overrides": [{"match": {}, "capacity": 9, "max_wait": "1s"}]`: `limits.x.overrides[0].max_wait: ` + nobody,
		`"overrides": [{"match": {}, "max_wait": "5m"}]`:                                 `limits.x.overrides[0].max_wait: "5m": ` + tooLong,
		`"overrides": [{"match": {}, "mode": "meter", "max_wait": "1m"}]`:                `limits.x.overrides[0].mode: can't be overridden: want "capacity", "leak_rate", "max_wait" or "unlimited"`,
		`"overrides": [{"match": {}}]`:                                                   `limits.x.overrides[0]: changes nothing: want "capacity", "leak_rate", "max_wait" or "unlimited"`,
		`"overrides": [{"match": {}, "max_wait": "1m", "unlimited": true}]`:              `limits.x.overrides[0]: replaces numbers and is "unlimited": want one of them`,
		`"charge": {"response_header": "x", "max": 5}`:                                   `limits.x.charge: ` + cant,
		`"mode": "queue", "count_status": ["401"]`:                                       `limits.x.count_status: ` + cant,
		// Where the mode is not known, nothing is said of what does not go with it.
		`"mode": "metre", "charge": {"response_header": "x", "max": 5}, "max_wait": "1s"`: `limits.x.mode: "metre": want "queue" or "meter"`,
		`"moode": "meter", "charge": {"response_header": "x", "max": 5}`:                  `limits.x.moode: no such field; did you mean "mode"?`,
	} {
		wantMistakes(t, `{"limits": {"x": {"algorithm": "leaky_bucket", "capacity": 1, "leak_rate": 1, "key": [], `+fields+`}}}`, want)
	}
	wantMistakes(t, `{"limits": {"x": {"algorithm": "leaky_bucket", "capacity": 0, "leak_rate": 1, "key": [], "mode": "queue", "charge": {"max": 0, "metadata": "f/a"}}}}`,
		`limits.x.capacity: 0: want a whole number from 1 to 1000000000`,
		`limits.x.charge: `+cant,
		`limits.x.charge.max: 0: want a whole number from 1 to 1000000000`)
	wantMistakes(t, `{"limits": {"x": `+strings.Replace(bucket, "{", `{"max_wait": "1s", "mode": "queue", `, 1)+`}}`,
		`limits.x.max_wait: belongs to "leaky_bucket": "token_bucket" takes "capacity" and "refill_rate"`,
		`limits.x.mode: belongs to "leaky_bucket": "token_bucket" takes "capacity" and "refill_rate"`)
}

// queues are three limits that make requests wait, one of them in shadow, and two
// that do not.
const queues = `"limits": {"a": ` + queue + `, "b": ` + queue + `, "s": {"shadow": true, ` + `"algorithm": "leaky_bucket", "capacity": 10, "leak_rate": "2/s", "key": []}, ` +
	`"m": {"mode": "meter", "algorithm": "leaky_bucket", "capacity": 10, "leak_rate": "2/s", "key": []}, "t": ` + bucket + `}`

func TestAtMostOneQueueMayApplyToARequest(t *testing.T) {
	second := func(at, name, besides string) string {
		return at + `: "` + name + `": a second queue besides ` + besides + `, and a request waits in one at most: keep one, or want "mode": "meter" in the other`
	}
	for document, want := range map[string][]string{
		`"rules": [{"limits": ["a", "b"]}]`:                                     {second("rules[0].limits[1]", "b", `"a"`)},
		`"rules": [{"limits": ["t", "b", "m", "a", "s"]}]`:                      {second("rules[0].limits[3]", "a", `"b"`), second("rules[0].limits[4]", "s", `"b"`)},
		`"rules": [{"limits": ["s", {"cost": 0, "limit": "a"}]}]`:               {second("rules[0].limits[1].limit", "a", `"s"`)},
		`"always": ["a", "t", "b"]`:                                             {second("always[2]", "b", `"a"`)},
		`"always": ["s", "a"]`:                                                  {second("always[1]", "a", `"s"`)},
		`"always": ["a"], "rules": [{"limits": ["m"]}, {"limits": ["t", "b"]}]`: {second("rules[1].limits[1]", "b", `"a" in "always"`)},
		`"rules": [{"limits": ["b"]}, {"limits": ["s", "a"]}], "always": ["a"]`: {second("rules[0].limits[0]", "b", `"a" in "always"`), second("rules[1].limits[0]", "s", `"a" in "always"`)},
		`"always": ["a", "b"], "rules": [{"limits": ["b"]}, {"limits": ["s"]}]`: {second("always[1]", "b", `"a"`), second("rules[1].limits[0]", "s", `"a" in "always"`)},
		`"shadow": true, "rules": [{"limits": ["a", "b"]}]`:                     {second("rules[0].limits[1]", "b", `"a"`)},
	} {
		wantMistakes(t, `{`+queues+`, `+document+`}`, want...)
	}
}

func TestQueuesOfDifferentRulesAndOneNamedTwiceAreRight(t *testing.T) {
	for _, document := range []string{
		`"rules": [{"limits": ["a", "t", "m"]}, {"limits": ["b"]}, {"limits": ["s"]}, {"limits": []}]`,
		`"always": ["a"], "rules": [{"limits": ["a"]}, {"limits": ["t", {"limit": "a", "cost": 5}]}, {"limits": ["m"]}]`,
		`"always": ["m", "s", "t"], "rules": [{"limits": ["m"]}]`,
	} {
		mustParse(t, `{`+queues+`, `+document+`}`)
	}
}

func TestALimitWithMistakesIsNoSecondQueue(t *testing.T) {
	wantMistakes(t, `{"limits": {"a": `+queue+`, "b": {"mode": "metre", `+queue[1:]+`}, "rules": [{"limits": ["a", "b"]}]}`,
		`limits.b.mode: "metre": want "queue" or "meter"`)
}

func TestARoutesRuleHasNoQueueBesideThePlugins(t *testing.T) {
	const routes = `{"limits": {"a": ` + queue + `, "t": ` + bucket + `}, "rules": [{"limits": ["t"]}, {"limits": ["t", "a"]}]}`
	for plugin, want := range map[string]string{
		`"always": ["t", "a"]`:         `rules[1].limits[1]: "a": a second queue besides "a" in the plugin's "always", and a request waits in one at most: keep one, or want "mode": "meter" in the other`,
		`"always": ["s"]`:              `rules[1].limits[1]: "a": a second queue besides "s" in the plugin's "always", and a request waits in one at most: keep one, or want "mode": "meter" in the other`,
		`"always": ["t", "m"]`:         ``,
		`"rules": [{"limits": ["a"]}]`: ``,
	} {
		c, err := ParseRoute([]byte(routes), mustParse(t, `{`+queues+`, `+plugin+`}`))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", plugin, err)
		case want != "" && (c != nil || err == nil || err.Error() != want):
			t.Errorf("%s: got %+v and\n%v", plugin, c, err)
		}
	}
	mustParseRoute(t, `{"limits": {"a": `+queue+`}}`, mustParse(t, `{`+queues+`, "always": ["a"]}`)) // no rule names it
	_, err := ParseRoute([]byte(`{`+queues+`, "rules": [{"limits": ["a", "b"]}]}`), mustParse(t, `{"limits": {}}`))
	if err == nil || !strings.HasPrefix(err.Error(), `rules[0].limits[1]: "b": a second queue besides "a", and `) {
		t.Error(err)
	}
}
