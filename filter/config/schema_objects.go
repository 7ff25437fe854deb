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
			`"then":{`+propertiesJSON(a.properties(), d)+`}}`)
	}
	return objectSchema(properties, `,"allOf":[`+strings.Join(all, ",")+"]")(d)
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
