package config

import (
	"errors"

	"github.com/sluice-proxy/sluice/algorithms"
)

// What a document gets that does not say otherwise.
const (
	defaultStatus     = 429
	defaultMaxBuckets = 100_000
	defaultCost       = 1
)

// Parse reads a document and checks it. The error is of type Mistakes and names
// every mistake at once, so that nobody has to find them one deployment at a
// time.
func Parse(document []byte) (*Config, error) {
	r := &reader{}
	root, err := parseTree(document, &r.collector)
	if err != nil {
		return nil, err
	}
	c := &Config{
		Response:   Response{Status: defaultStatus},
		MaxBuckets: defaultMaxBuckets,
	}
	topMembers.read(r, root, `a JSON object with "limits" and "rules"`, c)
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// topMembers are the members of the document itself. What others refer to comes
// first: limits, and the response that rules lay theirs over.
var topMembers = members[Config]{
	fields: []field[Config]{
		{name: "limits", required: true, want: wantLimits, read: readLimits},
		optional("response", responseValue, func(c *Config) *Response { return &c.Response }),
		{name: "rules", want: wantRules, read: readRules},
		{name: "always", want: wantAlways, read: readAlways},
		optional("state", stateValue, func(c *Config) *Config { return c }),
		optional("namespace", namespaceValue, func(c *Config) **string { return &c.Namespace }),
		optional("on_error", onErrorValue, func(c *Config) *OnError { return &c.OnError }),
		{name: "$schema", read: func(*reader, *node, *Config) {}},
	},
	refused: notYetTop,
}

var responseValue = objectOf(`an object such as {"status": 429}`, members[Response]{
	fields: []field[Response]{
		optional("status", whole(400, 599), func(to *Response) *int { return &to.Status }),
		optional("body", stringAs("a string", parseBody), func(to *Response) **string { return &to.Body }),
	},
	refused: notYetResponse,
})

// parseBody accepts any text without what will one day be filled in.
func parseBody(s string) (*string, error) {
	if placeholder, ok := notYetIn(s, notYetInBody); ok {
		return nil, errors.New("filling in " + placeholder + " " + isNotYet + ": leave it out")
	}
	return &s, nil
}

var stateValue = objectOf(`an object such as {"max_buckets": 100000}`, members[Config]{
	fields: []field[Config]{
		optional("max_buckets", whole(1_000, 10_000_000), func(c *Config) *int { return &c.MaxBuckets }),
	},
})

const wantNamespace = "a string of at most 63 characters of a-z, 0-9, _ and -"

var namespaceValue = stringAs(wantNamespace, func(s string) (*string, error) {
	if len(s) > 63 || !isWord(s) {
		return nil, wantError(wantNamespace)
	}
	return &s, nil
})

var onErrorValue = oneOf(choice[OnError]{"allow", Allow}, choice[OnError]{"deny", Deny})

// costValue is how many units a request takes.
var costValue = value[*int64]{costUnits.want, func(r *reader, n *node, to **int64) bool {
	if n.kind == objectKind {
		r.mistake(n, notYetCostFrom+": want "+costUnits.want)
		return false
	}
	*to = new(int64)
	return costUnits.read(r, n, *to)
}}

var costUnits = whole[int64](0, algorithms.MaxUnits)
