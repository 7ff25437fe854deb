package config

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// The tags of the fields of google.protobuf.Struct, Value and ListValue in the
// binary form: the field's number, and how its content is encoded.
const (
	structEntry = 1<<3 | uint64(protowire.BytesType) // a message of a key and a value
	entryKey    = 1<<3 | uint64(protowire.BytesType)
	entryValue  = 2<<3 | uint64(protowire.BytesType)
	valueNull   = 1<<3 | uint64(protowire.VarintType)
	valueNumber = 2<<3 | uint64(protowire.Fixed64Type)
	valueString = 3<<3 | uint64(protowire.BytesType)
	valueBool   = 4<<3 | uint64(protowire.VarintType)
	valueStruct = 5<<3 | uint64(protowire.BytesType)
	valueList   = 6<<3 | uint64(protowire.BytesType)
	listElement = 1<<3 | uint64(protowire.BytesType)
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
	return bytes.IndexByte(document, byte(structEntry)) == 0 && bytes.IndexByte(document, byte(entryValue)) > 0
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
		set, _ := protowire.ConsumeVarint(content)
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

// cutField cuts the first field off a message. Of a message or a text, content is
// without its length.
func cutField(message []byte) (tag uint64, content, rest []byte, ok bool) {
	number, kind, n := protowire.ConsumeTag(message)
	if n < 0 {
		return 0, nil, nil, false
	}
	size := protowire.ConsumeFieldValue(number, kind, message[n:])
	if size < 0 {
		return 0, nil, nil, false
	}
	content, rest = message[n:n+size], message[n+size:]
	if kind == protowire.BytesType {
		content, _ = protowire.ConsumeBytes(content)
	}
	return protowire.EncodeTag(number, kind), content, rest, true
}
