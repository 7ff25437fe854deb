//go:build !wasip1

package config

import "strings"

// clientIPSchema is the schema of "client_ip": its fields, and which go with which
// source.
func clientIPSchema(d *definitions) string {
	const rest = `,"if":{"properties":{"source":{"const":"header"}},"required":["source"]},` +
		`"then":{"required":["header"],"oneOf":[{"required":["trusted_hops"]},{"required":["trusted_proxies"]}]},` +
		`"else":{"properties":{"header":false,"trusted_hops":false,"trusted_proxies":false}}`
	return objectSchema(clientIPMembers.properties(), rest)(d)
}

// chargeSchema is the schema of "charge": its fields, exactly one source, and what
// goes with it.
func chargeSchema(d *definitions) string {
	var sources []string
	for _, name := range chargeSources {
		sources = append(sources, `{"required":[`+quoteJSON(name)+`]}`)
	}
	return objectSchema(chargeMembers.properties(), `,"oneOf":[`+strings.Join(sources, ",")+`],"dependentRequired":{"remove":["response_header"]}`)(d)
}

// limitSchema is the schema of a limit: what all limits have, and for each
// algorithm what a limit has because of it.
func limitSchema(d *definitions) string {
	properties := members[limitDraft]{fields: commonFields}.properties()
	for _, f := range foreignFields(nil) {
		properties = append(properties, &property{name: f.name, schema: anything})
	}
	var all []string
	for _, a := range knownAlgorithms {
		all = append(all, `{"if":{"properties":{"algorithm":{"const":`+quoteJSON(a.name)+`}},"required":["algorithm"]},`+
			`"then":{`+propertiesJSON(a.properties(), d)+a.modes()+`}}`)
	}
	return objectSchema(properties, `,"allOf":[`+strings.Join(append(all, globalKeywords()), ",")+"]")(d)
}

// globalKeywords says what a limit can't have that is fleet-wide, whatever the
// service's protocol is.
func globalKeywords() string {
	text := `{"if":{"properties":{"scope":{"const":"global"}},"required":["scope"]},"then":{"properties":{"count_status":false},"allOf":[`
	for _, a := range knownAlgorithms {
		if a.counts == nil {
			text += `{"not":{"properties":{"algorithm":{"const":` + quoteJSON(a.name) + `}},"required":["algorithm"]}},`
		}
	}
	return text + `{"if":{"properties":{"algorithm":{"const":"leaky_bucket"}},"required":["algorithm"]},` +
		`"then":{"required":["mode"],"properties":{"mode":{"const":"meter"}}}}]}}`
}

// modes says what goes with which mode of a limit by this algorithm, as further
// keywords of its schema.
func (a *algorithm) modes() string {
	if a.name != leakyBucket {
		return ""
	}
	return `,"if":{"properties":{"mode":{"const":"meter"}},"required":["mode"]},` +
		`"then":{"properties":{"max_wait":false,"overrides":{"items":{"properties":{"max_wait":false}}}}},` +
		`"else":{"properties":{"charge":false,"count_status":false}}`
}

// properties are what a limit by this algorithm has because of it, and those of
// other algorithms, which it can't have.
func (a *algorithm) properties() []*property {
	overrides := overridesField.property
	overrides.schema = arraySchema(overrideSchema(a), "")
	all := append(members[limitDraft]{fields: a.fields()}.properties(), &overrides)
	for _, f := range foreignFields(a) {
		all = append(all, &property{name: f.name, schema: nothing})
	}
	for _, without := range a.without {
		all = append(all, &property{name: without.name, schema: nothing})
	}
	return all
}

// overrideSchema is the schema of an override, which has a number or is
// unlimited.
func overrideSchema(a *algorithm) schema {
	var numbers []string
	for _, name := range namesOf(a.numbers) {
		numbers = append(numbers, `{"required":[`+quoteJSON(name)+`]}`)
	}
	return objectSchema(overrideMembers(a).properties(),
		`,"oneOf":[{"required":["unlimited"]},{"anyOf":[`+strings.Join(numbers, ",")+`]}]`)
}
