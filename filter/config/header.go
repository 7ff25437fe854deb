package config

import (
	"errors"
	"strings"
)

// parseHeaderName reads the name of a request header and returns it as requests
// have it: in lower case, and Host as the :authority that Envoy makes of it in
// every version of HTTP.
func parseHeaderName(s string) (string, error) {
	if strings.HasPrefix(s, ":") {
		return "", errors.New(`want a header's name; the path, method and host that HTTP/2 spells so are fields and key parts of their own`)
	}
	name, err := parseToken(s)
	if name == "host" {
		return ":authority", nil
	}
	return name, err
}

// parseToken reads the name of any header and returns it in lower case.
func parseToken(s string) (string, error) {
	if !isToken(s) {
		return "", errors.New("want a header's name, of letters, digits and -")
	}
	return strings.ToLower(s), nil
}

// isToken says whether s is what RFC 9110, 5.6.2 calls a token, as names of
// headers are.
func isToken(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return s != "" && strings.Trim(s, letters+"0123456789!#$%&'*+-.^_`|~") == ""
}

// tokenPattern is what isToken accepts, for the schema.
const tokenPattern = "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"

// checkHeaderValue refuses what no header's value can be (RFC 9110, 5.5): control
// characters other than the tab, and space around it. Letters beyond ASCII are
// sent as UTF-8.
func checkHeaderValue(s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return errors.New("want no control characters, such as line breaks, in a header's value")
	}
	if strings.Trim(s, " \t") != s {
		return errors.New("want no space around a header's value: it would be cut off on the way")
	}
	return nil
}
