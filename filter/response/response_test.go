package response

import (
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
)

// configured is a response as a config without a "response" has it, with changes.
func configured(changes ...func(*config.Response)) *Template {
	c := config.Response{Status: 429, ContentType: "application/json", RateLimitHeaders: config.RateLimit}
	for _, change := range changes {
		change(&c)
	}
	return Compile(&c)
}

func withBody(text string) func(*config.Response) {
	return func(c *config.Response) { c.Body = &text }
}

func withContentType(value string) func(*config.Response) {
	return func(c *config.Response) { c.ContentType = value }
}

func withFamilies(f config.HeaderFamilies) func(*config.Response) {
	return func(c *config.Response) { c.RateLimitHeaders = f }
}

// refused is a refusal by the limit login, of which nothing is left.
func refused(retryAfter time.Duration) *Refusal {
	return &Refusal{
		Name:     "login",
		Rule:     "sign-in",
		Decision: algorithms.Decision{Limit: 5, Reset: 60 * time.Second, RetryAfter: retryAfter},
		Shares:   []Share{{Name: "login", Limit: 5, Window: 60, Reset: 60}},
	}
}

// values are all values of the header, in order.
func (a Answer) values(name string) (values []string) {
	for _, h := range a.Headers {
		if h[0] == name {
			values = append(values, h[1])
		}
	}
	return values
}

func TestSecondsAreRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		0: 0, 1: 1, time.Second: 1, time.Second + 1: 2, 1900 * time.Millisecond: 2, algorithms.Forever: 9223372037,
	} {
		if got := Seconds(d); got != want {
			t.Errorf("%v: got %d, want %d", d, got, want)
		}
	}
}
