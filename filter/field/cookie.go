package field

import "bytes"

// Cookie returns the value of the first cookie of a name in one Cookie line (RFC
// 6265, 4.2.1 and 5.4): pairs separated by ";", names with their case. White
// space around names and values is dropped, and so are the double quotes around
// a value, as servers do: "x" and x are one client. A pair without "=" has no
// name.
func Cookie(line []byte, name string) (value []byte, found bool) {
	for more := true; more; {
		var pair []byte
		pair, line, more = bytes.Cut(line, semicolon)
		n, v, named := bytes.Cut(pair, equals)
		if named && string(trimSpace(n)) == name {
			return unquote(trimSpace(v)), true
		}
	}
	return nil, false
}

var semicolon, equals = []byte{';'}, []byte{'='}

// unquote drops the double quotes around a value, if both are there.
func unquote(value []byte) []byte {
	if last := len(value) - 1; last > 0 && value[0] == '"' && value[last] == '"' {
		return value[1:last]
	}
	return value
}
