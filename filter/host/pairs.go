package host

import "encoding/binary"

// Pairs is a list of headers in the form in which proxy-wasm passes it: the
// number of pairs, the sizes of every name and value (all 32 bits, little
// endian), then every name and value, each followed by a zero byte. It is read
// in place.
type Pairs struct {
	sizes []byte // 8 bytes a pair
	data  []byte
}

// ParsePairs reads the frame of a serialized list. A damaged one has no pairs.
func ParsePairs(serialized []byte) Pairs {
	if len(serialized) < 4 {
		return Pairs{}
	}
	n := uint64(binary.LittleEndian.Uint32(serialized))
	rest := serialized[4:]
	if n*8 > uint64(len(rest)) {
		return Pairs{}
	}
	return Pairs{sizes: rest[:n*8], data: rest[n*8:]}
}

// Next returns the first pair and the list without it. ok is false at the end
// of the list, and where the list is damaged.
func (p Pairs) Next() (name, value []byte, rest Pairs, ok bool) {
	if len(p.sizes) < 8 {
		return nil, nil, Pairs{}, false
	}
	n := uint64(binary.LittleEndian.Uint32(p.sizes))
	v := uint64(binary.LittleEndian.Uint32(p.sizes[4:]))
	if n+v+2 > uint64(len(p.data)) {
		return nil, nil, Pairs{}, false
	}
	rest = Pairs{sizes: p.sizes[8:], data: p.data[n+v+2:]}
	return p.data[:n], p.data[n+1 : n+1+v], rest, true
}

// Find returns the value of the first pair of a name, and the list behind it. ok
// is false where there is none.
func (p Pairs) Find(name string) (value []byte, rest Pairs, ok bool) {
	for {
		n, value, rest, ok := p.Next()
		if !ok || string(n) == name {
			return value, rest, ok
		}
		p = rest
	}
}

// AppendPairs appends the serialized form of a list of headers to dst.
func AppendPairs(dst []byte, headers [][2]string) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(headers)))
	for _, h := range headers {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(h[0])))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(h[1])))
	}
	for _, h := range headers {
		dst = append(append(dst, h[0]...), 0)
		dst = append(append(dst, h[1]...), 0)
	}
	return dst
}
