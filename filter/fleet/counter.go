// Package fleet holds what the engines of fleet-wide limits are sent and answer,
// as bytes and numbers, and when to leave a dead one alone. It knows no host: of
// the module it imports package algorithms alone.
package fleet

import (
	"errors"
	"time"
	"unicode/utf8"

	"github.com/sluice-proxy/sluice/algorithms"
)

// Protocol is how an engine is spoken to.
type Protocol int

const (
	// RLS is Envoy's Rate Limit Service.
	RLS Protocol = iota
	// Gubernator is Gubernator's own protocol.
	Gubernator
)

// Service returns the full name of the protocol's gRPC service.
func (p Protocol) Service() string {
	if p == Gubernator {
		return "pb.gubernator.V1"
	}
	return "envoy.service.ratelimit.v3.RateLimitService"
}

// Method returns the name of the method that counts.
func (p Protocol) Method() string {
	if p == Gubernator {
		return "GetRateLimits"
	}
	return "ShouldRateLimit"
}

// Counter is what a service is to count for one limit, or for one of its
// overrides. It is immutable.
type Counter struct {
	protocol Protocol
	units    int64         // the limit, or the bucket's capacity
	window   time.Duration // 0 of a continuous bucket
	rate     algorithms.Rate
	unit     uint64 // RLS: the window as a RateLimitUnit
	limit    uint64 // Gubernator: RateLimitReq.limit
	// The parts of a request that are always the same: ahead of the message in it
	// that counts, and in that message before the key and after it, the latter also
	// as it is in a charge.
	head, before, after, afterCharge []byte
}

var (
	errName     = errors.New("want a name of valid UTF-8 that is not empty")
	errRLS      = errors.New("want a window of 1s, 1m, 1h or 24h")
	errCalendar = errors.New("want a window of 1m, 1h or 24h")
	errUnits32  = errors.New("want 1 to 4294967295 units")
	errUnits    = errors.New("want 1 unit or more, and not more than a limit may have")
	errFraction = errors.New("want a rate with fewer digits: the service cannot be told this one exactly")
)

func checkName(domain, limit string) error {
	for _, name := range [...]string{domain, limit} {
		// A service refuses a whole message for one string that is not UTF-8.
		if name == "" || !utf8.ValidString(name) {
			return errName
		}
	}
	return nil
}

// Protocol is how the service is spoken to.
func (c *Counter) Protocol() Protocol { return c.protocol }

// Units is the limit, or the bucket's capacity: 1 to algorithms.MaxUnits.
func (c *Counter) Units() int64 { return c.units }

// AppendRequest appends a request that takes hits units (0 takes none and only
// looks; below 0 counts as 0, since neither service can take units back) from
// what the service knows as key, which must be valid UTF-8: AppendKey makes it.
// More than there ever are only look too: the service would refuse them, and a
// refusal may use up what is left.
func (c *Counter) AppendRequest(dst, key []byte, hits int64) []byte {
	hits = max(0, hits)
	if hits > c.units {
		hits = 0
	}
	if c.protocol == RLS {
		return c.appendRLS(dst, key, uint64(hits))
	}
	return c.appendGubernator(dst, key, uint64(hits), c.after)
}

// AppendCharge appends a request that takes units that are spent already, and so
// also where fewer are left: Gubernator then takes those.
func (c *Counter) AppendCharge(dst, key []byte, units int64) []byte {
	units = max(0, units)
	if c.protocol == RLS {
		return c.appendRLS(dst, key, uint64(units))
	}
	// Of a key that it does not know, Gubernator takes no more than the limit.
	return c.appendGubernator(dst, key, uint64(min(units, c.units)), c.afterCharge)
}

// ReadAnswer reads what the service answered to a request for hits units. sent
// and received are when, in monotonic ns, wall the time of day at received in ns
// since 1970, which only Gubernator's windows need. false is an answer that
// cannot be relied on: damaged, an error, about another limit, or none at all.
func (c *Counter) ReadAnswer(message []byte, hits, sent, received, wall int64) (Answer, bool) {
	if c.protocol == RLS {
		return c.readRLS(message, hits, sent, received)
	}
	return c.readGubernator(message, hits, sent, received, wall)
}

// Answer is a service's decision.
type Answer struct {
	Allowed bool
	// Remaining is how many units were left.
	Remaining int64
	// The window ends after EndsAfter and not after EndsBefore, in monotonic ns.
	// Both are 0 of a continuous bucket.
	EndsAfter, EndsBefore int64
	// Reset is how long after the answer came everything is back. RetryAfter is
	// how long after it the same request is admitted if nobody else asks, 0 if it
	// was allowed, algorithms.Forever if it never is. Both are late rather than
	// early.
	Reset, RetryAfter time.Duration
}

// KnowsEnd says whether an answer tells when the window ends: not so where it says
// nothing of that, or goes by a clock that is far from this one. Of a continuous
// bucket there is nothing to know.
func (c *Counter) KnowsEnd(a *Answer) bool {
	return time.Duration(a.EndsBefore-a.EndsAfter) <= c.window/2
}

// windowAnswer completes the answer of a window that ends in (after, before].
func (c *Counter) windowAnswer(a Answer, hits, received, after, before int64) Answer {
	a.EndsAfter, a.EndsBefore = after, before
	a.Reset = time.Duration(before - received)
	if !a.Allowed {
		a.RetryAfter = a.Reset
	}
	return c.refuseExcess(a, hits)
}

// refuseExcess completes the answer to a request for more than there ever is,
// which has only looked.
func (c *Counter) refuseExcess(a Answer, hits int64) Answer {
	if hits > c.units {
		a.Allowed, a.RetryAfter = false, algorithms.Forever
	}
	return a
}
