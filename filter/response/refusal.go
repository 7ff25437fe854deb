package response

import (
	"strconv"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
)

// Refusal is why a request was refused.
type Refusal struct {
	// Decision is that of the limit that refused. A Reset below 0 is none, as
	// for a limit that knows no time.
	algorithms.Decision
	// MissingKey is set where the request lacks a part of the key that the limit
	// requires; Decision and Shares are then empty.
	MissingKey bool
	// Name is that of the limit, Rule that of the rule; "" if the rule has none.
	Name, Rule string
	// Shares are what is left of all limits that are enforced on the request, the
	// one that refused first. Only config.Draft needs them.
	Shares []Share
	// Jitter is added to RetryAfter wherever the client is told about it: see
	// Template.Jitter.
	Jitter time.Duration
}

// RetrySeconds is what Retry-After says, at least 1 s. ok is false where no
// waiting would help.
func (r Refusal) RetrySeconds() (seconds int64, ok bool) {
	if r.MissingKey || r.Never {
		return 0, false
	}
	wait := algorithms.Forever
	if r.Jitter < algorithms.Forever-r.RetryAfter {
		wait = r.RetryAfter + r.Jitter
	}
	return max(1, Seconds(wait)), true
}

// Message is the plain sentence that tells a client what to do. It holds
// nothing that JSON would escape.
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
