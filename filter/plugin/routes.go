package plugin

import (
	"bytes"
	"container/list"
	"encoding/binary"
	"strconv"
	"strings"
	"unsafe"

	"github.com/dchest/siphash"

	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/metadata"
	"github.com/sluice-proxy/sluice/filter/policy"
	"github.com/sluice-proxy/sluice/filter/table"
)

// Where a route says what it wants of the filter: its metadata as a whole, since
// only the whole comes with the types of what is in it, and the places in it.
const (
	routeMetadata = "xds\x00route_metadata"
	metadataRule  = "sluice\x00rule"
	metadataOwn   = "sluice\x00config"
)

// maxRoutes is how many routes' own configs are kept compiled.
const maxRoutes = 1000

// routes knows what routes say of themselves: which rule of the plugin's config
// is theirs, or a config of their own.
type routes struct {
	// known holds the routes that came last, by virtual host, route and what the
	// metadata says; used are the same, the last one first.
	known map[string]*list.Element
	used  list.List
	key   []byte
}

// ownRoute is what has come of one route's metadata.
type ownRoute struct {
	key    string
	policy *policy.Policy // of its own config; nil if there is none, or a bad one
}

func newRoutes() *routes { return &routes{known: map[string]*list.Element{}} }

// choose returns the policy for a request, and the rule if its route picks one.
// What the route says wrongly is counted, and logged once; then the plugin's own
// rules apply.
func (rs *routes) choose(p *Plugin) (*policy.Policy, *policy.Rule) {
	message, _ := host.Property(routeMetadata)
	name, named := metadata.String(message, metadataRule)
	document, owns := metadata.String(message, metadataOwn)
	switch {
	case metadata.Has(message, metadataRule) && metadata.Has(message, metadataOwn):
		rs.bad(p, name, "has both a rule and a config in its metadata: want one of them")
	case named:
		if rule := p.policy.Rule(name); rule != nil {
			return p.policy, rule
		}
		rs.bad(p, name, "picks the rule "+shown(name)+", which the plugin's config does not have")
	case owns:
		if own := rs.compiled(p, document); own != nil {
			p.request.allHeaders = p.request.allHeaders || own.AllHeaders
			return own, nil
		}
	case metadata.Has(message, "sluice"):
		rs.bad(p, nil, "has metadata for the filter, and in it neither a rule nor a config that is a string: want one of them")
	}
	return p.policy, nil
}

// compiled returns the policy of a route's own config, or nil if that is bad.
func (rs *routes) compiled(p *Plugin, document []byte) *policy.Policy {
	key := rs.keyOf(p, document)
	if e := rs.find(key); e != nil {
		if e.policy == nil {
			p.metrics.add("sluice.route.errors", 1)
		}
		return e.policy
	}
	c, err := config.ParseRoute(document, p.config)
	if err != nil {
		rs.bad(p, document, "has a bad config in its metadata:\n"+err.Error())
		return nil
	}
	e := rs.keep(string(key))
	owner := strconv.Quote(string(p.request.VirtualHost())) + strconv.Quote(string(p.request.Route()))
	if len(p.request.Route()) == 0 {
		// A route without a name has only its config to be told apart by.
		owner += strconv.Quote(string(document))
	}
	e.policy = p.policy.NewRoute(c, owner)
	return e.policy
}

// bad counts a route's mistake, and logs it unless some worker has.
func (rs *routes) bad(p *Plugin, said []byte, mistake string) {
	p.metrics.add("sluice.route.errors", 1)
	key := rs.keyOf(p, said)
	if rs.find(key) != nil {
		return
	}
	rs.keep(string(key))
	if !p.first(key) {
		return
	}
	where := "sluice: the route " + shown(p.request.Route()) + " of the virtual host " + shown(p.request.VirtualHost()) + " "
	for line := range strings.SplitSeq(mistake+"; the plugin's rules apply", "\n") {
		host.Log(host.Error, where+line)
		where = "sluice: config: "
	}
}

// first says whether no worker has been here with this key. Shared data can't be
// deleted, so there are 256 places for it; two keys that meet in one are each
// first again when they take turns.
func (p *Plugin) first(key []byte) bool {
	seed := p.table.Seed("said")
	hash := binary.LittleEndian.AppendUint64(nil, siphash.Hash(seed[0], seed[1], key))
	slot := append([]byte("sluice1:said:"), hash[0])
	said, version, status := host.SharedData(slot)
	if status == host.OK && bytes.Equal(said, hash) {
		return false
	}
	if status != host.OK {
		version = table.Absent
	}
	return host.SetSharedData(slot, hash, version) != host.CASMismatch
}

// keyOf is what a route's metadata is known by. It is good until the next call.
func (rs *routes) keyOf(p *Plugin, said []byte) []byte {
	rs.key = append(rs.key[:0], p.request.VirtualHost()...)
	rs.key = append(append(rs.key, 0), p.request.Route()...)
	rs.key = append(append(rs.key, 0), said...)
	return rs.key
}

// find returns the route that is known by a key, and makes it the last used.
func (rs *routes) find(key []byte) *ownRoute {
	// The map does not keep what it is asked with.
	e := rs.known[unsafe.String(unsafe.SliceData(key), len(key))]
	if e == nil {
		return nil
	}
	rs.used.MoveToFront(e)
	return e.Value.(*ownRoute)
}

// keep makes a route known, in place of the one that was used longest ago if
// there are too many.
func (rs *routes) keep(key string) *ownRoute {
	if rs.used.Len() == maxRoutes {
		oldest := rs.used.Back()
		delete(rs.known, rs.used.Remove(oldest).(*ownRoute).key)
	}
	r := &ownRoute{key: key}
	rs.known[key] = rs.used.PushFront(r)
	return r
}

// shown is a name as the log has it.
func shown(name []byte) string {
	const longest = 64
	if len(name) > longest {
		return strconv.Quote(string(name[:longest])) + "…"
	}
	return strconv.Quote(string(name))
}
