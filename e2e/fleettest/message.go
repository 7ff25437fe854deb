package fleettest

import (
	"encoding/binary"
	"errors"
)

// message is a protobuf message that is being encoded.
type message []byte

// The wire types of protobuf's fields.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

// number appends a whole number that is not negative.
func (m message) number(tag, value int) message {
	return binary.AppendUvarint(binary.AppendUvarint(m, uint64(tag<<3|wireVarint)), uint64(value))
}

// text appends a string, or a message in encoded form.
func (m message) text(tag int, value string) message {
	m = binary.AppendUvarint(m, uint64(tag<<3|wireBytes))
	return append(binary.AppendUvarint(m, uint64(len(value))), value...)
}

// field is a field of a message that was decoded: a number, or bytes.
type field struct {
	tag    int
	number uint64
	bytes  []byte
}

type fields []field

// last returns the last field with a tag; the zero value if there is none, as
// protobuf has it.
func (f fields) last(tag int) field {
	for i := len(f) - 1; i >= 0; i-- {
		if f[i].tag == tag {
			return f[i]
		}
	}
	return field{}
}

var errMessage = errors.New("the answer is not a protobuf message")

// parse returns the fields of a message.
func parse(text []byte) (fields, error) {
	var all fields
	for len(text) > 0 {
		head, n := binary.Uvarint(text)
		if n <= 0 {
			return nil, errMessage
		}
		text = text[n:]
		f := field{tag: int(head >> 3)}
		size := 0
		switch head & 7 {
		case wireVarint:
			if f.number, size = binary.Uvarint(text); size <= 0 {
				return nil, errMessage
			}
		case wireFixed64:
			size = 8
		case wireFixed32:
			size = 4
		case wireBytes:
			length, n := binary.Uvarint(text)
			if n <= 0 || length > uint64(len(text)-n) {
				return nil, errMessage
			}
			size = n + int(length)
			f.bytes = text[n:size]
		default:
			return nil, errMessage
		}
		if size > len(text) {
			return nil, errMessage
		}
		text = text[size:]
		all = append(all, f)
	}
	return all, nil
}
