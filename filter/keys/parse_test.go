package keys

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestKeyPartsAreReadAsTheyAreDocumented(t *testing.T) {
	one := func(label string, kind Kind, name string) Part {
		return Part{Label: label, Sources: []Source{{kind, name}}}
	}
	parts := map[string]Part{
		"ip":                    one("ip", IP, ""),
		"method":                one("method", Method, ""),
		"path":                  one("path", Path, ""),
		"host":                  one("host", Host, ""),
		"route":                 one("route", Route, ""),
		"header:X-Api-Key":      one("x-api-key", Header, "x-api-key"),
		"header:Host":           one("host", Header, ":authority"),
		"const:all":             one("const", Const, "all"),
		"const:a=b:c/d":         one("const", Const, "a=b:c/d"),
		"const:~0~1~2~01":       one("const", Const, "~/|~1"),
		"header:x~2y~0":         one("x|y~", Header, "x|y~"),
		"user=header:x-user-id": one("user", Header, "x-user-id"),
		"a_b-1=ip":              one("a_b-1", IP, ""),
		"t=const:x=y":           one("t", Const, "x=y"),
		"header:x-api-key|ip":   {Label: "x-api-key", Sources: []Source{{Header, "x-api-key"}, {IP, ""}}},
		"ip|header:x":           {Label: "ip", Sources: []Source{{IP, ""}, {Header, "x"}}},
		"who=header:a|header:b|ip": {Label: "who", Sources: []Source{
			{Header, "a"}, {Header, "b"}, {IP, ""}}},
	}
	for text, want := range parts {
		got, err := Parse(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestABadKeyPartSaysWhatToWriteInstead(t *testing.T) {
	const want = " is no key part: want ip, header:NAME, method, path, host, route or const:TEXT"
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
	_, err := Parse("user=header:x|bearer")
	var unknown UnknownKindError
	if !errors.As(err, &unknown) || unknown != "bearer" {
		t.Errorf("got %v, want the kind bearer", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, part := range []string{"ip", "user=header:x-user-id|ip", "const:~0~1~2", "a=b=c", "header:", "~", "|"} {
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
			named := s.Kind == Header || s.Kind == Const
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
