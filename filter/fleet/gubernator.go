package fleet

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sluice-proxy/sluice/algorithms"
)

// The numbers of the fields, from Gubernator's gubernator.proto.
const (
	gubRequests  = 1 // GetRateLimitsReq
	gubName      = 1 // RateLimitReq
	gubKey       = 2
	gubHits      = 3
	gubLimit     = 4
	gubDuration  = 5 // in ms, or which calendar window
	gubAlgorithm = 6
	gubBehavior  = 7
	gubBurst     = 8

	gubResponses       = 1 // GetRateLimitsResp
	gubStatus          = 1 // RateLimitResp
	gubAnswerLimit     = 2
	gubAnswerRemaining = 3
	gubAnswerReset     = 4 // in ms since 1970
	gubAnswerError     = 5
)

const (
	gubLeakyBucket = 1  // Algorithm; 0 is TOKEN_BUCKET
	gubGregorian   = 4  // Behavior, a set of bits: the duration names a calendar window,
	gubDrain       = 32 // and hits that are too many take what is left
	gubOverLimit   = 1  // Status; 0 is UNDER_LIMIT
)

// clockError is how far the clock of Gubernator and ours may be apart. It tells
// when a window ends by the time of day.
const clockError = 100 * time.Millisecond

// gubWindow returns what Gubernator calls a calendar window.
func gubWindow(window time.Duration) (number uint64, name string, ok bool) {
	switch window {
	case time.Minute:
		return 0, "minute", true
	case time.Hour:
		return 1, "hour", true
	case 24 * time.Hour:
		return 2, "day", true
	}
	return 0, "", false
}

// NewGubernatorWindow returns a Counter of calendar windows of 1m, 1h or 24h
// with 1 to algorithms.MaxUnits units. The calendar is that of the service's
// time zone, which should be UTC. An error says what to write instead.
func NewGubernatorWindow(domain, limit string, window time.Duration, units int64) (*Counter, error) {
	number, name, ok := gubWindow(window)
	switch {
	case !ok:
		return nil, errCalendar
	case units < 1 || units > algorithms.MaxUnits:
		return nil, errUnits
	}
	if err := checkName(domain, limit); err != nil {
		return nil, err
	}
	after := appendNumber(nil, gubLimit, uint64(units))
	after = appendNonZero(after, gubDuration, number)
	return &Counter{
		protocol: Gubernator,
		units:    units,
		window:   window,
		limit:    uint64(units),
		before:   appendText(nil, gubName, domain+":"+limit+":"+name),
		// A copy each: append may write behind a slice's end.
		after:       appendNumber(slices.Clone(after), gubBehavior, gubGregorian),
		afterCharge: appendNumber(slices.Clone(after), gubBehavior, gubGregorian|gubDrain),
	}, nil
}

// NewGubernatorBucket returns a Counter of buckets of a capacity of 1 to
// algorithms.MaxUnits units that are full at first and refill at the given rate.
// An error says what to write instead.
func NewGubernatorBucket(domain, limit string, capacity int64, rate algorithms.Rate) (*Counter, error) {
	if capacity < 1 || capacity > algorithms.MaxUnits {
		return nil, errUnits
	}
	if err := checkName(domain, limit); err != nil {
		return nil, err
	}
	units, ms, ok := perMillisecond(rate, uint64(capacity))
	if !ok {
		return nil, errFraction
	}
	after := appendNumber(nil, gubLimit, units)
	after = appendNumber(after, gubDuration, ms)
	after = appendNumber(after, gubAlgorithm, gubLeakyBucket)
	after = appendNumber(after, gubBurst, uint64(capacity))
	return &Counter{
		protocol: Gubernator,
		units:    capacity,
		rate:     rate,
		limit:    units,
		before:   appendText(nil, gubName, domain+":"+limit+":bucket"),
		after:    after,

		afterCharge: appendNumber(slices.Clone(after), gubBehavior, gubDrain),
	}, nil
}

