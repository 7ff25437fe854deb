package response

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
)

func TestARefusalIs429WithJSONUnlessTheConfigSaysOtherwise(t *testing.T) {
	got := configured().Refuse(refused(4100*time.Millisecond), false)
	if want := `{"error":"rate_limit_exceeded","message":"Too many requests. Try again in 5 seconds.","retryAfter":5}`; string(got.Body) != want {
		t.Errorf("got the body %s, want %s", got.Body, want)
	}
	want := [][2]string{
		{"content-type", "application/json"},
		{"x-envoy-ratelimited", "true"},
		{"retry-after", "5"},
		{"ratelimit-limit", "5"},
		{"ratelimit-remaining", "0"},
		{"ratelimit-reset", "60"},
	}
	if got.Status != 429 || !slices.Equal(got.Headers, want) {
		t.Errorf("got %d with %q, want 429 with %q", got.Status, got.Headers, want)
	}
}

func TestARefusalSaysTheSameInHeaderBodyAndMessage(t *testing.T) {
	const second = time.Second
	for name, c := range map[string]struct {
		retryAfter, jitter time.Duration
		want               string // in seconds
		sentence           string
	}{
		"no time at all":                {0, 0, "1", "Too many requests. Try again in 1 second."},
		"a nanosecond":                  {1, 0, "1", "Too many requests. Try again in 1 second."},
		"a second":                      {second, 0, "1", "Too many requests. Try again in 1 second."},
		"a little more":                 {second + 1, 0, "2", "Too many requests. Try again in 2 seconds."},
		"a while":                       {28 * second, 0, "28", "Too many requests. Try again in 28 seconds."},
		"with jitter":                   {28 * second, 14 * second, "42", "Too many requests. Try again in 42 seconds."},
		"with jitter, rounded up after": {1200 * time.Millisecond, 300 * time.Millisecond, "2", "Too many requests. Try again in 2 seconds."},
		"with jitter, just over":        {1200 * time.Millisecond, 800_000_001, "3", "Too many requests. Try again in 3 seconds."},
		"as long as there is":           {algorithms.Forever, 0, "9223372037", "Too many requests. Try again in 9223372037 seconds."},
		"and jitter":                    {algorithms.Forever, algorithms.Forever, "9223372037", "Too many requests. Try again in 9223372037 seconds."},
	} {
		r := refused(c.retryAfter)
		r.Jitter = c.jitter
		for kind, template := range map[string]*Template{
			"JSON":     configured(),
			"problem":  configured(withContentType("application/problem+json")),
			"template": configured(withBody(`{"message": "Too many requests. Try again in {retry_after} second` + plural(c.want) + `.", "retryAfter": {retry_after}}`)),
		} {
			got := template.Refuse(r, false)
			var said struct {
				Message, Detail string
				RetryAfter      json.Number
			}
			if err := json.Unmarshal(got.Body, &said); err != nil {
				t.Fatalf("%s, %s: %v in %s", name, kind, err, got.Body)
			}
			if header := got.values("retry-after"); !slices.Equal(header, []string{c.want}) ||
				said.RetryAfter.String() != c.want || said.Message+said.Detail != c.sentence {
				t.Errorf("%s, %s: the header is %q and the body %s, want %s everywhere", name, kind, header, got.Body, c.want)
			}
		}
		if got := string(configured().Refuse(r, true).Body); got != c.sentence {
			t.Errorf("%s, gRPC: got %q, want %q", name, got, c.sentence)
		}
	}
}

func plural(n string) string {
	if n == "1" {
		return ""
	}
	return "s"
}

func TestNoWaitingHelpsARequestThatCostsMoreThanItsLimit(t *testing.T) {
	r := refused(0)
	r.Never, r.Jitter = true, time.Second
	got := configured().Refuse(r, false)
	const want = `{"error":"rate_limit_exceeded","message":"This request costs more than its limit allows.","retryAfter":null}`
	if string(got.Body) != want || got.values("retry-after") != nil {
		t.Errorf("got %s with Retry-After %q, want %s without", got.Body, got.values("retry-after"), want)
	}
	if limit := got.values("ratelimit-limit"); !slices.Equal(limit, []string{"5"}) {
		t.Errorf("the limit is %q, want 5, which says how much a request may cost", limit)
	}
}

func TestAMissingCredentialIsRefusedWithoutAWordAboutTheLimit(t *testing.T) {
	const every = config.RateLimit | config.Draft | config.XRateLimit
	r := &Refusal{MissingKey: true, Name: "login", Rule: "sign-in", Jitter: time.Second}
	got := configured(withFamilies(every)).Refuse(r, false)
	const want = `{"error":"rate_limit_exceeded","message":"A required credential is missing.","retryAfter":null}`
	if string(got.Body) != want {
		t.Errorf("got %s, want %s", got.Body, want)
	}
	for _, h := range got.Headers {
		if name := h[0]; name == "retry-after" || name != "x-envoy-ratelimited" && strings.Contains(name, "ratelimit") {
			t.Errorf("has the header %s: %s", h[0], h[1])
		}
	}
	template := configured(withBody("{name} {rule} {limit} {remaining} {reset} {retry_after}"))
	if got := string(template.Refuse(r, false).Body); got != "login sign-in null null null null" {
		t.Errorf("the template gives %q", got)
	}
}

func TestAgRPCClientGetsThePlainSentenceAndEnvoysContentType(t *testing.T) {
	template := configured(withBody(`{"error": "{name}"}`), withContentType("text/html"), func(c *config.Response) {
		c.Status = 503
		c.Headers = [][2]string{{"x-support", "ext. 5"}}
	})
	got := template.Refuse(refused(5*time.Second), true)
	if string(got.Body) != "Too many requests. Try again in 5 seconds." {
		t.Errorf("the message is %q", got.Body)
	}
	for name, want := range map[string]string{"retry-after": "5", "x-envoy-ratelimited": "true", "ratelimit-remaining": "0", "x-support": "ext. 5"} {
		if values := got.values(name); !slices.Equal(values, []string{want}) {
			t.Errorf("%s is %q, want %s", name, values, want)
		}
	}
	if values := got.values("content-type"); values != nil {
		t.Errorf("the content type is %q, want Envoy's own", values)
	}
}

func TestJitterIsDrawnEvenlyFromNothingToAllOfIt(t *testing.T) {
	for _, longest := range []time.Duration{0, 1, 10, 30 * time.Second, algorithms.Forever} {
		template := configured(func(c *config.Response) { c.RetryAfterJitter = longest })
		if template.HasJitter() != (longest > 0) {
			t.Errorf("%v: has jitter: %v", longest, template.HasJitter())
		}
		if least, most := template.Jitter(0), template.Jitter(math.MaxUint64); least != 0 || most != longest {
			t.Errorf("%v: drawn from %v to %v", longest, least, most)
		}
		if middle := template.Jitter(1 << 63); middle != longest/2+longest%2 {
			t.Errorf("%v: half of the draws are below %v", longest, middle)
		}
	}
	few := configured(func(c *config.Response) { c.RetryAfterJitter = 3 })
	for i := range uint64(4) {
		if got := few.Jitter(i << 62); got != time.Duration(i) {
			t.Errorf("the quarter %d of the random numbers gives %d, want each value from 0 to 3 once", i, got)
		}
	}
}

func TestTheStatusIsTheConfigs(t *testing.T) {
	for _, status := range []int{400, 429, 503, 599} {
		got := configured(func(c *config.Response) { c.Status = status }).Refuse(refused(1), false).Status
		if got != status {
			t.Errorf("got %d, want %d", got, status)
		}
	}
}
