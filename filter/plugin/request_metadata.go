package plugin

import (
	"strconv"
	"unicode/utf8"

	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/metadata"
)

// Metadata implements keys.Request.
func (r *request) Metadata(path string) []byte {
	text, _ := metadata.String(r.allMetadata(), path)
	return text
}

// MetadataNumber implements keys.Request.
func (r *request) MetadataNumber(path string) []byte {
	n, ok := metadata.Whole(r.allMetadata(), path)
	if !ok {
		return nil
	}
	start := len(r.text)
	r.text = strconv.AppendInt(r.text, n, 10)
	return r.text[start:]
}

// allMetadata reads the stream's dynamic metadata as one message. Envoy also
// hands out single values, but without their types: a number is the eight bytes
// of a double, which a string may have too.
func (r *request) allMetadata() []byte {
	if r.first(streamMetadata) {
		r.metadata, _ = host.Property("metadata")
	}
	return r.metadata
}

// Property implements keys.Request. Envoy hands out attributes without their
// types: a number is eight bytes, a boolean one, lists and maps have lengths in
// front, messages are serialized. Almost all of those have control characters in
// them, so what has none, and is UTF-8, is taken for a string. A number could
// only pass for one if all eight of its bytes were printable, which no count or
// size comes near.
func (r *request) Property(path string) []byte {
	for i := range r.properties {
		if p := &r.properties[i]; p.path == path {
			return p.value
		}
	}
	value, _ := host.Property(path)
	if !isText(value) {
		value = nil
	}
	r.properties = append(r.properties, property{path, value})
	return value
}

func isText(value []byte) bool {
	for _, c := range value {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(value)
}
