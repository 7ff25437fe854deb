package config

import "slices"

// reader is what the reading of one document needs to know besides the value at
// hand.
type reader struct {
	collector
	// limits are the names under "limits", for those who refer to them: name to
	// index. nil if there is no object to be found there.
	limits     map[string]int
	limitNames []string                 // sorted
	regexes    map[string]regexOrWhyNot // by their text
	dialects   map[*algorithm]*dialect
	// Where queues are named: by "always", and by each rule that names any.
	alwaysQueues []*node
	ruleQueues   [][]*node
	globals      []globalLimit
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
	want   string
	schema schema
	// read fills in to, or notes what is wrong with n and returns false.
	read func(r *reader, n *node, to *T) bool
}

// as is the value with a schema that says more than that of its type.
func (v value[T]) as(s schema) value[T] {
	v.schema = s
	return v
}

// defined is the value with its schema standing in one place, under this name.
func (v value[T]) defined(name string) value[T] { return v.as(defined(name, v.schema)) }

// property is what is known of a field whatever becomes of it.
type property struct {
	name     string
	required bool
	want     string // as in value
	schema   schema
	notes    notes
}

// field is a member that an object of the format may have, or must have. The
// object becomes a T.
type field[T any] struct {
	property
	read func(r *reader, n *node, to *T)
}

// required declares a field whose value goes to the part of T that at points to.
func required[T, V any](name string, v value[V], at func(*T) *V) field[T] {
	f := optional(name, v, at)
	f.required = true
	return f
}

// optional declares a field that leaves T as it is where it is absent.
//
//go:noinline
func optional[T, V any](name string, v value[V], at func(*T) *V) field[T] {
	return field[T]{
		property: property{name: name, want: v.want, schema: v.schema},
		read:     func(r *reader, n *node, to *T) { v.read(r, n, at(to)) },
	}
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
	misspelt := r.unknown(n, m.properties(), m.refused)
	for i := range m.fields {
		if child := r.member(n, &m.fields[i].property, misspelt); child != nil {
			m.fields[i].read(r, child, to)
		}
	}
	return r.count() == before
}

func (m members[T]) properties() []*property {
	all := make([]*property, len(m.fields))
	for i := range m.fields {
		all[i] = &m.fields[i].property
	}
	return all
}

// schema is the schema of an object with these members.
func (m members[T]) schema() schema { return objectSchema(m.properties(), "") }

// unknown notes the members that the object n can't have: all but these
// properties. It returns the names that were probably meant by them.
func (r *reader) unknown(n *node, properties []*property, refused []refusal) (misspelt []string) {
	names := make([]string, len(properties))
	for i, p := range properties {
		names[i] = p.name
	}
	var known []string
	for _, child := range n.children {
		if slices.Contains(names, child.name) {
			continue
		}
		if known == nil {
			known = slices.Clone(names)
			for _, f := range refused {
				known = append(known, f.name)
			}
		}
		if i := slices.Index(known, child.name); i >= 0 {
			r.mistake(child, refused[i-len(names)].why)
			continue
		}
		meant, remedy := r.instead(child.name, known, len(names))
		r.mistake(child, "no such field"+remedy)
		misspelt = append(misspelt, meant)
	}
	return misspelt
}

// member is the member of n that the property stands for, or nil. Where it has to
// be there that is a mistake, unless it is misspelt, which has been noted.
func (r *reader) member(n *node, p *property, misspelt []string) *node {
	child := n.member(p.name)
	if child == nil && p.required && !slices.Contains(misspelt, p.name) {
		r.missing(n, p.name, p.want)
	}
	return child
}
