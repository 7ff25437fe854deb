package config

import "strconv"

const (
	wantRules  = "an array of rules"
	wantAlways = "an array of names of limits"
	wantExempt = `an array of matches such as [{"path": "/healthz"}]`
)

// maxUses is how many limits one list may name. It bounds what a request costs,
// and what the rules of a large document take of a VM's memory.
const maxUses = 32

// ruleDraft is a rule as it is written: its limits by name, and its costs nil
// where they are left out.
type ruleDraft struct {
	Rule
	cost *Cost
	uses []useDraft
}

// useDraft is a limit as a list names it.
type useDraft struct {
	node *node // where the name stands
	name string
	cost *Cost
}

var ruleValue = objectOf(`an object such as {"limits": ["login"]}`, ruleMembers)

var ruleMembers = members[ruleDraft]{
	fields: []field[ruleDraft]{
		optional("name", nameValue, func(d *ruleDraft) *string { return &d.Name }).
			explain("What the rule is called by the key part \"rule\" and by the metadata of routes."),
		optional("match", earlyMatchValue, func(d *ruleDraft) *Match { return &d.Match }).
			explain("The requests that the rule is for. By default all of them.").defaultsTo("{}"),
		required("limits", listOf(`an array such as ["login"]`, useValue), func(d *ruleDraft) *[]useDraft { return &d.uses }).
			explain("The limits that apply, besides those that always do: names, or objects with a cost of their own."),
		optional("cost", costValue, func(d *ruleDraft) **Cost { return &d.cost }).
			explain("How many units of the rule's limits a request takes.").defaultsTo("1"),
		optional("response", responseValue, func(d *ruleDraft) *Response { return &d.Response }).
			explain("Laid over the response at the top, field by field."),
	},
	refused: matchElsewhere(),
}

var nameValue = stringAs(wantName, func(s string) (string, error) {
	if !isName(s) {
		return "", wantError(wantName)
	}
	return s, nil
}).as(patternSchema(namePattern))

const wantName = "a name of 1 to 64 characters of a-z, 0-9, _ and -, beginning with a letter or digit"

// useValue is an entry of a rule's "limits".
var useValue = value[useDraft]{useObject.want, eitherSchema(limitName.schema, useObject.schema), func(r *reader, n *node, to *useDraft) bool {
	if n.kind == stringKind {
		return limitName.read(r, n, to)
	}
	return useObject.read(r, n, to)
}}

var useObject = objectOf(`a name such as "login", or an object such as {"limit": "login", "cost": 5}`, members[useDraft]{
	fields: []field[useDraft]{
		required("limit", limitName, func(d *useDraft) *useDraft { return d }).
			explain("The limit's name."),
		optional("cost", costValue, func(d *useDraft) **Cost { return &d.cost }).
			explain("How many units of this limit a request takes. By default the rule's cost."),
	},
})

// limitName is a reference to a limit.
var limitName = value[useDraft]{wantLimitName, patternSchema(namePattern), func(r *reader, n *node, to *useDraft) bool {
	if n.kind != stringKind {
		r.wrongType(n, wantLimitName)
		return false
	}
	to.node, to.name = n, n.text
	return true
}}

const wantLimitName = `a limit's name such as "login"`

var rulesField = field[Config]{
	property: property{
		name: "rules", want: wantRules, schema: arraySchema(ruleValue.schema, ""),
	},
	read: readRules,
}.explain("Tried in order: the first whose match holds decides which limits apply.").defaultsTo("[]")

func readRules(r *reader, n *node, c *Config) {
	if n.kind != arrayKind {
		r.wrongType(n, wantRules)
		return
	}
	names := map[string]*node{}
	for _, child := range n.children {
		d := ruleDraft{Rule: Rule{Response: c.Response}}
		ruleValue.read(r, child, &d)
		if first := names[d.Name]; first != nil {
			r.wrong(child.member("name"), "already the name of "+first.path()+": want another, or none")
		} else if d.Name != "" {
			names[d.Name] = child
		}
		cost := &Cost{Units: defaultCost}
		if d.cost != nil {
			cost = d.cost
		}
		var nodes []*node
		d.Limits, nodes = r.resolve(d.uses, *cost)
		if queues := queuesOf(c, d.Limits, nodes); queues != nil {
			r.ruleQueues = append(r.ruleQueues, queues)
		}
		c.Rules = append(c.Rules, d.Rule)
	}
}

var alwaysField = field[Config]{
	property: property{
		name: "always", want: wantAlways, schema: arraySchema(limitName.schema, `,"uniqueItems":true`),
	},
	read: func(r *reader, n *node, c *Config) {
		var uses []useDraft
		listOf(wantAlways, limitName).read(r, n, &uses)
		var nodes []*node
		c.Always, nodes = r.resolve(uses, Cost{Units: defaultCost})
		r.alwaysQueues = queuesOf(c, c.Always, nodes)
	},
}.explain("Names of limits that apply to every request besides its rule's, at cost 1.").defaultsTo("[]")

var exemptField = optional("exempt", listOf(wantExempt, earlyMatchValue), func(c *Config) *[]Match { return &c.Exempt }).
	explain("A request that any of these matches is never limited, counted or given headers.").defaultsTo("[]")

// resolve finds the limits that one list names, and where it names each. cost is
// what those take that do not say.
func (r *reader) resolve(drafts []useDraft, cost Cost) (uses []Use, nodes []*node) {
	if r.limits == nil {
		return nil, nil // which has been noted once and for all
	}
	seen := map[string]bool{}
	for _, d := range drafts {
		index, ok := r.limits[d.name]
		if !ok {
			_, remedy := r.instead(d.name, r.limitNames, len(r.limitNames))
			r.mistake(d.node, quote(d.name)+": no such limit"+remedy)
			continue
		}
		if seen[d.name] {
			r.wrong(d.node, "stands twice in one list: keep one")
			continue
		}
		seen[d.name] = true
		if len(uses) == maxUses {
			r.wrong(d.node, "one limit too many: want no more than "+strconv.Itoa(maxUses)+" in one list")
			break
		}
		use := Use{Limit: index, Cost: cost}
		if d.cost != nil {
			use.Cost = *d.cost
		}
		uses, nodes = append(uses, use), append(nodes, d.node)
	}
	return uses, nodes
}
