package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// debugConfig has a limit for each thing that a readable key can be made of.
const debugConfig = `{
	"limits": {
		"debug-ip":    {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/d", "key": ["ip"]},
		"debug-user":  {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/d", "key": ["user=header:x-user-id", "method"]},
		"debug-day":   {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["ip"], "shadow": true},
		"debug-keys":  {"algorithm": "token_bucket", "capacity": 9, "refill_rate": "1/d",
		                "key": ["header:x-api-key", "bearer", "cookie:sid", "query:token", "auth=header:authorization", "property:request/headers/x-api-key"]}
	},
	"rules": [
		{"match": {"path": "/ip"}, "limits": ["debug-ip", "debug-day"]},
		{"match": {"path": "/user"}, "limits": ["debug-user"]},
		{"match": {"path": "/keys"}, "limits": ["debug-keys"]}
	]
}`

func TestADebugLineForEachDecisionHasTheReadableKey(t *testing.T) {
	site := serve(t, debugConfig, envoytest.Listener{})
	client := site.client(t)
	logged := func(line string) bool {
		return regexp.MustCompile(line + "\n").MatchString(site.envoy.Log(t))
	}

	expectAdmitted(t, client.Get(t, "/user", "x-user-id: early"))
	site.envoy.SetLogLevel(t, "wasm", "debug")
	t.Cleanup(func() { site.envoy.SetLogLevel(t, "wasm", "info") })
	envoytest.Eventually(t, "decisions are logged", func() bool {
		client.Get(t, "/user", "x-user-id: loud")
		return strings.Contains(site.envoy.Log(t), "rate-limit:debug-user:user-loud:method-GET")
	})
	for range 3 {
		client.Get(t, "/ip")
	}
	client.Get(t, "/user", "x-user-id: 42")
	client.Do(t, "PUT", "/user", "x-user-id: 42:x")
	client.Get(t, "/user")
	for _, line := range []string{
		`sluice: allowed rate-limit:debug-ip:ip-127\.0\.0\.1, 1 of 2 left`,
		`sluice: allowed rate-limit:debug-ip:ip-127\.0\.0\.1, 0 of 2 left`,
		`sluice: refused rate-limit:debug-ip:ip-127\.0\.0\.1, 0 of 2 left, retry after 2\dh\d+m.*`,
		`sluice: allowed rate-limit:debug-day:ip-127\.0\.0\.1, 0 of 1 left`,
		`sluice: shadow rate-limit:debug-day:ip-127\.0\.0\.1, 0 of 1 left, retry after 2\dh\d+m.*`,
		`sluice: allowed rate-limit:debug-user:user-42:method-GET, 1 of 2 left`,
		`sluice: allowed rate-limit:debug-user:user-"42:x":method-PUT, 1 of 2 left`,
		`sluice: allowed rate-limit:debug-user:user-missing:method-GET, 1 of 2 left`,
	} {
		envoytest.Eventually(t, "the log has "+line, func() bool { return logged(line) })
	}
	if logged(`.*user-early.*`) {
		t.Error("a decision was logged before anybody asked for it")
	}
}

func TestNoSecretIsInTheLogAtAnyLevel(t *testing.T) {
	site := serve(t, debugConfig, envoytest.Listener{})
	client := site.client(t)
	site.envoy.SetLogLevel(t, "wasm", "trace")
	t.Cleanup(func() { site.envoy.SetLogLevel(t, "wasm", "info") })
	secrets := []string{"an-api-key-of-somebody", "a-token-of-somebody", "a-session-of-somebody", "a-parameter-of-somebody"}
	send := func(apiKey string) {
		client.Get(t, "/keys?token="+secrets[3], "x-api-key: "+apiKey, "authorization: Bearer "+secrets[1], "cookie: sid="+secrets[2])
	}
	lines := func() []string {
		return regexp.MustCompile("sluice: .*rate-limit:debug-keys:.*\n").FindAllString(site.envoy.Log(t), -1)
	}
	envoytest.Eventually(t, "decisions are logged", func() bool {
		send(secrets[0])
		return len(lines()) > 0
	})
	log := site.envoy.Log(t)
	for _, secret := range secrets {
		if strings.Contains(log, secret) {
			t.Errorf("the log has the secret %s", secret)
		}
	}
	const hash = "#([0-9a-f]{8})"
	hashes := func(line string) []string {
		return regexp.MustCompile("rate-limit:debug-keys:x-api-key-" + hash + ":bearer-" + hash + ":sid-" + hash + ":token-" + hash +
			":auth-" + hash + ":property-" + hash + ", \\d of 9 left\n").FindStringSubmatch(line)
	}
	first, before := hashes(lines()[0]), len(lines())
	if first == nil {
		t.Fatalf("the log has %q, want a hash for each secret", lines()[0])
	}
	// The same secret is the same hash, another is another.
	send("another")
	envoytest.Eventually(t, "the other client's decision is logged", func() bool { return len(lines()) > before })
	other := hashes(lines()[before])
	for i, same := range []bool{false, true, true, true, true, false} {
		if (other[i+1] == first[i+1]) != same {
			t.Errorf("hash %d is %s for one client and %s for the other", i+1, first[i+1], other[i+1])
		}
	}
}
