package config

import (
	"slices"

	"github.com/sluice-proxy/sluice/filter/keys"
)

const wantLimits = "an object of limits by their names"

var limitsField = field[Config]{
	property: property{
		name: "limits", required: true, want: wantLimits,
		schema: mapSchema(patternSchema(namePattern), defined("limit", limitSchema), ""),
	},
	read: readLimits,
}.explain("The limits by their names. They do nothing until \"rules\" or \"always\" name them.")

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
	d := limitDraft{Limit: Limit{Name: n.name, EnforcePercent: defaultEnforcePercent}, burst: 1, mode: modeQueue}
	a := algorithmOf(n)
	ok := r.dialect(a).limit.read(r, n, wantLimit, &d) && a != nil
	if a != nil && a.name == leakyBucket && !d.checkMode(r, n, ok) {
		ok = false
	}
	if d.Global {
		ok = d.checkGlobal(r, n, a, ok) && ok
	}
	if ok {
		var err error
		d.Limiter, d.Shape, err = a.build(&d)
		d.Queue, d.Concurrency = a.name == leakyBucket && d.mode == modeQueue, a.name == concurrency
		if err != nil {
			r.mistake(n, err.Error())
			ok = false
		}
		if d.Global {
			d.Shape += "/" + scopeGlobal
			d.Counts = d.counted(r, n, a)
		}
	}
	if d.overrides != nil {
		d.Overrides = readOverrides(r, d.overrides, a, d, ok)
	}
	return d.Limit
}

// dialect is what there is to say of a limit by one algorithm, and of its
// overrides.
type dialect struct {
	limit    members[limitDraft]
	override members[overrideDraft]
}

// dialect is that of a, or for nil that of an algorithm that is not known. It is
// put together once, however many limits a document has.
func (r *reader) dialect(a *algorithm) *dialect {
	d := r.dialects[a]
	if d == nil {
		if r.dialects == nil {
			r.dialects = map[*algorithm]*dialect{}
		}
		d = &dialect{limitMembers(a), overrideMembers(a)}
		r.dialects[a] = d
	}
	return d
}

const wantLimit = `an object such as {"algorithm": "token_bucket", "capacity": 5, "refill_rate": "1/s", "key": ["ip"]}`

// limitMembers are the members of a limit by this algorithm. With nil, for one
// that is not known, every algorithm's fields may be there and none must.
func limitMembers(a *algorithm) members[limitDraft] {
	m := members[limitDraft]{fields: slices.Clone(commonFields)}
	if a != nil {
		m.refused = slices.Clone(a.without)
		m.fields = append(slices.DeleteFunc(m.fields, a.lacks), a.fields()...)
	}
	for _, f := range foreignFields(a) {
		if a == nil {
			f.required = false
			m.fields = append(m.fields, f)
		} else {
			m.refused = append(m.refused, refusal{f.name, misplaced(f.name, a)})
		}
	}
	return m
}

// foreignFields are the fields that limits have because of algorithms other than
// a, each name once.
func foreignFields(a *algorithm) []field[limitDraft] {
	var own, foreign []field[limitDraft]
	if a != nil {
		own = a.fields()
	}
	for _, other := range knownAlgorithms {
		for _, f := range other.fields() {
			if !hasField(own, f.name) && !hasField(foreign, f.name) {
				foreign = append(foreign, f)
			}
		}
	}
	return foreign
}

// lacks says whether a field that other limits may have can't be had by a.
func (a *algorithm) lacks(f field[limitDraft]) bool {
	return slices.ContainsFunc(a.without, func(without refusal) bool { return without.name == f.name })
}

func hasField(fields []field[limitDraft], name string) bool {
	return slices.ContainsFunc(fields, func(f field[limitDraft]) bool { return f.name == name })
}

func namesOf(fields []field[limitDraft]) []string {
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	return names
}

// misplaced says which algorithms take a field that a does not take.
func misplaced(name string, a *algorithm) string {
	var takers []string
	for _, other := range knownAlgorithms {
		if hasField(other.fields(), name) {
			takers = append(takers, other.name)
		}
	}
	return "belongs to " + list(takers, "and") + ": " + quote(a.name) + " takes " + list(namesOf(a.fields()), "and")
}

// commonFields are what every limit has.
var commonFields = []field[limitDraft]{
	required("algorithm", algorithmValue, func(d *limitDraft) *string { return &d.Algorithm }).
		explain("How units are counted."),
	required("key", listOf(`an array of key parts such as ["ip"]`, keyPartValue), func(d *limitDraft) *[]keys.Part { return &d.Key }).
		explain("The key parts that tell clients apart; each client has a bucket. [] is one bucket for everybody."),
	optional("missing", missingValue, func(d *limitDraft) *Missing { return &d.Missing }).
		explain("A key part that the request lacks takes a value of its own, or this limit does not apply, or the request is refused.").defaultsTo(`"shared"`),
	optional("shadow", boolValue, func(d *limitDraft) *bool { return &d.Shadow }).
		explain("Whether the limit decides and counts but refuses nobody and shows in no header.").defaultsTo("false"),
	optional("enforce_percent", whole(0, 100), func(d *limitDraft) *int { return &d.EnforcePercent }).
		explain("The share of clients, always the same ones, that are refused; for the others it is a shadow limit.").defaultsTo("100"),
	overridesField,
	optional("scope", scopeValue, func(d *limitDraft) *bool { return &d.Global }).
		explain("Who counts together: the workers of one Envoy process, or by the service of \"global\" at the top the whole fleet. Not \"global\" with sliding_window or in a queue.").defaultsTo(`"process"`),
	optional("charge", chargeValue, func(d *limitDraft) **Charge { return &d.Charge }).
		explain("What a request costs besides, which is known when it is over. Not in a queue, and not of requests in flight."),
	optional("count_status", countStatusValue, func(d *limitDraft) *[]StatusRange { return &d.CountStatus }).
		explain("Statuses such as \"401\" and \"5xx\": a request whose response has none of them is given back what it was charged on arrival. Not in a queue, not of requests in flight, and not fleet-wide."),
}

var missingValue = oneOf(
	choice[Missing]{"shared", MissingShared},
	choice[Missing]{"skip", MissingSkip},
	choice[Missing]{"deny", MissingDeny},
)

var keyPartValue = stringAs(`a key part such as "ip"`, keys.Parse)
