package fleet

import (
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// The numbers of the fields, from Envoy's service/ratelimit/v3/rls.proto and
// extensions/common/ratelimit/v3/ratelimit.proto.
const (
	rlsDomain      = 1 // RateLimitRequest
	rlsDescriptors = 2

	rlsEntries  = 1 // RateLimitDescriptor
	rlsLimit    = 2
	rlsAddend   = 3 // a UInt64Value: 0 looks, where none counts as 1
	rlsKey      = 1 // Entry
	rlsValue    = 2
	rlsUnits    = 1 // RateLimitOverride, and current_limit of an answer
	rlsUnit     = 2
	wrapped     = 1 // of a wrapper
	rlsOverall  = 1 // RateLimitResponse
	rlsStatuses = 2

	rlsCode      = 1 // DescriptorStatus
	rlsCurrent   = 2
	rlsRemaining = 3
	rlsReset     = 4
	seconds      = 1 // Duration
	nanos        = 2
)

const (
	rlsOK        = 1
	rlsOverLimit = 2
)

// rlsWindow returns the RateLimitUnit of a window and the name that it has in
// the service's storage, or 0. The reference server dies of an unknown unit.
func rlsWindow(window time.Duration) (unit uint64, name string) {
	switch window {
	case time.Second:
		return 1, "second"
	case time.Minute:
		return 2, "minute"
	case time.Hour:
		return 3, "hour"
	case 24 * time.Hour:
		return 4, "day"
	}
	return 0, ""
}

// NewRLS returns a Counter of windows of 1s, 1m, 1h or 24h with 1 to 2^32-1
// units, for a service that speaks Envoy's protocol. An error says what to write
// instead.
func NewRLS(domain, limit string, window time.Duration, units int64) (*Counter, error) {
	unit, name := rlsWindow(window)
	switch {
	case unit == 0:
		return nil, errRLS
	case units < 1 || units > math.MaxUint32:
		return nil, errUnits32
	}
	if err := checkName(domain, limit); err != nil {
		return nil, err
	}
	// The entries alone are what the service stores a count under, so that the
	// unit is among them.
	entries := appendEntry(nil, "limit", limit)
	entries = appendEntry(entries, "unit", name)
	override := appendNumber(appendNumber(nil, rlsUnits, uint64(units)), rlsUnit, unit)
	return &Counter{
		protocol: RLS,
		units:    units,
		window:   window,
		unit:     unit,
		head:     appendText(nil, rlsDomain, domain),
		before:   entries,
		after:    appendBytes(nil, rlsLimit, override),
	}, nil
}

func appendEntry(dst []byte, key, value string) []byte {
	return appendBytes(dst, rlsEntries, appendText(appendText(nil, rlsKey, key), rlsValue, value))
}

// keyEntry is what the entry of the client's key is called.
const keyEntry = "key"

func (c *Counter) appendRLS(dst, key []byte, hits uint64) []byte {
	entry := sizeBytes(rlsKey, len(keyEntry)) + sizeBytes(rlsValue, len(key))
	addend := sizeNonZero(wrapped, hits)
	descriptor := len(c.before) + sizeBytes(rlsEntries, entry) + len(c.after) + sizeBytes(rlsAddend, addend)

	dst = append(dst, c.head...)
	dst = appendLength(dst, rlsDescriptors, descriptor)
	dst = append(dst, c.before...)
	dst = appendLength(dst, rlsEntries, entry)
	dst = appendText(dst, rlsKey, keyEntry)
	dst = appendBytes(dst, rlsValue, key)
	dst = append(dst, c.after...)
	dst = appendLength(dst, rlsAddend, addend)
	return appendNonZero(dst, wrapped, hits)
}

// rlsStatus is a DescriptorStatus.
type rlsStatus struct {
	code, units, unit, remaining uint64
	hasLimit, hasReset           bool
	seconds, nanos               uint64
}

func (c *Counter) readRLS(message []byte, hits, sent, received int64) (Answer, bool) {
	var overall uint64
	var status rlsStatus
	statuses := 0
	ok := each(message, func(f field) bool {
		switch {
		case f.is(rlsOverall, protowire.VarintType):
			overall = f.number
		case f.is(rlsStatuses, protowire.BytesType):
			statuses++
			return statuses == 1 && status.read(f.content)
		}
		return true
	})
	if !ok || statuses != 1 || !isRLSCode(overall) || !isRLSCode(status.code) || !c.counted(&status) {
		return Answer{}, false
	}
	after, before, ok := c.rlsWindowEnd(&status, sent, received)
	if !ok {
		return Answer{}, false
	}
	// As for Envoy itself, the overall code decides: of a service that only looks
	// on, it is OK whatever the status is.
	a := Answer{Allowed: overall == rlsOK, Remaining: int64(status.remaining)}
	return c.windowAnswer(a, hits, received, after, before), true
}

func isRLSCode(code uint64) bool { return code == rlsOK || code == rlsOverLimit }

// counted says whether a status is about this counter. One without a limit
// means that the service limits nothing, which would admit everybody for ever.
func (c *Counter) counted(s *rlsStatus) bool {
	return s.hasLimit && s.units == uint64(c.units) && s.unit == c.unit && s.remaining <= s.units
}

// rlsWindowEnd returns the moments between which the window ends. The service
// says so in whole seconds, rounded up, or not at all.
func (c *Counter) rlsWindowEnd(s *rlsStatus, sent, received int64) (after, before int64, ok bool) {
	if !s.hasReset {
		return sent, received + int64(c.window), true
	}
	if s.seconds > uint64(c.window/time.Second) || s.nanos >= uint64(time.Second) {
		return 0, 0, false
	}
	reset := int64(s.seconds)*int64(time.Second) + int64(s.nanos)
	if reset == 0 || reset > int64(c.window) {
		return 0, 0, false
	}
	return max(sent, sent+reset-int64(time.Second)), received + reset, true
}

func (s *rlsStatus) read(message []byte) bool {
	return each(message, func(f field) bool {
		switch {
		case f.is(rlsCode, protowire.VarintType):
			s.code = f.number
		case f.is(rlsRemaining, protowire.VarintType):
			s.remaining = f.number
		case f.is(rlsCurrent, protowire.BytesType):
			s.hasLimit = true
			return readPair(f.content, rlsUnits, &s.units, rlsUnit, &s.unit)
		case f.is(rlsReset, protowire.BytesType):
			s.hasReset = true
			return readPair(f.content, seconds, &s.seconds, nanos, &s.nanos)
		}
		return true
	})
}

// readPair reads two numbers of a message.
func readPair(message []byte, id1 protowire.Number, n1 *uint64, id2 protowire.Number, n2 *uint64) bool {
	return each(message, func(f field) bool {
		switch {
		case f.is(id1, protowire.VarintType):
			*n1 = f.number
		case f.is(id2, protowire.VarintType):
			*n2 = f.number
		}
		return true
	})
}
