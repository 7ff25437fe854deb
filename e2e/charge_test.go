package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// chargeConfig has a path for each limit, named like it.
func chargeConfig(limits map[string]string) string {
	var all, rules []string
	for name, fields := range limits {
		all = append(all, fmt.Sprintf(`%q: {"key": ["header:x-client"], %s}`, name, fields))
		rules = append(rules,
			fmt.Sprintf(`{"match": {"path_prefix": "/look/%s"}, "limits": [{"limit": %q, "cost": 0}]}`, name, name),
			fmt.Sprintf(`{"match": {"path_prefix": "/%s"}, "limits": [%q]}`, name, name))
	}
	return fmt.Sprintf(`{"limits": {%s}, "rules": [%s], "response": {"rate_limit_headers": ["ratelimit", "draft"]}}`,
		strings.Join(all, ", "), strings.Join(rules, ", "))
}

const thousand = `"algorithm": "token_bucket", "capacity": 1000, "refill_rate": "1/d"`

var charges = map[string]string{
	"header":   thousand + `, "charge": {"response_header": "x-used", "max": 500}`,
	"removed":  thousand + `, "charge": {"response_header": "x-used", "max": 500, "remove": true}`,
	"trailer":  thousand + `, "charge": {"response_trailer": "x-used", "max": 500}`,
	"metadata": thousand + `, "charge": {"metadata": "usage/tokens/total", "max": 500}`,
	"number":   thousand + `, "charge": {"metadata": "usage.ahead/number", "max": 500}`,
	"text":     thousand + `, "charge": {"metadata": "usage.behind/text", "max": 500}`,
	"debt":     `"algorithm": "token_bucket", "capacity": 10, "refill_rate": "1/d", "charge": {"response_header": "x-used", "max": 25}`,

	"fixed":   `"algorithm": "fixed_window", "limit": 1000, "window": "1y", "charge": {"response_header": "x-used", "max": 500}`,
	"sliding": `"algorithm": "sliding_window", "limit": 1000, "window": "1d", "charge": {"response_header": "x-used", "max": 500}`,
	"gcra":    `"algorithm": "gcra", "burst": 1000, "rate": "1/d", "charge": {"response_header": "x-used", "max": 500}`,
	"meter":   `"algorithm": "leaky_bucket", "mode": "meter", "capacity": 1000, "leak_rate": "1/d", "charge": {"response_header": "x-used", "max": 500}`,
}

// meterScript writes down what a response cost, as a filter that counts tokens
// does: in the path of the response, after its headers have gone by.
const meterScript = `
function envoy_on_request(handle)
	local value = handle:headers():get("x-tell")
	if value ~= nil then
		handle:streamInfo():dynamicMetadata():set("usage.request", "value", value)
	end
end
function envoy_on_response(handle)
	local told = handle:streamInfo():dynamicMetadata():get("usage.request")
	if told == nil then return end
	for _ in handle:bodyChunks() do end
	local values = {
		number = 30, text = "30", zero = 0, much = 501, negative = -1, fraction = 1.5, word = "thirty",
		truth = true, list = {30}, empty = "",
	}
	handle:streamInfo():dynamicMetadata():set("usage", "tokens", {total = values[told["value"]]})
end`

// serveCharged starts an Envoy with the filter between two others that write
// responses' costs down.
func serveCharged(t *testing.T, o envoytest.Options) *holding {
	t.Helper()
	return serveHolding(t, o, envoytest.Wasm{Config: chargeConfig(charges)},
		envoytest.Listener{
			Filters: filters{envoytest.Named(envoytest.ResponseHeaderToMetadata("x-number", "usage.ahead", "number", "NUMBER"), "ahead")},
			Routes: []envoytest.Object{
				envoytest.With(envoytest.To("http1", "/trailer/http1"), "timeout", "60s"),
				envoytest.ToUpstream("all", "/"),
			},
		},
		envoytest.Named(envoytest.ResponseHeaderToMetadata("x-text", "usage.behind", "text", "STRING"), "behind"),
		envoytest.Lua(meterScript))
}

func (h *holding) errors(t *testing.T, limit string) int64 {
	t.Helper()
	return h.envoy.Stat(t, limitStat(limit, "errors"))
}

// A case of a charge: what a response says it cost, and what it did cost.
type charged struct {
	says    []string // request headers that have the upstream, or a filter, say it
	units   int
	invalid bool // counted as an error
}

