package algorithms

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// Rate is an exact number of units per nanosecond, from 1/d to 1e9/s: a
// fraction in lowest terms. Two equal rates are equal Go values, however they
// were spelled. The zero Rate is no rate; ParseRate makes one.
//
// A fraction, and not a number of nanoseconds per unit or of units per second,
// is what keeps 3/s and 10000/d from drifting.
type Rate struct {
	// num units come every den nanoseconds. den is below 2^63, and num is not
	// above den since 1e9/s is one unit a nanosecond.
	num, den uint64
}

var (
	errRate       = errors.New("want N/unit with unit s, m, h, d or a duration such as 10s")
	errRateRange  = errors.New("want a rate from 1/d to 1000000000/s")
	errRateDigits = errors.New("want a rate with fewer digits: this one is too long to be kept exactly")
)

// ParseRate reads a rate: "N/unit", where N is a decimal number such as 5 or
// 0.5 without sign or exponent, and unit is s, m, h, d, a duration as
// time.ParseDuration reads it, or "1d". A bare N is per second. An error says
// what to write instead; the caller puts in front of it where the value stands
// and what it is.
func ParseRate(s string) (Rate, error) {
	number, unit, hasUnit := strings.Cut(s, "/")
	per := time.Second
	if hasUnit {
		var err error
		if per, err = parseRateUnit(unit); err != nil {
			return Rate{}, err
		}
	}
	n, scale, err := parseDecimal(number)
	if err != nil {
		return Rate{}, err
	}
	return newRate(n, scale, uint64(per))
}

func parseRateUnit(s string) (time.Duration, error) {
	switch s {
	case "s":
		return time.Second, nil
	case "m":
		return time.Minute, nil
	case "h":
		return time.Hour, nil
	case "d":
		return day, nil
	}
	d, err := parseAnyDuration(s)
	if err != nil || d == 0 {
		return 0, errRate
	}
	return d, nil
}

// parseDecimal reads a decimal number as n/scale, where scale is a power of
// ten.
func parseDecimal(s string) (n, scale uint64, err error) {
	whole, fraction, hasPoint := strings.Cut(s, ".")
	if !allDigits(whole) || hasPoint && !allDigits(fraction) {
		return 0, 0, errRate
	}
	if _, err := strconv.ParseUint(whole, 10, 63); err != nil {
		// No unit is as long as 2^63 ns, so this is more than 1e9/s.
		return 0, 0, errRateRange
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > 18 {
		return 0, 0, errRateDigits
	}
	if n, err = strconv.ParseUint(whole+fraction, 10, 63); err != nil {
		return 0, 0, errRateDigits
	}
	scale = 1
	for range fraction {
		scale *= 10
	}
	return n, scale, nil
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// newRate returns n/scale units per per nanoseconds.
func newRate(n, scale, per uint64) (Rate, error) {
	common := gcd(n, scale)
	n, scale = n/common, scale/common
	common = gcd(n, per)
	n, per = n/common, per/common
	den := mul(scale, per)
	switch {
	case den.less(wide{lo: n}), mul(n, uint64(day)).less(den):
		return Rate{}, errRateRange
	case den.hi > 0 || den.lo > math.MaxInt64:
		return Rate{}, errRateDigits
	}
	return Rate{num: n, den: den.lo}, nil
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// String returns the one canonical spelling of a rate, which ParseRate reads
// as the same rate: a whole number per s, m, h or d, the first of these that
// can be, else a whole number per duration.
func (r Rate) String() string {
	for _, unit := range []struct {
		name string
		ns   time.Duration
	}{{"/s", time.Second}, {"/m", time.Minute}, {"/h", time.Hour}, {"/d", day}} {
		if r.den != 0 && uint64(unit.ns)%r.den == 0 {
			return strconv.FormatUint(r.num*(uint64(unit.ns)/r.den), 10) + unit.name
		}
	}
	return strconv.FormatUint(r.num, 10) + "/" + formatDuration(time.Duration(r.den))
}

// TimeFor returns how long the rate takes for the given number of units (0 to
// MaxUnits), rounded up to 1 ns, at most Forever.
func (r Rate) TimeFor(units int64) time.Duration {
	return duration(mul(uint64(units), r.den).ceilDiv(r.num))
}

// Fraction returns the rate as a fraction in lowest terms: so many units come in
// so much time, which is not below 1 ns per unit. Both are 0 of the zero Rate.
func (r Rate) Fraction() (units int64, in time.Duration) {
	return int64(r.num), time.Duration(r.den)
}

// check refuses the zero Rate, which no limiter can work with.
func (r Rate) check() error {
	if r.num == 0 {
		return errRateRange
	}
	return nil
}

// timeFor is TimeFor of whole + frac/den units.
func (r Rate) timeFor(whole, frac uint64) time.Duration {
	return duration(mul(whole, r.den).add(frac).ceilDiv(r.num))
}
