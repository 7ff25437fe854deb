package response

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
)

func TestSecondsAreRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		0: 0, 1: 1, time.Second: 1, time.Second + 1: 2, 1900 * time.Millisecond: 2, algorithms.Forever: 9223372037,
	} {
		if got := Seconds(d); got != want {
			t.Errorf("%v: got %d, want %d", d, got, want)
		}
	}
}

func TestARefusalSaysTheSameInHeaderBodyAndMessage(t *testing.T) {
	for name, c := range map[string]struct {
		refusal    Refusal
		message    string
		retryAfter string // "" where there is none
	}{
		"a nanosecond": {Refusal{Decision: algorithms.Decision{Limit: 5, RetryAfter: 1}}, "Too many requests. Try again in 1 second.", "1"},
		"a while":      {Refusal{Decision: algorithms.Decision{Limit: 5, RetryAfter: 28 * time.Second}}, "Too many requests. Try again in 28 seconds.", "28"},
		"never":        {Refusal{Decision: algorithms.Decision{Limit: 5, Never: true}}, "This request costs more than its limit allows.", ""},
		"no key":       {Refusal{MissingKey: true}, "A required credential is missing.", ""},
	} {
		var body struct {
			Error, Message string
			RetryAfter     *json.Number
		}
		if err := json.Unmarshal([]byte(c.refusal.Body()), &body); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var header *string
		for _, h := range c.refusal.Headers() {
			if h[0] == "retry-after" {
				header = &h[1]
			}
		}
		if body.Message != c.message || c.refusal.Message() != c.message {
			t.Errorf("%s: got %q and %q, want %q", name, body.Message, c.refusal.Message(), c.message)
		}
		if c.retryAfter == "" {
			if header != nil || body.RetryAfter != nil {
				t.Errorf("%s: says when to try again, though that helps nothing", name)
			}
			continue
		}
		if header == nil || body.RetryAfter == nil || *header != c.retryAfter || body.RetryAfter.String() != c.retryAfter {
			t.Errorf("%s: got header %v and body %v, want %s", name, header, body.RetryAfter, c.retryAfter)
		}
	}
}
