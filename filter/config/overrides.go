package config

import "slices"

// overrideDraft is an override as it is written: its numbers laid over those of
// its limit.
type overrideDraft struct {
	limitDraft
	match     Match
	unlimited bool
}

// overridesField only keeps where the overrides stand: their numbers replace the
// limit's, which are to be read first.
var overridesField = field[limitDraft]{
	property: property{
		name: "overrides", want: wantOverrides, schema: arraySchema(anything, ""),
	},
	read: func(_ *reader, n *node, d *limitDraft) { d.overrides = n },
}.explain("Other numbers for some requests. The first whose match holds counts, and has buckets of its own.").defaultsTo("[]")

const (
	wantOverrides = "an array of overrides"
	wantOverride  = `an object such as {"match": {"ip": "10.0.0.0/8"}, "unlimited": true}`
)

// readOverrides reads the overrides of the limit d. If that is not ok there is
// nothing to lay them over, and they are only checked.
func readOverrides(r *reader, n *node, a *algorithm, d limitDraft, ok bool) []Override {
	if n.kind != arrayKind {
		r.wrongType(n, wantOverrides)
		return nil
	}
	m := r.dialect(a).override
	var all []Override
	for _, child := range n.children {
		o := overrideDraft{limitDraft: d}
		if !m.read(r, child, wantOverride, &o) || !checkNumbers(r, child, a, o.unlimited) || a != nil && !d.checkMode(r, child, false) || !ok {
			continue
		}
		override := Override{Match: o.match, Identity: o.match.identity()}
		if !o.unlimited {
			limiter, _, err := a.build(&o.limitDraft)
			if err != nil {
				r.mistake(child, err.Error())
			}
			override.Limiter = limiter
			if d.Global {
				override.Counts = o.counted(r, child, a)
			}
		}
		all = append(all, override)
	}
	return all
}

// checkNumbers checks that the override n replaces numbers or frees from the
// limit, and not both.
func checkNumbers(r *reader, n *node, a *algorithm, unlimited bool) bool {
	numbers := numbersOf(a)
	has := slices.ContainsFunc(n.children, func(child *node) bool { return hasField(numbers, child.name) })
	switch {
	case has && unlimited:
		r.mistake(n, `replaces numbers and is "unlimited": want one of them`)
	case !has && !unlimited:
		r.mistake(n, "changes nothing: want "+list(append(namesOf(numbers), "unlimited"), "or"))
	}
	return has != unlimited
}

// numbersOf are the fields that an override of a limit by this algorithm may
// replace. With nil, for one that is not known, they are every algorithm's.
func numbersOf(a *algorithm) []field[limitDraft] {
	if a != nil {
		return a.numbers
	}
	var all []field[limitDraft]
	for _, other := range knownAlgorithms {
		for _, f := range other.numbers {
			if !hasField(all, f.name) {
				all = append(all, f)
			}
		}
	}
	return all
}

// overrideMembers are the members of an override of a limit by this algorithm,
// or by nil as in numbersOf.
func overrideMembers(a *algorithm) members[overrideDraft] {
	numbers := numbersOf(a)
	m := members[overrideDraft]{fields: []field[overrideDraft]{
		required("match", matchValue, func(d *overrideDraft) *Match { return &d.match }).
			explain("The requests that the override is for."),
		optional("unlimited", trueValue, func(d *overrideDraft) *bool { return &d.unlimited }).
			explain("The limit does not apply to these requests."),
	}}
	for _, f := range numbers {
		number := field[overrideDraft]{f.property, func(r *reader, n *node, d *overrideDraft) { f.read(r, n, &d.limitDraft) }}
		number.required = false
		m.fields = append(m.fields, number.defaultsTo(""))
	}
	why := "can't be overridden: want " + list(append(namesOf(numbers), "unlimited"), "or")
	for _, f := range limitMembers(nil).fields {
		if !hasField(numbers, f.name) {
			m.refused = append(m.refused, refusal{f.name, why})
		}
	}
	return m
}

// trueValue is for a field that says something by being there.
var trueValue = value[bool]{wantTrue, keywords(`"const":true`), func(r *reader, n *node, to *bool) bool {
	if n.kind != boolKind || n.text != "true" {
		r.wrongType(n, wantTrue)
		return false
	}
	*to = true
	return true
}}

const wantTrue = "true, or the field left out"
