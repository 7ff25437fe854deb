// Package backoff sends HTTP requests the way a client of a rate-limited API
// should: when it is refused for the moment, it waits as long as the server
// asks, and tries again a bounded number of times. It imports nothing but the
// standard library, and a program can copy it.
package backoff

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Client sends a request again when the answer is 429 (Too Many Requests) or 503
// (Service Unavailable), and only then. Those say that the server has not done
// what was asked. An error of the connection doesn't: the request may have been
// carried out, so it goes to the caller. So may, rarely, one that a proxy answers
// with 503; requests that must not run twice need a key by which their server
// knows them again.
//
// Before it tries again it waits for the time in the answer's Retry-After. If
// there is none it draws a time at random between zero and a ceiling that
// doubles from attempt to attempt ("full jitter"), so that clients that were
// refused together don't come back together. Source: Marc Brooker, "Exponential
// Backoff And Jitter", AWS Architecture Blog, 2015.
//
// A Client may be used by many goroutines at once.
type Client struct {
	// Send sends a request once, such as the method Do of an http.Client.
	Send func(*http.Request) (*http.Response, error)
	// Attempts is how often a request is sent at most. Below 1 counts as 1.
	Attempts int
	// Base is the ceiling of the first wait without Retry-After, and Cap the
	// highest ceiling. A Retry-After is never cut short: to come back earlier
	// would be to be refused again.
	Base, Cap time.Duration
	// OnWait, if set, is called before each wait.
	OnWait func(wait time.Duration)
}

// Do sends a request until it is answered with something else than 429 or 503,
// or no attempt is left. It then returns the last answer, which may be a refusal.
//
// It gives up at once, with that last answer, if the request's body can't be sent
// again (GetBody is nil), or if the deadline of the request's context comes before
// the end of the wait. If the context ends during a wait, its error is returned.
func (c *Client) Do(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	for attempt := 1; ; attempt++ {
		response, err := c.Send(request)
		if err != nil || !refused(response) || attempt >= c.Attempts {
			return response, err
		}
		wait, ok := RetryAfter(response.Header, time.Now())
		if !ok {
			wait = fullJitter(c.Base, c.Cap, attempt)
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
			return response, nil
		}
		if !repeatable(request) {
			return response, nil
		}
		discard(response.Body)
		if c.OnWait != nil {
			c.OnWait(wait)
		}
		if err := Sleep(ctx, wait); err != nil {
			return nil, err
		}
		if request, err = repeat(request); err != nil {
			return nil, err
		}
	}
}

// RetryAfter reads the header Retry-After: whole seconds, or a date, of which
// what is left at the time now counts, at least 0 (RFC 9110, section 10.2.3). ok
// is false if there is none that makes sense.
func RetryAfter(header http.Header, now time.Time) (wait time.Duration, ok bool) {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		const most = uint64(math.MaxInt64 / time.Second)
		return time.Duration(min(seconds, most)) * time.Second, true
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now)), true
	}
	return 0, false
}

// Sleep waits for a time, or until the context ends, whose error it then returns.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func refused(r *http.Response) bool {
	return r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusServiceUnavailable
}

// fullJitter returns a random time from 0 to the ceiling, which is base for the
// first attempt, twice that for the second and so on, but never above highest.
func fullJitter(base, highest time.Duration, attempt int) time.Duration {
	ceiling := min(base, highest)
	for range attempt - 1 {
		if ceiling > highest/2 { // doubling it would pass the cap, or overflow
			ceiling = highest
			break
		}
		ceiling *= 2
	}
	return rand.N(max(1, ceiling))
}

func repeatable(request *http.Request) bool {
	return request.Body == nil || request.Body == http.NoBody || request.GetBody != nil
}

// repeat returns a repeatable request with its body at the beginning again.
func repeat(request *http.Request) (again *http.Request, err error) {
	again = request.Clone(request.Context())
	if request.GetBody != nil {
		again.Body, err = request.GetBody()
	}
	return again, err
}

// discard reads the rest of a short body, so that its connection can be used
// again, and closes it. A long one costs more than a new connection.
func discard(body io.ReadCloser) {
	const short = 64 << 10
	io.CopyN(io.Discard, body, short)
	body.Close()
}
