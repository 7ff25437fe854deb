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
	// readName reads what stands there, escapes included, and returns what the
	// Source has as its Name.
	readName func(text string) (name string, err error)
}{
	{"ip", IP, "", nil},
	{"header", Header, "NAME", headerName},
	{"cookie", Cookie, "NAME", cookieName},
	{"query", Query, "NAME", unescape},
	{"bearer", Bearer, "", nil},
	{"metadata", Metadata, "FILTER/a/b", metadataPath},
	{"metadata_number", MetadataNumber, "FILTER/a/b", metadataPath},
	{"property", Property, "a/b/c", propertyPath},
	{"method", Method, "", nil},
	{"host", Host, "", nil},
	{"path", Path, "", nil},
	{"route", Route, "", nil},
	{"virtual_host", VirtualHost, "", nil},
	{"rule", Rule, "", nil},
	{"const", Const, "TEXT", unescape},
}

// word is how the config spells a kind.
func (k Kind) word() string {
	for i := range kinds {
		if kinds[i].kind == k {
			return kinds[i].word
		}
	}
	return ""
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

// longestShown is how many bytes of a text are shown in errors and logs.
const longestShown = 64

// quote is what is shown of s: its beginning, escaped, so that it cannot flood
// or break a log line.
func quote(s string) string {
	if len(s) > longestShown {
		s = strings.ToValidUTF8(s[:longestShown], "") + "…"
	}
	return strconv.Quote(s)
}

// Parse reads a key part as the config spells it: an optional "LABEL=", then
// one source or several separated by "|", of which the first counts that the
// request has. A source is a kind, or a kind, ":" and a name, in which "~0",
// "~1" and "~2" stand for "~", "/" and "|".
//
// The label is what stands before the first "=", if no ":" is ahead of it, and
// is spelled [a-z0-9_-]+. Without one the label is that of the first source: the
// name of its header, cookie or query parameter, for others their kind.
//
// The error says what to write instead, without repeating the whole part. It is
// an UnknownKindError where a source's kind is not known.
func Parse(part string) (Part, error) {
	label, sources, labelled := cutLabel(part)
	if labelled && !isLabel(label) {
		return Part{}, errors.New(quote(label) + " is no label: want lower-case letters, digits, _ and - before the =")
	}
	p := Part{Label: label, Labelled: labelled}
	for _, text := range strings.Split(sources, "|") {
		source, err := parseSource(text)
		if err != nil {
			return Part{}, err
		}
		p.Sources = append(p.Sources, source)
	}
	if len(p.Sources) > maxSources {
		return Part{}, errors.New("want no more than " + strconv.Itoa(maxSources) + " alternatives")
	}
	if !labelled {
		p.Label = p.Sources[0].label()
	}
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

func parseSource(text string) (Source, error) {
	word, name, hasName := strings.Cut(text, ":")
	for i := range kinds {
		k := &kinds[i]
		if k.word != word {
			continue
		}
		if k.named == "" {
			if hasName {
				return Source{}, errors.New(quote(word) + " has no name: want " + word + " alone")
			}
			return Source{Kind: k.kind}, nil
		}
		if name == "" {
			return Source{}, errors.New(quote(word) + " needs a name: want " + word + ":" + k.named)
		}
		name, err := k.readName(name)
		if err != nil {
			return Source{}, err
		}
		return Source{Kind: k.kind, Name: name}, nil
	}
	return Source{}, UnknownKindError(word)
}

// label is what a source is called where the config does not say.
func (s *Source) label() string {
	switch {
	case s.Kind == Header && s.Name == authority:
		return "host"
	case s.Kind == Header, s.Kind == Cookie, s.Kind == Query:
		return s.Name
	}
	return s.Kind.word()
}
