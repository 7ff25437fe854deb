package keys

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestKeyPartsAreReadAsTheyAreDocumented(t *testing.T) {
	one := func(label string, kind Kind, name string) Part {
		return Part{Label: label, Sources: []Source{{Kind: kind, Name: name}}}
	}
	labelled := func(p Part) Part {
		p.Labelled = true
		return p
	}
	parts := map[string]Part{
		"ip":                    one("ip", IP, ""),
		"bearer":                one("bearer", Bearer, ""),
		"method":                one("method", Method, ""),
		"path":                  one("path", Path, ""),
		"host":                  one("host", Host, ""),
		"route":                 one("route", Route, ""),
		"virtual_host":          one("virtual_host", VirtualHost, ""),
		"rule":                  one("rule", Rule, ""),
		"header:X-Api-Key":      one("x-api-key", Header, "x-api-key"),
		"header:Host":           one("host", Header, ":authority"),
		"header:x~2y~0":         one("x|y~", Header, "x|y~"),
		"cookie:Session":        one("Session", Cookie, "Session"),
		"cookie:a[b]":           one("a[b]", Cookie, "a[b]"),
		"cookie:a~2b":           one("a|b", Cookie, "a|b"),
		"query:API key":         one("API key", Query, "API key"),
		"query:a=b":             one("a=b", Query, "a=b"),
		"query:a/b~1c":          one("a/b/c", Query, "a/b/c"),
		"const:all":             one("const", Const, "all"),
		"const:a=b:c/d":         one("const", Const, "a=b:c/d"),
		"const:~0~1~2~01":       one("const", Const, "~/|~1"),
		"metadata:f/a":          one("metadata", Metadata, "f\x00a"),
		"metadata:f.g/a/b/c":    one("metadata", Metadata, "f.g\x00a\x00b\x00c"),
		"metadata:f~1g/a~1b/~2": one("metadata", Metadata, "f/g\x00a/b\x00|"),
		"metadata_number:f/a":   one("metadata_number", MetadataNumber, "f\x00a"),
		"property:a":            one("property", Property, "a"),
		"property:a/b~1c/~0":    one("property", Property, "a\x00b/c\x00~"),
		"user=header:x-user-id": labelled(one("user", Header, "x-user-id")),
		"x=header:x":            labelled(one("x", Header, "x")),
		"a_b-1=ip":              labelled(one("a_b-1", IP, "")),
		"t=const:x=y":           labelled(one("t", Const, "x=y")),
		"header:x-api-key|ip":   {Label: "x-api-key", Sources: []Source{{Kind: Header, Name: "x-api-key"}, {Kind: IP}}},
		"ip|header:x":           {Label: "ip", Sources: []Source{{Kind: IP}, {Kind: Header, Name: "x"}}},
		"who=metadata:f/a|bearer|ip": {Label: "who", Labelled: true, Sources: []Source{
			{Kind: Metadata, Name: "f\x00a"}, {Kind: Bearer}, {Kind: IP}}},
	}
	for text, want := range parts {
		got, err := Parse(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestABadKeyPartSaysWhatToWriteInstead(t *testing.T) {
	const want = " is no key part: want ip, header:NAME, cookie:NAME, query:NAME, bearer, metadata:FILTER/a/b, " +
		"metadata_number:FILTER/a/b, property:a/b/c, method, host, path, route, virtual_host, rule or const:TEXT"
	const label = " is no label: want lower-case letters, digits, _ and - before the ="
	mistakes := map[string]string{
		"":                  `""` + want,
		"IP":                `"IP"` + want,
		" ip":               `" ip"` + want,
		"heeder:x":          `"heeder"` + want,
		"ip|":               `""` + want,
		"|ip":               `""` + want,
		"header:a||ip":      `""` + want,
		"ip|user=header:x":  `"ip|user"` + label,
		"User=ip":           `"User"` + label,
		"=ip":               `""` + label,
		"a=":                `""` + want,
		"a=b=ip":            `"b=ip"` + want,
		"ip:4":              `"ip" has no name: want ip alone`,
		"path:":             `"path" has no name: want path alone`,
		"header":            `"header" needs a name: want header:NAME`,
		"header:":           `"header" needs a name: want header:NAME`,
		"const:|ip":         `"const" needs a name: want const:TEXT`,
		"const:a~":          `a ~ stands alone: want ~0 for ~, ~1 for / or ~2 for |`,
		"const:~3":          `a ~ stands alone: want ~0 for ~, ~1 for / or ~2 for |`,
		"const:~~0":         `a ~ stands alone: want ~0 for ~, ~1 for / or ~2 for |`,
		"bearer:x":          `"bearer" has no name: want bearer alone`,
		"cookie:":           `"cookie" needs a name: want cookie:NAME`,
		"cookie:a=b":        `"a=b" is no cookie's name: want it without =, ; and spaces`,
		"cookie:a; b":       `"a; b" is no cookie's name: want it without =, ; and spaces`,
		"cookie:a\tb":       `"a\tb" is no cookie's name: want it without =, ; and spaces`,
		"query":             `"query" needs a name: want query:NAME`,
		"query:~":           `a ~ stands alone: want ~0 for ~, ~1 for / or ~2 for |`,
		"metadata":          `"metadata" needs a name: want metadata:FILTER/a/b`,
		"metadata:f":        `"f" names a filter alone: want FILTER/a/b, the way to a value in its metadata`,
		"metadata:f~1a":     `"f~1a" names a filter alone: want FILTER/a/b, the way to a value in its metadata`,
		"metadata:f/":       `"f/" is no path: want names with / between, as in a/b/c; a / in a name is ~1`,
		"metadata:/a":       `"/a" is no path: want names with / between, as in a/b/c; a / in a name is ~1`,
		"metadata:f/a~":     `a ~ stands alone: want ~0 for ~, ~1 for / or ~2 for |`,
		"metadata:f/a\x00b": `"f/a\x00b" is no path: want names with / between, as in a/b/c; a / in a name is ~1`,
		"metadata_number:f": `"f" names a filter alone: want FILTER/a/b, the way to a value in its metadata`,
		"property:a//b":     `"a//b" is no path: want names with / between, as in a/b/c; a / in a name is ~1`,
		"header::authority": `":authority" is no header's name: want letters, digits and -, or the parts method, path and host for what HTTP/2 spells with a colon`,
		"header:x y":        `"x y" is no header's name: want letters, digits and -, or the parts method, path and host for what HTTP/2 spells with a colon`,
	}
	for text, want := range mistakes {
		part, err := Parse(text)
		if err == nil {
			t.Errorf("%q is accepted as %+v", text, part)
		} else if err.Error() != want {
			t.Errorf("%q:\n got %s\nwant %s", text, err, want)
		}
	}
}

func TestAnUnknownKindCanBeToldFromOtherMistakes(t *testing.T) {
	_, err := Parse("user=header:x|baerer")
	var unknown UnknownKindError
	if !errors.As(err, &unknown) || unknown != "baerer" {
		t.Errorf("got %v, want the kind baerer", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, part := range []string{"ip", "user=header:x-user-id|ip", "const:~0~1~2", "a=b=c", "header:", "~", "|", "metadata:f/a~1b|cookie:c", "property:a//b"} {
		f.Add(part)
	}
	f.Fuzz(func(t *testing.T, text string) {
		part, err := Parse(text)
		if err != nil {
			return
		}
		if part.Label == "" || len(part.Sources) != strings.Count(text, "|")+1 {
			t.Errorf("%q is %+v", text, part)
		}
		for _, s := range part.Sources {
			var named bool
			for _, k := range kinds {
				named = named || k.kind == s.Kind && k.named != ""
			}
			if s.Kind < IP || s.Kind > Const || named != (s.Name != "") {
				t.Errorf("%q has the source %+v", text, s)
			}
		}
	})
}

func TestAPartHasNoMoreAlternativesThanItCanTellApart(t *testing.T) {
	if _, err := Parse(strings.TrimSuffix(strings.Repeat("ip|", maxSources), "|")); err != nil {
		t.Error(err)
	}
	if _, err := Parse(strings.Repeat("ip|", maxSources) + "ip"); err == nil {
		t.Error("a part was taken whose sources would share numbers")
	}
}
