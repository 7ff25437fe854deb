package wasmtest

import (
	"encoding/binary"
	"strings"
)

// Headers is a list of header names and values in order.
type Headers [][2]string

// Get returns the first value of a header, and whether there is one.
func (h Headers) Get(name string) (string, bool) {
	for _, pair := range h {
		if strings.EqualFold(pair[0], name) {
			return pair[1], true
		}
	}
	return "", false
}

// Values returns all values of a header.
func (h Headers) Values(name string) []string {
	var values []string
	for _, pair := range h {
		if strings.EqualFold(pair[0], name) {
			values = append(values, pair[1])
		}
	}
	return values
}

func (h Headers) add(name, value string) Headers {
	return append(h, [2]string{strings.ToLower(name), value})
}

func (h Headers) remove(name string) Headers {
	var kept Headers
	for _, pair := range h {
		if !strings.EqualFold(pair[0], name) {
			kept = append(kept, pair)
		}
	}
	return kept
}

// replace leaves one header of the name, in the place of the first.
func (h Headers) replace(name, value string) Headers {
	var kept Headers
	found := false
	for _, pair := range h {
		switch {
		case !strings.EqualFold(pair[0], name):
			kept = append(kept, pair)
		case !found:
			found = true
			kept = append(kept, [2]string{pair[0], value})
		}
	}
	if !found {
		kept = kept.add(name, value)
	}
	return kept
}

// lowered is a copy with lower-case names, as Envoy's codecs make them.
func (h Headers) lowered() Headers {
	lowered := make(Headers, 0, len(h))
	for _, pair := range h {
		lowered = lowered.add(pair[0], pair[1])
	}
	return lowered
}

// serialize writes headers as proxy-wasm passes them: the number of pairs, the
// sizes of each name and value (32 bits, little endian), and then each name and
// value with a zero byte behind it. An empty list has no bytes at all.
func (h Headers) serialize() []byte {
	if len(h) == 0 {
		return nil
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(h)))
	for _, pair := range h {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(pair[0])))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(pair[1])))
	}
	for _, pair := range h {
		b = append(append(b, pair[0]...), 0)
		b = append(append(b, pair[1]...), 0)
	}
	return b
}

// parseHeaders reads what serialize writes. Like Envoy it takes a list that is
// damaged anywhere for an empty one.
func parseHeaders(b []byte) Headers {
	if len(b) < 4 {
		return nil
	}
	count := int(binary.LittleEndian.Uint32(b))
	sizes := b[4:]
	if count > len(sizes)/8 {
		return nil
	}
	data := sizes[8*count:]
	next := func(size uint32) (string, bool) {
		if uint64(size) >= uint64(len(data)) || data[size] != 0 {
			return "", false
		}
		text := string(data[:size])
		data = data[size+1:]
		return text, true
	}
	headers := make(Headers, count)
	for i := range headers {
		for j := range headers[i] {
			text, ok := next(binary.LittleEndian.Uint32(sizes[8*i+4*j:]))
			if !ok {
				return nil
			}
			headers[i][j] = text
		}
	}
	if len(data) > 0 {
		return nil
	}
	return headers
}
