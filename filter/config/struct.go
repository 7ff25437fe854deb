package config

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The tags of the fields of google.protobuf.Struct, Value and ListValue in the
// binary form: the field's number, and how its content is encoded. (A reader of
// these few messages is small; package protowire would add 0.33 MB to the module.)
const (
	structEntry = 1<<3 | lengthDelimited // a message of a key and a value
	entryKey    = 1<<3 | lengthDelimited
	entryValue  = 2<<3 | lengthDelimited
	valueNull   = 1<<3 | varint
	valueNumber = 2<<3 | fixed64
	valueString = 3<<3 | lengthDelimited
	valueBool   = 4<<3 | varint
	valueStruct = 5<<3 | lengthDelimited
	valueList   = 6<<3 | lengthDelimited
	listElement = 1<<3 | lengthDelimited

	varint          = 0
	fixed64         = 1
	lengthDelimited = 2
)

// structBuilder makes a tree of a google.protobuf.Struct in its binary form.
type structBuilder struct {
	*collector
	tooDeep *node // the first value that is nested too deep
}

// looksLikeStruct says whether a document that is no JSON is a Struct, or meant to
// be one: it begins with the tag of an entry, which is a line feed, and has that of
// an entry's value, a control character that no JSON contains.
func looksLikeStruct(document []byte) bool {
	return bytes.IndexByte(document, structEntry) == 0 && bytes.IndexByte(document, entryValue) > 0
}

// parseStruct reads a Struct. It is a map and keeps no order: members are put in
// order by name, so that one Struct is one tree however it was encoded.
func parseStruct(document []byte, c *collector) (*node, error) {
	b := structBuilder{collector: c}
	root := &node{}
	switch {
	case !b.object(root, document, 1):
		return nil, Mistakes{"document: a google.protobuf.Struct in its binary form, but broken: want it as it was encoded"}
	case b.tooDeep != nil:
		return nil, Mistakes{b.tooDeep.path() + ": nested too deep: " + wantLevels}
	}
	root.number(0)
	return root, nil
}

// number gives each value a place in the order that people read a document in.
func (n *node) number(next int64) int64 {
	n.offset = next
	next++
	for _, child := range n.children {
		next = child.number(next)
	}
	return next
}

// object makes n the object that message, a Struct, encodes. It returns false if
// that is none.
func (b *structBuilder) object(n *node, message []byte, depth int) bool {
	n.kind = objectKind
	if b.isTooDeep(n, depth) {
		return true
	}
	for len(message) > 0 {
		tag, entry, rest, ok := cutField(message)
		if !ok || tag != structEntry {
			return false
		}
		message = rest
		child := &node{parent: n}
		if !b.member(child, entry, depth) {
			return false
		}
		n.children = append(n.children, child)
	}
	n.children = slices.CompactFunc(n.sorted(), func(a, again *node) bool {
		if a.name == again.name {
			b.mistake(again, "stands twice in one object: keep one")
		}
		return a.name == again.name
	})
	return true
}

// member makes n the member that entry encodes: a key and a value. A key that is
// left out is empty, a value that is left out is none, which stands for null.
func (b *structBuilder) member(n *node, entry []byte, depth int) bool {
	var content []byte
	for len(entry) > 0 {
		tag, field, rest, ok := cutField(entry)
		if !ok {
			return false
		}
		entry = rest
		switch {
		case tag == entryKey && utf8.Valid(field):
			n.name = string(field)
		case tag == entryValue:
			content = field
		default:
			return false
		}
	}
	return b.value(n, content, depth)
}

// value makes n what message, a Value, encodes.
func (b *structBuilder) value(n *node, message []byte, depth int) bool {
	if len(message) == 0 {
		return true
	}
	tag, content, rest, ok := cutField(message)
	if !ok || len(rest) > 0 { // a Value is one of its fields
		return false
	}
	switch tag {
	case valueNull:
		return true
	case valueNumber:
		n.kind, n.text = numberKind, formatNumber(math.Float64frombits(binary.LittleEndian.Uint64(content)))
		return true
	case valueString:
		n.kind, n.text = stringKind, string(content)
		return utf8.Valid(content)
	case valueBool:
		set, _ := binary.Uvarint(content)
		n.kind, n.text = boolKind, strconv.FormatBool(set != 0)
		return true
	case valueStruct:
		return b.object(n, content, depth+1)
	case valueList:
		return b.array(n, content, depth+1)
	}
	return false
}

// array makes n the array that message, a ListValue, encodes.
func (b *structBuilder) array(n *node, message []byte, depth int) bool {
	n.kind = arrayKind
	if b.isTooDeep(n, depth) {
		return true
	}
	for len(message) > 0 {
		tag, element, rest, ok := cutField(message)
		if !ok || tag != listElement {
			return false
		}
		message = rest
		child := &node{parent: n, index: len(n.children)}
		n.children = append(n.children, child)
		if !b.value(child, element, depth) {
			return false
		}
	}
	return true
}

// isTooDeep says whether n, whose containers and itself are depth, is one too
// many, and remembers the first.
func (b *structBuilder) isTooDeep(n *node, depth int) bool {
	if depth <= maxDepth {
		return false
	}
	if b.tooDeep == nil {
		b.tooDeep = n
	}
	return true
}

// formatNumber spells a double as JSON would, as far as it could: JSON has no
// infinities and no NaN.
func formatNumber(f float64) string {
	const lastPlain = 1e21 // from here on JavaScript writes exponents
	if math.Abs(f) < lastPlain {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+")
}

// cutField cuts the first field off a message.
func cutField(message []byte) (tag uint64, content, rest []byte, ok bool) {
	tag, n := binary.Uvarint(message)
	if n <= 0 {
		return 0, nil, nil, false
	}
	message = message[n:]
	var size uint64
	switch tag & 7 {
	case varint:
		_, n = binary.Uvarint(message)
		size = uint64(n)
		ok = n > 0
	case fixed64:
		size, ok = 8, true
	case lengthDelimited:
		size, n = binary.Uvarint(message)
		ok = n > 0
		message = message[max(n, 0):]
	}
	if !ok || size > uint64(len(message)) {
		return 0, nil, nil, false
	}
	return tag, message[:size], message[size:], true
}