// saying is how a header of the response says each of these.
func saying(ask string) []charged {
	return []charged{
		{[]string{ask + ": 30"}, 30, false},
		{[]string{ask + ": 0"}, 0, false},
		{[]string{ask + ": 500"}, 500, false},
		{[]string{ask + ": 501"}, 500, false},
		{[]string{ask + ": 99999999999999999999999"}, 500, false},
		{nil, 0, true},
		{[]string{ask + ": "}, 0, true},
		{[]string{ask + ": -1"}, 0, true},
		{[]string{ask + ": 1.5"}, 0, true},
		{[]string{ask + ": 3e1"}, 0, true},
		{[]string{ask + ": thirty"}, 0, true},
		{[]string{ask + ": 30,30"}, 0, true},
		{[]string{ask + ": 30", ask + ": 30"}, 0, true},
	}
}

// expectCharged checks what each of the cases costs besides 1: by the answer to
// the request, where it knows, and by what the next one finds.
func expectCharged(t *testing.T, h *holding, limit string, knows bool, send func(path string, headers ...string) envoytest.Response, cases []charged) {
	t.Helper()
	for i, c := range cases {
		before := h.errors(t, limit)
		client := fmt.Sprintf("x-client: %s-%d", t.Name(), i)
		response := send("/"+limit, append([]string{client}, c.says...)...)
		expectAdmitted(t, response)
		remaining := 999
		if knows {
			remaining -= c.units
		}
		expectLimit(t, response, 1000, remaining)
		if draft, want := only(t, response, "RateLimit"), fmt.Sprintf(`%q;r=%d`, limit, remaining); !strings.HasPrefix(draft, want) {
			t.Errorf("%q: RateLimit is %s, want %s", c.says, draft, want)
		}
		// Next comes a response that says nothing, which is an error as well.
		next := send("/look/"+limit, client)
		if left := number(t, next, "RateLimit-Remaining"); left != 999-c.units {
			t.Errorf("%q: %d are left for the next request, want %d", c.says, left, 999-c.units)
		}
		want := int64(1)
		if c.invalid {
			want++
		}
		var got int64
		envoytest.Eventually(t, "the errors are counted", func() bool {
			got = h.errors(t, limit) - before
			return got >= want
		})
		if got != want {
			t.Errorf("%q and nothing after it: %d errors are counted, want %d", c.says, got, want)
		}
	}
}

func TestAResponseSaysWhatItsRequestCosts(t *testing.T) {
	h := serveCharged(t, envoytest.Options{})
	plain := envoytest.NewClient(t, h.addr, envoytest.ClientOptions{})
	over2 := envoytest.NewClient(t, h.addr, envoytest.ClientOptions{HTTP2: true})
	get := func(client *envoytest.Client) func(string, ...string) envoytest.Response {
		return func(path string, headers ...string) envoytest.Response { return client.Get(t, path, headers...) }
	}
	grpc := func(path string, headers ...string) envoytest.Response {
		return over2.Do(t, "POST", path, append(headers, "content-type: application/grpc", "te: trailers")...)
	}

	t.Run("in a header", func(t *testing.T) {
		expectCharged(t, h, "header", true, get(plain), saying("x-reply-header: x-used"))
		response := plain.Get(t, "/header", "x-client: seen", "x-reply-header: x-used: 30")
		if value := only(t, response, "x-used"); value != "30" {
			t.Errorf("the client sees x-used: %q", value)
		}
	})
	t.Run("in a header that the client does not see", func(t *testing.T) {
		expectCharged(t, h, "removed", true, func(path string, headers ...string) envoytest.Response {
			response := over2.Get(t, path, headers...)
			if values := response.Header.Values("x-used"); len(values) != 0 {
				t.Errorf("%q: the client sees x-used: %q", headers, values)
			}
			return response
		}, saying("x-reply-header: x-used"))
	})
	t.Run("in a trailer", func(t *testing.T) {
		expectCharged(t, h, "trailer", false, get(over2), saying("x-reply-trailer: x-used"))
	})
	t.Run("in a trailer of a gRPC call", func(t *testing.T) {
		expectCharged(t, h, "trailer", false, grpc, saying("x-reply-trailer: x-used"))
	})
	t.Run("in a gRPC answer of trailers only", func(t *testing.T) {
		expectCharged(t, h, "trailer", true, grpc, saying("x-reply-only: x-used")[:5])
	})
	t.Run("in a trailer over HTTP/1", func(t *testing.T) {
		expectCharged(t, h, "trailer", false, func(path string, headers ...string) envoytest.Response {
			return plain.Get(t, strings.Replace(path, "/trailer", "/trailer/http1", 1), headers...)
		}, saying("x-reply-trailer: x-used"))
	})
	t.Run("in a trailer over HTTP/1 that Envoy has not been told to pass on", func(t *testing.T) {
		expectCharged(t, h, "trailer", false, get(plain), []charged{{[]string{"x-reply-trailer: x-used: 30"}, 0, true}})
	})
	t.Run("in metadata", func(t *testing.T) {
		expectCharged(t, h, "metadata", false, get(plain), []charged{
			{[]string{"x-tell: number"}, 30, false},
			{[]string{"x-tell: text"}, 30, false},
			{[]string{"x-tell: zero"}, 0, false},
			{[]string{"x-tell: much"}, 500, false},
			{[]string{"x-tell: negative"}, 0, true},
			{[]string{"x-tell: fraction"}, 0, true},
			{[]string{"x-tell: word"}, 0, true},
			{[]string{"x-tell: truth"}, 0, true},
			{[]string{"x-tell: list"}, 0, true},
			{[]string{"x-tell: empty"}, 0, true},
			{[]string{"x-tell: nothing"}, 0, true},
			{nil, 0, true},
		})
	})
	t.Run("in metadata of a filter ahead, as a number", func(t *testing.T) {
		expectCharged(t, h, "number", false, get(plain), []charged{
			{[]string{"x-reply-header: x-number: 30"}, 30, false},
			{[]string{"x-reply-header: x-number: thirty"}, 0, true},
			{nil, 0, true},
		})
	})
	t.Run("in metadata of a filter behind, as text", func(t *testing.T) {
		expectCharged(t, h, "text", false, get(plain), []charged{
			{[]string{"x-reply-header: x-text: 30"}, 30, false},
			{[]string{"x-reply-header: x-text: thirty"}, 0, true},
			{nil, 0, true},
		})
	})
	for _, limit := range []string{"fixed", "sliding", "gcra", "meter"} {
		t.Run("to a limit of another algorithm: "+limit, func(t *testing.T) {
			expectCharged(t, h, limit, true, get(plain), saying("x-reply-header: x-used")[:6])
		})
	}
	t.Run("and nothing where there is none", func(t *testing.T) {
		before := h.errors(t, "header")
		client := "x-client: " + t.Name()
		if response := plain.Get(t, "/header", client, "x-end: abort"); response.Status != 503 {
			t.Fatalf("got status %d, want 503", response.Status)
		}
		name := h.newHold()
		conn := h.dial(t, "GET /header HTTP/1.1", client, "x-hold: "+name)
		envoytest.Eventually(t, "the request is held", func() bool { return h.upstream.Held(name) == 1 })
		conn.Close()
		envoytest.Eventually(t, "both are counted", func() bool { return h.errors(t, "header") == before+2 })
		expectLimit(t, plain.Get(t, "/look/header", client), 1000, 998)
	})
}

