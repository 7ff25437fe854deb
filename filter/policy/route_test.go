package policy

import "testing"

// pluginWithAlways is a plugin's config whose limit "all" always applies.
const pluginWithAlways = `{
	"limits": {
		"all": {"algorithm": "token_bucket", "capacity": 8, "refill_rate": "1/d", "key": ["ip"]},
		"one": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["ip"]}
	},
	"always": ["all"],
	"rules": [{"match": {"path": "/one"}, "limits": ["one"]}]
}`

const ownLimit = `{"limits": {"own": {"algorithm": "token_bucket", "capacity": 3, "refill_rate": "1/d", "key": ["ip"]}}, "rules": [{"match": {"method": "PUT"}, "limits": ["own"]}]}`

func put(address string) request { return request{address: address, method: "PUT"} }

func TestARoutesLimitsAreItsOwn(t *testing.T) {
	plugin := start(t, pluginWithAlways)
	a, b := plugin.withRoute("a", ownLimit), plugin.withRoute("b", ownLimit)
	a.admits("a route", put("192.0.2.1"), 3)
	b.admits("another with the same config", put("192.0.2.1"), 3)
	plugin.withRoute("a", ownLimit).admits("the first, compiled anew", put("192.0.2.1"), 0)
}

func TestALimitOfARouteIsNotThePluginsOfTheSameName(t *testing.T) {
	const document = `{"limits": {
		"one": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["ip"]},
		"all": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["ip"]}}, "rules": [{"limits": ["one", "all"]}]}`
	plugin := start(t, pluginWithAlways)
	client := request{address: "192.0.2.1", path: "/one"}
	plugin.admits("by the plugin's limit", client, 1)
	route := plugin.withRoute("a", document)
	if o := route.ask(client); o.Verdict != Admitted || len(o.Rulings) != 3 {
		t.Errorf("got %v by %d limits, want admitted by the route's two and the plugin's that always applies", o.Verdict, len(o.Rulings))
	}
	route.admits("by the route's own", client, 0)
	if left := plugin.left(request{address: "192.0.2.1"}); left["all"] != 5 {
		t.Errorf("%v left, want 5: three requests have been admitted in all", left)
	}
}

func TestThePluginsAlwaysAppliesBesideARoutesLimitsOnTheSameBuckets(t *testing.T) {
	plugin := start(t, pluginWithAlways)
	route := plugin.withRoute("a", ownLimit)
	route.admits("by the route's own limit", put("192.0.2.1"), 3)
	get := request{address: "192.0.2.1", method: "GET"}
	for range 3 {
		if o := route.ask(get); o.Verdict != Admitted || o.Limit.Name != "all" {
			t.Errorf("a request that no rule of the route matches: got %v by %v, want admitted by all", o.Verdict, o.Limit)
		}
	}
	plugin.admits("what is left for the plugin's requests", get, 2)
	if o := route.ask(get); o.Verdict != Refused || o.Limit.Name != "all" {
		t.Errorf("got %v by %v, want refused by all", o.Verdict, o.Limit)
	}
	if o := plugin.withRoute("b", `{"limits": {}}`).ask(put("192.0.2.1")); o.Verdict != Refused || o.Limit.Name != "all" {
		t.Errorf("a route without limits: got %v, want refused by all", o.Verdict)
	}
}

func TestARouteHasWhatThePluginSaysOfAll(t *testing.T) {
	plugin := start(t, `{"shadow": true, "on_error": "deny", "client_ip": {"ipv4_prefix": 24},
		"limits": {"all": {"algorithm": "gcra", "rate": "1/d", "key": []}}}`)
	route := plugin.withRoute("a", ownLimit)
	route.admits("in shadow", put("192.0.2.1"), 10)
	if o := route.ask(put("192.0.2.77")); o.Verdict != Unlimited || !o.Rulings[0].Refuses() || !o.Rulings[0].Shadow {
		t.Errorf("another address of the network: got %v, want a refusal in shadow", o.Verdict)
	}

	plugin = start(t, `{"on_error": "deny", "limits": {}}`)
	route = plugin.withRoute("a", ownLimit)
	route.store.Broken = true
	if o := route.ask(put("192.0.2.1")); o.Verdict != Undecided {
		t.Errorf("with a store that fails: got %v, want undecided, as the plugin says", o.Verdict)
	}
}

func TestARouteHasExemptRequestsOfItsOwn(t *testing.T) {
	plugin := start(t, `{"limits": {}, "exempt": [{"method": "OPTIONS"}]}`)
	route := plugin.withRoute("a", `{"limits": {}, "exempt": [{"path": "/healthz"}]}`)
	if r := at("/healthz"); plugin.policy.Exempts(r) || !route.policy.Exempts(r) {
		t.Error("the route's exempt request is the plugin's as well, or not the route's")
	}
	if r := (request{method: "OPTIONS"}); !plugin.policy.Exempts(r) || route.policy.Exempts(r) {
		t.Error("the plugin's exempt request has become the route's, before which the plugin is asked")
	}
}

func TestARuleIsFoundByItsName(t *testing.T) {
	p := start(t, limits+`"rules": [{"limits": ["one"]}, {"name": "login", "limits": ["three"]}]}`).policy
	if rule := p.Rule([]byte("login")); rule == nil || rule.Name != "login" {
		t.Errorf("got %v", rule)
	}
	for _, name := range []string{"", "logins", "Login"} {
		if rule := p.Rule([]byte(name)); rule != nil {
			t.Errorf("%q: got %v, want none", name, rule)
		}
	}
}
