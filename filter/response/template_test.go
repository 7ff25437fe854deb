package response

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
)

// limitHeaders are the headers of an answer that speak of limits.
func (a Answer) limitHeaders() string {
	var lines []string
	for _, h := range a.Headers {
		if strings.Contains(h[0], "ratelimit") && h[0] != "x-envoy-ratelimited" {
			lines = append(lines, h[0]+": "+h[1])
		}
	}
	return strings.Join(lines, "\n")
}

func TestEachFamilyOfHeadersIsSentWhereItIsAskedFor(t *testing.T) {
	const (
		rateLimit  = "ratelimit-limit: 5\nratelimit-remaining: 0\nratelimit-reset: 60"
		draft      = "ratelimit-policy: \"login\";q=5;w=60\nratelimit: \"login\";r=0;t=60"
		xRateLimit = "x-ratelimit-limit: 5\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 60"
	)
	for asked, want := range map[config.HeaderFamilies]string{
		0:                                    "",
		config.RateLimit:                     rateLimit,
		config.Draft:                         draft,
		config.XRateLimit:                    xRateLimit,
		config.XRateLimit | config.RateLimit: rateLimit + "\n" + xRateLimit,
		config.RateLimit | config.Draft | config.XRateLimit: rateLimit + "\n" + draft + "\n" + xRateLimit,
	} {
		for _, isGRPC := range []bool{false, true} {
			template := configured(withFamilies(asked))
			got := template.Refuse(refused(time.Second), isGRPC)
			if got.limitHeaders() != want || template.Families != asked {
				t.Errorf("families %b, gRPC %v: got\n%s\nwant\n%s", asked, isGRPC, got.limitHeaders(), want)
			}
			if !slices.Equal(got.values("retry-after"), []string{"1"}) {
				t.Errorf("families %b: Retry-After is %q", asked, got.values("retry-after"))
			}
		}
	}
}

func TestALimitThatKnowsNoTimeHasNoReset(t *testing.T) {
	decision := algorithms.Decision{Limit: 5, Reset: -1, RetryAfter: time.Second}
	r := &Refusal{Name: "jobs", Decision: decision, Shares: []Share{NewShare("jobs", &decision, 0)}}
	const every = config.RateLimit | config.Draft | config.XRateLimit
	got := configured(withFamilies(every), withBody("{limit} {remaining} {reset} {retry_after}")).Refuse(r, false)
	const want = "ratelimit-limit: 5\nratelimit-remaining: 0\n" +
		"ratelimit-policy: \"jobs\";q=5\nratelimit: \"jobs\";r=0\n" +
		"x-ratelimit-limit: 5\nx-ratelimit-remaining: 0"
	if got.limitHeaders() != want || string(got.Body) != "5 0 null 1" {
		t.Errorf("got\n%s\nand %q, want\n%s", got.limitHeaders(), got.Body, want)
	}
}

func TestExtraHeadersAreOnEveryRefusal(t *testing.T) {
	extra := [][2]string{{"x-docs", "https://example.com/limits"}, {"x-support", "тел. 5"}}
	template := configured(func(c *config.Response) { c.Headers = extra })
	never := refused(0)
	never.Never = true
	for _, r := range []*Refusal{refused(time.Second), never, {MissingKey: true}} {
		for _, isGRPC := range []bool{false, true} {
			got := template.Refuse(r, isGRPC)
			for _, h := range extra {
				if values := got.values(h[0]); !slices.Equal(values, []string{h[1]}) {
					t.Errorf("%+v, gRPC %v: %s is %q, want %q", r, isGRPC, h[0], values, h[1])
				}
			}
		}
	}
}

func TestRefusingDoesNotChangeTheTemplate(t *testing.T) {
	template := configured(func(c *config.Response) { c.Headers = [][2]string{{"x-a", "1"}, {"x-b", "2"}} })
	first := template.Refuse(refused(time.Second), false)
	want := slices.Clone(first.Headers)
	second := template.Refuse(refused(9*time.Second), true)
	second.Headers[len(second.Headers)-1][1] = "3"
	if third := template.Refuse(refused(time.Second), false); !slices.Equal(first.Headers, want) || !slices.Equal(third.Headers, want) {
		t.Errorf("the headers became %q and %q, want %q", first.Headers, third.Headers, want)
	}
}
