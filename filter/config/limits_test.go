package config

import (
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/filter/keys"
)

func TestAMistakeInALimitSaysWhereAndWhatInstead(t *testing.T) {
	const tokens = `"algorithm": "token_bucket", "key": [], `
	const whole = "want a whole number from 1 to 1000000000"
	const rate = "want N/unit with unit s, m, h, d or a duration such as 10s"
	parts := "want " + keys.Spellings()
	for fields, want := range map[string]string{
		// Numbers.
		tokens + `"refill_rate": "1/s", "capacity": 0`:            `limits.x.capacity: 0: ` + whole,
		tokens + `"refill_rate": "1/s", "capacity": -0`:           `limits.x.capacity: -0: ` + whole,
		tokens + `"refill_rate": "1/s", "capacity": -5`:           `limits.x.capacity: -5: ` + whole,
		tokens + `"refill_rate": "1/s", "capacity": 5.5`:          `limits.x.capacity: 5.5: ` + whole,
		tokens + `"refill_rate": "1/s", "capacity": 1000000001`:   `limits.x.capacity: 1000000001: ` + whole,
		tokens + `"refill_rate": "1/s", "capacity": 1.000001e9`:   `limits.x.capacity: 1.000001e9: ` + whole,
		tokens + `"refill_rate": "1/s", "capacity": 1e999999999`:  `limits.x.capacity: 1e999999999: ` + whole,
		tokens + `"refill_rate": "1/s", "capacity": -1e999`:       `limits.x.capacity: -1e999: ` + whole,
		tokens + `"refill_rate": "1/s", "capacity": 1e-999`:       `limits.x.capacity: 1e-999: ` + whole,
		tokens + `"refill_rate": "1/s", "capacity": "5"`:          `limits.x.capacity: the string "5": ` + whole,
		tokens + `"refill_rate": "1/s", "capacity": true`:         `limits.x.capacity: the boolean true: ` + whole,
		tokens + `"refill_rate": "1/s", "capacity": null`:         `limits.x.capacity: null: ` + whole,
		tokens + `"refill_rate": "1/s", "capacity": [5]`:          `limits.x.capacity: an array: ` + whole,
		tokens + `"refill_rate": "1/s", "capacity": {}`:           `limits.x.capacity: an object: ` + whole,
		`"algorithm": "gcra", "key": [], "rate": 1, "burst": 0`:   `limits.x.burst: 0: ` + whole,
		`"algorithm": "gcra", "key": [], "rate": 1, "burst": "a"`: `limits.x.burst: the string "a": ` + whole,
		// Rates.
		tokens + `"capacity": 1, "refill_rate": "5/fortnight"`: `limits.x.refill_rate: "5/fortnight": ` + rate,
		tokens + `"capacity": 1, "refill_rate": ""`:            `limits.x.refill_rate: "": ` + rate,
		tokens + `"capacity": 1, "refill_rate": -1`:            `limits.x.refill_rate: -1: ` + rate,
		tokens + `"capacity": 1, "refill_rate": "0/s"`:         `limits.x.refill_rate: "0/s": want a rate from 1/d to 1000000000/s`,
		tokens + `"capacity": 1, "refill_rate": 0`:             `limits.x.refill_rate: 0: want a rate from 1/d to 1000000000/s`,
		tokens + `"capacity": 1, "refill_rate": 1e10`:          `limits.x.refill_rate: 1e10: want a rate from 1/d to 1000000000/s`,
		tokens + `"capacity": 1, "refill_rate": 1e300`:         `limits.x.refill_rate: 1e300: want a rate from 1/d to 1000000000/s`,
		tokens + `"capacity": 1, "refill_rate": 1e999`:         `limits.x.refill_rate: 1e999: ` + rate,
		tokens + `"capacity": 1, "refill_rate": false`:         `limits.x.refill_rate: the boolean false: want a rate such as "5/s", "100/m" or "1/10s"`,
		// Windows.
		`"algorithm": "fixed_window", "key": [], "limit": 1, "window": "7s"`:                           `limits.x.window: "7s": want a duration that divides a day, such as 10s, 1m or 1h, or 1d, 1w, 1mo, 1y`,
		`"algorithm": "fixed_window", "key": [], "limit": 1, "window": 60`:                             `limits.x.window: the number 60: want a window such as "1m", "1d" or "1mo"`,
		`"algorithm": "sliding_window", "key": [], "limit": 1, "window": "1w"`:                         `limits.x.window: "1w": want a duration that divides a day, such as 10s, 1m or 1h, or 1d`,
		`"algorithm": "sliding_window", "key": [], "limit": 1, "window": "soon"`:                       `limits.x.window: "soon": want a duration that divides a day, such as 10s, 1m or 1h, or 1d`,
		`"algorithm": "fixed_window", "key": [], "limit": 1, "window": "1d", "utc_offset": "CET"`:      `limits.x.utc_offset: "CET": want an offset from -14:00 to +14:00, such as +02:00`,
		`"algorithm": "fixed_window", "key": [], "limit": 1, "window": "1d", "utc_offset": 2`:          `limits.x.utc_offset: the number 2: want an offset such as "+02:00"`,
		`"algorithm": "sliding_window", "key": [], "limit": 1, "window": "1d", "utc_offset": "+15:00"`: `limits.x.utc_offset: "+15:00": want an offset from -14:00 to +14:00, such as +02:00`,
		`"algorithm": "leaky_bucket", "key": [], "mode": "metre", "capacity": 1, "leak_rate": 1`:       `limits.x.mode: "metre": want "queue" or "meter"`,
		`"algorithm": "leaky_bucket", "key": [], "mode": null, "capacity": 1, "leak_rate": 1`:          `limits.x.mode: null: want "queue" or "meter"`,
		`"algorithm": "leaky_bucket", "key": [], "capacity": 1, "leak_rate": "1/y", "mode": "meter"`:   `limits.x.leak_rate: "1/y": ` + rate,
		`"algorithm": "gcra", "key": [], "rate": "many"`:                                               `limits.x.rate: "many": ` + rate,
		`"algorithm": "gcra", "key": []`:                                                               `limits.x.rate: missing: want a rate such as "5/s", "100/m" or "1/10s"`,
		`"algorithm": "fixed_window", "key": [], "window": "1d"`:                                       `limits.x.limit: missing: ` + whole,
		`"algorithm": "sliding_window", "key": [], "limit": 1`:                                         `limits.x.window: missing: want a window such as "1m" or "1d"`,
		`"algorithm": "gcra", "rate": 1`:                                                               `limits.x.key: missing: want an array of key parts such as ["ip"]`,
		`"rate": 1, "key": []`:                                                                         `limits.x.algorithm: missing: want "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "gcra" or "concurrency"`,
		`"algorithm": "token-bucket", "capacity": 1, "key": []`:                                        `limits.x.algorithm: "token-bucket": want "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "gcra" or "concurrency"`,
		`"algorithm": 1, "capacity": 1, "key": []`:                                                     `limits.x.algorithm: the number 1: want "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "gcra" or "concurrency"`,
		`"algorithm": "nope", "limit": 1, "window": "1m", "burst": 1, "mode": "meter", "key": []`:      `limits.x.algorithm: "nope": want "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "gcra" or "concurrency"`,
		`"algorithm": "concurrency", "key": []`:                                                        `limits.x.limit: missing: ` + whole,
		`"algorithm": "concurrency", "key": [], "limit": 0`:                                            `limits.x.limit: 0: ` + whole,
		`"algorithm": "concurrency", "key": [], "limit": 1000000001`:                                   `limits.x.limit: 1000000001: ` + whole,
		`"algorithm": "concurrency", "key": [], "limit": 1, "window": "1s"`:                            `limits.x.window: belongs to "fixed_window" and "sliding_window": "concurrency" takes "limit"`,
		`"algorithm": "concurrency", "key": [], "limit": 1, "scope": "process"`:                        `limits.x.scope: can't be had with "concurrency", which counts within the process only: leave it out`,
		`"algorithm": "concurrency", "key": [], "limit": 1, "charge": 5`:                               `limits.x.charge: can't be had with "concurrency", which counts requests and not what they cost: want another algorithm, or leave it out`,
		`"algorithm": "concurrency", "key": [], "limit": 1, "count_status": ["5xx"]`:                   `limits.x.count_status: can't be had with "concurrency", which gives back every request that has ended: want another algorithm, or leave it out`,
		`"algorithm": "concurency", "key": [], "limit": 1`:                                             `limits.x.algorithm: "concurency": want "token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "gcra" or "concurrency"`,
		`"algorithm": "token_bucket", "capacity": 1, "refill_rate": 1, "key": [], "limit": 1`:          `limits.x.limit: belongs to "fixed_window", "sliding_window" and "concurrency": "token_bucket" takes "capacity" and "refill_rate"`,
		`"algorithm": "gcra", "rate": 1, "key": [], "scope": "global"`:                                 `limits.x.scope: "global": there is no service to count it: want "global" at the top of the plugin's config, or "process"`,
		`"algorithm": "gcra", "rate": 1, "key": [], "scope": "fleet"`:                                  `limits.x.scope: "fleet": want "process" or "global"`,
		`"algorithm": "gcra", "rate": 1, "key": [], "scope": true`:                                     `limits.x.scope: the boolean true: want "process" or "global"`,
		`"algorithm": "token_bucket", "capacity": 1, "refill_rate": 1, "key": [], "rate": 1`:           `limits.x.rate: belongs to "gcra": "token_bucket" takes "capacity" and "refill_rate"`,
		`"algorithm": "token_bucket", "capacity": 1, "refill_rate": 1, "key": [], "window": 1`:         `limits.x.window: belongs to "fixed_window" and "sliding_window": "token_bucket" takes "capacity" and "refill_rate"`,
		`"algorithm": "fixed_window", "limit": 1, "window": "1d", "key": [], "capacity": "x"`:          `limits.x.capacity: belongs to "token_bucket" and "leaky_bucket": "fixed_window" takes "limit", "window" and "utc_offset"`,
		`"algorithm": "gcra", "rate": 1, "key": [], "mode": "meter"`:                                   `limits.x.mode: belongs to "leaky_bucket": "gcra" takes "rate" and "burst"`,
		`"algorithm": "gcra", "rate": 1, "key": [], "brust": 5`:                                        `limits.x.brust: no such field; did you mean "burst"?`,
		`"algorithm": "gcra", "rate": 1, "key": [], "enforcePercent": 5`:                               `limits.x.enforcePercent: no such field; did you mean "enforce_percent"?`,
		`"algorithm": "gcra", "rate": 1, "key": [], "per user": 5`:                                     `limits.x["per user"]: no such field: want "algorithm", "key", "missing", "shadow", "enforce_percent", "overrides", "scope", "charge", "count_status", "rate" or "burst"`,
		`"algorithm": "gcra", "rate": 1, "key": [], "": 5`:                                             `limits.x[""]: no such field: want "algorithm", "key", "missing", "shadow", "enforce_percent", "overrides", "scope", "charge", "count_status", "rate" or "burst"`,
		`"algorithm": "gcra", "rate": 1, "key": [], "missing": "Skip"`:                                 `limits.x.missing: "Skip": want "shared", "skip" or "deny"`,
		`"algorithm": "gcra", "rate": 1, "key": [], "missing": null`:                                   `limits.x.missing: null: want "shared", "skip" or "deny"`,
		`"algorithm": "gcra", "rate": 1, "key": "ip"`:                                                  `limits.x.key: the string "ip": want an array of key parts such as ["ip"]`,
		`"algorithm": "gcra", "rate": 1, "key": ["ip", 7]`:                                             `limits.x.key[1]: the number 7: want a key part such as "ip"`,
		`"algorithm": "gcra", "rate": 1, "key": ["heeder:x"]`:                                          `limits.x.key[0]: "heeder:x": "heeder" is no key part: ` + parts,
		`"algorithm": "gcra", "rate": 1, "key": ["header"]`:                                            `limits.x.key[0]: "header": "header" needs a name: want header:NAME`,
		`"algorithm": "gcra", "rate": 1, "key": [], "shadow": 1`:                                       `limits.x.shadow: the number 1: want true or false`,
		`"algorithm": "gcra", "rate": 1, "key": [], "shadow": "true"`:                                  `limits.x.shadow: the string "true": want true or false`,
		`"algorithm": "gcra", "rate": 1, "key": [], "enforce_percent": 101`:                            `limits.x.enforce_percent: 101: want a whole number from 0 to 100`,
		`"algorithm": "gcra", "rate": 1, "key": [], "enforce_percent": -1`:                             `limits.x.enforce_percent: -1: want a whole number from 0 to 100`,
		`"algorithm": "gcra", "rate": 1, "key": [], "enforce_percent": 0.5`:                            `limits.x.enforce_percent: 0.5: want a whole number from 0 to 100`,
		`"algorithm": "gcra", "rate": 1, "key": [], "overrides": {}`:                                   `limits.x.overrides: an object: want an array of overrides`,
		`"algorithm": "gcra", "rat": 1, "key": []`:                                                     `limits.x.rat: no such field; did you mean "rate"?`,
		`"algorithms": "gcra", "rate": 1, "key": []`:                                                   `limits.x.algorithms: no such field; did you mean "algorithm"?`,
		`"algorithm": "gcra", "rate": 1, "key": [], "algorithm": "gcra", "algorithm": 5`:               `limits.x.algorithm: stands twice in one object: keep one`,
		`"algorithm": "gcra", "rate": 1, "key": [], "m\u0069ssing": "deny", "missing": "deny"`:         `limits.x.missing: stands twice in one object: keep one`,
		`"algorithm": "gcra", "rate": "` + strings.Repeat("9\\n", 100) + `", "key": []`:                `limits.x.rate: "` + strings.Repeat("9\\n", 32) + `…": ` + rate,
		`"algorithm": "gcra", "rate": 1, "burst": ` + strings.Repeat("9", 100) + `, "key": []`:         `limits.x.burst: ` + strings.Repeat("9", 64) + `…: ` + whole,
		`"algorithm": "gcra", "rate": 1, "key": [], "a\u2028\u001b": 1`:                                `limits.x["a\u2028\x1b"]: no such field: want "algorithm", "key", "missing", "shadow", "enforce_percent", "overrides", "scope", "charge", "count_status", "rate" or "burst"`,
		`"algorithm": "gcra", "rate": 1, "key": [], "` + strings.Repeat("é", 99) + `": 1`:              `limits.x["` + strings.Repeat("é", 64) + `…"]: no such field: want "algorithm", "key", "missing", "shadow", "enforce_percent", "overrides", "scope", "charge", "count_status", "rate" or "burst"`,
		`"algorithm": "gcra", "rate": 1, "key": ["` + strings.Repeat("x", 100) + `:a"]`:                `limits.x.key[0]: "` + strings.Repeat("x", 64) + `…": "` + strings.Repeat("x", 64) + `…" is no key part: ` + parts,
	} {
		wantMistakes(t, `{"limits": {"x": {`+fields+`}}}`, want)
	}
}
