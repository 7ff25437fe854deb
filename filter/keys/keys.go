// Package keys knows the parts that a client key is made of: how the config
// spells them and what each of them reads.
package keys

// Kind is what a key part reads.
type Kind uint8

// The kinds of key parts.
const (
	IP             Kind = iota + 1 // the client's address, or the network it is in
	Header                         // the request header Name, lower-cased
	Cookie                         // the cookie Name
	Query                          // the query parameter Name
	Bearer                         // the token of "Authorization: Bearer"
	Metadata                       // the string at Name in dynamic metadata: the filter's name and the steps, with zero bytes between
	MetadataNumber                 // the whole number at Name, likewise
	Property                       // the Envoy attribute Name, its steps separated by zero bytes
	Method                         // the request method
	Path                           // the normalised path without its query
	Host                           // the normalised host without its port
	Route                          // the Envoy route's name
	VirtualHost                    // the name of the route's virtual host
	Rule                           // the name of the rule that matched
	Const                          // the text Name
)

// Source is one thing that a key part can be read from.
type Source struct {
	Kind Kind
	Name string // for the kinds that have one
	// Of an IP, how many bits of the address tell clients apart; 0 is all of an
	// IPv4 address and the first 64 of an IPv6 address.
	IPv4Bits, IPv6Bits uint8
}

// Part is one part of a key: the first of its Sources that the request has.
type Part struct {
	Label   string // for people; never empty
	Sources []Source
	// Labelled says that the config gave the label. It declares that the value
	// of a header or query parameter is no secret.
	Labelled bool
}
