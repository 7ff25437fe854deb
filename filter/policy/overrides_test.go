package policy

import (
	"fmt"
	"testing"
)

// overridden is a limit of 2 with these overrides, by the header x-user.
func overridden(overrides, further string) string {
	return `{"limits": {"a": {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/d", "key": ["header:x-user"]` + further + `,
		"overrides": [` + overrides + `]}}, "rules": [{"name": "login", "match": {"path": "/login"}, "limits": ["a"]}, {"limits": ["a"]}]}`
}

func by(user string) request { return request{headers: map[string]string{"x-user": user}} }

func TestAnOverrideIsForAKeyValueANetworkOrAVerifiedClaim(t *testing.T) {
	b := start(t, overridden(`
		{"match": {"value": {"header:x-user": ["partner-7", "partner-8"]}}, "capacity": 4},
		{"match": {"ip": "10.0.0.0/8"}, "capacity": 5},
		{"match": {"value": {"metadata:envoy.filters.http.jwt_authn/payload/plan": "gold"}}, "capacity": 6},
		{"match": {"value": {"rule": "login"}}, "capacity": 1},
		{"match": {"value": {"header:x-user": "root"}}, "unlimited": true}`, ""))
	inside, gold, login := by("bob"), by("carol"), by("dave")
	inside.address = "10.1.2.3"
	gold.values = map[string]string{"metadata:envoy.filters.http.jwt_authn/payload/plan": "gold"}
	login.path = "/login"
	for _, c := range []struct {
		what string
		request
		want int
	}{
		{"nobody special", by("alice"), 2},
		{"a partner", by("partner-7"), 4},
		{"another partner", by("partner-8"), 4},
		{"in a network", inside, 5},
		{"with a claim", gold, 6},
		{"at a rule", login, 1},
		{"unlimited", by("root"), 10},
	} {
		b.admits(c.what, c.request, c.want)
	}
}

func TestTheFirstOverrideThatMatchesCounts(t *testing.T) {
	const small, large = `{"match": {"ip": "10.0.0.0/8"}, "capacity": 3}`, `{"match": {"ip": "10.1.0.0/16"}, "capacity": 5}`
	r := by("alice")
	r.address = "10.1.2.3"
	start(t, overridden(small+","+large, "")).admits("the small one first", r, 3)
	start(t, overridden(large+","+small, "")).admits("the large one first", r, 5)
	start(t, overridden(`{"match": {"ip": "10.1.2.3"}, "unlimited": true},`+small, "")).admits("unlimited first", r, 10)
	start(t, overridden(small+`,{"match": {"ip": "10.1.2.3"}, "unlimited": true}`, "")).admits("unlimited last", r, 3)
}

func TestARefusedClientIsAdmittedWhenALargerOverrideApplies(t *testing.T) {
	b := start(t, overridden(`{"match": {"headers": {"x-plan": "gold"}}, "capacity": 5}, {"match": {"headers": {"x-plan": "staff"}}, "unlimited": true}`, ""))
	plan := func(plan string) request {
		r := by("alice")
		r.headers["x-plan"] = plan
		return r
	}
	b.admits("by default", plan(""), 2)
	b.admits("with a larger override", plan("gold"), 5)
	b.admits("by default, as before", plan(""), 0)
	b.admits("unlimited", plan("staff"), 10)
	b.admits("with the larger override, as before", plan("gold"), 0)
}

func TestOverridesHaveBucketsOfTheirOwnToldApartByTheirMatch(t *testing.T) {
	const ip, plan = `{"match": {"ip": ["10.0.0.0/8", "192.0.2.0/24"]}, "capacity": %d}`, `{"match": {"headers": {"x-plan": "gold"}}, "capacity": 3}`
	r := by("alice")
	r.address = "10.1.2.3"
	for what, c := range map[string]struct {
		overrides string
		want      int
	}{
		"the same":                 {fmt.Sprintf(ip, 5), 0},
		"a larger number":          {fmt.Sprintf(ip, 7), 2},
		"another override ahead":   {plan + "," + fmt.Sprintf(ip, 5), 0},
		"another order of values":  {`{"match": {"ip": ["192.0.2.0/24", "10.0.0.0/8"]}, "capacity": 5}`, 0},
		"another match":            {`{"match": {"ip": "10.0.0.0/8"}, "capacity": 5}`, 5},
		"a match with more fields": {`{"match": {"ip": ["10.0.0.0/8", "192.0.2.0/24"], "headers": {"x-user": "alice"}}, "capacity": 5}`, 5},
		"no override":              {plan, 2},
	} {
		before := start(t, overridden(fmt.Sprintf(ip, 5), ""))
		before.admits("before the push", r, 5)
		startOn(t, before.store, overridden(c.overrides, "")).admits(what, r, c.want)
	}
}

func TestTheClientsOfAnOverrideAreToldApartAsThoseOfTheLimit(t *testing.T) {
	b := start(t, overridden(`{"match": {"ip": "10.0.0.0/8"}, "capacity": 3}`, ""))
	for _, user := range []string{"alice", "bob", ""} {
		r := by(user)
		r.address = "10.0.0.1"
		b.admits(user, r, 3)
		r.address = "10.0.0.2"
		b.admits(user+" from elsewhere", r, 0)
	}
}

func TestAnUnlimitedOverrideFreesEvenFromAMissingCredential(t *testing.T) {
	b := start(t, overridden(`{"match": {"ip": "10.0.0.0/8"}, "unlimited": true}, {"match": {"ip": "192.0.2.0/24"}, "capacity": 9}`, `, "missing": "deny"`))
	if o := b.ask(request{address: "10.1.2.3"}); o.Verdict != Unlimited || len(o.Rulings) != 0 {
		t.Errorf("got %v with %d rulings, want unlimited and none", o.Verdict, len(o.Rulings))
	}
	for _, address := range []string{"192.0.2.1", "203.0.113.1"} {
		if o := b.ask(request{address: address}); o.Verdict != MissingKey {
			t.Errorf("%s: got %v, want a missing key: only an unlimited override needs none", address, o.Verdict)
		}
	}
}

func TestAnOverrideReplacesTheNumbersOfEveryAlgorithm(t *testing.T) {
	for _, c := range []struct{ limit, override string }{
		{`"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/d"`, `"capacity": 6`},
		{`"algorithm": "gcra", "rate": "1/d", "burst": 2`, `"burst": 6`},
		{`"algorithm": "leaky_bucket", "mode": "meter", "capacity": 2, "leak_rate": "1/d"`, `"capacity": 6, "leak_rate": "2/d"`},
		{`"algorithm": "fixed_window", "limit": 2, "window": "1d"`, `"limit": 6`},
		{`"algorithm": "sliding_window", "limit": 2, "window": "1d"`, `"limit": 6`},
	} {
		b := start(t, `{"limits": {"a": {`+c.limit+`, "key": [], "overrides": [{"match": {"method": "PUT"}, `+c.override+`}]}}, "rules": [{"limits": ["a"]}]}`)
		b.admits(c.limit, request{method: "GET"}, 2)
		b.admits(c.override, request{method: "PUT"}, 6)
	}
}
