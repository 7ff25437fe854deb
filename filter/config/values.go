package config

import (
	"strconv"
	"strings"
)

// Constructors of values are called once for each field of the format. Where they
// are not to be inlined it is because every call would bring a copy of what they
// return: 40 KB of the module together.

// Schemas of values of one type.
var (
	anything      = keywords("")
	booleanSchema = keywords(`"type":"boolean"`)
	stringSchema  = keywords(`"type":"string"`)
	textSchema    = keywords(`"type":"string","minLength":1`)
)

// objectOf is an object with these members.
func objectOf[T any](want string, m members[T]) value[T] {
	return value[T]{want, m.schema(), func(r *reader, n *node, to *T) bool { return m.read(r, n, want, to) }}
}

// listOf is an array of any length.
//
//go:noinline
func listOf[T any](want string, v value[T]) value[[]T] {
	return value[[]T]{want, arraySchema(v.schema, ""), func(r *reader, n *node, to *[]T) bool {
		if n.kind != arrayKind {
			r.wrongType(n, want)
			return false
		}
		ok := true
		for _, child := range n.children {
			var element T
			if v.read(r, child, &element) {
				*to = append(*to, element)
			} else {
				ok = false
			}
		}
		return ok
	}}
}

// oneOrMore is a value alone, or an array of at least one.
//
//go:noinline
func oneOrMore[T any](v value[T]) value[[]T] {
	return value[[]T]{v.want, eitherSchema(v.schema, arraySchema(v.schema, `,"minItems":1`)), func(r *reader, n *node, to *[]T) bool {
		if n.kind != arrayKind {
			var one T
			ok := v.read(r, n, &one)
			if ok {
				*to = append(*to, one)
			}
			return ok
		}
		if len(n.children) == 0 {
			r.mistake(n, "an empty array, which nothing equals: want at least one value, or leave the field out")
			return false
		}
		return listOf(v.want, v).read(r, n, to)
	}}
}

// distinct is oneOrMore with equal values kept once.
//
//go:noinline
func distinct[T comparable](v value[T]) value[[]T] {
	all := oneOrMore(v)
	return value[[]T]{all.want, all.schema, func(r *reader, n *node, to *[]T) bool {
		var read []T
		if !all.read(r, n, &read) {
			return false
		}
		seen := map[T]bool{}
		for _, one := range read {
			if !seen[one] {
				seen[one] = true
				*to = append(*to, one)
			}
		}
		return true
	}}
}

// stringAs is a string that parse makes a T of. Its error says what to write
// instead.
//
//go:noinline
func stringAs[T any](want string, parse func(string) (T, error)) value[T] {
	return value[T]{want, stringSchema, func(r *reader, n *node, to *T) bool {
		if n.kind != stringKind {
			r.wrongType(n, want)
			return false
		}
		parsed, err := parse(n.text)
		if err != nil {
			r.wrong(n, err.Error())
			return false
		}
		*to = parsed
		return true
	}}
}

// choice is a word of the format and what it means.
type choice[T any] struct {
	word    string
	meaning T
}

// oneOf is one of a few words.
func oneOf[T any](choices ...choice[T]) value[T] {
	var words []string
	for _, c := range choices {
		words = append(words, c.word)
	}
	want := list(words, "or")
	return stringAs(want, func(s string) (meaning T, err error) {
		for _, c := range choices {
			if c.word == s {
				return c.meaning, nil
			}
		}
		return meaning, wantError(want)
	}).as(enumSchema(words))
}

// wantError is an error that says nothing but what to write.
type wantError string

func (e wantError) Error() string { return "want " + string(e) }

// boolValue is true or false.
var boolValue = value[bool]{"true or false", booleanSchema, func(r *reader, n *node, to *bool) bool {
	if n.kind != boolKind {
		r.wrongType(n, "true or false")
		return false
	}
	*to = n.text == "true"
	return true
}}

// whole is a whole number in any spelling that JSON has for it: numbers that
// have been through a protobuf Struct come as doubles, so 5, 5.0 and 5e0 are one.
func whole[T int | int64 | uint8](low, high T) value[T] {
	want := "a whole number from " + strconv.FormatInt(int64(low), 10) + " to " + strconv.FormatInt(int64(high), 10)
	return value[T]{want, wholeSchema(int64(low), int64(high)), func(r *reader, n *node, to *T) bool {
		if n.kind != numberKind {
			r.wrongType(n, want)
			return false
		}
		// Beyond a double's range this is an infinity, which is out of range. A
		// Struct can hold what is no number, which equals nothing.
		f, _ := strconv.ParseFloat(n.text, 64)
		if f < float64(low) || f > float64(high) || f != float64(T(f)) {
			r.wrong(n, "want "+want)
			return false
		}
		*to = T(f)
		return true
	}}
}

// namePattern is what isName accepts, for the schema.
const namePattern = "^[a-z0-9][a-z0-9_-]{0,63}$"

// isName says whether s is a name of a limit or a rule:
// [a-z0-9][a-z0-9_-]{0,63}.
func isName(s string) bool {
	return s != "" && len(s) <= maxNameLength && s[0] != '_' && s[0] != '-' && isWord(s)
}

// isWord says whether s has nothing but a-z, 0-9, "_" and "-" in it.
func isWord(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}
