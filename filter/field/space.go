package field

// isSpace says whether c is white space inside a header (OWS in RFC 9110,
// 5.6.3).
func isSpace(c byte) bool { return c == ' ' || c == '\t' }

// trimSpace cuts white space off both ends.
func trimSpace(text []byte) []byte {
	for len(text) > 0 && isSpace(text[0]) {
		text = text[1:]
	}
	for len(text) > 0 && isSpace(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}
