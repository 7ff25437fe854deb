package policy

import (
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/keys"
)

// reads are the request headers, pseudo-headers included, that a config can make
// the filter read. One of which all values must be seen counts as two.
type reads map[string]int

func (r reads) once(name string)  { r[name] = max(r[name], 1) }
func (r reads) whole(name string) { r[name] = 2 }

// headerReads counts what the rules and keys of a config can read.
func headerReads(c *config.Config) int {
	r := reads{}
	if c.ClientIP.Header != "" {
		r.whole(c.ClientIP.Header)
	}
	for i := range c.Limits {
		for _, part := range c.Limits[i].Key {
			r.part(part)
		}
		for j := range c.Limits[i].Overrides {
			r.match(&c.Limits[i].Overrides[j].Match)
		}
	}
	for i := range c.Exempt {
		r.match(&c.Exempt[i])
	}
	for i := range c.Rules {
		r.match(&c.Rules[i].Match)
		for _, u := range c.Rules[i].Limits {
			if u.Cost.Header != "" {
				r.whole(u.Cost.Header)
			}
		}
	}
	n := 0
	for _, count := range r {
		n += count
	}
	return n
}

func (r reads) match(m *config.Match) {
	if len(m.Method) > 0 {
		r.once(":method")
	}
	if len(m.Path)+len(m.PathPrefix)+len(m.PathRegex) > 0 {
		r.once(":path")
	}
	if len(m.Host) > 0 {
		r.once(":authority")
	}
	for _, h := range m.Headers {
		r.whole(h.Name)
	}
	for _, v := range m.Values {
		r.part(v.Part)
	}
}

func (r reads) part(part keys.Part) {
	for _, s := range part.Sources {
		switch s.Kind {
		case keys.Method:
			r.once(":method")
		case keys.Path, keys.Query:
			r.once(":path")
		case keys.Host:
			r.once(":authority")
		case keys.Header:
			r.whole(s.Name)
		case keys.Cookie:
			r.whole("cookie")
		case keys.Bearer:
			r.whole("authorization")
		}
	}
}
