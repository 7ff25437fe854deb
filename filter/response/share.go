package response

import (
	"strconv"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
)

// NoReset is the Reset of a limit that knows no time.
const NoReset = -1

// Share is what clients are told of one limit: how large it is, and how much of
// it is left to them.
type Share struct {
	Name      string // [a-z0-9_-]+
	Limit     int64  // units, from 1
	Window    int64  // the whole seconds that Limit is for; 0 where there are none
	Remaining int64  // whole units, 0 to Limit
	Reset     int64  // whole seconds, from 0, or NoReset
}

// NewShare says in whole units and seconds, rounded up, what a limit has
// decided. The window is its Limiter's (see algorithms.Limiter.Quota), 0 where
// there is none; neither is there a Reset where the decision's is below 0.
func NewShare(name string, d *algorithms.Decision, window time.Duration) Share {
	s := Share{Name: name, Limit: d.Limit, Window: Seconds(window), Remaining: d.Remaining, Reset: NoReset}
	if d.Reset >= 0 {
		s.Reset = Seconds(d.Reset)
	}
	return s
}

// Smallest returns the index of the share of which the smallest part remains, the
// first of those alike. There must be one.
func Smallest(shares []Share) int {
	found := 0
	for i := range shares {
		if IsSmaller(shares[i].Remaining, shares[i].Limit, shares[found].Remaining, shares[found].Limit) {
			found = i
		}
	}
	return found
}

// IsSmaller says whether less of a limit remains, as a part of it, than of
// another. All are units, up to algorithms.MaxUnits, so both products are below
// 2^60.
func IsSmaller(remaining, limit, otherRemaining, otherLimit int64) bool {
	return remaining*otherLimit < otherRemaining*limit
}

// The two headers of draft-ietf-httpapi-ratelimit-headers-10 (sections 3 and 4)
// are Lists of RFC 9651: a String, which names the limit, with parameters that
// are Integers. A limit's name needs no escape in a String, and no number here
// is near the 15 digits that an Integer may have.

// AppendDraftPolicy appends the value of RateLimit-Policy, such as
// "login";q=5;w=5, to dst. It does not allocate where dst is large enough.
func AppendDraftPolicy(dst []byte, shares []Share) []byte {
	for i := range shares {
		s := &shares[i]
		dst = appendItem(dst, i, s.Name)
		dst = appendParameter(dst, ";q=", s.Limit)
		if s.Window > 0 {
			dst = appendParameter(dst, ";w=", s.Window)
		}
	}
	return dst
}

// AppendDraft appends the value of RateLimit, such as "login";r=4;t=1, to dst.
// It does not allocate where dst is large enough.
func AppendDraft(dst []byte, shares []Share) []byte {
	for i := range shares {
		s := &shares[i]
		dst = appendItem(dst, i, s.Name)
		dst = appendParameter(dst, ";r=", s.Remaining)
		if s.Reset != NoReset {
			dst = appendParameter(dst, ";t=", s.Reset)
		}
	}
	return dst
}

// appendItem begins the item with the given number, from 0, of a list.
func appendItem(dst []byte, number int, name string) []byte {
	if number > 0 {
		dst = append(dst, ", "...)
	}
	return append(append(append(dst, '"'), name...), '"')
}

func appendParameter(dst []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(dst, name...), n, 10)
}
