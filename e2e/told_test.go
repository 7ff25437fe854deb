package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// tight and loose are configs of two instances. After each request a smaller
// share is left of the tight one's limit, though it is the larger number.
const (
	tight = `{
		"limits":   {"tight": {"algorithm": "token_bucket", "capacity": 100, "refill_rate": "1/d", "key": ["ip"]}},
		"rules":    [{"limits": ["tight"], "cost": 30}],
		"response": {"rate_limit_headers": [%s], "status": 503}
	}`
	loose = `{
		"limits":   {"loose": {"algorithm": "token_bucket", "capacity": 4, "refill_rate": "1/d", "key": ["ip"]}},
		"rules":    [{"limits": ["loose"]}],
		"response": {"rate_limit_headers": [%s]}
	}`
)

// chains are the ways in which two instances can stand in one chain.
func chains(t *testing.T, tight, loose string, test func(*testing.T, *site)) {
	for _, c := range []struct {
		name         string
		tight, loose envoytest.Wasm
	}{
		{"in one VM", envoytest.Wasm{VMID: "one"}, envoytest.Wasm{VMID: "one"}},
		{"in VMs of their own", envoytest.Wasm{VMID: "one"}, envoytest.Wasm{VMID: "two"}},
	} {
		for _, tightFirst := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the tight one first: %v", c.name, tightFirst), func(t *testing.T) {
				c.tight.Name, c.tight.Config = newName(t), tight
				c.loose.Name, c.loose.Config = newName(t), loose
				instances := []envoytest.Wasm{c.tight, c.loose}
				if !tightFirst {
					slices.Reverse(instances)
				}
				test(t, serveChain(t, envoytest.Listener{}, instances...))
			})
		}
	}
}

func TestOfSeveralInstancesTheSmallestShareIsTold(t *testing.T) {
	family := `"ratelimit"`
	chains(t, fmt.Sprintf(tight, family), fmt.Sprintf(loose, family), func(t *testing.T, site *site) {
		client := site.client(t)
		for _, left := range []int{70, 40, 10} {
			response := client.Get(t, "/", "x-reply-header: RateLimit-Limit: 1", "x-reply-header: RateLimit-Remaining: 999", "x-reply-header: RateLimit-Reset: 1")
			expectAdmitted(t, response)
			expectLimit(t, response, 100, left)
			if seconds := number(t, response, "RateLimit-Reset"); seconds <= (100-left-1)*day || seconds > (100-left)*day {
				t.Errorf("%d of 100 are left at one a day; RateLimit-Reset is %d seconds", left, seconds)
			}
		}
		refused := client.Get(t, "/")
		if refused.Status != 503 {
			t.Fatalf("got status %d, want the tight instance's refusal", refused.Status)
		}
		expectLimit(t, refused, 100, 10)
		number(t, refused, "Retry-After")
	})
}

func TestOfSeveralInstancesOnlyOneTellsWhateverHeadersEachUses(t *testing.T) {
	chains(t, fmt.Sprintf(tight, `"x-ratelimit", "draft"`), fmt.Sprintf(loose, `"ratelimit"`), func(t *testing.T, site *site) {
		client := site.client(t)
		for _, left := range []string{"70", "40", "10", "10"} { // the last one is refused
			response := client.Get(t, "/")
			expectNoLimit(t, response)
			if got := only(t, response, "X-RateLimit-Remaining"); got != left {
				t.Errorf("the response of status %d has X-RateLimit-Remaining %s, want %s", response.Status, got, left)
			}
			only(t, response, "RateLimit")
			only(t, response, "RateLimit-Policy")
		}
	})
}

func TestARefusalsHeadersAreTheRefusersAlone(t *testing.T) {
	outer := `{
		"limits": {"outer": {"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/d", "key": ["ip"]}},
		"rules":  [{"limits": ["outer"]}],
		"response": {"rate_limit_headers": ["ratelimit", "draft"], "headers": {"x-refuser": "outer"}}
	}`
	inner := `{
		"limits": {
			"inner": {"algorithm": "token_bucket", "capacity": 100, "refill_rate": "1/d", "key": ["ip"]},
			"who":   {"algorithm": "token_bucket", "capacity": 100, "refill_rate": "1/d", "key": ["header:x-key"], "missing": "deny"}
		},
		"rules":  [{"match": {"path": "/who"}, "limits": ["who"]}, {"match": {"path": "/never"}, "limits": ["inner"], "cost": 101}, {"limits": ["inner"], "cost": 80}],
		"response": {"rate_limit_headers": ["x-ratelimit"], "headers": {"x-refuser": "inner"}}
	}`
	for name, vm := range map[string]string{"in one VM": "one", "in VMs of their own": "two"} {
		t.Run(name, func(t *testing.T) {
			site := serveChain(t, envoytest.Listener{},
				envoytest.Wasm{Name: newName(t), VMID: "one", Config: outer},
				envoytest.Wasm{Name: newName(t), VMID: vm, Config: inner})
			client := site.client(t)
			expectAdmitted(t, client.Get(t, "/"))
			expect := func(path string, want map[string]string) {
				t.Helper()
				response := client.Get(t, path)
				expectRefused(t, response)
				for _, name := range []string{"X-Refuser", "RateLimit-Remaining", "RateLimit-Limit", "RateLimit", "RateLimit-Policy", "X-RateLimit-Remaining", "X-RateLimit-Limit"} {
					if values := response.Header.Values(name); want[name] == "" && len(values) > 0 {
						t.Errorf("%s: a refusal has %s: %q, want none", path, name, values)
					} else if want[name] != "" && !regexp.MustCompile("^"+want[name]+"$").MatchString(only(t, response, name)) {
						t.Errorf("%s: a refusal has %s: %q, want %q", path, name, values, want[name])
					}
				}
				if seconds := response.Header.Values("Retry-After"); len(seconds) > 1 {
					t.Errorf("%s: a refusal has Retry-After %q", path, seconds)
				}
			}
			byInner := map[string]string{"X-Refuser": "inner", "X-RateLimit-Remaining": "20", "X-RateLimit-Limit": "100"}
			expect("/", byInner)
			expect("/never", byInner)
			expect("/who", map[string]string{"X-Refuser": "inner"})
			// The outer one was charged for each of the four, and for this.
			expectAdmitted(t, client.Get(t, "/who", "x-key: a"))
			expect("/", map[string]string{
				"X-Refuser": "outer", "RateLimit-Remaining": "0", "RateLimit-Limit": "5",
				"RateLimit-Policy": `"outer";q=5;w=432000`, "RateLimit": `"outer";r=0;t=43\d{4}`,
			})
			site.expectReached(t, 2)
		})
	}
}

func TestAnInstanceThatIsSilentLeavesTheOthersWordAlone(t *testing.T) {
	// The upstream's headers are no instance's, whatever they say.
	silent := fmt.Sprintf(tight, "")
	chains(t, silent, fmt.Sprintf(loose, `"ratelimit"`), func(t *testing.T, site *site) {
		response := site.client(t).Get(t, "/", "x-reply-header: RateLimit-Remaining: 0", "x-reply-header: RateLimit-Limit: 1000")
		expectAdmitted(t, response)
		expectLimit(t, response, 4, 3)
	})
}
