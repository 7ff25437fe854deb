package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

func TestARuleHoldsInTheVirtualHostThatItNames(t *testing.T) {
	everything := func() envoytest.Object { return envoytest.ToUpstream("everything", "/") }
	site := serve(t, `{
		"limits": {
			"shop":   {"algorithm": "token_bucket", "capacity": 101, "refill_rate": "1/d", "key": ["ip"]},
			"others": {"algorithm": "token_bucket", "capacity": 102, "refill_rate": "1/d", "key": ["ip"]},
			"rest":   {"algorithm": "token_bucket", "capacity": 103, "refill_rate": "1/d", "key": ["ip"]}
		},
		"rules": [
			{"match": {"virtual_host": "shop", "route": "everything"}, "limits": ["shop"]},
			{"match": {"virtual_host": ["blog", "wiki"]}, "limits": ["others"]},
			{"limits": ["rest"]}
		]
	}`, envoytest.Listener{
		Routes: []envoytest.Object{everything()},
		VirtualHosts: []envoytest.Object{
			envoytest.VirtualHost("shop", "a.test", everything()),
			envoytest.VirtualHost("wiki", "b.test", everything()),
		},
	})
	client := site.client(t)
	for host, limit := range map[string]int{"a.test": 101, "b.test": 102, "c.test": 103, "shop": 103} {
		response := client.Get(t, "/", "host: "+host)
		expectAdmitted(t, response)
		if got := number(t, response, "RateLimit-Limit"); got != limit {
			t.Errorf("host %s: the rule of limit %d held, want that of %d", host, got, limit)
		}
	}
}

func TestARouteThatDisablesTheFilterIsNeitherLimitedNorCounted(t *testing.T) {
	module := envoytest.Module(t, "sluice.wasm")
	outer, inner := newName(t), newName(t)
	site := serveChain(t, envoytest.Listener{
		Filters: filters{
			envoytest.Named(envoytest.Wasm{Module: module, Name: outer, VMID: "one", Config: perIP(2, "")}.Filter(), outer),
			envoytest.Named(envoytest.Wasm{Module: module, Name: inner, VMID: "two", Config: perIP(5, "")}.Filter(), inner),
		},
		Routes: []envoytest.Object{
			envoytest.WithoutFilters(envoytest.ToUpstream("neither", "/neither"), outer, inner),
			envoytest.WithoutFilters(envoytest.ToUpstream("inner", "/inner"), outer),
			envoytest.ToUpstream("both", "/"),
		},
	})
	client := site.client(t)
	free := func() {
		t.Helper()
		for range 10 {
			response := client.Get(t, "/neither")
			expectAdmitted(t, response)
			expectNoLimit(t, response)
		}
	}
	free()
	expectLimit(t, client.Get(t, "/"), 2, 1)
	expectLimit(t, client.Get(t, "/inner"), 5, 3) // one of the two filters is left
	expectLimit(t, client.Get(t, "/"), 2, 0)
	expectRefused(t, client.Get(t, "/"))
	expectLimit(t, client.Get(t, "/inner"), 5, 1)
	expectLimit(t, client.Get(t, "/inner"), 5, 0)
	expectRefused(t, client.Get(t, "/inner"))
	free()
}

// routeConfig lets routes have their say. Every limit has a size of its own,
// which tells them apart in an answer.
const routeConfig = `{
	"route_metadata": true,
	"limits": {
		"all":   {"algorithm": "token_bucket", "capacity": 1000, "refill_rate": "1/d", "key": ["ip"]},
		"login": {"algorithm": "token_bucket", "capacity": 3, "refill_rate": "1/d", "key": ["ip"]},
		"rest":  {"algorithm": "token_bucket", "capacity": 20, "refill_rate": "1/d", "key": ["ip"]}
	},
	"always": ["all"],
	"exempt": [{"headers": {"x-exempt": "yes"}}],
	"response": {"status": 503, "body": "The plugin refuses."},
	"rules":  [
		{"match": {"path_prefix": "/count"}, "limits": []},
		{"name": "rest", "limits": ["rest"]},
		{"name": "login", "match": {"path": "/nowhere"}, "limits": ["login"]}
	]
}`

// ownConfig has a limit of the plugin's name that is not the plugin's.
const ownConfig = `{
	"limits": {"login": {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/d", "key": ["ip"]}},
	"rules":  [{"limits": ["login"]}]
}`

func TestARoutePicksItsRuleByName(t *testing.T) {
	site := serve(t, routeConfig, envoytest.Listener{Routes: []envoytest.Object{
		envoytest.WithMetadata(envoytest.ToUpstream("login", "/login"), envoytest.Object{"rule": "login"}),
		envoytest.WithMetadata(envoytest.ToUpstream("other", "/other"), envoytest.Object{"rule": "login"}),
		envoytest.ToUpstream("rest", "/"),
	}})
	client := site.client(t)
	expectLimit(t, client.Get(t, "/login"), 3, 2) // though the rule's match does not hold
	expectLimit(t, client.Get(t, "/other"), 3, 1) // the limit is the plugin's, whoever picks it
	expectLimit(t, client.Get(t, "/"), 20, 19)
	expectLimit(t, client.Get(t, "/login"), 3, 0)
	if response := client.Get(t, "/other"); response.Status != 503 || response.Body != "The plugin refuses." {
		t.Errorf("got %d %q, want the refusal of the plugin's config", response.Status, response.Body)
	}
	expectLimit(t, client.Get(t, "/count"), 1000, 1000-5) // and always applies besides
}

