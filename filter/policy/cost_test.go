package policy

import "testing"

// priced is a limit of 100 at a cost that the header x-cost says.
func priced(further, rule string) string {
	return `{"limits": {"a": {"algorithm": "token_bucket", "capacity": 100, "refill_rate": "1/d", "key": []},
		"b": {"algorithm": "token_bucket", "capacity": 100, "refill_rate": "1/d", "key": []}}, ` + further + `"rules": [` + rule + `]}`
}

func cost(text string) request { return request{headers: map[string]string{"x-cost": text}} }

func TestACostIsReadFromAHeader(t *testing.T) {
	const rule = `{"limits": ["a"], "cost": {"header": "X-Cost", "default": 7, "max": 20}}`
	for text, want := range map[string]int64{
		"5": 5, "0": 0, "20": 20, "005": 5,
		"21": 20, "1000000001": 20, "99999999999999999999999999": 20,
		"": 7, "-1": 7, "+5": 7, "5.0": 7, "0x5": 7, "1e1": 7, " 5": 7, "5 ": 7, "five": 7, "٥": 7,
		"5,6": 7, "5,5": 7, "5,": 7, // sent twice
	} {
		o := start(t, priced("", rule)).ask(cost(text))
		if got := 100 - o.Reported.Decision.Remaining; o.Verdict != Admitted || got != want {
			t.Errorf("%q: cost %d, want %d", text, got, want)
		}
	}
}

func TestAHeadersCostIsOneByDefault(t *testing.T) {
	if left := start(t, priced("", `{"limits": ["a"], "cost": {"header": "x-cost", "max": 20}}`)).left(request{}); left["a"] != 99 {
		t.Errorf("%v left, want 99", left)
	}
}

func TestACostAboveTheLimitIsNeverAdmitted(t *testing.T) {
	o := start(t, priced("", `{"limits": ["a"], "cost": {"header": "x-cost", "max": 101}}`)).ask(cost("4711"))
	if o.Verdict != Refused || !o.Reported.Decision.Never {
		t.Errorf("got %v, want a refusal that no waiting helps", o.Verdict)
	}
}

func TestAnEntrysCostWinsOverItsRules(t *testing.T) {
	for rule, want := range map[string][2]int64{
		`{"limits": ["a", "b"], "cost": 3}`:                                                               {97, 97},
		`{"limits": ["a", {"limit": "b", "cost": 4}], "cost": 3}`:                                         {97, 96},
		`{"limits": ["a", {"limit": "b", "cost": {"header": "x-cost", "max": 9}}], "cost": 3}`:            {97, 95},
		`{"limits": ["a", {"limit": "b", "cost": 0}], "cost": {"header": "x-cost", "max": 9}}`:            {95, 100},
		`{"limits": [{"limit": "a"}, {"limit": "b", "cost": 2}], "cost": {"header": "x-cost", "max": 2}}`: {98, 98},
	} {
		if left := start(t, priced("", rule)).left(cost("5")); left["a"] != want[0] || left["b"] != want[1] {
			t.Errorf("%s: %v left, want %v", rule, left, want)
		}
	}
}

func TestOfAlwaysAndTheRuleTheLargerCostCounts(t *testing.T) {
	const header = `{"limits": ["a"], "cost": {"header": "x-cost", "default": 0, "max": 20}}`
	for _, c := range []struct {
		rule string
		request
		want int64
	}{
		{header, cost("5"), 95},
		{header, cost("0"), 99},
		{header, cost(""), 99},
		{`{"limits": ["a"], "cost": 0}`, request{}, 99},
		{`{"limits": ["a"], "cost": 2}`, request{}, 98},
		{`{"limits": ["b"], "cost": 2}`, request{}, 99},
		{`{"limits": []}`, request{}, 99},
	} {
		o := start(t, priced(`"always": ["a"], `, c.rule)).ask(c.request)
		if got := ruling(o, "a").Decision.Remaining; got != c.want {
			t.Errorf("%s with %q: %d left, want %d", c.rule, c.headers["x-cost"], got, c.want)
		}
		if len(o.Rulings) > 2 {
			t.Errorf("%s: %d limits were asked", c.rule, len(o.Rulings))
		}
	}
}
