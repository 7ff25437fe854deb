//go:build !wasip1

package plugin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/sluice-proxy/sluice/filter/policy"
)

// withRoutes is a plugin's config that lets routes have a say: "all" always
// applies, "login" and "read" are rules, and /exempt is exempt.
const withRoutes = `{
	"route_metadata": true,
	"limits": {
		"all":   {"algorithm": "token_bucket", "capacity": 20, "refill_rate": "1/h", "key": ["ip"]},
		"login": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/h", "key": ["ip"]},
		"read":  {"algorithm": "token_bucket", "capacity": 3, "refill_rate": "1/h", "key": ["ip"]}
	},
	"always": ["all"],
	"exempt": [{"path": "/exempt"}],
	"response": {"status": 430},
	"rules": [
		{"name": "login", "match": {"path": "/login"}, "limits": ["login"]},
		{"name": "read", "limits": ["read"]}
	]
}`

const ownOfTwo = `{"limits": {"own": {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/h", "key": ["ip"]}}, "rules": [{"limits": ["own"]}]}`

// text is a string in Envoy's metadata.
func text(s string) string { return message(3, s) }

// at makes requests take a route, with metadata for the filter: pairs of a name
// and a value.
func (e *emulated) at(virtualHost, route string, metadata ...string) *emulated {
	e.attributes["xds\x00virtual_host_name"], e.attributes["xds\x00route_name"] = virtualHost, route
	var fields string
	for i := 0; i < len(metadata); i += 2 {
		fields += entry(metadata[i], metadata[i+1])
	}
	e.attributes["xds\x00route_metadata"] = entry("envoy.lb", entry("rule", text("login"))) // another filter's
	if fields != "" {
		e.attributes["xds\x00route_metadata"] += entry("sluice", fields)
	}
	return e
}

// lets asserts how many of ten requests go on.
func (e *emulated) lets(what string, want int) {
	e.Helper()
	got := 0
	for range 10 {
		if e.path("/") {
			got++
		}
	}
	if got != want {
		e.Errorf("%s: %d of 10 requests went on, want %d", what, got, want)
	}
}

func TestARoutePicksARuleByItsNameWithoutItsMatch(t *testing.T) {
	e := started(t, withRoutes)
	e.at("shop", "a", "rule", text("login")).lets("under the rule of login", 1)
	if got := e.state["sluice"]; got != "refused:login" {
		t.Errorf("filter state %q", got)
	}
	e.at("shop", "b").lets("without metadata, under the first rule that matches", 3)
	e.at("shop", "b")
	if e.path("/login") {
		t.Error("the rule that matches /login is another than the one that the route picks")
	}
	if n := e.counted("sluice.route.errors"); n != 0 {
		t.Errorf("%d errors counted", n)
	}
}

func TestARouteBringsItsOwnConfig(t *testing.T) {
	e := started(t, withRoutes)
	e.at("shop", "a", "config", text(ownOfTwo)).lets("under the route's own limit", 2)
	if got := e.state["sluice"]; got != "refused:own" {
		t.Errorf("filter state %q", got)
	}
	e.at("shop", "b", "config", text(ownOfTwo)).lets("on another route, which shares nothing", 2)
	e.at("blog", "a", "config", text(ownOfTwo)).lets("on a route of that name elsewhere", 2)
	e.at("shop", "a", "config", text(ownOfTwo)).lets("again", 0)
	e.at("shop", "c").lets("under the plugin's rules", 3)
	const noLimits = `{"limits": {}}`
	e.at("shop", "d", "config", text(noLimits)).lets("what the plugin's always is left of 20, by a route without limits", 10)
	e.lets("and then nothing", 1)
	if got := e.state["sluice"]; got != "refused:all" {
		t.Errorf("filter state %q, want a refusal by what always applies", got)
	}
	if n := e.counted("sluice.route.errors"); n != 0 {
		t.Errorf("%d errors counted: %q", n, e.GetErrorLogs())
	}
}

func TestARoutesResponseIsLaidOverThePlugins(t *testing.T) {
	e := started(t, withRoutes)
	own := strings.Replace(ownOfTwo, "{", `{"response": {"body": "{name} at the end"}, `, 1)
	e.at("shop", "a", "config", text(own)).lets("", 2)
	stream, _ := e.request()
	if r := e.GetSentLocalResponse(stream); r.StatusCode != 430 || string(r.Data) != "own at the end" {
		t.Errorf("got %d %q, want the plugin's status and the route's body", r.StatusCode, r.Data)
	}
}

