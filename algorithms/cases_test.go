package algorithms

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"
)

// fieldCase is one fault that users of rate limiters have reported, as steps
// against one limit. Times are in milliseconds since 1970, on both clocks.
type fieldCase struct {
	Name  string
	Limit struct {
		Algorithm  string
		Capacity   int64
		RefillRate string `json:"refill_rate"`
		LeakRate   string `json:"leak_rate"`
		Mode       string
		MaxWait    string `json:"max_wait"`
		Limit      int64
		Window     string
		UTCOffset  string `json:"utc_offset"`
		Rate       string
		Burst      int64
	}
	Steps []struct {
		At     int64
		Cost   *int64
		Expect map[string]any
	}
}

func TestCasesFromTheField(t *testing.T) {
	document, err := os.ReadFile("testdata/algorithms.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []fieldCase
	if err := json.Unmarshal(document, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("there are no cases")
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			limiter := c.limiter(t)
			var s State
			for i, step := range c.Steps {
				cost := int64(1)
				if step.Cost != nil {
					cost = *step.Cost
				}
				at := step.At * int64(time.Millisecond)
				var d Decision
				s, d = Decide(limiter, s, Time{Mono: at, Wall: at}, cost)
				got := map[string]any{
					"allowed":            d.Allowed,
					"never":              d.Never,
					"remaining":          float64(d.Remaining),
					"wait_ms":            roundedUp(d.Wait, time.Millisecond),
					"reset_ms":           roundedUp(d.Reset, time.Millisecond),
					"retry_after_ms":     roundedUp(d.RetryAfter, time.Millisecond),
					"retry_after_header": max(1, roundedUp(d.RetryAfter, time.Second)),
				}
				if len(step.Expect) == 0 {
					t.Fatalf("step %d expects nothing", i)
				}
				for field, want := range step.Expect {
					if value, known := got[field]; !known || value != want {
						t.Errorf("step %d at %d ms: %s is %v, want %v", i, step.At, field, value, want)
					}
				}
			}
		})
	}
}

func roundedUp(d, unit time.Duration) float64 {
	return float64((d + unit - 1) / unit)
}

func (c fieldCase) limiter(t *testing.T) Limiter {
	t.Helper()
	l := c.Limit
	var limiter Limiter
	var err error
	switch l.Algorithm {
	case "token_bucket":
		limiter, err = NewTokenBucket(l.Capacity, mustRate(t, l.RefillRate))
	case "gcra":
		limiter, err = NewGCRA(mustRate(t, l.Rate), l.Burst)
	case "fixed_window":
		limiter, err = NewFixedWindow(l.Limit, mustWindow(t, l.Window, l.UTCOffset))
	case "sliding_window":
		limiter, err = NewSlidingWindow(l.Limit, mustWindow(t, l.Window, l.UTCOffset))
	case "leaky_bucket":
		if l.Mode == "meter" {
			limiter, err = NewLeakyMeter(l.Capacity, mustRate(t, l.LeakRate))
			break
		}
		maxWait, parseErr := ParseDuration(l.MaxWait, 0, Forever)
		if parseErr != nil {
			t.Fatal(parseErr)
		}
		limiter, err = NewLeakyQueue(l.Capacity, mustRate(t, l.LeakRate), maxWait)
	default:
		err = fmt.Errorf("unknown algorithm %q", l.Algorithm)
	}
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

// fataler is what the helpers need of a testing.TB or a rapid.T.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

func mustRate(t fataler, s string) Rate {
	t.Helper()
	r, err := ParseRate(s)
	if err != nil {
		t.Fatal(s, err)
	}
	return r
}

// mustWindow takes an empty offset for none.
func mustWindow(t fataler, s, utcOffset string) Window {
	t.Helper()
	var offset time.Duration
	if utcOffset != "" {
		var err error
		if offset, err = ParseUTCOffset(utcOffset); err != nil {
			t.Fatal(utcOffset, err)
		}
	}
	w, err := ParseWindow(s, offset)
	if err != nil {
		t.Fatal(s, err)
	}
	return w
}

// must returns the limiter of a constructor's two results.
func must(t fataler) func(Limiter, error) Limiter {
	return func(l Limiter, err error) Limiter {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}
