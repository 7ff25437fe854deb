// Package keys knows the parts that a client key is made of: how the config
// spells them and what each of them reads.
package keys

// Kind is what a key part reads.
type Kind uint8

// The kinds of key parts.
const (
	IP     Kind = iota + 1 // the client's address
	Header                 // the request header Name, lower-cased
	Method                 // the request method
	Path                   // the normalised path without its query
	Host                   // the normalised host without its port
	Route                  // the Envoy route's name
	Const                  // the text Name
)

// Source is one thing that a key part can be read from.
type Source struct {
	Kind Kind
	Name string // the header's name, or the text of a Const
}

// Part is one part of a key: the first of its Sources that the request has.
type Part struct {
	Label   string // for people; never empty
	Sources []Source
}
