package config

import "github.com/sluice-proxy/sluice/filter/keys"

// What a document gets that does not say otherwise.
const (
	defaultStatus         = 429
	defaultContentType    = "application/json"
	defaultMaxBuckets     = 100_000
	defaultCost           = 1
	defaultEnforcePercent = 100
	defaultIPv4Prefix     = 32
	defaultIPv6Prefix     = 64
)

// Parse reads the plugin's document and checks it. The error is of type Mistakes
// and names every mistake at once, so that nobody has to find them one deployment
// at a time.
func Parse(document []byte) (*Config, error) {
	return parse(document, topMembers, Config{
		Response: Response{
			Status:           defaultStatus,
			ContentType:      defaultContentType,
			RateLimitHeaders: RateLimit,
		},
		ClientIP:   ClientIP{IPv4Prefix: defaultIPv4Prefix, IPv6Prefix: defaultIPv6Prefix},
		MaxBuckets: defaultMaxBuckets,
	}, "")
}

// ParseRoute reads the document that a route brings in its metadata. It may hold
// limits, rules, exempt and response, which is laid over the plugin's; all else
// is the plugin's, the fleet-wide service for instance, but for Always, which names limits of the plugin and is empty
// here: they are only looked at for a queue, besides which the route's rules can
// have none. The error is of type Mistakes.
func ParseRoute(document []byte, plugin *Config) (*Config, error) {
	c := *plugin
	c.Limits, c.Always, c.Exempt, c.Rules = nil, nil, nil, nil
	return parse(document, routeMembers, c, plugin.alwaysQueue())
}

// parse lays a document over c. queue is one that applies besides, if any does.
func parse(document []byte, m members[Config], c Config, queue string) (*Config, error) {
	r := &reader{}
	root, err := parseTree(document, &r.collector)
	if err != nil {
		return nil, err
	}
	m.read(r, root, `a JSON object with "limits" and "rules"`, &c)
	r.checkQueues(queue)
	r.checkGlobals(root, c.Global)
	if err := r.err(); err != nil {
		return nil, err
	}
	for i := range c.Limits {
		c.Limits[i].inherit(&c)
	}
	return &c, nil
}

// inherit takes over what the document says for all its limits.
func (l *Limit) inherit(c *Config) {
	l.Shadow = l.Shadow || c.Shadow
	for _, part := range l.Key {
		for i := range part.Sources {
			if s := &part.Sources[i]; s.Kind == keys.IP {
				s.IPv4Bits, s.IPv6Bits = c.ClientIP.IPv4Prefix, c.ClientIP.IPv6Prefix
			}
		}
	}
}

// The members that both the plugin's document and a route's may have. What others
// refer to comes first: limits, and the response that rules lay theirs over.
var sharedFields = []field[Config]{
	limitsField,
	optional("response", responseValue, func(c *Config) *Response { return &c.Response }).
		explain("What a refused client gets, and which headers all get.").defaultsTo("{}"),
	rulesField,
	exemptField,
	field[Config]{
		property: property{name: "$schema", schema: anything},
		read:     func(*reader, *node, *Config) {},
	}.explain("Where editors find the schema of this format. It is ignored."),
}

// topMembers are the members of the plugin's document.
var topMembers = members[Config]{
	fields: append(sharedFields[:len(sharedFields):len(sharedFields)], pluginFields...),
}

// routeMembers are the members of a route's document.
var routeMembers = members[Config]{fields: sharedFields, refused: refusedOnRoutes()}

// refusedOnRoutes are the fields that only the plugin's document has.
func refusedOnRoutes() []refusal {
	var all []refusal
	for _, f := range pluginFields {
		all = append(all, refusal{f.name, "belongs to the plugin's config, which is the same for all routes: leave it out here"})
	}
	return all
}

// pluginFields are the members that only the plugin's document may have.
var pluginFields = []field[Config]{
	alwaysField,
	optional("client_ip", clientIPValue, func(c *Config) *ClientIP { return &c.ClientIP }).
		explain("How the client's address is found, and how much of it tells clients apart.").defaultsTo("{}"),
	optional("state", stateValue, func(c *Config) *Config { return c }).
		explain("The table that holds the buckets.").defaultsTo("{}"),
	optional("global", globalValue, func(c *Config) **Global { return &c.Global }).
		explain("The fleet-wide service, which counts the limits whose scope is \"global\" for all Envoys that ask it."),
	optional("route_metadata", boolValue, func(c *Config) *bool { return &c.RouteMetadata }).
		explain("Whether routes may pick their rule, or bring their own config, in their metadata.").defaultsTo("false"),
	optional("shadow", boolValue, func(c *Config) *bool { return &c.Shadow }).
		explain("Whether every limit is a shadow limit, which decides and counts but refuses nobody.").defaultsTo("false"),
	optional("on_error", onErrorValue, func(c *Config) *OnError { return &c.OnError }).
		explain("What becomes of a limit that could not be decided: it is skipped and the others still apply, or the request gets 503.").defaultsTo(`"allow"`),
	optional("namespace", namespaceValue, func(c *Config) **string { return &c.Namespace }).
		explain("Filters that share the Envoy process, the vm_id, the namespace and max_buckets share the table. By default the plugin's name."),
}

var stateValue = objectOf(`an object such as {"max_buckets": 100000}`, stateMembers)

var stateMembers = members[Config]{
	fields: []field[Config]{
		optional("max_buckets", whole(1_000, 10_000_000), func(c *Config) *int { return &c.MaxBuckets }).
			explain("How many buckets the table holds; its memory is fixed by it.").defaultsTo("100000"),
	},
}

const wantNamespace = "a string of at most 63 characters of a-z, 0-9, _ and -"

var namespaceValue = stringAs(wantNamespace, func(s string) (*string, error) {
	if len(s) > 63 || !isWord(s) {
		return nil, wantError(wantNamespace)
	}
	return &s, nil
}).as(patternSchema("^[a-z0-9_-]{0,63}$"))

var onErrorValue = oneOf(choice[OnError]{"allow", Allow}, choice[OnError]{"deny", Deny})
