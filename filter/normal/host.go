package normal

// Host is AppendHost for strings.
func Host(authority string) string {
	return string(AppendHost(make([]byte, 0, len(authority)), []byte(authority)))
}

// AppendHost appends the normal spelling of the host in authority, a request's
// :authority, to dst and returns the longer slice; dst and authority must not
// overlap. It appends at most len(authority) bytes.
//
// It removes the port, turns ASCII letters to lower case and removes one dot
// from the end, the one that makes a name absolute. An IPv6 literal keeps its
// brackets; its address is not rewritten.
//
// The port is everything from the first colon outside brackets, whether it is a
// number or not: lenient servers, Go's http.ServeMux for one, read
// "example.com:x" as example.com, so it must not pass for another host here.
// User information ("a@example.com") has no place in :authority (RFC 9113,
// 8.3.1) and stays, so that such a host equals none.
func AppendHost(dst, authority []byte) []byte {
	start := len(dst)
	for _, c := range cutPort(authority) {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	if last := len(dst) - 1; last >= start && dst[last] == '.' {
		dst = dst[:last]
	}
	return dst
}

// cutPort cuts the port off an authority, and whatever else may follow a
// bracketed IPv6 literal.
func cutPort(authority []byte) []byte {
	end := byte(':')
	if len(authority) > 0 && authority[0] == '[' {
		end = ']'
	}
	for i, c := range authority {
		if c != end {
			continue
		}
		if end == ']' {
			i++
		}
		return authority[:i]
	}
	return authority
}
