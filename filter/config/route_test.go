package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/filter/keys"
)

func mustParseRoute(t *testing.T, document string, plugin *Config) *Config {
	t.Helper()
	c, err := ParseRoute([]byte(document), plugin)
	if err != nil {
		t.Fatalf("%s\nis refused:\n%v", document, err)
	}
	return c
}

func TestARoutesConfigIsItsOwnLimitsUnderThePluginsSettings(t *testing.T) {
	plugin := mustParse(t, `{"limits": {"all": `+bucket+`}, "always": ["all"], "exempt": [{}], "rules": [{"name": "r", "limits": ["all"]}],
		"shadow": true, "on_error": "deny", "namespace": "n", "state": {"max_buckets": 1000}, "route_metadata": true,
		"client_ip": {"source": "header", "header": "x", "trusted_hops": 1, "ipv4_prefix": 24, "ipv6_prefix": 56},
		"response": {"status": 503, "headers": {"a": "1"}}}`)
	before := mustParse(t, `{"limits": {"x": `+bucket+`}, "response": {"headers": {"a": "1"}}}`)
	c := mustParseRoute(t, `{"$schema": "x", "limits": {"own": `+bucket+`}, "rules": [{"limits": ["own"]}], "exempt": [{"path": "/x"}],
		"response": {"content_type": "text/plain", "headers": {"b": "2"}}}`, plugin)
	response := plugin.Response
	response.ContentType, response.Headers = "text/plain", [][2]string{{"a", "1"}, {"b", "2"}}
	want := *plugin
	want.Always, want.Response, want.Exempt = nil, response, []Match{{Path: []string{"/x"}}}
	want.Rules = []Rule{{Limits: []Use{{0, units(1)}}, Response: response}}
	want.Limits = []Limit{{
		Name: "own", Algorithm: "token_bucket", Shape: "token_bucket", Shadow: true, EnforcePercent: 100,
		Key: []keys.Part{{Label: "ip", Sources: []keys.Source{{Kind: keys.IP, IPv4Bits: 24, IPv6Bits: 56}}}}, Limiter: before.Limits[0].Limiter,
	}}
	if !reflect.DeepEqual(*c, want) {
		t.Errorf("got  %+v\nwant %+v", *c, want)
	}
	if len(plugin.Limits) != 1 || plugin.Limits[0].Name != "all" || len(plugin.Response.Headers) != 1 {
		t.Errorf("the plugin's config has changed: %+v", plugin)
	}
}

func TestARoutesConfigHasNothingThatIsThePlugins(t *testing.T) {
	plugin := mustParse(t, `{"limits": {"all": `+bucket+`}}`)
	const belongs = ": belongs to the plugin's config, which is the same for all routes: leave it out here"
	for _, name := range []string{"always", "client_ip", "state", "global", "route_metadata", "shadow", "on_error", "namespace"} {
		_, err := ParseRoute([]byte(`{"limits": {}, "`+name+`": 1}`), plugin)
		if err == nil || err.Error() != name+belongs {
			t.Errorf("%s: %v", name, err)
		}
	}
	for document, want := range map[string]string{
		`{"limits": {}, "rules": [{"limits": ["all"]}]}`: `rules[0].limits[0]: "all": no such limit: there are none`,
		`{"rules": []}`:                   `limits: missing: want an object of limits by their names`,
		`{"limits": {}, "rule": "login"}`: `rule: no such field; did you mean "rules"?`,
		`{"limits": {}, "quotas": 1}`:     `quotas: no such field: want "limits", "response", "rules", "exempt" or "$schema"`,
		``:                                `document: empty: want a JSON object with "limits" and "rules"`,
		strings.Repeat("[", 20) + strings.Repeat("]", 20): "line 1, column 17: nested too deep: want no more than 16 levels",
	} {
		c, err := ParseRoute([]byte(document), plugin)
		if c != nil || err == nil || err.Error() != want {
			t.Errorf("%s: got %+v and\n%v", document, c, err)
		}
	}
}
