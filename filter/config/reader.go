package config

import (
	"slices"
	"strconv"
	"strings"
)

// reader is what the reading of one document needs to know besides the value at
// hand.
type reader struct {
	collector
	// limits are the names under "limits", for those who refer to them: name to
	// index. nil if there is no object to be found there.
	limits     map[string]int
	limitNames []string // sorted
}

// wrongType notes that n is of a type that can't stand there.
func (r *reader) wrongType(n *node, want string) {
	r.mistake(n, n.found()+": want "+want)
}

// wrong notes that n is of a right type but can't be used.
func (r *reader) wrong(n *node, why string) {
	r.mistake(n, n.value()+": "+why)
}

// value is a kind of value of the format, which becomes a T.
type value[T any] struct {
	// want says in words what to write; it follows "want ".
	want string
	// read fills in to, or notes what is wrong with n and returns false.
	read func(r *reader, n *node, to *T) bool
}

// field is a member that an object of the format may have, or must have. The
// object becomes a T.
type field[T any] struct {
	name     string
	required bool
	want     string
	read     func(r *reader, n *node, to *T)
}

// required declares a field whose value goes to the part of T that at points to.
func required[T, V any](name string, v value[V], at func(*T) *V) field[T] {
	f := optional(name, v, at)
	f.required = true
	return f
}

// optional declares a field that leaves T as it is where it is absent.
func optional[T, V any](name string, v value[V], at func(*T) *V) field[T] {
	return field[T]{name: name, want: v.want, read: func(r *reader, n *node, to *T) {
		v.read(r, n, at(to))
	}}
}

// members is all that an object of the format may hold.
type members[T any] struct {
	// fields are read in this order.
	fields []field[T]
	// refused are names that are known but can't be used here, and why.
	refused []refusal
}

// refusal is a name that is known but can't be used, and a sentence that says
// why.
type refusal struct{ name, why string }

// read fills in to from the object n.
func (m members[T]) read(r *reader, n *node, want string, to *T) bool {
	if n.kind != objectKind {
		r.wrongType(n, want)
		return false
	}
	before := r.count()
	var names []string
	for _, f := range m.fields {
		names = append(names, f.name)
		switch child := n.member(f.name); {
		case child != nil:
			f.read(r, child, to)
		case f.required:
			r.missing(n, f.name, f.want)
		}
	}
	for _, child := range n.children {
		if !slices.Contains(names, child.name) {
			r.unusable(child, names, m.refused)
		}
	}
	return r.count() == before
}

// unusable notes that an object can't have the member child: only those called
// names.
func (r *reader) unusable(child *node, names []string, refused []refusal) {
	known := slices.Clone(names)
	for _, refusal := range refused {
		if refusal.name == child.name {
			r.mistake(child, refusal.why)
			return
		}
		known = append(known, refusal.name)
	}
	r.mistake(child, "no such field"+r.instead(child.name, known, len(names)))
}

// objectOf is an object with these members.
func objectOf[T any](want string, m members[T]) value[T] {
	return value[T]{want, func(r *reader, n *node, to *T) bool { return m.read(r, n, want, to) }}
}

// listOf is an array of any length.
func listOf[T any](want string, v value[T]) value[[]T] {
	return value[[]T]{want, func(r *reader, n *node, to *[]T) bool {
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

// oneOrMore is a value alone, or an array of at least one. Equal ones are kept
// once.
func oneOrMore[T comparable](v value[T]) value[[]T] {
	return value[[]T]{v.want, func(r *reader, n *node, to *[]T) bool {
		var all []T
		switch {
		case n.kind != arrayKind:
			var one T
			if !v.read(r, n, &one) {
				return false
			}
			all = append(all, one)
		case len(n.children) == 0:
			r.mistake(n, "an empty array, which nothing equals: want at least one value, or leave the field out")
			return false
		case !listOf(v.want, v).read(r, n, &all):
			return false
		}
		seen := map[T]bool{}
		for _, one := range all {
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
func stringAs[T any](want string, parse func(string) (T, error)) value[T] {
	return value[T]{want, func(r *reader, n *node, to *T) bool {
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
	})
}

// wantError is an error that says nothing but what to write.
type wantError string

func (e wantError) Error() string { return "want " + string(e) }

// whole is a whole number in any spelling that JSON has for it: numbers that
// have been through a protobuf Struct come as doubles, so 5, 5.0 and 5e0 are one.
func whole[T int | int64](low, high T) value[T] {
	want := "a whole number from " + strconv.FormatInt(int64(low), 10) + " to " + strconv.FormatInt(int64(high), 10)
	return value[T]{want, func(r *reader, n *node, to *T) bool {
		if n.kind != numberKind {
			r.wrongType(n, want)
			return false
		}
		// Beyond a double's range this is an infinity, which is out of range.
		f, _ := strconv.ParseFloat(n.text, 64)
		if f < float64(low) || f > float64(high) || f != float64(T(f)) {
			r.wrong(n, "want "+want)
			return false
		}
		*to = T(f)
		return true
	}}
}

// isName says whether s is a name of a limit or a rule:
// [a-z0-9][a-z0-9_-]{0,63}.
func isName(s string) bool {
	return s != "" && len(s) <= maxNameLength && s[0] != '_' && s[0] != '-' && isWord(s)
}

// isWord says whether s has nothing but a-z, 0-9, "_" and "-" in it.
func isWord(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}
