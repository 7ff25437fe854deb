package field

import "bytes"

// Ambiguous is what Bearer returns instead of a token where it cannot be known
// which one the upstream will take. No token has a comma.
var Ambiguous = []byte{','}

// Bearer returns the token of an Authorization header of the scheme Bearer, in
// any case (RFC 6750, 2.1; RFC 9110, 11.1), and nil where there is none. lines are the
// header's values, joined by "," where it was sent more than once, as Envoy
// joins them.
//
// The token is what follows the scheme. It need not be the b64token of RFC 6750,
// since common tokens are not (some have a "|"), but it has neither white space
// nor commas. Where it has, or where the header was sent more than once, Bearer
// returns Ambiguous: upstreams differ in what they take, so any other answer would give a
// client with one good token as many buckets as it can think of spellings, or
// free it from limits that requests without a token skip.
func Bearer(lines []byte) []byte {
	line, rest, several := bytes.Cut(lines, comma)
	token, ok := cutScheme(line)
	if ok && (several || bytes.ContainsAny(token, " \t")) {
		return Ambiguous
	}
	for several {
		line, rest, several = bytes.Cut(rest, comma)
		if _, ok := cutScheme(line); ok {
			return Ambiguous
		}
	}
	return token
}

var comma = []byte{','}

// cutScheme cuts the scheme Bearer off a line. ok is false for another scheme.
func cutScheme(line []byte) (token []byte, ok bool) {
	const scheme = "bearer"
	line = trimSpace(line)
	if len(line) < len(scheme) {
		return nil, false
	}
	for i := range len(scheme) {
		if line[i]|0x20 != scheme[i] {
			return nil, false
		}
	}
	rest := line[len(scheme):]
	if len(rest) > 0 && !isSpace(rest[0]) {
		return nil, false // a longer word
	}
	return trimSpace(rest), true
}
