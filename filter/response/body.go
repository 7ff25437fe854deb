package response

import (
	"strconv"
	"strings"
)

// body is a refusal's body with places that are filled in for each refusal.
type body []piece

// piece is a text, and what comes after it.
type piece struct {
	text  string
	place place
}

// place is something that differs from one refusal to the next.
type place uint8

const (
	nowhere place = iota
	limitName
	ruleName
	limitUnits
	remainingUnits
	resetSeconds
	retrySeconds
	sentence // for the default bodies; a config cannot ask for it
)

// placeholders are what a config writes for a place. Since none contains a brace
// but its own, no two can overlap.
var placeholders = [...]struct {
	text  string
	place place
}{
	{"{name}", limitName},
	{"{rule}", ruleName},
	{"{limit}", limitUnits},
	{"{remaining}", remainingUnits},
	{"{reset}", resetSeconds},
	{"{retry_after}", retrySeconds},
}

// parseBody finds the placeholders in a body as a config has it. Everything
// else in it stays as it is written, any other brace too.
func parseBody(s string) body {
	var b body
	text := 0 // where the text ahead of the next placeholder begins
	for i := 0; i < len(s); {
		place, size := placeAt(s[i:])
		if place == nowhere {
			i++
			continue
		}
		b = append(b, piece{s[text:i], place})
		i += size
		text = i
	}
	return append(b, piece{text: s[text:]})
}

// placeAt returns the place that s begins with, if any, and how long its
// placeholder is.
func placeAt(s string) (place, int) {
	for _, p := range placeholders {
		if strings.HasPrefix(s, p.text) {
			return p.place, len(p.text)
		}
	}
	return nowhere, 0
}

// fill writes the body for a refusal, in one pass, so that what is filled in is
// never taken for a placeholder. Texts are put in as they are, escaped if the
// body is JSON, without quotes around them; what the refusal does not have is
// null.
func (b body) fill(r *Refusal, isJSON bool) []byte {
	size := 0
	for _, p := range b {
		size += len(p.text) + 64 // the longest name, or nearly the longest sentence
	}
	dst := make([]byte, 0, size)
	for _, p := range b {
		dst = append(dst, p.text...)
		dst = appendPlace(dst, p.place, r, isJSON)
	}
	return dst
}

func appendPlace(dst []byte, p place, r *Refusal, isJSON bool) []byte {
	switch p {
	case limitName:
		return appendText(dst, r.Name, isJSON)
	case ruleName:
		return appendText(dst, r.Rule, isJSON)
	case limitUnits:
		return appendNumber(dst, r.Limit, !r.MissingKey)
	case remainingUnits:
		return appendNumber(dst, r.Remaining, !r.MissingKey)
	case resetSeconds:
		return appendNumber(dst, Seconds(r.Reset), !r.MissingKey && r.Reset >= 0)
	case retrySeconds:
		seconds, ok := r.RetrySeconds()
		return appendNumber(dst, seconds, ok)
	case sentence:
		return append(dst, r.Message()...)
	default:
		return dst
	}
}

func appendNumber(dst []byte, n int64, ok bool) []byte {
	if !ok {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, n, 10)
}

func appendText(dst []byte, s string, isJSON bool) []byte {
	switch {
	case s == "":
		return append(dst, "null"...)
	case isJSON:
		return appendEscaped(dst, s)
	default:
		return append(dst, s...)
	}
}

// appendEscaped appends s, which is UTF-8, as it must stand between the quotes of
// a JSON string (RFC 8259, section 7).
func appendEscaped(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