// perMillisecond returns a rate as units per ms, of at least so many units.
// Gubernator forgets a bucket that nobody has asked for the duration, and an
// unknown one is full: the duration must be as long as it takes to fill.
func perMillisecond(rate algorithms.Rate, atLeast uint64) (units, ms uint64, ok bool) {
	num, den := rate.Fraction()
	if num < 1 {
		return 0, 0, false
	}
	const nsPerMs = uint64(time.Millisecond)
	// The fraction is in lowest terms: all it has in common with 1 ms is in den.
	common := gcd(uint64(den), nsPerMs)
	over, units := bits.Mul64(uint64(num), nsPerMs/common)
	if over > 0 || units > math.MaxInt64 {
		return 0, 0, false
	}
	times := (atLeast-1)/units + 1
	ms = uint64(den) / common
	over, ms = bits.Mul64(ms, times)
	return units * times, ms, over == 0 && ms <= math.MaxInt64/2
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (c *Counter) appendGubernator(dst, key []byte, hits uint64, after []byte) []byte {
	size := len(c.before) + sizeBytes(gubKey, len(key)) + sizeNonZero(gubHits, hits) + len(after)
	dst = appendLength(dst, gubRequests, size)
	dst = append(dst, c.before...)
	dst = appendBytes(dst, gubKey, key)
	dst = appendNonZero(dst, gubHits, hits)
	return append(dst, after...)
}

// gubAnswer is a RateLimitResp.
type gubAnswer struct {
	status, limit, remaining, reset uint64
	failed                          bool
}

func (c *Counter) readGubernator(message []byte, hits, sent, received, wall int64) (Answer, bool) {
	var r gubAnswer
	answers := 0
	ok := each(message, func(f field) bool {
		if f.is(gubResponses, protowire.BytesType) {
			answers++
			return answers == 1 && r.read(f.content)
		}
		return true
	})
	// With an error the status is UNDER_LIMIT, whatever is left.
	if !ok || answers != 1 || r.failed || r.status > gubOverLimit ||
		r.limit != c.limit || r.remaining > uint64(c.units) {
		return Answer{}, false
	}
	a := Answer{Allowed: r.status != gubOverLimit, Remaining: int64(r.remaining)}
	if c.window == 0 {
		return c.bucketAnswer(a, hits), true
	}
	after, before, ok := c.gubWindowEnd(r.reset, sent, received, wall)
	if !ok {
		return Answer{}, false
	}
	return c.windowAnswer(a, hits, received, after, before), true
}

func (r *gubAnswer) read(message []byte) bool {
	return each(message, func(f field) bool {
		switch {
		case f.is(gubStatus, protowire.VarintType):
			r.status = f.number
		case f.is(gubAnswerLimit, protowire.VarintType):
			r.limit = f.number
		case f.is(gubAnswerRemaining, protowire.VarintType):
			r.remaining = f.number
		case f.is(gubAnswerReset, protowire.VarintType):
			r.reset = f.number
		case f.is(gubAnswerError, protowire.BytesType):
			r.failed = len(f.content) > 0
		}
		return true
	})
}

// gubWindowEnd returns the moments between which the window ends, whose last
// millisecond is reset. This takes both clocks to be within clockError; where
// they cannot be, the window ends at some time from now on.
func (c *Counter) gubWindowEnd(reset uint64, sent, received, wall int64) (after, before int64, ok bool) {
	if reset == 0 || reset > math.MaxInt64/uint64(time.Millisecond) {
		return 0, 0, false
	}
	latest := received + int64(c.window)
	left := int64(reset)*int64(time.Millisecond) - wall
	if left < sent-received-int64(clockError) || left > int64(c.window+clockError) {
		return sent, latest, true
	}
	end := received + left
	after = max(sent, min(end, latest)-int64(clockError))
	before = min(latest, end+int64(time.Millisecond+clockError))
	// An answer at the very end of a window: what is after it is not in the past.
	return after, max(before, received+int64(time.Millisecond)), true
}

// bucketAnswer completes the answer of a continuous bucket.
func (c *Counter) bucketAnswer(a Answer, hits int64) Answer {
	a.Reset = c.refill(c.units - a.Remaining)
	if !a.Allowed {
		a.RetryAfter = c.refill(max(1, hits-a.Remaining))
	}
	return c.refuseExcess(a, hits)
}

// refill returns how long so many units take. The service's clock has whole
// milliseconds, so that a time may be too short by one.
func (c *Counter) refill(units int64) time.Duration {
	d := c.rate.TimeFor(units)
	if units == 0 || d > algorithms.Forever-time.Millisecond {
		return d
	}
	return d + time.Millisecond
}
