//go:build !wasip1

package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// schema writes down what a JSON Schema (draft 2020-12) says of a kind of value,
// as JSON text. Every value and every field of the format has one, beside what
// reads it, so that the schema of the whole format cannot drift from what is
// accepted.
//
// It says what can be said without knowing the rest of the document: names,
// types, ranges, spellings. That a rule names a limit that exists, for example,
// is left to Parse. The wasm module, which nobody asks for it, goes without
// (schema_wasip1.go).
type schema func(*definitions) string

// notes are what editors show of a field: a sentence or two, and its default as
// JSON text, "" if it has none.
type notes struct{ explanation, fallback string }

// explain says in a sentence or two what the field does.
func (f field[T]) explain(text string) field[T] {
	f.notes.explanation = text
	return f
}

// defaultsTo says what the field is where it is absent, as JSON text.
func (f field[T]) defaultsTo(json string) field[T] {
	f.notes.fallback = json
	return f
}

// definitions are the schemas that others refer to by name.
type definitions struct {
	names []string
	texts map[string]string
}

// Schema returns the JSON Schema of a document that Parse accepts, indented.
func Schema() ([]byte, error) {
	defs := &definitions{texts: map[string]string{}}
	top := topMembers.schema()(defs)
	slices.Sort(defs.names)
	var all []string
	for _, name := range defs.names {
		all = append(all, quoteJSON(name)+":"+defs.texts[name])
	}
	text := jsontext.Value(`{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"Plugin configuration of Sluice",` +
		top[1:len(top)-1] + `,"$defs":{` + strings.Join(all, ",") + `}}`)
	err := text.Indent(jsontext.WithIndent("  "))
	return append(text, '\n'), err
}

// quoteJSON is s as a JSON string.
func quoteJSON(s string) string {
	quoted, _ := jsontext.AppendQuote(nil, s) // fails on bytes that are not UTF-8
	return string(quoted)
}

// keywords is the schema that has just these keywords, as JSON text.
func keywords(text string) schema {
	return func(*definitions) string { return "{" + text + "}" }
}

// nothing is the schema that nothing has.
func nothing(*definitions) string { return "false" }

// patternSchema is a string that an ECMAScript regular expression matches.
func patternSchema(pattern string) schema {
	return keywords(`"type":"string","pattern":` + quoteJSON(pattern))
}

// boundedSchema is a string of at most so many bytes, of ASCII if it is as long as
// that, which is not empty.
func boundedSchema(longest int) schema {
	return keywords(`"type":"string","minLength":1,"maxLength":` + strconv.Itoa(longest))
}

// enumSchema is one of a few words.
func enumSchema(words []string) schema {
	return keywords(`"enum":` + stringsJSON(words))
}

func stringsJSON(all []string) string {
	var quoted []string
	for _, s := range all {
		quoted = append(quoted, quoteJSON(s))
	}
	return "[" + strings.Join(quoted, ",") + "]"
}

// wholeSchema is a whole number in a range.
func wholeSchema(low, high int64) schema {
	return keywords(`"type":"integer","minimum":` + strconv.FormatInt(low, 10) + `,"maximum":` + strconv.FormatInt(high, 10))
}

// arraySchema is an array; more are further keywords of it.
func arraySchema(element schema, more string) schema {
	return func(d *definitions) string { return `{"type":"array","items":` + element(d) + more + "}" }
}

// eitherSchema is a value that is one of two kinds.
func eitherSchema(a, b schema) schema {
	return func(d *definitions) string { return `{"anyOf":[` + a(d) + "," + b(d) + "]}" }
}

// mapSchema is an object whose members' names the author chooses.
func mapSchema(name, member schema, more string) schema {
	return func(d *definitions) string {
		return `{"type":"object","propertyNames":` + name(d) + `,"additionalProperties":` + member(d) + more + "}"
	}
}

// defined is a schema that stands once and is referred to by its name.
func defined(name string, s schema) schema {
	return func(d *definitions) string {
		if _, known := d.texts[name]; !known {
			d.names = append(d.names, name)
			d.texts[name] = s(d)
		}
		return `{"$ref":` + quoteJSON("#/$defs/"+name) + "}"
	}
}

// objectSchema is an object with these properties and no others; more are
// further keywords of it.
func objectSchema(properties []*property, more string) schema {
	return func(d *definitions) string {
		return `{"type":"object","additionalProperties":false,` + propertiesJSON(properties, d) + more + "}"
	}
}

// propertiesJSON are the keywords that say which properties an object has.
func propertiesJSON(properties []*property, d *definitions) string {
	var all, required []string
	for _, p := range properties {
		all = append(all, quoteJSON(p.name)+":"+p.annotated(d))
		if p.required {
			required = append(required, p.name)
		}
	}
	text := `"properties":{` + strings.Join(all, ",") + "}"
	if len(required) > 0 {
		text += `,"required":` + stringsJSON(required)
	}
	return text
}

// annotated is the property's schema with what editors show of it.
func (p *property) annotated(d *definitions) string {
	var notes []string
	if p.notes.explanation != "" {
		notes = append(notes, `"description":`+quoteJSON(p.notes.explanation))
	}
	if p.notes.fallback != "" {
		notes = append(notes, `"default":`+p.notes.fallback)
	}
	text := p.schema(d)
	if len(notes) == 0 {
		return text
	}
	if keywords := text[1 : len(text)-1]; keywords != "" {
		notes = append(notes, keywords)
	}
	return "{" + strings.Join(notes, ",") + "}"
}
