package config

import (
	"errors"
	"regexp"
	"slices"
)

const (
	wantHeaders   = `an object such as {"x-plan": "gold"}`
	wantCondition = `a value such as "gold", or an object such as {"prefix": "gold-"}`
)

// headersValue is an object of conditions by headers' names.
var headersValue = value[[]HeaderMatch]{wantHeaders, headersSchema, func(r *reader, n *node, to *[]HeaderMatch) bool {
	if n.kind != objectKind {
		r.wrongType(n, wantHeaders)
		return false
	}
	if len(n.children) == 0 {
		r.mistake(n, "an empty object, which everything fits: want "+wantHeaders+", or leave the field out")
		return false
	}
	before := r.count()
	names := headerNames{}
	for _, child := range n.sorted() {
		m := HeaderMatch{Name: names.read(r, child, parseHeaderName)}
		oneOrMore(conditionValue).read(r, child, &m.Any)
		*to = append(*to, m)
	}
	return r.count() == before
}}

var headersSchema = mapSchema(patternSchema(tokenPattern), oneOrMore(conditionValue).schema, `,"minProperties":1`)

// headerNames are the names that an object has had so far, in lower case.
type headerNames map[string]*node

// read reads the name of n, a member of an object by headers' names. It notes a
// name that parse refuses, and one that stood there before in other letters, since
// case does not count.
func (names headerNames) read(r *reader, n *node, parse func(string) (string, error)) string {
	name, err := parse(n.name)
	if err != nil {
		r.mistake(n, quote(n.name)+": "+err.Error())
		return ""
	}
	if first := names[name]; first != nil {
		r.mistake(n, "the same header as "+first.path()+": keep one")
	}
	names[name] = n
	return name
}

// conditionValue is an exact value alone, or an object with one member.
var conditionValue = value[Condition]{wantCondition, defined("condition", eitherSchema(exactValue.schema, conditionSchema(conditionMembers))),
	func(r *reader, n *node, to *Condition) bool { return readCondition(r, n, conditionMembers, to) }}

// positiveValue is a condition that "not" can turn around.
var positiveValue = value[Condition]{wantCondition, eitherSchema(exactValue.schema, conditionSchema(positiveMembers)),
	func(r *reader, n *node, to *Condition) bool {
		if n.kind == arrayKind {
			r.mistake(n, `an array, under "not": want one condition, such as {"regex": "a|b"}`)
			return false
		}
		return readCondition(r, n, positiveMembers, to)
	}}

func readCondition(r *reader, n *node, m members[Condition], to *Condition) bool {
	if n.kind != objectKind {
		if n.kind != stringKind {
			r.wrongType(n, wantCondition)
			return false
		}
		return exactValue.read(r, n, &to.Exact)
	}
	if !m.read(r, n, wantCondition, to) {
		return false
	}
	if len(n.children) != 1 {
		var names []string
		for _, f := range m.fields {
			names = append(names, f.name)
		}
		r.mistake(n, "has "+[]string{"none", "more than one"}[min(1, len(n.children))]+" of "+list(names, "and")+": want exactly one")
		return false
	}
	return true
}

var positiveMembers = members[Condition]{
	fields: []field[Condition]{
		optional("present", trueValue, func(c *Condition) *bool { return &c.Present }).
			explain("The request has the header, with a value that is not empty."),
		optional("prefix", prefixValue, func(c *Condition) **string { return &c.Prefix }).
			explain("The value begins with it."),
		optional("regex", regexValue, func(c *Condition) **regexp.Regexp { return &c.Regex }).
			explain("The whole value matches it (RE2)."),
	},
}

var conditionMembers = members[Condition]{
	fields: append(slices.Clone(positiveMembers.fields),
		optional("not", positiveValue, func(c *Condition) *Condition { c.Not = true; return c }).
			explain("The condition does not hold; a header that is absent fits too.")),
}

func conditionSchema(m members[Condition]) schema {
	return objectSchema(m.properties(), `,"minProperties":1,"maxProperties":1`)
}

// exactValue refuses the empty value, which counts as an absent header.
var exactValue = stringAs(wantCondition, func(s string) (*string, error) {
	if s == "" {
		return nil, errors.New(`an empty value counts as an absent header: want {"not": {"present": true}}`)
	}
	return &s, checkHeaderValue(s)
}).as(textSchema)

var prefixValue = stringAs("the beginning of a header's value", func(s string) (*string, error) {
	if s == "" {
		return nil, errors.New(`every value begins so: want {"present": true}`)
	}
	return &s, nil
}).as(textSchema)
