package fleet

import "google.golang.org/protobuf/encoding/protowire"

// field is one field of a message: number holds a varint's value, content what
// is length-delimited. Fixed-width fields have neither.
type field struct {
	id      protowire.Number
	kind    protowire.Type
	number  uint64
	content []byte
}

// next takes the first field off a message. ok is false where the message is
// damaged. Groups count as damage: no message here has any, and protowire
// recurses into them.
func next(message []byte) (f field, rest []byte, ok bool) {
	id, kind, n := protowire.ConsumeTag(message)
	if n < 0 {
		return field{}, nil, false
	}
	message = message[n:]
	f = field{id: id, kind: kind}
	switch kind {
	case protowire.VarintType:
		f.number, n = protowire.ConsumeVarint(message)
	case protowire.BytesType:
		f.content, n = protowire.ConsumeBytes(message)
	case protowire.Fixed32Type:
		_, n = protowire.ConsumeFixed32(message)
	case protowire.Fixed64Type:
		_, n = protowire.ConsumeFixed64(message)
	default:
		return field{}, nil, false
	}
	if n < 0 {
		return field{}, nil, false
	}
	return f, message[n:], true
}

// each calls visit with every field of a message. It is false where the message
// is damaged or visit is.
func each(message []byte, visit func(f field) bool) bool {
	for len(message) > 0 {
		f, rest, ok := next(message)
		if !ok || !visit(f) {
			return false
		}
		message = rest
	}
	return true
}

// is says whether a field is the given one. A field of another type than the
// service declares is one that we do not know.
func (f field) is(id protowire.Number, kind protowire.Type) bool {
	return f.id == id && f.kind == kind
}

func appendNumber(dst []byte, id protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, id, protowire.VarintType), n)
}

// appendNonZero is appendNumber without what proto3 takes for granted.
func appendNonZero(dst []byte, id protowire.Number, n uint64) []byte {
	if n == 0 {
		return dst
	}
	return appendNumber(dst, id, n)
}

func appendText(dst []byte, id protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(dst, id, protowire.BytesType), s)
}

func appendBytes(dst []byte, id protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, id, protowire.BytesType), b)
}

// appendLength begins a message of the given size.
func appendLength(dst []byte, id protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, id, protowire.BytesType), uint64(size))
}

func sizeBytes(id protowire.Number, size int) int {
	return protowire.SizeTag(id) + protowire.SizeBytes(size)
}

func sizeNonZero(id protowire.Number, n uint64) int {
	if n == 0 {
		return 0
	}
	return protowire.SizeTag(id) + protowire.SizeVarint(n)
}
