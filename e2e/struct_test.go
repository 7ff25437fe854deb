package e2e

import (
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// In a google.protobuf.Struct every number is a double, and members have no order.
func TestAConfigIsTheSameAsAStringAndAsAStruct(t *testing.T) {
	const config = `{
		"$schema": "sluice.schema.json",
		"limits": {
			"zebra": {"algorithm": "token_bucket", "capacity": 5.0, "refill_rate": "1/d", "key": ["header:x-client"],
			          "overrides": [{"match": {"value": {"header:x-plan": "gold"}}, "capacity": 1e3}]},
			"ant":   {"algorithm": "fixed_window", "limit": 2, "window": "1d", "key": ["header:x-client"], "enforce_percent": 100}
		},
		"always":   ["zebra"],
		"exempt":   [{"path": ["/healthz", "/ready"]}],
		"response": {"status": 503, "body": "Занято, {limit}", "content_type": "text/plain; charset=utf-8", "headers": {"x-docs": "here"}},
		"state":    {"max_buckets": 2e3},
		"shadow":   false,
		"rules": [
			{"match": {"path_regex": "/a+"}, "limits": [{"limit": "zebra", "cost": 3}]},
			{"match": {"headers": {"x-strict": {"not": {"present": true}}}, "path": "/loose"}, "limits": []},
			{"match": {"path_prefix": "/"}, "limits": ["ant"]}
		]
	}`
	module := envoytest.Module(t, "sluice.wasm")
	for name, filter := range map[string]func(envoytest.Wasm) envoytest.Object{
		"string": envoytest.Wasm.Filter,
		"struct": func(w envoytest.Wasm) envoytest.Object { return w.StructFilter(t) },
	} {
		t.Run(name, func(t *testing.T) {
			instance := envoytest.Wasm{Module: module, Name: newName(t), Config: config}
			site := serveChain(t, envoytest.Listener{Filters: filters{filter(instance)}})
			client := site.client(t)
			for _, path := range []string{"/healthz", "/ready"} {
				expectNoLimit(t, client.Get(t, path))
			}
			expectLimit(t, client.Get(t, "/aaa", "x-client: a"), 5, 2)
			expectLimit(t, client.Get(t, "/loose", "x-client: a"), 5, 1)
			expectLimit(t, client.Get(t, "/other", "x-client: a"), 5, 0)
			refused := client.Get(t, "/other", "x-client: a")
			expectLimit(t, refused, 5, 0)
			if refused.Status != 503 || refused.Body != "Занято, 5" || only(t, refused, "X-Docs") != "here" ||
				only(t, refused, "Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("got %d %q with %v", refused.Status, refused.Body, refused.Header)
			}
			expectLimit(t, client.Get(t, "/aaa", "x-client: b", "x-plan: gold"), 1000, 997)
			expectLimit(t, client.Get(t, "/loose", "x-client: c", "x-strict: yes"), 2, 1)
		})
	}
}

func TestAStructWithMistakesIsRefusedLikeAString(t *testing.T) {
	site := serve(t, perIP(5, ""), envoytest.Listener{})
	expectLimit(t, site.client(t).Get(t, "/"), 5, 4)
	l := site.listener
	bad := envoytest.Wasm{Module: envoytest.Module(t, "sluice.wasm"), Name: l.Name, Config: mistakes.config}
	l.Filters = filters{bad.StructFilter(t)}
	site.envoy.PushRefused(t, l)
	expectMistakesNamed(t, site.envoy.Log(t))
	expectLimit(t, site.client(t).Get(t, "/"), 5, 3)
}
