package config

import (
	"net/netip"
	"regexp"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/keys"
)

// Config is a checked document with every default filled in.
type Config struct {
	// Limits, sorted by name. Use.Limit is an index into it.
	Limits []Limit
	// Always apply to every request besides its rule's, at cost 1.
	Always []Use
	// Exempt are the requests that are none of the filter's business.
	Exempt []Match
	// Rules in the document's order; the first that matches decides.
	Rules []Rule
	// Response is what a refused client gets where the rule does not say
	// otherwise.
	Response Response
	// ClientIP is how the client's address is found.
	ClientIP ClientIP
	// RouteMetadata lets routes pick their rule or bring their own config.
	RouteMetadata bool
	// Shadow makes every limit a shadow limit, those of routes included. It is in
	// Limits already.
	Shadow bool
	// OnError says what becomes of a limit that could not be decided.
	OnError OnError
	// Namespace separates tables of one vm_id; nil means the plugin's name.
	Namespace *string
	// MaxBuckets is how many buckets the table holds: 1,000 to 10,000,000.
	MaxBuckets int
	// Global is the service that counts the limits whose Global is set. nil is
	// none, and then no limit has it set.
	Global *Global
}

// Global is the fleet-wide service, and how Envoys go along with it.
type Global struct {
	Cluster  string // Envoy's name of the service's cluster; not empty, no control characters
	Protocol Protocol
	Domain   string // what the service knows the limits under; as Cluster
	// Lease says that units are taken from the service ahead of need. Else it is
	// asked about each request.
	Lease bool
	// LeaseShare is the largest share of a limit that is taken at a time, in
	// billionths: 1 to 1e9. LargestLease has it in units. It is set whether or not
	// Lease is.
	LeaseShare int64
	// Timeout is how long an answer may take: 1 ms to 10 s.
	Timeout   time.Duration
	OnFailure OnFailure
}

// LargestLease returns how much of a limit of so many units (1 to
// algorithms.MaxUnits) is taken at a time: LeaseShare of it, rounded down, at
// least 1.
func (g *Global) LargestLease(units int64) int64 {
	return max(units*g.LeaseShare/wholeShare, 1)
}

// Protocol is how the service is spoken to.
type Protocol int

// The protocols.
const (
	RLS        Protocol = iota // Envoy's rate limit service
	Gubernator                 // Gubernator's own
)

// OnFailure says what becomes of a fleet-wide limit while the service is away.
type OnFailure int

// The policies for a service that is away.
const (
	FailLocal OnFailure = iota // the process counts by the Limiter
	FailAllow                  // the limit is skipped, the others still apply
	FailDeny                   // as OnError's Deny
)

// GlobalCount is what the service counts for a limit, or for an override of it.
// Exactly one of Window and Rate is set.
type GlobalCount struct {
	// Units is how many a window holds, or the capacity of a continuous bucket
	// (GCRA's burst): 1 to algorithms.MaxUnits.
	Units int64
	// Window is the length of a window of UTC's calendar: a second, a minute, an
	// hour or 24 hours.
	Window time.Duration
	// Rate is how fast a continuous bucket refills.
	Rate algorithms.Rate
}

// Limit is one entry of "limits".
type Limit struct {
	Name      string
	Algorithm string
	Limiter   algorithms.Limiter
	// Shape is what a bucket's meaning depends on besides the limit's name and
	// key, in one canonical spelling: the algorithm, its mode, window and offset
	// where it has them, and whether the limit is fleet-wide. A change of it starts
	// afresh; a change of the limit's numbers does not.
	Shape   string
	Key     []keys.Part
	Missing Missing
	// Overrides in the document's order; the first that matches replaces the
	// Limiter.
	Overrides []Override
	// Shadow limits decide and count, and refuse nobody. It is set on every
	// limit where the document says so at the top.
	Shadow bool
	// EnforcePercent is the share of clients that are refused, 0 to 100; the
	// others are as in shadow.
	EnforcePercent int
	// Queue says that admitted requests wait for their departure. No request
	// meets two such limits.
	Queue bool
	// Concurrency says that units are requests in flight.
	Concurrency bool
	// Charge says what else a request is charged once it is over; nil is nothing.
	Charge *Charge
	// CountStatus are the statuses of responses whose requests stay charged; nil
	// is all of them.
	CountStatus []StatusRange
	// Global says that the service of Config.Global counts the limit, for the whole
	// fleet. The Limiter is for while the service is away.
	Global bool
	// Counts is what the service counts; nil where Global is not set.
	Counts *GlobalCount
}

