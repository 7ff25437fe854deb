package config

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sluice-proxy/sluice/algorithms"
)

// What a fleet-wide service gets that does not say otherwise.
const (
	defaultDomain        = "sluice"
	defaultLeaseShare    = wholeShare / 20
	defaultGlobalTimeout = 50 * time.Millisecond
)

// The words of the format that mistakes tell people to write.
const (
	protocolRLS        = "rls"
	protocolGubernator = "gubernator"
	scopeProcess       = "process"
	scopeGlobal        = "global"
)

// wholeShare is the share of a limit that is all of it. In so many parts a share
// of any limit is right to one unit.
const wholeShare = 1_000_000_000

const wantGlobal = `an object such as {"cluster": "ratelimit", "protocol": "rls"}`

// globalValue is the fleet-wide service.
var globalValue = value[*Global]{wantGlobal, globalMembers.schema(), func(r *reader, n *node, to **Global) bool {
	g := &Global{Domain: defaultDomain, LeaseShare: defaultLeaseShare, Timeout: defaultGlobalTimeout}
	if !globalMembers.read(r, n, wantGlobal, g) {
		return false
	}
	*to = g
	return true
}}

var globalMembers = members[Global]{
	fields: []field[Global]{
		required("cluster", serviceName(`a cluster's name such as "ratelimit"`), func(g *Global) *string { return &g.Cluster }).
			explain("The service's cluster in Envoy's config. It must speak HTTP/2."),
		required("protocol", protocolValue, func(g *Global) *Protocol { return &g.Protocol }).
			explain("How the service is spoken to: as Envoy's rate limit service, or as Gubernator."),
		optional("domain", serviceName(`a name such as "sluice"`), func(g *Global) *string { return &g.Domain }).
			explain("What the service knows the limits under. Limits of one name in one domain are one limit.").defaultsTo(`"sluice"`),
		optional("mode", globalModeValue, func(g *Global) *bool { return &g.Lease }).
			explain("\"strict\": the service is asked about each request. \"lease\": units are taken ahead of need, and requests do not wait.").defaultsTo(`"strict"`),
		optional("lease", shareValue, func(g *Global) *int64 { return &g.LeaseShare }).
			explain("The largest share of a limit that one Envoy takes at a time, above 0 to 1, at least 1 unit. It counts in the mode \"lease\" only.").defaultsTo("0.05"),
		optional("timeout", globalTimeoutValue, func(g *Global) *time.Duration { return &g.Timeout }).
			explain("How long an answer may take, from 1ms to 10s.").defaultsTo(`"50ms"`),
		optional("on_failure", onFailureValue, func(g *Global) *OnFailure { return &g.OnFailure }).
			explain("While the service is away each Envoy enforces the full limit by itself, or the limit is skipped, or the request gets 503.").defaultsTo(`"local"`),
	},
}

var (
	protocolValue   = oneOf(choice[Protocol]{protocolRLS, RLS}, choice[Protocol]{protocolGubernator, Gubernator})
	globalModeValue = oneOf(choice[bool]{"strict", false}, choice[bool]{"lease", true})
	onFailureValue  = oneOf(choice[OnFailure]{"local", FailLocal}, choice[OnFailure]{"allow", FailAllow}, choice[OnFailure]{"deny", FailDeny})
	// scopeValue is whether the whole fleet counts together.
	scopeValue = oneOf(choice[bool]{scopeProcess, false}, choice[bool]{scopeGlobal, true})
)

// serviceName is a name that Envoy or the service gives a meaning to.
func serviceName(want string) value[string] {
	return stringAs(want, func(s string) (string, error) {
		if s == "" || strings.ContainsFunc(s, unicode.IsControl) {
			return "", wantError(want + ", not empty and without control characters")
		}
		return s, nil
	}).as(patternSchema(`^[^\x00-\x1f\x7f-\x9f]+$`))
}

const wantShare = "a number above 0, and not above 1"

// shareValue is a share of a limit. One too small to count is the smallest that
// does.
var shareValue = value[int64]{wantShare, keywords(`"type":"number","exclusiveMinimum":0,"maximum":1`), func(r *reader, n *node, to *int64) bool {
	if n.kind != numberKind {
		r.wrongType(n, wantShare)
		return false
	}
	f, _ := strconv.ParseFloat(n.text, 64)
	if !(f > 0 && f <= 1) { // what is no number is not above 0 either
		r.wrong(n, "want "+wantShare)
		return false
	}
	*to = max(int64(math.Round(f*wholeShare)), 1)
	return true
}}

var globalTimeoutValue = stringAs(`a duration such as "50ms"`, func(s string) (time.Duration, error) {
	return algorithms.ParseDuration(s, time.Millisecond, 10*time.Second)
}).as(patternSchema("^(" + durationPattern + ")$"))
