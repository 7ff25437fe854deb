package config

import "github.com/sluice-proxy/sluice/algorithms"

// maxInteger is the largest whole number that stands for a quantity.
const maxInteger = algorithms.MaxUnits

// costValue is how many units a request takes: a number, or where to read it.
var costValue = value[*Cost]{wantCost, defined("cost", eitherSchema(costUnits.schema, costMembers.schema())), func(r *reader, n *node, to **Cost) bool {
	cost := &Cost{Units: defaultCost}
	switch n.kind {
	case numberKind:
		if !costUnits.read(r, n, &cost.Units) {
			return false
		}
	default:
		if !costMembers.read(r, n, wantCost, cost) {
			return false
		}
		if cost.Units > cost.Max {
			at := n
			if child := n.member("default"); child != nil {
				at = child
			}
			r.mistake(at, "the cost without the header is above max: want a default of no more than max")
			return false
		}
	}
	*to = cost
	return true
}}

var costUnits = whole[int64](0, algorithms.MaxUnits)

var wantCost = costUnits.want + `, or an object such as {"header": "x-cost", "max": 100}`

// costMembers are a cost that a trusted header says.
var costMembers = members[Cost]{
	fields: []field[Cost]{
		required("header", stringAs(`a header's name such as "x-cost"`, parseHeaderName), func(c *Cost) *string { return &c.Header }).
			explain("The request header that says the cost. Only for a header that is set by something you trust."),
		optional("default", costUnits, func(c *Cost) *int64 { return &c.Units }).
			explain("The cost where the header is absent, repeated or no whole number.").defaultsTo("1"),
		required("max", unitsValue, func(c *Cost) *int64 { return &c.Max }).
			explain("The largest cost; what is above counts as this."),
	},
}
