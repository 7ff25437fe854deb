package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"
)

// hashSize is the length of a key's hash in bytes. 128 bits keep clients apart
// that nobody has met yet, and are too many for anybody to find two alike.
const hashSize = 16

// AppendKey appends what a service knows a client by: readable, for people, ":",
// and the hash of the exact key in 32 hexadecimal digits, which tells clients
// apart. The hash is SHA-256 cut short: the same on every Envoy of a fleet and
// in every version. Bytes of readable that are not UTF-8 become "?", since a
// service refuses a message with such a string, and a client could make a
// healthy service look dead.
func AppendKey(dst, readable, exact []byte) []byte {
	for len(readable) > 0 {
		r, size := utf8.DecodeRune(readable)
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, '?')
		} else {
			dst = append(dst, readable[:size]...)
		}
		readable = readable[size:]
	}
	hash := sha256.Sum256(exact)
	return hex.AppendEncode(append(dst, ':'), hash[:hashSize])
}
