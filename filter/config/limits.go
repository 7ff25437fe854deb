package config

import (
	"errors"
	"slices"

	"github.com/sluice-proxy/sluice/filter/keys"
)

const wantLimits = "an object of limits by their names"

// readLimits reads "limits".
func readLimits(r *reader, n *node, c *Config) {
	if n.kind != objectKind {
		r.wrongType(n, wantLimits)
		return
	}
	for _, child := range n.children {
		r.limitNames = append(r.limitNames, child.name)
	}
	slices.Sort(r.limitNames)
	r.limits = map[string]int{}
	for i, name := range r.limitNames {
		r.limits[name] = i
	}
	c.Limits = make([]Limit, len(n.children))
	for _, child := range n.children {
		if !isName(child.name) {
			r.mistake(child, quote(child.name)+": want "+wantName)
		}
		c.Limits[r.limits[child.name]] = readLimit(r, child)
	}
}

// readLimit reads one limit. What comes of a limit with mistakes is of no use,
// but for its name.
func readLimit(r *reader, n *node) Limit {
	d := limitDraft{Limit: Limit{Name: n.name}, burst: 1}
	a := algorithmOf(n)
	if !limitMembers(a).read(r, n, wantLimit, &d) || a == nil {
		return d.Limit
	}
	var err error
	d.Limiter, d.Shape, err = a.build(&d)
	if err != nil {
		r.mistake(n, err.Error())
	}
	return d.Limit
}

const wantLimit = `an object such as {"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/s", "key": ["ip"]}`

// limitMembers are the members of a limit by this algorithm. With nil, for one
// that is not known, every algorithm's fields may be there and none must.
func limitMembers(a *algorithm) members[limitDraft] {
	m := members[limitDraft]{fields: slices.Clone(commonFields), refused: slices.Clone(notYetLimit)}
	if a != nil {
		m.fields = append(m.fields, a.fields...)
	}
	for _, other := range knownAlgorithms {
		for _, f := range other.fields {
			if slices.ContainsFunc(m.fields, func(g field[limitDraft]) bool { return g.name == f.name }) {
				continue
			}
			if a == nil {
				f.required = false
				m.fields = append(m.fields, f)
			} else {
				m.refused = append(m.refused, refusal{f.name, misplaced(f.name, a)})
			}
		}
	}
	return m
}

// misplaced says which algorithms take a field that a does not take.
func misplaced(name string, a *algorithm) string {
	var takers, own []string
	for _, other := range knownAlgorithms {
		for _, f := range other.fields {
			if f.name == name {
				takers = append(takers, other.name)
			}
		}
	}
	for _, f := range a.fields {
		own = append(own, f.name)
	}
	return "belongs to " + list(takers, "and") + ": " + quote(a.name) + " takes " + list(own, "and")
}

// commonFields are what every limit has.
var commonFields = []field[limitDraft]{
	required("algorithm", algorithmValue, func(d *limitDraft) *string { return &d.Algorithm }),
	required("key", listOf(`an array of key parts such as ["ip"]`, keyPartValue), func(d *limitDraft) *[]keys.Part { return &d.Key }),
	optional("missing", missingValue, func(d *limitDraft) *Missing { return &d.Missing }),
}

var missingValue = oneOf(
	choice[Missing]{"shared", MissingShared},
	choice[Missing]{"skip", MissingSkip},
	choice[Missing]{"deny", MissingDeny},
)

var keyPartValue = stringAs(`a key part such as "ip"`, func(s string) (keys.Part, error) {
	part, err := keys.Parse(s)
	unknown, ok := errors.AsType[keys.UnknownKindError](err)
	if ok && slices.Contains(notYetKeyKind, string(unknown)) {
		return part, errors.New(quote(string(unknown)) + " " + isNotYet + ": want " + keys.Spellings())
	}
	return part, err
})