func TestAChargeLeavesADebtThatTheNextRequestFinds(t *testing.T) {
	h := serveCharged(t, envoytest.Options{})
	client := h.newcomer(t) // meets every worker
	const bankrupt, several = "x-client: bankrupt", "x-client: several"

	response := client.Get(t, "/debt", bankrupt, "x-reply-header: x-used: 1000")
	expectAdmitted(t, response)
	expectLimit(t, response, 10, 0)
	// 10 - 1 - 25 are left; one a day comes back.
	expectDays := func(r envoytest.Response, days int) {
		t.Helper()
		expectRefused(t, r)
		expectLimit(t, r, 10, 0)
		if seconds := number(t, r, "Retry-After"); seconds <= (days-1)*day || seconds > days*day {
			t.Errorf("Retry-After is %d seconds, want %d days", seconds, days)
		}
	}
	for range 8 { // refused requests are charged nothing
		expectDays(client.Get(t, "/debt", bankrupt, "x-reply-header: x-used: 1000"), 17)
		expectDays(client.Get(t, "/look/debt", bankrupt), 16)
	}

	// However many were let in before the debt was known, it is at most the max:
	// ten of 20 each come to 25, and the other requests to nothing.
	b := h.holdAt(t, client, "/debt", 15, several, "x-reply-header: x-used: 20")
	b.expectHeld(t, 10)
	b.release(t)
	expectDays(client.Get(t, "/debt", several), 26)
}

// The end of a stream is where metadata are read, and the table is written, for
// a charge by metadata: on every Envoy that is supported that must be possible.
func TestMetadataAreChargedAtTheEndOnTheOldestAndTheLatestEnvoy(t *testing.T) {
	for _, version := range []string{envoytest.Versions[0], envoytest.Current} {
		t.Run(version, func(t *testing.T) {
			h := serveCharged(t, envoytest.Options{Version: version, Workers: 1})
			client := envoytest.NewClient(t, h.addr, envoytest.ClientOptions{})
			for i, limit := range []string{"metadata", "number", "text"} {
				says := []string{"x-tell: number", "x-reply-header: x-number: 30", "x-reply-header: x-text: 30"}[i]
				expectLimit(t, client.Get(t, "/"+limit, "x-client: a", says), 1000, 999)
				expectLimit(t, client.Get(t, "/"+limit, "x-client: a", says), 1000, 968)
				expectLimit(t, client.Get(t, "/look/"+limit, "x-client: a"), 1000, 938)
			}
		})
	}
}
