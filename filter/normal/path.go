package normal

// Path is AppendPath for strings.
func Path(path string) string {
	return string(AppendPath(make([]byte, 0, len(path)+1), []byte(path)))
}

// AppendPath appends the normal spelling of path, a request's :path, to dst and
// returns the longer slice; dst and path must not overlap. It appends at most
// len(path)+1 bytes.
//
// In this order it cuts the query and the fragment, percent-decodes once,
// merges slashes, removes dot segments (RFC 3986, 5.2.4) and removes one slash
// from the end. "/" stays "/", and so does "*", the target of OPTIONS *.
// Everything else begins with "/".
//
// Where upstreams differ, this is what they are taken to do:
//
//   - Dots count after decoding, so "/%2e%2e/" goes up a segment, and slashes
//     are merged before dots are looked at, so "/a//../b" is "/b": nginx, Go and
//     most frameworks read it that way.
//   - "%2F" is data inside a segment and stays, in capitals so that "%2f" is the
//     same path. "%252F" becomes the same text, since it too is decoded once; to
//     upstreams that decode twice both are a slash.
//   - A malformed escape such as "%zz" or a "%" at the end stays as it is.
//   - "..", where there is no segment left to go up from, stays at the root.
//   - An absolute URI ("http://a/b", which HTTP/2 clients can put in :path) is
//     the path in it, because an upstream reached over HTTP/1 takes it for an
//     absolute-form target. A path without a leading slash gets one.
//   - Decoded bytes are bytes: "%00" is a NUL that ends nothing, and an overlong
//     UTF-8 sequence such as "%c0%af" is not the character it imitates.
//     Upstreams refuse both.
//   - Letters keep their case, "\" is no slash and ";x" is no parameter, as in
//     RFC 3986. In front of an upstream that thinks otherwise (IIS, servlet
//     containers) let Envoy refuse or rewrite such paths before this filter.
func AppendPath(dst, path []byte) []byte {
	path = cutQuery(path)
	if string(path) == "*" {
		return append(dst, '*')
	}
	path = cutAuthority(path)

	root := len(dst)
	dst = append(dst, '/')
	segment := len(dst) // where the current segment begins
	for i := 0; i < len(path); {
		c, size, escaped := Decode(path[i:])
		i += size
		switch {
		case escaped && c == '/':
			dst = append(dst, "%2F"...)
		case c == '/':
			dst = endSegment(dst, root, segment, true)
			segment = len(dst)
		default:
			dst = append(dst, c)
		}
	}
	dst = endSegment(dst, root, segment, false)
	if len(dst) > root+1 && dst[len(dst)-1] == '/' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// endSegment finishes the segment dst[segment:] of the path dst[root:], which a
// slash follows or not. An empty segment and a dot segment leave nothing
// behind; "..", not even the segment before it.
func endSegment(dst []byte, root, segment int, slash bool) []byte {
	switch string(dst[segment:]) {
	case "", ".":
		return dst[:segment]
	case "..":
		parent := segment - 1 // the slash before this segment
		for parent > root && dst[parent-1] != '/' {
			parent--
		}
		return dst[:max(parent, root+1)]
	}
	if slash {
		dst = append(dst, '/')
	}
	return dst
}

// Decode reads the first byte of s, which is not empty, or the escape that s
// begins with. size is how many bytes of s that was.
func Decode(s []byte) (c byte, size int, escaped bool) {
	if s[0] == '%' && len(s) >= 3 {
		high, low := unhex(s[1]), unhex(s[2])
		if high >= 0 && low >= 0 {
			return byte(high<<4 | low), 3, true
		}
	}
	return s[0], 1, false
}

// unhex is the value of a hexadecimal digit in either case, or -1.
func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// cutQuery cuts the query and the fragment off: everything from the first "?"
// or "#". Escaped ones are part of the path.
func cutQuery(path []byte) []byte {
	for i, c := range path {
		if c == '?' || c == '#' {
			return path[:i]
		}
	}
	return path
}

// cutAuthority cuts "scheme://authority" off a path that begins with it (RFC
// 3986, 3.1 and 3.2).
func cutAuthority(path []byte) []byte {
	i := 0
	for i < len(path) && isSchemeByte(path[i], i == 0) {
		i++
	}
	if i == 0 || len(path) < i+3 || string(path[i:i+3]) != "://" {
		return path
	}
	for i += 3; i < len(path) && path[i] != '/'; {
		i++
	}
	return path[i:]
}

// isSchemeByte says whether a URI's scheme may have c in it, or begin with it.
func isSchemeByte(c byte, first bool) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		return true
	case '0' <= c && c <= '9', c == '+', c == '-', c == '.':
		return !first
	}
	return false
}