func TestARouteBringsItsOwnConfig(t *testing.T) {
	own := func(extra string) envoytest.Object {
		return envoytest.Object{"config": `{
			"limits": {"login": {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/d", "key": ["ip"]}},
			"rules":  [{"match": {"path_prefix": ["/one", "/two"]}, "limits": ["login"]}]` + extra + `
		}`}
	}
	site := serve(t, routeConfig, envoytest.Listener{Routes: []envoytest.Object{
		envoytest.WithMetadata(envoytest.ToUpstream("one", "/one"), own(`, "response": {"body": "The route refuses."}, "exempt": [{"headers": {"x-friend": "yes"}}]`)),
		envoytest.WithMetadata(envoytest.ToUpstream("two", "/two"), own("")),
		envoytest.WithMetadata(envoytest.ToUpstream("three", "/three"), own("")),
		envoytest.WithMetadata(envoytest.ToUpstream("login", "/login"), envoytest.Object{"rule": "login"}),
		envoytest.ToUpstream("rest", "/"),
	}})
	client := site.client(t)
	refusals := map[string]string{"/one": "The route refuses.", "/two": "The plugin refuses."}
	// Each route's limit is its own, though they have the same name and numbers.
	for path, body := range refusals {
		expectLimit(t, client.Get(t, path), 2, 1)
		expectLimit(t, client.Get(t, path), 2, 0)
		// The response is laid over the plugin's, of which the status is left.
		if response := client.Get(t, path); response.Status != 503 || response.Body != body {
			t.Errorf("%s: got %d %q, want 503 %q", path, response.Status, response.Body, body)
		}
	}
	expectLimit(t, client.Get(t, "/login"), 3, 2)
	// What always applies has counted what was admitted: 2 and 2 and 1, and this.
	expectLimit(t, client.Get(t, "/count"), 1000, 1000-6)
	// No rule of the route's own holds, and the plugin's do not apply.
	expectLimit(t, client.Get(t, "/three"), 1000, 1000-7)
	for _, exempt := range []string{"x-exempt: yes", "x-friend: yes"} {
		response := client.Get(t, "/one", exempt)
		expectAdmitted(t, response)
		expectNoLimit(t, response)
	}
	if response := client.Get(t, "/two", "x-friend: yes"); response.Status != 503 {
		t.Errorf("what the other route exempts got status %d, want 503", response.Status)
	}
	expectLimit(t, client.Get(t, "/count"), 1000, 1000-8)
}

func TestWhatARouteSaysWronglyLeavesThePluginsRulesInForce(t *testing.T) {
	mistakes := map[string]struct {
		metadata envoytest.Object
		logged   []string // beside the route's name
	}{
		"bad-config": {envoytest.Object{"config": `{"limits": {"own": {"algorithm": "token_bucket", "capacity": 0, "refill_rate": "1/d", "key": ["ip"]}}}`},
			[]string{"limits.own.capacity: 0"}},
		"no-json":       {envoytest.Object{"config": "limits"}, nil},
		"plugins-field": {envoytest.Object{"config": `{"limits": {}, "namespace": "x"}`}, []string{"namespace"}},
		"unknown-rule":  {envoytest.Object{"rule": "logni"}, []string{`"logni"`}},
		"rule-config":   {envoytest.Object{"rule": "login", "config": ownConfig}, nil},
		"number":        {envoytest.Object{"rule": 7}, nil},
		"misspelt":      {envoytest.Object{"rulez": "login"}, nil},
	}
	var routes []envoytest.Object
	for name, m := range mistakes {
		routes = append(routes, envoytest.WithMetadata(envoytest.ToUpstream("route-"+name, "/"+name), m.metadata))
	}
	site := serve(t, routeConfig, envoytest.Listener{Routes: append(routes, envoytest.ToUpstream("fine", "/"))})
	client := site.client(t) // one connection, and so one worker
	const stat = "wasmcustom.sluice.route.errors"
	before, left := site.envoy.Stat(t, stat), 20
	for name := range mistakes {
		for range 2 {
			left--
			response := client.Get(t, "/"+name)
			expectAdmitted(t, response)
			expectLimit(t, response, 20, left)
		}
	}
	expectLimit(t, client.Get(t, "/"), 20, left-1)
	envoytest.Eventually(t, "every such request is counted", func() bool {
		return site.envoy.Stat(t, stat)-before == int64(2*len(mistakes))
	})
	log := site.envoy.Log(t)
	for name, m := range mistakes {
		route := fmt.Sprintf(`the route "route-%s" of the virtual host "all" `, name)
		if n := strings.Count(log, route); n != 1 {
			t.Errorf("the log speaks of the route %s %d times, want once", name, n)
		}
		for _, words := range m.logged {
			if !strings.Contains(log, words) {
				t.Errorf("the log does not say %s", words)
			}
		}
	}
}

func TestWithoutRouteMetadataARouteHasNoSay(t *testing.T) {
	site := serve(t, strings.Replace(routeConfig, `"route_metadata": true,`, "", 1), envoytest.Listener{Routes: []envoytest.Object{
		envoytest.WithMetadata(envoytest.ToUpstream("login", "/login"), envoytest.Object{"rule": "login"}),
		envoytest.WithMetadata(envoytest.ToUpstream("own", "/"), envoytest.Object{"config": ownConfig}),
	}})
	client := site.client(t)
	expectLimit(t, client.Get(t, "/login"), 20, 19)
	expectLimit(t, client.Get(t, "/"), 20, 18)
}
