package field

import (
	"bytes"

	"github.com/sluice-proxy/sluice/filter/normal"
)

// AppendQuery appends to dst the decoded value of the first parameter of a name
// in the query of path, a request's :path, and nothing where there is none. It
// reads the query as forms are read (URL Standard of the WHATWG, 5.1): parameters are
// separated by "&" alone, "+" is a space, and names and values are
// percent-decoded; a malformed escape stays as it is. The query goes from the
// first "?" to the first "#" (RFC 3986, 3.4).
func AppendQuery(dst, path []byte, name string) []byte {
	if fragment := bytes.IndexByte(path, '#'); fragment >= 0 {
		path = path[:fragment]
	}
	_, query, more := bytes.Cut(path, questionMark)
	for more {
		var parameter []byte
		parameter, query, more = bytes.Cut(query, ampersand)
		n, value, _ := bytes.Cut(parameter, equals)
		if isSpelled(n, name) {
			return appendDecoded(dst, value)
		}
	}
	return dst
}

var questionMark, ampersand = []byte{'?'}, []byte{'&'}

// isSpelled says whether text is name once it is decoded.
func isSpelled(text []byte, name string) bool {
	for len(text) > 0 {
		c, size := decode(text)
		if len(name) == 0 || c != name[0] {
			return false
		}
		text, name = text[size:], name[1:]
	}
	return name == ""
}

func appendDecoded(dst, text []byte) []byte {
	for len(text) > 0 {
		c, size := decode(text)
		dst, text = append(dst, c), text[size:]
	}
	return dst
}

// decode reads the first character of text, which is not empty, and says how
// many bytes it takes there.
func decode(text []byte) (c byte, size int) {
	if text[0] == '+' {
		return ' ', 1
	}
	c, size, _ = normal.Decode(text)
	return c, size
}
