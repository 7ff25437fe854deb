package field

import "math"

// Whole reads a whole number from 0: decimal digits and nothing else, neither a
// sign nor white space. Zeros in front are allowed, as in the numbers of HTTP
// (RFC 9110, 8.6; RFC 9651, 3.3.1). Numbers beyond 2^63-1 are that. Several
// values, which come joined by commas, are no number.
func Whole(text []byte) (n int64, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		if digit := int64(c - '0'); n > (math.MaxInt64-digit)/10 {
			n = math.MaxInt64
		} else {
			n = n*10 + digit
		}
	}
	return n, len(text) > 0
}
