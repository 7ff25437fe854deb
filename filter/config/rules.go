package config

import "strconv"

const (
	wantRules  = "an array of rules"
	wantAlways = "an array of names of limits"
)

// maxUses is how many limits one list may name. It bounds what a request costs,
// and what the rules of a large document take of a VM's memory.
const maxUses = 32

// ruleDraft is a rule as it is written: its limits by name, and its costs nil
// where they are left out.
type ruleDraft struct {
	Rule
	cost *int64
	uses []useDraft
}

// useDraft is a limit as a list names it.
type useDraft struct {
	node *node // where the name stands
	name string
	cost *int64
}

var ruleValue = objectOf(`an object such as {"limits": ["login"]}`, members[ruleDraft]{
	fields: []field[ruleDraft]{
		optional("name", nameValue, func(d *ruleDraft) *string { return &d.Name }),
		optional("match", matchValue, func(d *ruleDraft) *Match { return &d.Match }),
		required("limits", listOf(`an array such as ["login"]`, useValue), func(d *ruleDraft) *[]useDraft { return &d.uses }),
		optional("cost", costValue, func(d *ruleDraft) **int64 { return &d.cost }),
		optional("response", responseValue, func(d *ruleDraft) *Response { return &d.Response }),
	},
})

var nameValue = stringAs(wantName, func(s string) (string, error) {
	if !isName(s) {
		return "", wantError(wantName)
	}
	return s, nil
})

const wantName = "a name of 1 to 64 characters of a-z, 0-9, _ and -, beginning with a letter or digit"

// useValue is an entry of a rule's "limits".
var useValue = value[useDraft]{useObject.want, func(r *reader, n *node, to *useDraft) bool {
	if n.kind == stringKind {
		return limitName.read(r, n, to)
	}
	return useObject.read(r, n, to)
}}

var useObject = objectOf(`a name such as "login", or an object such as {"limit": "login", "cost": 5}`, members[useDraft]{
	fields: []field[useDraft]{
		required("limit", limitName, func(d *useDraft) *useDraft { return d }),
		optional("cost", costValue, func(d *useDraft) **int64 { return &d.cost }),
	},
})

// limitName is a reference to a limit.
var limitName = value[useDraft]{`a limit's name such as "login"`, func(r *reader, n *node, to *useDraft) bool {
	if n.kind != stringKind {
		r.wrongType(n, `a limit's name such as "login"`)
		return false
	}
	to.node, to.name = n, n.text
	return true
}}

// readRules reads "rules".
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
		cost := int64(defaultCost)
		if d.cost != nil {
			cost = *d.cost
		}
		d.Limits = r.resolve(d.uses, cost)
		c.Rules = append(c.Rules, d.Rule)
	}
}

// readAlways reads "always".
func readAlways(r *reader, n *node, c *Config) {
	var uses []useDraft
	listOf(wantAlways, limitName).read(r, n, &uses)
	c.Always = r.resolve(uses, defaultCost)
}

// resolve finds the limits that one list names. cost is what those take that do
// not say.
func (r *reader) resolve(drafts []useDraft, cost int64) []Use {
	if r.limits == nil {
		return nil // which has been noted once and for all
	}
	var uses []Use
	seen := map[string]bool{}
	for _, d := range drafts {
		index, ok := r.limits[d.name]
		if !ok {
			r.mistake(d.node, quote(d.name)+": no such limit"+r.instead(d.name, r.limitNames, len(r.limitNames)))
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
		uses = append(uses, use)
	}
	return uses
}
