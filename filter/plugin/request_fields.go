package plugin

import "github.com/sluice-proxy/sluice/filter/field"

// Cookie implements keys.Request. HTTP/1 clients may send several Cookie lines,
// which Envoy leaves as they are; those of HTTP/2 it has joined.
func (r *request) Cookie(name string) []byte {
	for line, rest, ok := r.list().Find("cookie"); ok; line, rest, ok = rest.Find("cookie") {
		if value, found := field.Cookie(line, name); found {
			return value
		}
	}
	return nil
}

// Query implements keys.Request.
func (r *request) Query(name string) []byte {
	start := len(r.text)
	r.text = field.AppendQuery(r.text, r.Header(":path"), name)
	return r.text[start:]
}

// Bearer implements keys.Request.
func (r *request) Bearer() []byte {
	return field.Bearer(r.joined("authorization"))
}
