// Package metadata finds values in a serialized envoy.config.core.v3.Metadata,
// which is how Envoy hands over the dynamic metadata of a stream, or the metadata
// of a route, when it is asked for as a whole. Asked for one value, Envoy gives
// its bare bytes: a string of eight characters and a number look the same then.
//
// The message is read in place, by hand: protobuf's own decoder would be larger
// than the rest of the filter. Nothing allocates, and nothing recurses, however
// deep a message may be. The package imports no other of the module.
package metadata

import (
	"encoding/binary"
	"math"
	"strings"
)

// The numbers of the fields, from Envoy's config/core/v3/base.proto and
// protobuf's struct.proto. Entries of maps are messages of a key and a value.
const (
	metadataFilters = 1 // Metadata.filter_metadata, a map of Structs
	structFields    = 1 // Struct.fields, a map of Values
	entryKey        = 1
	entryValue      = 2
	valueNumber     = 2 // of Value, as a double
	valueString     = 3
	valueStruct     = 5
)

// String returns the string at path: the name of a filter and the steps into
// its metadata, with zero bytes between. ok is false where there is nothing or
// something else.
func String(message []byte, path string) (text []byte, ok bool) {
	return find(message, path).bytes(valueString)
}

// Has says whether there is anything at path, which is as for String and may be
// the name of a filter alone.
func Has(message []byte, path string) bool {
	filter, _, deeper := strings.Cut(path, "\x00")
	if deeper {
		return len(find(message, path)) > 0
	}
	_, ok := wire(message).entry(metadataFilters, filter)
	return ok
}

// MaxWhole is the largest whole number that Whole returns, 2^53-1, and -MaxWhole
// the smallest. Beyond, a double stands for several whole numbers, and one
// client's could be another's (RFC 8259, 6).
const MaxWhole = 1<<53 - 1

// Whole returns the whole number at path, which is as for String. ok is false
// where there is nothing or something else, a fraction for example.
func Whole(message []byte, path string) (n int64, ok bool) {
	number, ok := find(message, path).double(valueNumber)
	if !ok || number != math.Trunc(number) || math.Abs(number) > MaxWhole {
		return 0, false
	}
	return int64(number), true
}

// find returns the Value at path, which is empty where there is none.
func find(message wire, path string) (value wire) {
	filter, path, deeper := strings.Cut(path, "\x00")
	fields, _ := message.entry(metadataFilters, filter)
	for deeper {
		var step string
		step, path, deeper = strings.Cut(path, "\x00")
		value, _ = fields.entry(structFields, step)
		fields, _ = value.bytes(valueStruct)
	}
	return value
}

// wire is a message in protobuf's wire format
// (https://protobuf.dev/programming-guides/encoding). Where it is damaged it
// ends.
type wire []byte

// entry returns the value under key in the map that is field number.
func (w wire) entry(number uint64, key string) (value wire, ok bool) {
	for len(w) > 0 {
		var f field
		if f, w = w.next(); f.number != number || f.kind != lengthDelimited {
			continue
		}
		entry := wire(f.content)
		if k, _ := entry.bytes(entryKey); string(k) == key {
			return entry.bytes(entryValue)
		}
	}
	return nil, false
}

// bytes returns the string or message that is field number.
func (w wire) bytes(number uint64) (content []byte, ok bool) {
	return w.find(number, lengthDelimited)
}

// double returns the double that is field number.
func (w wire) double(number uint64) (value float64, ok bool) {
	content, ok := w.find(number, fixed64)
	if !ok {
		return 0, false
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(content)), true
}

func (w wire) find(number uint64, kind uint64) (content []byte, ok bool) {
	for len(w) > 0 {
		var f field
		if f, w = w.next(); f.number == number && f.kind == kind {
			return f.content, true
		}
	}
	return nil, false
}

// field is one field of a message. Its kind is what the format calls a wire type.
type field struct {
	number, kind uint64
	content      []byte
}

// The kinds of fields that have content, and how long it is. No field of another
// kind is of interest here.
const (
	varint          = 0
	fixed64         = 1
	lengthDelimited = 2
	fixed32         = 5
)

// next reads the first field. rest is empty where the message ends or is
// damaged; a damaged field has the number 0, which none can have.
func (w wire) next() (f field, rest wire) {
	tag, size := binary.Uvarint(w)
	if size <= 0 {
		return field{}, nil
	}
	w = w[size:]
	length := uint64(0)
	switch tag & 7 {
	case varint:
		_, size := binary.Uvarint(w)
		if size <= 0 {
			return field{}, nil
		}
		length = uint64(size)
	case fixed64:
		length = 8
	case fixed32:
		length = 4
	case lengthDelimited:
		n, size := binary.Uvarint(w)
		if size <= 0 {
			return field{}, nil
		}
		length, w = n, w[size:]
	default:
		return field{}, nil
	}
	if length > uint64(len(w)) {
		return field{}, nil
	}
	return field{tag >> 3, tag & 7, w[:length]}, w[length:]
}
