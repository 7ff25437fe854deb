package policy

import (
	"cmp"
	"strings"

	"github.com/dchest/siphash"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/keys"
	"github.com/sluice-proxy/sluice/filter/response"
	"github.com/sluice-proxy/sluice/filter/table"
)

// Limit is one limit of a policy.
type Limit struct {
	Name string
	// Details are the response code details of a refusal by this limit.
	Details string
	// Metrics are the host's about the limit; the plugin keeps them here.
	Metrics [10]uint32

	// Queue says that requests wait for their departure, Concurrency that units
	// are requests in flight. Charge is what is charged afterwards, nil if nothing
	// is, and CountStatus the statuses that stay charged, nil if all do.
	Queue, Concurrency bool
	Charge             *config.Charge
	CountStatus        []config.StatusRange

	key       []keys.Part
	missing   config.Missing
	overrides []override
	plain     numbers      // where no override matches
	table     *table.Table // set by attach
	shadow    bool
	enforced  uint64 // the share of clients that are refused, of 100
	global    bool   // a service counts it,
	leased    bool   // and the process takes units of it ahead of need
}

// numbers is what a client is held to, and where its buckets are.
type numbers struct {
	limiter  algorithms.Limiter
	identity string
	seed     table.Seed // set by attach
	global   *global    // nil of the process' own
}

// attach gives numbers the secret of their buckets.
func (n *numbers) attach(t *table.Table) {
	n.seed = t.Seed(n.identity)
	if n.global != nil {
		n.global.local.seed = t.Seed(n.global.local.identity)
	}
}

// override is what a limit is for the requests that match.
type override struct {
	match
	numbers // limiter is nil where they are unlimited
}

// newLimit compiles a limit. owner is "" or the route that the limit is of; g is
// the service of fleet-wide limits, nil if there is none, and largestCost the most
// that one request takes.
func newLimit(l *config.Limit, owner string, g *config.Global, largestCost int64) *Limit {
	// What two limits must have in common to share buckets. No piece can
	// contain a zero byte.
	identity := owner + "\x00" + l.Name + "\x00" + l.Shape
	for _, part := range l.Key {
		identity += "\x00" + part.Identity()
	}
	limit := &Limit{
		Name:     l.Name,
		Details:  response.DetailsPrefix + l.Name,
		key:      l.Key,
		missing:  l.Missing,
		plain:    numbers{limiter: l.Limiter, identity: identity},
		shadow:   l.Shadow,
		enforced: uint64(l.EnforcePercent),

		Queue:       l.Queue,
		Concurrency: l.Concurrency,
		Charge:      l.Charge,
		CountStatus: l.CountStatus,
	}
	if g != nil && l.Counts != nil {
		limit.plain = limit.plain.ofService(serviceName(l, owner, ""), l.Counts, g, largestCost)
		limit.global = limit.plain.global != nil
		limit.leased = limit.global && !limit.plain.global.strict
	}
	for i := range l.Overrides {
		o := &l.Overrides[i]
		n := numbers{limiter: o.Limiter, identity: identity + "\x00\x00" + o.Identity}
		if limit.global && o.Counts != nil {
			n = n.ofService(serviceName(l, owner, o.Identity), o.Counts, g, largestCost)
		}
		limit.overrides = append(limit.overrides, override{match: newMatch(&o.Match, false), numbers: n})
	}
	return limit
}

func (l *Limit) attach(t *table.Table) {
	l.table = t
	l.plain.attach(t)
	for i := range l.overrides {
		l.overrides[i].attach(t)
	}
}

// usesWall says whether a decision needs the wall clock, which one that falls back
// on the process' own numbers may.
func (l *Limit) usesWall() bool {
	return l.plain.limiter.UsesWall() || l.global && l.plain.global.local.limiter.UsesWall()
}

// isPlain says whether the limit is the same for all requests, and only the
// process has to do with it.
func (l *Limit) isPlain() bool {
	return len(l.overrides) == 0 && !l.shadow && l.enforced == 100 && !l.global
}

// numbersFor returns what a request is held to; its limiter is nil where it is
// unlimited.
func (l *Limit) numbersFor(r keys.Request) *numbers {
	for i := range l.overrides {
		if l.overrides[i].holds(r) {
			return &l.overrides[i].numbers
		}
	}
	return &l.plain
}

// appendKey appends the client's key. complete is false where the request lacks
// a part of it.
func (l *Limit) appendKey(key []byte, r keys.Request) (extended []byte, complete bool) {
	if len(l.key) == 1 { // as most
		return l.key[0].Append(key, r)
	}
	complete = true
	for i := range l.key {
		var present bool
		key, present = l.key[i].Append(key, r)
		complete = complete && present
	}
	return key, complete
}

// enforcedFor says whether the limit refuses this client: the share of clients
// that it does is told by a hash of the key that is the same everywhere and
// always.
func (l *Limit) enforcedFor(key []byte) bool {
	if l.shadow || l.enforced == 100 {
		return !l.shadow
	}
	name := siphash.Hash(0, 0, []byte(l.Name)) // other limits take other clients
	return siphash.Hash(name, 0, key)%100 < l.enforced
}

// compareLimits orders limits by their turn, then by identity.
func compareLimits(a, b *Limit) int {
	return cmp.Or(cmp.Compare(a.turn(), b.turn()), strings.Compare(a.plain.identity, b.plain.identity))
}

// turn is when a limit's turn comes. Those that may refuse are before those that
// never do, so that what a shadow limit takes need not be given back. Of them, the
// process' are before those that a service has to be asked about. A request is in
// flight only once that is done, and has a place in a queue last: nobody else can
// use it any more once others stand behind.
func (l *Limit) turn() int {
	switch {
	case l.shadow:
		return 4
	case l.Queue:
		return 3
	case l.Concurrency:
		return 2
	case l.global && !l.leased:
		return 1
	default:
		return 0
	}
}

// AppendReadable appends the client's key as people read it, with hash for what
// is secret.
func (l *Limit) AppendReadable(text []byte, r keys.Request, hash func([]byte) uint64) []byte {
	return keys.AppendReadable(text, l.Name, l.key, r, hash)
}