func TestARoutesExemptRequestsAreItsOwnAndThePluginsComeFirst(t *testing.T) {
	e := started(t, withRoutes)
	own := strings.Replace(ownOfTwo, "{", `{"exempt": [{"path": "/healthz"}], `, 1)
	e.at("shop", "a", "config", text(own)).lets("", 2)
	for _, path := range []string{"/healthz", "/exempt"} {
		if !e.path(path) || e.state["sluice"] != "" {
			t.Errorf("%s was limited: %q", path, e.state["sluice"])
		}
	}
	e.at("shop", "b").lets("", 3)
	if e.path("/healthz") {
		t.Error("one route's exempt path is exempt on another")
	}
	e.at("shop", "c", "rule", text("no such rule"))
	if e.path("/exempt"); e.counted("sluice.route.errors") != 0 {
		t.Error("a route was asked about a request that is exempt")
	}
}

func TestABadRouteIsCountedEachTimeLoggedOnceAndUnderThePluginsRules(t *testing.T) {
	for what, c := range map[string]struct {
		metadata []string
		said     string // in the log
	}{
		"an unknown rule":             {[]string{"rule", text("logins")}, `"logins"`},
		"a rule without a name":       {[]string{"rule", text("")}, `""`},
		"both":                        {[]string{"rule", text("login"), "config", text(ownOfTwo)}, "both"},
		"both, one an object":         {[]string{"rule", text("login"), "config", message(5, entry("limits", message(5, "")))}, "both"},
		"both, one a number":          {[]string{"rule", "\x11\x00\x00\x00\x00\x00\x00\xf0\x3f", "config", text(ownOfTwo)}, "both"},
		"neither":                     {[]string{"rules", text("login")}, "neither"},
		"a rule that is no string":    {[]string{"rule", "\x11\x00\x00\x00\x00\x00\x00\xf0\x3f"}, "neither"},
		"a config that is an object":  {[]string{"config", message(5, entry("limits", message(5, "")))}, "neither"},
		"a config that is no JSON":    {[]string{"config", text("{")}, "bad config"},
		"an empty config":             {[]string{"config", text("")}, "bad config"},
		"a config with a mistake":     {[]string{"config", text(strings.Replace(ownOfTwo, "2", "0", 1))}, "limits.own.capacity: 0"},
		"a config that is a plugin's": {[]string{"config", text(`{"limits": {}, "on_error": "deny"}`)}, "on_error"},
		"a limit of the plugin's":     {[]string{"config", text(`{"limits": {}, "rules": [{"limits": ["read"]}]}`)}, "read"},
		"a long name":                 {[]string{"rule", text(strings.Repeat("x", 5000))}, "…"},
	} {
		t.Run(what, func(t *testing.T) {
			e := started(t, withRoutes)
			e.at("shop", "a", c.metadata...).lets("under the plugin's rules", 3)
			e.at("shop", "b", c.metadata...).lets("on another route", 0)
			if n := e.counted("sluice.route.errors"); n != 20 {
				t.Errorf("%d errors counted, want one for each of 20 requests", n)
			}
			logs := strings.Join(e.GetErrorLogs(), "\n")
			for _, route := range []string{"a", "b"} {
				if n := strings.Count(logs, `the route "`+route+`" of the virtual host "shop" `); n != 1 {
					t.Errorf("%d lines about the route %s, want one", n, route)
				}
			}
			if !strings.Contains(logs, c.said) || len(logs) > 2000 {
				t.Errorf("the log says %q, want %q in it", logs, c.said)
			}
		})
	}
}

func TestARouteThatSaysSomethingElseWrongIsLoggedAgain(t *testing.T) {
	e := started(t, withRoutes)
	e.at("shop", "a", "rule", text("x")).lets("", 3)
	e.at("shop", "a", "rule", text("y")).lets("", 0)
	if n := len(e.GetErrorLogs()); n != 2 {
		t.Errorf("%d lines, want one for each mistake: %q", n, e.GetErrorLogs())
	}
	e.at("shop", "a", "rule", text("login")).lets("once it is put right", 1)
}

func TestRoutesHaveNoSayUnlessTheConfigSaysSo(t *testing.T) {
	e := started(t, strings.Replace(withRoutes, `"route_metadata": true,`, "", 1))
	e.at("shop", "a", "rule", text("login")).lets("under the plugin's rules", 3)
	e.at("shop", "a", "config", text("{")).lets("and again", 0)
	if n := e.counted("sluice.route.errors"); n != 0 {
		t.Errorf("%d errors counted", n)
	}
}

// A route without a name has only its virtual host and its config to be told
// apart by.
func TestRoutesWithoutANameAreToldApartByTheirConfigs(t *testing.T) {
	e := started(t, withRoutes)
	e.at("shop", "", "config", text(ownOfTwo)).lets("one", 2)
	other := strings.Replace(ownOfTwo, `{"limits": ["own"]}`, `{"name": "other", "limits": ["own"]}`, 1)
	e.at("shop", "", "config", text(other)).lets("another", 2)
	e.at("blog", "", "config", text(ownOfTwo)).lets("one elsewhere", 2)
	e.at("shop", "", "config", text(ownOfTwo)).lets("the first again", 0)
}

