package config

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
)

// globalLimit is a fleet-wide limit and where it stands, for what depends on the
// service, which is read after it.
type globalLimit struct {
	node      *node
	algorithm *algorithm // nil where it is not known
	window    string     // in its one canonical spelling, "" where there is none
	queue     bool
}

// orProcess ends the lines about what no service, or not this one, can do.
const orProcess = `, or "scope": "process"`

// checkGlobal checks that the fleet-wide limit n has nothing that no service can
// count. known is false where n has mistakes, of which its mode may be one.
func (d *limitDraft) checkGlobal(r *reader, n *node, a *algorithm, known bool) bool {
	before := r.count()
	if child := n.member("count_status"); child != nil {
		r.mistake(child, `can't be had with "scope": "global", since services take nothing back: want "scope": "process", or leave it out`)
	}
	if child := n.member("utc_offset"); child != nil && d.utcOffset != 0 {
		r.wrong(child, `a service's windows are those of UTC: want "scope": "process", or leave it out`)
	}
	g := globalLimit{node: n, algorithm: a}
	if a != nil {
		mode := n.member("mode")
		g.queue = a.name == leakyBucket && d.mode == modeQueue && (known || mode != nil && mode.text == modeQueue)
		if a.name == fixedWindow && d.window != (algorithms.Window{}) {
			g.window = d.window.String()
		}
	}
	r.globals = append(r.globals, g)
	return r.count() == before
}

// counted is what the service counts for the limit d, or for an override of it,
// which stands at n.
func (d *limitDraft) counted(r *reader, n *node, a *algorithm) *GlobalCount {
	if a.counts == nil {
		return nil // which checkGlobals has something to say about
	}
	c := a.counts(d)
	if c.Rate != (algorithms.Rate{}) && !inMilliseconds(c.Rate, c.Units) {
		r.mistake(n, `"gubernator" can't be told this rate exactly: want one with fewer digits`)
	}
	return &c
}

// globalWindow is the length of a window that some service counts, 0 of others.
func globalWindow(w algorithms.Window) time.Duration {
	switch w.String() {
	case "1s":
		return time.Second
	case "1m":
		return time.Minute
	case "1h":
		return time.Hour
	case "1d":
		return 24 * time.Hour
	}
	return 0
}

// inMilliseconds says whether a rate can be told as a whole number of units, no
// fewer than the bucket's capacity, in a whole number of milliseconds. Gubernator
// wants it like that, and forgets a bucket after so long.
func inMilliseconds(rate algorithms.Rate, capacity int64) bool {
	const perMs = uint64(time.Millisecond)
	units, in := fraction(rate)
	common := gcd(in, perMs)
	over, units := bits.Mul64(units, perMs/common)
	if over > 0 || units > math.MaxInt64 {
		return false
	}
	over, ms := bits.Mul64(in/common, (uint64(capacity)-1)/units+1)
	return over == 0 && ms <= math.MaxInt64/2 // it is added to the time of day
}

// fraction is a rate as so many units in so many nanoseconds, in lowest terms.
func fraction(rate algorithms.Rate) (units, in uint64) {
	number, unit, _ := strings.Cut(rate.String(), "/")
	units, _ = strconv.ParseUint(number, 10, 64)
	switch unit {
	case "s", "m", "h":
		unit = "1" + unit
	case "d":
		unit = "24h"
	}
	length, _ := algorithms.ParseDuration(unit, 0, algorithms.Forever)
	in = uint64(length)
	common := gcd(units, in)
	return units / common, in / common
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// checkGlobals checks that there is a service to count the fleet-wide limits of
// the document, and that it can.
func (r *reader) checkGlobals(root *node, service *Global) {
	mentioned := len(r.globals) > 0 && mentionsGlobal(root)
	for _, g := range r.globals {
		switch {
		case service != nil:
			g.check(r, service.Protocol)
		case !mentioned:
			r.wrong(g.node.member("scope"), `there is no service to count it: want "global" at the top of the plugin's config, or "process"`)
		}
	}
}

// mentionsGlobal says whether the document names the service, be it with
// mistakes, which have been noted.
func mentionsGlobal(root *node) bool {
	return slices.ContainsFunc(root.children, func(child *node) bool {
		_, meant := nearest(child.name, []string{"global"})
		return meant
	})
}

// check checks that a service of this protocol counts the limit.
func (g *globalLimit) check(r *reader, p Protocol) {
	a := g.algorithm
	if a == nil {
		return
	}
	at := g.node.member("algorithm")
	switch {
	case p == Gubernator && a.counts == nil:
		r.wrong(at, `"gubernator" can't count it: want "token_bucket", "gcra", "leaky_bucket" in the mode "meter", or "fixed_window" with a window of `+windowsOf(p)+orProcess)
	case p == Gubernator && g.queue:
		r.wrong(g.node.member("scope"), `can't be had with "leaky_bucket" in the mode "queue", whose requests wait in one process: want "mode": "meter"`+orProcess)
	case p == RLS && a.name != fixedWindow:
		other := ""
		if a.counts != nil && !g.queue {
			other = `, "protocol": "gubernator"`
		}
		r.wrong(at, `"rls" can't count it: want "fixed_window" with a window of `+windowsOf(p)+other+orProcess)
	case g.window != "" && !slices.Contains(globalWindows[p], g.window):
		other := ""
		if slices.Contains(globalWindows[RLS], g.window) {
			other = `, "protocol": "rls"`
		}
		r.wrong(g.node.member("window"), quote(protocolNames[p])+` can't count it: want `+windowsOf(p)+other+orProcess)
	}
}

// globalWindows are the windows that services count, by their protocol.
var globalWindows = [...][]string{
	RLS:        {"1s", "1m", "1h", "1d"},
	Gubernator: {"1m", "1h", "1d"},
}

var protocolNames = [...]string{RLS: protocolRLS, Gubernator: protocolGubernator}

func windowsOf(p Protocol) string { return list(globalWindows[p], "or") }
