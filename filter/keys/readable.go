package keys

import "net/netip"

// AppendReadable appends a key as people read it, in logs and tools:
// rate-limit:LIMIT:LABEL-VALUE, with parts joined by ":", as in
// "rate-limit:login:ip-203.0.113.10". It may allocate.
//
//   - An address is shown as the network that the key has of it, such as
//     "2001:db8:1:2::/64".
//   - A value that is a secret, or may be one, is "#" and 8 hexadecimal digits
//     of a hash (see below).
//   - A missing part is "missing". The value of that spelling, and one that
//     could break a log line or be taken for several parts, stands in double
//     quotes and is escaped; a value of more than 64 bytes is cut off.
//
// So what is not in quotes was not chosen by a client to look like something
// else. Still only the exact key, not this text, tells clients apart.
//
// hash is the source of a secret's hash. It should be keyed by something that
// readers of the text do not know: many secrets (API keys such as "partner-7",
// session numbers) can be guessed, and with a hash that everybody can compute,
// SHA-256 included, a log would tell who guessed right. What it is given is the
// kind, the name and the value, so that equal secrets in different places look
// different. Where several Envoys must agree on the text, they need a common key.
func AppendReadable(text []byte, limit string, parts []Part, r Request, hash func([]byte) uint64) []byte {
	text = append(append(text, "rate-limit:"...), limit...)
	for i := range parts {
		p := &parts[i]
		text = append(text, ':')
		text = appendShown(text, p.Label)
		text = append(text, '-')
		text = p.appendReadableValue(text, r, hash)
	}
	return text
}

const missing = "missing"

func (p *Part) appendReadableValue(text []byte, r Request, hash func([]byte) uint64) []byte {
	for i := range p.Sources {
		s := &p.Sources[i]
		switch s.Kind {
		case IP:
			if address, ok := r.Address(); ok {
				return s.appendReadableNetwork(text, address)
			}
		case Const:
			return appendShown(text, s.Name)
		default:
			value := s.read(r)
			switch {
			case len(value) == 0:
				// The next source's turn.
			case s.isSecret(p.Labelled):
				return appendHash(text, s, value, hash)
			default:
				return appendShown(text, string(value))
			}
		}
	}
	return append(text, missing...)
}

// isSecret says whether a source's value may be shown only as a hash. A label
// declares that a header or a query parameter is no secret, but not of those
// that carry credentials by their definition. A property may hold anything.
func (s *Source) isSecret(labelled bool) bool {
	switch s.Kind {
	case Bearer, Cookie, Property:
		return true
	case Header:
		return !labelled || s.Name == "authorization" || s.Name == "proxy-authorization" || s.Name == "cookie"
	case Query:
		return !labelled
	}
	return false
}

func appendHash(text []byte, s *Source, value []byte, hash func([]byte) uint64) []byte {
	sum := hash(append([]byte(s.Kind.word()+"\x00"+s.Name+"\x00"), value...))
	text = append(text, '#')
	for shift := 28; shift >= 0; shift -= 4 {
		text = append(text, "0123456789abcdef"[sum>>shift&0xF])
	}
	return text
}

func (s *Source) appendReadableNetwork(text []byte, address netip.Addr) []byte {
	bits := s.ipv6Bits()
	if address.Is4() {
		bits = s.ipv4Bits()
	}
	if bits == address.BitLen() {
		return address.AppendTo(text)
	}
	network, _ := address.Prefix(bits) // the config has checked the width
	return network.AppendTo(text)
}

// appendShown appends a value as it is, if that is plain, else quoted.
func appendShown(text []byte, value string) []byte {
	plain := value != missing && len(value) <= longestShown
	for i := 0; i < len(value) && plain; i++ {
		plain = isPlain(value[i])
	}
	if plain {
		return append(text, value...)
	}
	return append(text, quote(value)...)
}

// isPlain says whether a byte of a value can be shown as it is. Those with a
// meaning of their own in the text cannot, nor can those of characters beyond
// ASCII, of which some turn the direction of writing and some look like others.
func isPlain(c byte) bool {
	switch c {
	case ':', '"', '\\', '#':
		return false
	}
	return ' ' < c && c <= '~'
}