func TestARouteThatKeepsItsNameKeepsItsBucketsWhenItsNumbersChange(t *testing.T) {
	e := started(t, withRoutes)
	e.at("shop", "a", "config", text(ownOfTwo)).lets("before", 2)
	e.at("shop", "a", "config", text(strings.Replace(ownOfTwo, `"capacity": 2`, `"capacity": 5`, 1))).lets("with three more", 3)
}

func TestTheRoutesThatWereUsedLastAreKeptCompiled(t *testing.T) {
	e := started(t, strings.Replace(withRoutes, `"always": ["all"],`, "", 1))
	kept := e.vm.plugins[1].routes // the emulator's plugin has the id 1
	// The other routes make a mistake, which costs this test less than a
	// compilation of each.
	visit := func(route int) { e.at("shop", fmt.Sprint(route), "rule", text("unknown")).path("/") }
	knows := func(route int) bool { return kept.known[fmt.Sprintf("shop\x00%d\x00unknown", route)] != nil }
	compiled := func() *policy.Policy {
		for _, element := range kept.known {
			if r := element.Value.(*ownRoute); r.policy != nil {
				return r.policy
			}
		}
		return nil
	}
	e.at("shop", "own", "config", text(ownOfTwo)).lets("the first route", 2)
	for route := range maxRoutes - 1 {
		visit(route)
	}
	first := compiled()
	if len(kept.known) != maxRoutes || first == nil {
		t.Fatalf("%d routes are kept, want %d, the first among them", len(kept.known), maxRoutes)
	}
	e.at("shop", "own", "config", text(ownOfTwo)).lets("used again, and so the last used", 0)
	visit(1)
	visit(maxRoutes)
	if len(kept.known) != maxRoutes || kept.used.Len() != maxRoutes {
		t.Errorf("%d routes are kept, want %d", len(kept.known), maxRoutes)
	}
	if compiled() != first || knows(0) || !knows(1) || !knows(2) || !knows(maxRoutes) {
		t.Error("not the route that was used longest ago has gone")
	}
	for route := range maxRoutes {
		visit(maxRoutes + route)
	}
	if compiled() != nil {
		t.Error("a route is kept that was used longer ago than a thousand others")
	}
	e.at("shop", "own", "config", text(ownOfTwo)).lets("compiled anew, on the same buckets", 0)
	if again := compiled(); again == nil || again == first {
		t.Error("the route was not compiled anew")
	}
}

func TestAllValuesOfAHeaderCountOnARouteThatAsksForIt(t *testing.T) {
	e := started(t, `{"route_metadata": true, "limits": {}}`) // which reads no header
	e.at("shop", "a", "config", text(`{"limits": {"own": {"algorithm": "gcra", "rate": "1/h", "key": ["header:x-user"]}}, "rules": [{"limits": ["own"]}]}`))
	for _, users := range [][]string{{"alice"}, {"alice", "bob"}, {"alice", "carol"}} {
		var headers [][2]string
		for _, user := range users {
			headers = append(headers, [2]string{"x-user", user})
		}
		for i, want := range []types.Action{types.ActionContinue, types.ActionPause} {
			if _, got := e.request(headers...); got != want {
				t.Errorf("%q, request %d: got action %v, want %v", users, i, got, want)
			}
		}
	}
}

// Routes bring documents in which every character may have to be escaped.
func TestAMistakeInARoutesConfigSaysWhere(t *testing.T) {
	e := started(t, withRoutes)
	document, err := json.Marshal(map[string]any{"limits": map[string]any{"a": map[string]any{"algorithm": "gcra", "rate": "1/fortnight", "key": []string{"ip\n\x1b"}}}})
	if err != nil {
		t.Fatal(err)
	}
	e.at("shop\n", "a\"b", "config", text(string(document))).lets("", 3)
	for _, line := range e.GetErrorLogs() {
		if !strings.HasPrefix(line, "sluice: ") || strings.ContainsAny(line, "\n\x1b") {
			t.Errorf("the line %q is not one", line)
		}
	}
	logs := strings.Join(e.GetErrorLogs(), "\n")
	for _, want := range []string{`"a\"b" of the virtual host "shop\n"`, "sluice: config: limits.a.rate: ", "sluice: config: limits.a.key[0]: ", "the plugin's rules apply"} {
		if strings.Count(logs, want) != 1 {
			t.Errorf("want %q once in:\n%s", want, logs)
		}
	}
}
