//go:build !wasip1

package plugin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// chain is several instances of the filter, one behind the other.
type chain struct {
	*emulated
	plugins []*Plugin
}

func chained(t *testing.T, configs ...string) *chain {
	t.Helper()
	c := &chain{emulated: emulate(t, "", "203.0.113.10:4711")}
	for i, config := range configs {
		c.configure(config)
		p := c.vm.NewPluginContext(uint32(1_000_000 + i)).(*Plugin)
		if p.OnPluginStart(0) != types.OnPluginStartStatusOK {
			t.Fatalf("instance %d did not start: %q", i, c.GetErrorLogs())
		}
		c.plugins = append(c.plugins, p)
	}
	return c
}

// send passes a request through the instances, up to the one that refuses it, and
// the response back through all, as Envoy does: the last comes first. It returns
// what the client gets.
func (c *chain) send(upstream ...[2]string) (response [][2]string) {
	c.Helper()
	c.state = map[string]string{}
	var streams []uint32
	for _, p := range c.plugins {
		stream := c.InitializeHttpContext()
		c.vm.Create(stream, p.id)
		streams = append(streams, stream)
	}
	response = append([][2]string{{":status", "200"}}, upstream...)
	for _, stream := range streams {
		if c.CallOnRequestHeaders(stream, withPseudoHeaders(nil), true) == types.ActionPause {
			response = localReply(c.GetSentLocalResponse(stream))
			break
		}
	}
	for _, stream := range slices.Backward(streams) {
		c.CallOnResponseHeaders(stream, response, true)
		response = c.GetCurrentResponseHeaders(stream)
		c.CompleteHttpContext(stream)
	}
	return response
}

func localReply(r *proxytest.LocalHttpResponse) [][2]string {
	return append([][2]string{{":status", fmt.Sprint(r.StatusCode)}}, r.Headers...)
}

// instance is a config of one limit by address, whose namespace is its name.
func instance(name string, capacity int, families string) string {
	return fmt.Sprintf(`{"namespace": %q, "limits": {%q: {"algorithm": "token_bucket", "capacity": %d, "refill_rate": "1/h", "key": ["ip"]}},
		"rules": [{"limits": [%q]}], "response": {"rate_limit_headers": [%s]}}`, name, name, capacity, name, families)
}

const (
	plainFamily = `"ratelimit"`
	xFamily     = `"x-ratelimit"`
	draftFamily = `"draft"`
)

