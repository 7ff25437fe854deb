package config

import (
	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/keys"
)

// Config is a checked document with every default filled in.
type Config struct {
	// Limits, sorted by name. Use.Limit is an index into it.
	Limits []Limit
	// Always apply to every request besides its rule's.
	Always []Use
	// Rules in the document's order; the first that matches decides.
	Rules []Rule
	// Response is what a refused client gets where the rule does not say
	// otherwise.
	Response Response
	// OnError says what becomes of a limit that could not be decided.
	OnError OnError
	// Namespace separates tables of one vm_id; nil means the plugin's name.
	Namespace *string
	// MaxBuckets is how many buckets the table holds: 1,000 to 10,000,000.
	MaxBuckets int
}

// Limit is one entry of "limits".
type Limit struct {
	Name      string
	Algorithm string
	Limiter   algorithms.Limiter
	// Shape is what a bucket's meaning depends on besides the limit's name and
	// key, in one canonical spelling: the algorithm, and its mode, window and
	// offset where it has them. A change of it starts afresh; a change of the
	// limit's numbers does not.
	Shape   string
	Key     []keys.Part
	Missing Missing
}

// Missing says what a key part does that the request lacks.
type Missing int

// The policies for missing key parts.
const (
	MissingShared Missing = iota // it takes a value that no request can spell
	MissingSkip                  // the limit does not apply
	MissingDeny                  // the request is refused
)

// OnError says what becomes of a limit that could not be decided.
type OnError int

// The failure policies.
const (
	Allow OnError = iota // the limit is skipped, the others still apply
	Deny                 // the request gets 503 (gRPC status 14)
)

// Use is a limit as a rule or "always" names it.
type Use struct {
	Limit int   // index into Config.Limits
	Cost  int64 // units a request takes, 0 to algorithms.MaxUnits
}

// Rule is one entry of "rules".
type Rule struct {
	Name     string // "" if it has none
	Match    Match
	Limits   []Use
	Response Response // the top-level one with the rule's laid over it
}

// Match holds when every list that is not empty holds one equal value. Its
// values are normalised as config.md's "Matches" says.
type Match struct {
	Path, PathPrefix []string
	Method           []string
	Host             []HostPattern
	Route            []string
}

// HostPattern is a host name, or with Under set, any name under it
// ("*.example.com": Name is "example.com").
type HostPattern struct {
	Name  string
	Under bool
}

// Response is what a refused client gets.
type Response struct {
	Status int // 400 to 599
	// Body replaces the default JSON body where it is not nil.
	Body *string
}
