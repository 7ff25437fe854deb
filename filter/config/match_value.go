package config

import (
	"errors"
	"math"
	"net/netip"
	"slices"
	"strconv"

	"github.com/sluice-proxy/sluice/filter/keys"
	"github.com/sluice-proxy/sluice/filter/metadata"
)

const wantValues = `an object such as {"header:x-plan": "gold"}`

// valuesValue is an object of values by key parts.
var valuesValue = value[[]ValueMatch]{wantValues, valuesSchema, func(r *reader, n *node, to *[]ValueMatch) bool {
	if n.kind != objectKind {
		r.wrongType(n, wantValues)
		return false
	}
	if len(n.children) == 0 {
		r.mistake(n, "an empty object, which everything fits: want "+wantValues+", or leave the field out")
		return false
	}
	before := r.count()
	for _, child := range n.sorted() {
		part, err := keys.Parse(child.name)
		if err != nil {
			r.mistake(child, quote(child.name)+": "+err.Error())
			continue
		}
		var spellings [][]string
		oneOrMore(valueOf(part)).read(r, child, &spellings)
		texts := slices.Concat(spellings...)
		slices.Sort(texts)
		*to = append(*to, ValueMatch{Part: part, Any: slices.Compact(texts)})
	}
	return r.count() == before
}}

var valuesSchema = mapSchema(stringSchema, oneOrMore(valueOf(keys.Part{})).schema, `,"minProperties":1`)

// valueOf is a value that a key part can have, in each spelling that one of the
// part's sources has for it.
func valueOf(part keys.Part) value[[]string] {
	want := "a string"
	if reads(part, keys.MetadataNumber) {
		want = "a whole number"
	}
	return value[[]string]{want, eitherSchema(textSchema, keywords(`"type":"integer"`)), func(r *reader, n *node, to *[]string) bool {
		text := n.text
		switch {
		case n.kind == numberKind && reads(part, keys.MetadataNumber):
			// A whole number as a double has it is as good as 5 or 5e0.
			if f, _ := strconv.ParseFloat(n.text, 64); f == math.Trunc(f) && math.Abs(f) < 1e18 {
				text = strconv.FormatInt(int64(f), 10)
			}
		case n.kind != stringKind:
			r.wrongType(n, want)
			return false
		}
		var why error
		for _, s := range part.Sources {
			spelled, err := spell(s.Kind, text)
			if err != nil {
				why = err
				continue
			}
			*to = append(*to, spelled)
		}
		if len(*to) == 0 {
			r.wrong(n, why.Error())
		}
		return len(*to) > 0
	}}
}

// reads says whether a key part can be read from a source of this kind.
func reads(part keys.Part, kind keys.Kind) bool {
	return slices.ContainsFunc(part.Sources, func(s keys.Source) bool { return s.Kind == kind })
}

// spell returns text as requests spell what a source of this kind reads.
func spell(kind keys.Kind, text string) (string, error) {
	if text == "" {
		return "", errors.New("an empty value counts as missing: want a text")
	}
	switch kind {
	case keys.IP:
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" {
			return "", errors.New(`want an address such as "192.0.2.1"; for networks there is the field "ip"`)
		}
		return address.Unmap().String(), nil
	case keys.Path:
		return parsePath(text)
	case keys.Host:
		host, err := parseHost(text)
		if err == nil && host.Under {
			return "", errors.New(`want one host; for all under a name there is the field "host"`)
		}
		return host.Name, err
	case keys.Method:
		return parseMethod(text)
	case keys.Header:
		return text, checkHeaderValue(text)
	case keys.MetadataNumber:
		whole, err := strconv.ParseInt(text, 10, 64)
		if err != nil || whole < -metadata.MaxWhole || whole > metadata.MaxWhole {
			return "", errors.New("want a whole number from -(2^53-1) to 2^53-1")
		}
		return strconv.FormatInt(whole, 10), nil
	}
	return text, nil
}
