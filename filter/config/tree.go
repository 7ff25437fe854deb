package config

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is how deep values may be nested: a few levels more than the format
// has. Trees are built and read by recursion, and a stack overflow would kill
// the VM.
const maxDepth = 16

// kind is the type of a JSON value.
type kind int

const (
	nullKind kind = iota
	boolKind
	numberKind
	stringKind
	arrayKind
	objectKind
)

// node is one value of a document. Unlike Go's maps and structs it keeps what
// mistakes are reported by: the order of members, and where each value stands.
type node struct {
	parent *node
	name   string // in an object: the member's name
	index  int    // in an array: the place
	offset int64  // where in the document: in JSON, bytes to the end of the first token
	kind   kind
	text   string // strings: the value; numbers and booleans: as spelled
	// children are the elements of an array, or the members of an object, each
	// name once.
	children []*node
}

// member is the member called name of an object, or nil.
func (n *node) member(name string) *node {
	if n.kind == objectKind {
		for _, child := range n.children {
			if child.name == name {
				return child
			}
		}
	}
	return nil
}

// sorted are the members of an object in order of their names. What becomes a list
// is read in that order: two documents that say the same are then one Config, and
// the order in a protobuf Struct, which is a map, is nobody's intention.
func (n *node) sorted() []*node {
	all := slices.Clone(n.children)
	slices.SortStableFunc(all, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	return all
}

// path says where in the document a value stands: limits.login.key[0].
func (n *node) path() string {
	switch {
	case n.parent == nil:
		return "document"
	case n.parent.kind == arrayKind:
		return n.parent.path() + "[" + strconv.Itoa(n.index) + "]"
	case !isPlain(n.name):
		return n.parent.path() + "[" + quote(n.name) + "]"
	case n.parent.parent == nil:
		return n.name
	default:
		return n.parent.path() + "." + n.name
	}
}

// isPlain says whether a name can stand in a path without quotes.
func isPlain(name string) bool {
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-', c == '$':
		default:
			return false
		}
	}
	return name != "" && len(name) <= maxShown
}

// mayBeSecret says whether n stands where a credential may: in an object of values
// by headers' names or key parts. What is there goes into no log.
func (n *node) mayBeSecret() bool {
	for ; n != nil && n.parent != nil; n = n.parent {
		isLimit := n.parent.name == "limits" && n.parent.kind == objectKind
		if (n.name == "headers" || n.name == "value") && !isLimit {
			return true
		}
	}
	return false
}

// hidden describes a value that may be secret.
func (n *node) hidden() string {
	if n.kind == numberKind {
		return "a number"
	}
	return "a string"
}

// found describes a value of the wrong type.
func (n *node) found() string {
	if (n.kind == numberKind || n.kind == stringKind) && n.mayBeSecret() {
		return n.hidden()
	}
	switch n.kind {
	case boolKind:
		return "the boolean " + n.text
	case numberKind:
		return "the number " + shorten(n.text)
	case stringKind:
		return "the string " + quote(n.text)
	case arrayKind:
		return "an array"
	case objectKind:
		return "an object"
	}
	return "null"
}

// value describes a value of the right type that is wrong itself.
func (n *node) value() string {
	if n.text != "" && n.mayBeSecret() {
		return n.hidden()
	}
	if n.kind == stringKind {
		return quote(n.text)
	}
	return shorten(n.text)
}

// parseTree reads a document: JSON, or else a google.protobuf.Struct in its binary
// form, as Envoy hands one over. (Valid JSON is no Struct, since the tag 18 of an
// entry's value is a control character.) A name that an object has twice is a
// mistake that is collected, and only the first is kept; the error is about
// documents that cannot be read at all.
func parseTree(document []byte, c *collector) (*node, error) {
	if len(document) > MaxDocument {
		return nil, Mistakes{"document: " + strconv.Itoa(len(document)) + " bytes long: want no more than " + strconv.Itoa(MaxDocument)}
	}
	if err := checkSyntax(document); err != nil {
		if looksLikeStruct(document) {
			return parseStruct(document, c)
		}
		return nil, err
	}
	b := builder{c, newTokens(document)}
	root := &node{}
	if !b.build(root, b.next()) {
		return nil, tooDeep(document, b.tokens.InputOffset())
	}
	return root, nil
}

// builder makes a tree of a document whose syntax has been checked.
type builder struct {
	*collector
	tokens *jsontext.Decoder
}

// next is the next token. There is one wherever this is called, since the
// syntax has been checked.
func (b *builder) next() jsontext.Token {
	token, _ := b.tokens.ReadToken()
	return token
}

// build makes n the value that begins with token. It returns false where the
// value goes deeper than maxDepth.
func (b *builder) build(n *node, token jsontext.Token) bool {
	n.offset = b.tokens.InputOffset()
	if b.tokens.StackDepth() > maxDepth {
		return false
	}
	switch token.Kind() {
	case jsontext.KindTrue, jsontext.KindFalse:
		n.kind, n.text = boolKind, token.String()
	case jsontext.KindNumber:
		n.kind, n.text = numberKind, token.String()
	case jsontext.KindString:
		n.kind, n.text = stringKind, token.String()
	case jsontext.KindBeginArray:
		n.kind = arrayKind
		return b.elements(n)
	case jsontext.KindBeginObject:
		n.kind = objectKind
		return b.members(n)
	}
	return true
}

func (b *builder) elements(n *node) bool {
	for {
		token := b.next()
		if token.Kind() == jsontext.KindEndArray {
			return true
		}
		child := &node{parent: n, index: len(n.children)}
		if !b.build(child, token) {
			return false
		}
		n.children = append(n.children, child)
	}
}

func (b *builder) members(n *node) bool {
	seen := map[string]bool{}
	for {
		token := b.next()
		if token.Kind() == jsontext.KindEndObject {
			return true
		}
		name := token.String()
		child := &node{parent: n, name: name}
		if !b.build(child, b.next()) {
			return false
		}
		if seen[name] {
			b.mistake(child, "stands twice in one object: keep one")
			continue
		}
		seen[name] = true
		n.children = append(n.children, child)
	}
}
