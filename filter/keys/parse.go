package keys

import (
	"errors"
	"strconv"
	"strings"
)

// kinds are the words that a part's sources begin with. A named kind is
// followed by ":" and a name.
var kinds = []struct {
	word  string
	kind  Kind
	named string // what stands behind the ":", "" for kinds without a name
}{
	{"ip", IP, ""},
	{"header", Header, "NAME"},
	{"method", Method, ""},
	{"path", Path, ""},
	{"host", Host, ""},
	{"route", Route, ""},
	{"const", Const, "TEXT"},
}

// Spellings lists how sources can be spelled, for error messages: "ip,
// header:NAME, ... or const:TEXT".
func Spellings() string {
	var known []string
	for _, k := range kinds {
		if k.named != "" {
			known = append(known, k.word+":"+k.named)
		} else {
			known = append(known, k.word)
		}
	}
	last := len(known) - 1
	return strings.Join(known[:last], ", ") + " or " + known[last]
}

// UnknownKindError is the word that a source begins with, where it names no
// kind.
type UnknownKindError string

func (e UnknownKindError) Error() string {
	return quote(string(e)) + " is no key part: want " + Spellings()
}

// quote is what an error shows of s: its beginning, escaped, so that it cannot
// flood or break a log line.
func quote(s string) string {
	const longest = 64
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return strconv.Quote(s)
}

// Parse reads a key part as the config spells it: an optional "LABEL=", then
// one source or several separated by "|", of which the first counts that the
// request has. A source is a kind, or a kind, ":" and a name, in which "~0",
// "~1" and "~2" stand for "~", "/" and "|".
//
// The label is what stands before the first "=", if no ":" is ahead of it, and
// is spelled [a-z0-9_-]+. Without one the label is the first source's name, or
// its kind where it has none.
//
// The error says what to write instead, without repeating the whole part. It is
// an UnknownKindError where a source's kind is not known.
func Parse(part string) (Part, error) {
	label, sources, labelled := cutLabel(part)
	if labelled && !isLabel(label) {
		return Part{}, errors.New(quote(label) + " is no label: want lower-case letters, digits, _ and - before the =")
	}
	var p Part
	for _, text := range strings.Split(sources, "|") {
		source, name, err := parseSource(text)
		if err != nil {
			return Part{}, err
		}
		if label == "" {
			label = name
		}
		p.Sources = append(p.Sources, source)
	}
	if len(p.Sources) > maxSources {
		return Part{}, errors.New("want no more than " + strconv.Itoa(maxSources) + " alternatives")
	}
	p.Label = label
	return p, nil
}

// maxSources keeps the number of a source in the one byte that Append has for it.
const maxSources = 64

// cutLabel splits a part into its label, if there is one, and its sources.
func cutLabel(part string) (label, sources string, labelled bool) {
	if i := strings.IndexAny(part, "=:"); i >= 0 && part[i] == '=' {
		return part[:i], part[i+1:], true
	}
	return "", part, false
}

func isLabel(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// parseSource reads one source and returns it with its default label.
func parseSource(text string) (source Source, label string, err error) {
	word, name, hasName := strings.Cut(text, ":")
	for _, k := range kinds {
		if k.word != word {
			continue
		}
		if k.named == "" {
			if hasName {
				return Source{}, "", errors.New(quote(word) + " has no name: want " + word + " alone")
			}
			return Source{Kind: k.kind}, word, nil
		}
		name, err := unescape(name)
		if err != nil {
			return Source{}, "", err
		}
		if name == "" {
			return Source{}, "", errors.New(quote(word) + " needs a name: want " + word + ":" + k.named)
		}
		if k.kind == Header {
			return headerSource(name)
		}
		return Source{Kind: k.kind, Name: name}, word, nil
	}
	return Source{}, "", UnknownKindError(word)
}

// headerSource is the source for a header's name. Envoy has the Host header as
// :authority, in every version of HTTP.
func headerSource(name string) (source Source, label string, err error) {
	if !isToken(name) {
		return Source{}, "", errors.New(quote(name) + " is no header's name: want letters, digits and -, or the parts method, path and host for what HTTP/2 spells with a colon")
	}
	name = strings.ToLower(name)
	if name == "host" {
		return Source{Kind: Header, Name: ":authority"}, name, nil
	}
	return Source{Kind: Header, Name: name}, name, nil
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
