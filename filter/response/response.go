// Package response words what clients are told: the body and the headers of a
// refusal, and the headers that say how much of a limit is left. It decides
// nothing and does no I/O. It may import packages algorithms and config.
package response

import "time"

// The names of the headers that admitted and refused responses carry, by
// family (config.HeaderFamilies).
const (
	LimitHeader     = "ratelimit-limit"
	RemainingHeader = "ratelimit-remaining"
	ResetHeader     = "ratelimit-reset"

	XLimitHeader     = "x-ratelimit-limit"
	XRemainingHeader = "x-ratelimit-remaining"
	XResetHeader     = "x-ratelimit-reset"

	DraftPolicyHeader = "ratelimit-policy"
	DraftHeader       = "ratelimit"
)

// RetryAfterHeader says when to try again; only refusals carry it.
const RetryAfterHeader = "retry-after"

// RateLimitedHeader marks a refusal, as Envoy's own rate-limit filters do.
const RateLimitedHeader = "x-envoy-ratelimited"

const contentTypeHeader = "content-type"

// DetailsPrefix begins the response code details of a refusal; the limit's name
// follows.
const DetailsPrefix = "sluice_rate_limited."

// GRPCResourceExhausted is the grpc-status of a refusal, GRPCUnavailable that of
// a request that could not be decided where the config says to deny it.
const (
	GRPCResourceExhausted int32 = 8
	GRPCUnavailable       int32 = 14
)

// Seconds is a duration as headers give it: whole seconds, rounded up.
func Seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}