// tells asserts which limits the headers of each family speak of, "" for none.
func (c *chain) tells(response [][2]string, plain, x, draft string) {
	c.Helper()
	for _, family := range []struct {
		names []string // the first says which limit
		want  string
	}{
		{[]string{"ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"}, plain},
		{[]string{"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}, x},
		{[]string{"ratelimit-policy", "ratelimit"}, draft},
	} {
		got := values(response, family.names[0])
		if family.want == "" && len(got) > 0 || family.want != "" && !slices.Equal(got, []string{family.want}) {
			c.Errorf("%s is %q, want %q", family.names[0], got, family.want)
		}
		for _, name := range family.names {
			if more := values(response, name); len(more) != len(got) {
				c.Errorf("%s is %q, and %s is %q", family.names[0], got, name, more)
			}
		}
	}
}

func TestOfSeveralInstancesTheSmallestShareIsTold(t *testing.T) {
	small, large := instance("small", 2, plainFamily), instance("large", 10, plainFamily)
	for what, configs := range map[string][]string{
		"the small one first": {small, large},
		"the small one last":  {large, small},
		"in the middle":       {large, small, instance("huge", 100, plainFamily)},
	} {
		t.Run(what, func(t *testing.T) {
			c := chained(t, configs...)
			response := c.send()
			c.tells(response, "2", "", "")
			c.wantHeader(response, "ratelimit-remaining", "1")
			want := strings.Repeat("allowed,", len(configs)-1) + "allowed"
			if got := c.state["sluice"]; got != want {
				t.Errorf("filter state %q, want %q", got, want)
			}
		})
	}
}

func TestASmallerShareMayBeMoreUnits(t *testing.T) {
	costly := strings.Replace(instance("costly", 100, plainFamily), `["costly"]`, `[{"limit": "costly", "cost": 60}]`, 1)
	for _, configs := range [][]string{{costly, instance("few", 10, plainFamily)}, {instance("few", 10, plainFamily), costly}} {
		t.Run("", func(t *testing.T) {
			c := chained(t, configs...)
			response := c.send()
			c.tells(response, "100", "", "")
			c.wantHeader(response, "ratelimit-remaining", "40")
		})
	}
}

func TestTheHeadersOfALargerShareGo(t *testing.T) {
	const every = plainFamily + "," + xFamily + "," + draftFamily
	for _, c := range []struct {
		small, large    string // their families
		plain, x, draft string
	}{
		{plainFamily, xFamily, "2", "", ""},
		{xFamily, plainFamily, "", "2", ""},
		{plainFamily, every, "2", "", ""},
		{draftFamily, every, "", "", `"small";q=2;w=7200`},
		{every, draftFamily, "2", "2", `"small";q=2;w=7200`},
		{"", every, "10", "10", `"large";q=10;w=36000`}, // which tells nothing, so the other does
		{plainFamily, "", "2", "", ""},
	} {
		small, large := instance("small", 2, c.small), instance("large", 10, c.large)
		for _, configs := range [][]string{{small, large}, {large, small}} {
			t.Run(c.small+" and "+c.large, func(t *testing.T) {
				chain := chained(t, configs...)
				chain.tells(chain.send(), c.plain, c.x, c.draft)
			})
		}
	}
}

func TestAnUpstreamIsNotTakenForAnotherInstance(t *testing.T) {
	upstream := [][2]string{{"ratelimit-limit", "1"}, {"ratelimit-remaining", "0"}, {"ratelimit-reset", "1"}, {"sluice.told", "refused"}, {"retry-after", "7"}}
	for _, configs := range [][]string{{instance("only", 10, plainFamily)}, {instance("small", 10, plainFamily), instance("large", 100, xFamily)}} {
		t.Run(fmt.Sprint(len(configs)), func(t *testing.T) {
			c := chained(t, configs...)
			response := c.send(upstream...)
			c.tells(response, "10", "", "")
			c.wantHeader(response, "ratelimit-remaining", "9")
			c.wantHeader(response, "retry-after", "7")
		})
	}
}

func TestARefusalsHeadersAreTheRefusers(t *testing.T) {
	for what, c := range map[string]struct {
		configs                []string
		plain, x, draft, state string
	}{
		"the inner one refuses":            {[]string{instance("outer", 10, plainFamily), instance("inner", 1, xFamily)}, "", "1", "", "allowed,refused:inner"},
		"both tell the same":               {[]string{instance("outer", 10, plainFamily), instance("inner", 1, plainFamily)}, "1", "", "", "allowed,refused:inner"},
		"the outer one refuses":            {[]string{instance("outer", 1, draftFamily), instance("inner", 10, plainFamily)}, "", "", `"outer";q=1;w=3600`, "refused:outer"},
		"the one in the middle refuses":    {[]string{instance("a", 10, xFamily), instance("b", 1, plainFamily), instance("c", 10, draftFamily)}, "1", "", "", "allowed,refused:b"},
		"the last of three refuses":        {[]string{instance("a", 9, xFamily), instance("b", 10, draftFamily), instance("c", 1, plainFamily)}, "1", "", "", "allowed,allowed,refused:c"},
		"the refuser tells nothing":        {[]string{instance("outer", 10, plainFamily), instance("inner", 1, "")}, "", "", "", "allowed,refused:inner"},
		"a smaller share does not matter":  {[]string{`{"namespace": "o", "limits": {"o": {"algorithm": "gcra", "rate": "1/h", "burst": 2, "key": []}}, "rules": [{"limits": ["o"]}]}`, instance("inner", 1, xFamily)}, "", "1", "", "allowed,refused:inner"},
		"for want of a credential, inside": {[]string{instance("outer", 10, plainFamily), `{"limits": {"key": {"algorithm": "gcra", "rate": "1/h", "key": ["bearer"], "missing": "deny"}}, "rules": [{"limits": ["key"]}]}`}, "", "", "", "allowed,refused:key"},
	} {
		t.Run(what, func(t *testing.T) {
			chain := chained(t, c.configs...)
			chain.send()
			response := chain.send([2]string{"retry-after", "1"})
			chain.wantHeader(response, ":status", "429")
			chain.tells(response, c.plain, c.x, c.draft)
			if got := chain.state["sluice"]; got != c.state {
				t.Errorf("filter state %q, want %q", got, c.state)
			}
			if got := values(response, "retry-after"); c.state == "allowed,refused:key" {
				chain.wantHeader(response, "retry-after")
			} else if !slices.Equal(got, []string{"3600"}) {
				t.Errorf("retry-after is %q, want 3600", got)
			}
		})
	}
}

func TestAnInstanceWithNothingToSayLeavesTheOthersTheirHeaders(t *testing.T) {
	const exempt = `{"namespace": "x", "limits": {"x": {"algorithm": "gcra", "rate": "1/h", "key": []}}, "exempt": [{}], "rules": [{"limits": ["x"]}]}`
	const shadow = `{"namespace": "y", "shadow": true, "limits": {"y": {"algorithm": "gcra", "rate": "1/h", "key": []}}, "rules": [{"limits": ["y"]}]}`
	for what, c := range map[string]struct {
		configs []string
		state   string
	}{
		"exempt ahead":  {[]string{exempt, instance("one", 2, plainFamily)}, "allowed"},
		"exempt behind": {[]string{instance("one", 2, plainFamily), exempt}, "allowed"},
		"shadow ahead":  {[]string{shadow, instance("one", 2, plainFamily)}, "shadow:y,allowed"},
		"shadow behind": {[]string{instance("one", 2, plainFamily), shadow}, "allowed,shadow:y"},
	} {
		t.Run(what, func(t *testing.T) {
			chain := chained(t, c.configs...)
			chain.send()
			response := chain.send()
			chain.tells(response, "2", "", "")
			chain.wantHeader(response, "ratelimit-remaining", "0")
			if got := chain.state["sluice"]; got != c.state {
				t.Errorf("filter state %q, want %q", got, c.state)
			}
		})
	}
}

func TestInstancesOfOneNamespaceCountOnTheSameBuckets(t *testing.T) {
	shared := `{"namespace": "shared", "limits": {"a": {"algorithm": "gcra", "rate": "1/h", "burst": 4, "key": ["ip"]}}, "rules": [{"limits": ["a"]}]}`
	c := chained(t, shared, shared)
	c.wantHeader(c.send(), "ratelimit-remaining", "2")
	c.wantHeader(c.send(), "ratelimit-remaining", "0")
	c.wantHeader(c.send(), ":status", "429")
}
