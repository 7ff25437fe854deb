package config

import (
	"errors"

	"github.com/sluice-proxy/sluice/filter/keys"
)

const wantCharge = `an object such as {"response_header": "x-tokens-used", "max": 100000}`

// chargeValue is what a request turns out to cost.
var chargeValue = value[*Charge]{wantCharge, chargeSchema, func(r *reader, n *node, to **Charge) bool {
	c := &Charge{}
	if !chargeMembers.read(r, n, wantCharge, c) || !checkCharge(r, n) {
		return false
	}
	*to = c
	return true
}}

var chargeMembers = members[Charge]{
	fields: []field[Charge]{
		optional("response_header", answerHeaderValue, func(c *Charge) *string { return &c.ResponseHeader }).
			explain("The response header that says the cost."),
		optional("response_trailer", answerHeaderValue, func(c *Charge) *string { return &c.ResponseTrailer }).
			explain("The response trailer that says the cost, or the header where the response is trailers only."),
		optional("metadata", chargeMetadataValue, func(c *Charge) *string { return &c.Metadata }).
			explain("Where dynamic metadata says the cost when the stream ends: the filter's name and the steps, with / between."),
		required("max", unitsValue, func(c *Charge) *int64 { return &c.Max }).
			explain("The largest cost, and the deepest debt that it takes a bucket into; what is above counts as this."),
		optional("remove", boolValue, func(c *Charge) *bool { return &c.Remove }).
			explain("Whether the response header is kept from the client. Only with \"response_header\".").defaultsTo("false"),
	},
}

// chargeSources are the fields of which a charge has exactly one.
var chargeSources = []string{"response_header", "response_trailer", "metadata"}

// checkCharge checks that the object n has one source, and what goes with it.
func checkCharge(r *reader, n *node) bool {
	before := r.count()
	var sources []string
	for _, name := range chargeSources {
		if n.member(name) != nil {
			sources = append(sources, name)
		}
	}
	remove := n.member("remove")
	switch {
	case len(sources) == 0:
		r.mistake(n, "does not say where the cost is: want "+list(chargeSources, "or"))
	case len(sources) > 1:
		r.mistake(n, "has "+list(sources, "and")+": want one of them")
	case remove != nil && sources[0] != "response_header":
		r.mistake(remove, `belongs to "response_header": leave it out`)
	}
	return r.count() == before
}

var answerHeaderValue = stringAs(`a header's name such as "x-tokens-used"`, parseToken).as(patternSchema(tokenPattern))

const wantChargeMetadata = `"FILTER/path", the way to a value in a filter's metadata`

// chargeMetadataValue is spelled as in the key part "metadata".
var chargeMetadataValue = stringAs(wantChargeMetadata, func(s string) (string, error) {
	if s == "" {
		return "", wantError(wantChargeMetadata)
	}
	part, err := keys.Parse("metadata:" + s)
	switch {
	case err != nil:
		return "", err
	case len(part.Sources) > 1:
		return "", errors.New("there are no alternatives here: want one FILTER/path; a | in a name is ~2")
	}
	return part.Sources[0].Name, nil
}).as(textSchema)

const (
	wantStatus   = `a status such as "401", or a class of them such as "5xx"`
	wantStatuses = `an array of statuses such as ["401", "5xx"]`
)

var statusValue = stringAs(wantStatus, func(s string) (StatusRange, error) {
	if len(s) != 3 || s[0] < '1' || s[0] > '5' {
		return StatusRange{}, wantError(wantStatus)
	}
	class := int(s[0]-'0') * 100
	if s[1:] == "xx" {
		return StatusRange{class, class + 99}, nil
	}
	if !isDigit(s[1]) || !isDigit(s[2]) {
		return StatusRange{}, wantError(wantStatus)
	}
	status := class + int(s[1]-'0')*10 + int(s[2]-'0')
	return StatusRange{status, status}, nil
}).as(patternSchema("^[1-5](xx|[0-9][0-9])$"))

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

var countStatusValue = value[[]StatusRange]{wantStatuses, arraySchema(statusValue.schema, `,"minItems":1,"uniqueItems":true`), func(r *reader, n *node, to *[]StatusRange) bool {
	if n.kind == arrayKind && len(n.children) == 0 {
		r.mistake(n, "an empty array, by which nothing counts: want "+wantStatuses+", or leave the field out")
		return false
	}
	var ranges []StatusRange
	if !listOf(wantStatuses, statusValue).read(r, n, &ranges) {
		return false
	}
	seen := map[StatusRange]bool{}
	for i, one := range ranges {
		if seen[one] {
			r.wrong(n.children[i], "stands twice in one list: keep one")
			return false
		}
		seen[one] = true
	}
	*to = ranges
	return true
}}