// Charge is what a request turns out to cost, and where that is read. Exactly one
// of ResponseHeader, ResponseTrailer and Metadata is set.
type Charge struct {
	ResponseHeader, ResponseTrailer string // in lower case
	// Metadata is the way to a whole number, or to a text of digits, in the
	// stream's dynamic metadata: the filter's name and the steps, with zero bytes
	// between, as keys.Source and package metadata have it.
	Metadata string
	// Max is the most that one request is charged, and the deepest debt that a
	// bucket gets into by it, in units: 1 to algorithms.MaxUnits.
	Max int64
	// Remove says that the response header does not go on to the client.
	Remove bool
}

// StatusRange is a range of statuses of responses, both ends included: 100 to 599.
type StatusRange struct{ From, To int }

// Override is a limit's other numbers, for the requests that it matches.
type Override struct {
	Match Match
	// Identity is the match in one canonical spelling. Clients have buckets of
	// their own under each.
	Identity string
	// Limiter is nil where such requests are unlimited.
	Limiter algorithms.Limiter
	// Counts is what the service counts for such requests; nil where they are
	// unlimited, or the limit is not Global.
	Counts *GlobalCount
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
	Limit int // index into Config.Limits
	Cost  Cost
}

// Cost is how many units a request takes.
type Cost struct {
	// Units is the cost, 0 to algorithms.MaxUnits; where Header is set, the cost
	// of a request whose header is absent, repeated or malformed.
	Units int64
	// Header is the name, in lower case, of a request header that says the cost;
	// "" if none does.
	Header string
	// Max is the most that the header can say.
	Max int64
}

// Rule is one entry of "rules".
type Rule struct {
	Name     string // "" if it has none
	Match    Match
	Limits   []Use
	Response Response // the top-level one with the rule's laid over it
}

// Match holds when every list that is not empty holds one that fits. Its values
// are normalised as config.md's "Matches" says.
type Match struct {
	Route, VirtualHost []string
	Host               []HostPattern
	Path, PathPrefix   []string
	PathRegex          []*regexp.Regexp // each matches the whole path or nothing
	Method             []string
	Headers            []HeaderMatch // all must hold
	IP                 []netip.Prefix
	Values             []ValueMatch // all must hold
}

// HostPattern is a host name, or with Under set, any name under it
// ("*.example.com": Name is "example.com").
type HostPattern struct {
	Name  string
	Under bool
}

// HeaderMatch holds when one of the conditions does.
type HeaderMatch struct {
	Name string // in lower case; ":authority" for host
	Any  []Condition
}

// Condition is what a header's value must be. Exactly one of Present, Exact,
// Prefix and Regex is set.
type Condition struct {
	Not     bool // holds where the rest does not, and for an absent header
	Present bool
	Exact   *string
	Prefix  *string
	Regex   *regexp.Regexp // matches the whole value or nothing
}

// ValueMatch holds when the key part's value is one of the texts. An address is
// compared in full, in its canonical spelling.
type ValueMatch struct {
	Part keys.Part
	Any  []string
}

// ClientIP says where the client's address is read. With no Header it is Envoy's
// downstream remote address.
type ClientIP struct {
	Header string // in lower case
	// TrustedHops counts from the right of the header, from 1; 0 where
	// TrustedProxies say which entries to pass over.
	TrustedHops    int
	TrustedProxies []netip.Prefix
	// IPv4Prefix, 1 to 32, and IPv6Prefix, 1 to 128, are how many bits of an
	// address tell clients apart in keys. They are in Limits already.
	IPv4Prefix, IPv6Prefix uint8
}

// Response is what a refused client gets, and which headers all get.
type Response struct {
	Status int // 400 to 599
	// Body replaces the default JSON body where it is not nil. {name}, {rule},
	// {limit}, {remaining}, {reset} and {retry_after} are filled in.
	Body        *string
	ContentType string
	// Headers are extra headers of a refusal, in lower case, sorted by name.
	Headers          [][2]string
	RateLimitHeaders HeaderFamilies
	// RetryAfterJitter is the most that is added to a refusal's waiting time.
	RetryAfterJitter time.Duration
}

// HeaderFamilies are ways to tell clients about limits; any of them together.
type HeaderFamilies uint8

// The families of headers.
const (
	RateLimit  HeaderFamilies = 1 << iota // RateLimit-Limit, -Remaining, -Reset
	Draft                                 // RateLimit-Policy and RateLimit, as the IETF's draft has them
	XRateLimit                            // X-RateLimit-Limit, -Remaining, -Reset
)
