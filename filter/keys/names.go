package keys

import (
	"errors"
	"strings"
)

// authority is what Envoy has the Host header as, in every version of HTTP.
const authority = ":authority"

// headerName reads the name of a header.
func headerName(text string) (string, error) {
	name, err := unescape(text)
	if err != nil {
		return "", err
	}
	if !isToken(name) {
		return "", errors.New(quote(name) + " is no header's name: want letters, digits and -, or the parts method, path and host for what HTTP/2 spells with a colon")
	}
	name = strings.ToLower(name)
	if name == "host" {
		return authority, nil
	}
	return name, nil
}

// cookieName reads the name of a cookie. Applications use more than the tokens
// of RFC 6265, 4.1.1, such as "a[b]"; what is refused is what no Cookie line
// could have as a name.
func cookieName(text string) (string, error) {
	name, err := unescape(text)
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(name, "=; ") || hasControl(name) {
		return "", errors.New(quote(name) + " is no cookie's name: want it without =, ; and spaces")
	}
	return name, nil
}

// metadataPath reads the name of a filter and the steps into its metadata, and
// returns them with zero bytes between.
func metadataPath(text string) (string, error) {
	if !strings.Contains(text, "/") {
		return "", errors.New(quote(text) + " names a filter alone: want FILTER/a/b, the way to a value in its metadata")
	}
	return propertyPath(text)
}

// propertyPath reads steps and returns them with zero bytes between, as Envoy
// wants them.
func propertyPath(text string) (string, error) {
	steps := strings.Split(text, "/")
	for i, step := range steps {
		var err error
		if steps[i], err = unescape(step); err != nil {
			return "", err
		}
		if step == "" || strings.Contains(step, "\x00") {
			return "", errors.New(quote(text) + " is no path: want names with / between, as in a/b/c; a / in a name is ~1")
		}
	}
	return strings.Join(steps, "\x00"), nil
}

func hasControl(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] == 0x7f {
			return true
		}
	}
	return false
}

// isToken says whether s is what RFC 9110, 5.6.2 calls a token, as names of
// headers are.
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// unescape replaces the escapes in a name. They are those of JSON Pointer (RFC
// 6901) and one more.
func unescape(s string) (string, error) {
	if !strings.Contains(s, "~") {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '~' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) || s[i] < '0' || s[i] > '2' {
			return "", errors.New("a ~ stands alone: want ~0 for ~, ~1 for / or ~2 for |")
		}
		b.WriteByte("~/|"[s[i]-'0'])
	}
	return b.String(), nil
}
