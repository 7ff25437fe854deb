// Package response words what clients are told: the body and the headers of a
// refusal, and the headers that say how much of a limit is left. It may import
// package algorithms.
package response

import (
	"strconv"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
)

// The names of the headers that admitted and refused responses carry.
const (
	LimitHeader     = "ratelimit-limit"
	RemainingHeader = "ratelimit-remaining"
	ResetHeader     = "ratelimit-reset"
)

// RetryAfterHeader says when to try again; only refusals carry it.
const RetryAfterHeader = "retry-after"

// RateLimitedHeader marks a refusal, as Envoy's own rate-limit filters do.
const RateLimitedHeader = "x-envoy-ratelimited"

// DetailsPrefix begins the response code details of a refusal; the limit's name
// follows.
const DetailsPrefix = "sluice_rate_limited."

// GRPCResourceExhausted is the grpc-status of a refusal, GRPCUnavailable that of
// a request that could not be decided where the config says to deny it.
const (
	GRPCResourceExhausted int32 = 8
	GRPCUnavailable       int32 = 14
)

// Refusal is why a request was refused.
type Refusal struct {
	algorithms.Decision
	// MissingKey is set where the request lacks a part of the key that the limit
	// requires; Decision is then empty.
	MissingKey bool
}

// Seconds is a duration as headers give it: whole seconds, rounded up.
func Seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// RetrySeconds is what Retry-After says, at least 1 s. ok is false where no
// waiting would help.
func (r Refusal) RetrySeconds() (seconds int64, ok bool) {
	if r.MissingKey || r.Never {
		return 0, false
	}
	return max(1, Seconds(r.RetryAfter)), true
}

// Message is the plain sentence that tells a client what to do.
func (r Refusal) Message() string {
	seconds, ok := r.RetrySeconds()
	switch {
	case r.MissingKey:
		return "A required credential is missing."
	case !ok:
		return "This request costs more than its limit allows."
	case seconds == 1:
		return "Too many requests. Try again in 1 second."
	default:
		return "Too many requests. Try again in " + strconv.FormatInt(seconds, 10) + " seconds."
	}
}

// Body is the JSON that a refused client gets by default.
func (r Refusal) Body() string {
	retryAfter := "null"
	if seconds, ok := r.RetrySeconds(); ok {
		retryAfter = strconv.FormatInt(seconds, 10)
	}
	return `{"error":"rate_limit_exceeded","message":"` + r.Message() + `","retryAfter":` + retryAfter + `}`
}

// Headers are the headers of a refusal.
func (r Refusal) Headers() [][2]string {
	headers := [][2]string{
		{"content-type", "application/json"},
		{RateLimitedHeader, "true"},
	}
	if seconds, ok := r.RetrySeconds(); ok {
		headers = append(headers, [2]string{RetryAfterHeader, strconv.FormatInt(seconds, 10)})
	}
	if !r.MissingKey {
		headers = append(headers,
			[2]string{LimitHeader, strconv.FormatInt(r.Limit, 10)},
			[2]string{RemainingHeader, strconv.FormatInt(r.Remaining, 10)},
			[2]string{ResetHeader, strconv.FormatInt(Seconds(r.Reset), 10)},
		)
	}
	return headers
}
