package policy

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/fleet"
	"github.com/sluice-proxy/sluice/filter/keys"
	"github.com/sluice-proxy/sluice/filter/table"
)

// global is who counts a fleet-wide limit, and what is done while nobody does.
type global struct {
	counter *fleet.Counter
	// strict says that the service is asked about each request. Else the numbers
	// decide by a lease.
	strict bool
	local  numbers // by which the process decides while the service is away
}

// asked is what a service has to do with a ruling.
type asked uint8

const (
	unasked asked = iota // the process decides
	pending
	answered
	unanswered // the service failed
)

// ofService returns a limit's numbers with the service that counts them. The config
// has checked them, so that no error is left to come.
func (n numbers) ofService(name string, c *config.GlobalCount, g *config.Global, largestCost int64) numbers {
	counter, err := newCounter(name, c, g)
	if err != nil {
		return n
	}
	service := &global{counter: counter, local: n, strict: !g.Lease || c.Window == time.Second}
	if !service.strict {
		lease, err := algorithms.NewLease(algorithms.LeaseTerms{
			Limit:   c.Units,
			Largest: min(max(g.LargestLease(c.Units), largestCost), c.Units),
			Window:  c.Window,
			Rate:    c.Rate,
			Spends:  g.Protocol == config.RLS,
			Timeout: g.Timeout,
		})
		if err != nil {
			return n
		}
		n.limiter, n.identity = lease, n.identity+"\x00\x00lease"
	}
	n.global = service
	return n
}

func newCounter(name string, c *config.GlobalCount, g *config.Global) (*fleet.Counter, error) {
	switch {
	case g.Protocol == config.RLS:
		return fleet.NewRLS(g.Domain, name, c.Window, c.Units)
	case c.Window > 0:
		return fleet.NewGubernatorWindow(g.Domain, name, c.Window, c.Units)
	default:
		return fleet.NewGubernatorBucket(g.Domain, name, c.Units, c.Rate)
	}
}

// serviceName is what a service knows a limit by, or an override of it: two of
// one name count apart where their identities differ in more than that name.
func serviceName(l *config.Limit, owner, override string) string {
	if owner == "" && override == "" {
		return l.Name
	}
	return string(fleet.AppendKey(nil, []byte(l.Name), []byte(owner+"\x00"+override)))
}

// Loan is the next lease of a process: how many units to ask the service for, and
// the stock that they are for.
type Loan struct {
	Claim
	Counter *fleet.Counter
	Units   int64
}

// Loan is what the process has to ask the service for because of this ruling and
// no other's. ok is false where that is nothing. It says so once.
func (g *Ruling) Loan() (l Loan, ok bool) {
	if g.loan.Units == 0 {
		return Loan{}, false
	}
	l = g.loan
	g.loan = Loan{}
	return l, true
}

// borrow notes the call that a lease's decision has begun, if any. It is the
// business of whoever has stored that decision.
func (g *Ruling) borrow() {
	if units := g.Decision.Window; units > 0 && g.numbers.global != nil {
		g.loan = Loan{Claim: g.empty(), Counter: g.Counter(), Units: units}
	}
}

// IsPending says whether the service has to be asked about the request. A limit
// in shadow may be asked about while the request goes on.
func (g *Ruling) IsPending() bool { return g.asked == pending }

// Cost is what the service has to be asked for, in units.
func (g *Ruling) Cost() int64 { return g.cost }

// Told is the service's answer.
func (g *Ruling) Told(d *algorithms.Decision) { g.asked, g.Decision = answered, *d }

// Untold says that the service has not answered.
func (g *Ruling) Untold() { g.asked = unanswered }

// Counter is what the service counts for the ruling's limit; nil where it counts
// nothing.
func (g *Ruling) Counter() *fleet.Counter {
	if g.numbers.global == nil {
		return nil
	}
	return g.numbers.global.counter
}

// isStrict says whether a service has to be asked about each request.
func (g *Ruling) isStrict() bool { return g.numbers.global != nil && g.numbers.global.strict }

// lookAtLease has a lease decide. A refusal may begin a call, as an admission
// does, and is written then: whoever writes it calls.
func (p *Policy) lookAtLease(g *Ruling, now algorithms.Time) bool {
	lease := g.numbers.limiter.(*algorithms.Lease)
	for range table.MaxRetries {
		if !p.table.Read(g.bucket, &g.record) {
			return false
		}
		g.now = notBefore(now, g.record.Written)
		g.next = g.record.State
		if lease.Away(&g.next, g.now) {
			p.fallBack(g, now, true)
			return !g.Failed
		}
		lease.Decide(&g.next, g.now, g.cost, &g.Decision)
		if g.Decision.Allowed || g.Decision.Window == 0 {
			return true
		}
		stored, ok := p.table.Write(g.bucket, &g.record, &g.next, &g.Decision, g.now.Mono)
		if stored || !ok {
			g.borrow()
			if lease.Away(&g.next, g.now) { // it asks whether the service is back
				p.fallBack(g, now, true)
				return !g.Failed
			}
			return ok
		}
	}
	return false
}

// await has a ruling wait for the service. Until then it refuses nobody.
func (g *Ruling) await() {
	g.asked, g.Failed = pending, false
	g.Decision = algorithms.Decision{Allowed: true}
}

// fallBack decides about a request while the service is away, as the config
// says.
func (p *Policy) fallBack(g *Ruling, now algorithms.Time, ok bool) {
	g.asked = unasked
	if p.onFailure != config.FailLocal {
		g.Failed, g.away = true, true
		return
	}
	g.numbers, g.bucket = &g.numbers.global.local, g.localBucket
	g.Failed = !ok || !p.look(g, now)
}

// Conclude goes on with a Decide that was Pending, once all that were asked have
// answered or failed. The rulings may be a copy of those of then.
func (p *Policy) Conclude(rulings []Ruling, now algorithms.Time, ok bool) *Outcome {
	from := 0
	for from < len(rulings) && rulings[from].asked == unasked {
		from++
	}
	return p.decideFrom(rulings, from, now, ok)
}

// Abandon gives back what a request has taken that is gone before the services
// have answered.
func (p *Policy) Abandon(rulings []Ruling, now algorithms.Time) { p.giveBack(rulings, now) }

// Lease puts what the service has answered into the process' stock. It returns
// false where the table failed.
func (p *Policy) Lease(c *Claim, a algorithms.LeaseAnswer, now algorithms.Time) bool {
	lease, ok := c.limiter.(*algorithms.Lease)
	if !ok {
		return true
	}
	var d algorithms.Decision
	return c.change(&p.record, now, &d, func(s *algorithms.State, now algorithms.Time) { lease.Answer(s, now, a) })
}

// AppendServiceKey appends what services know the client by: see fleet.AppendKey.
// All Envoys of a fleet must agree on it, so it is keyed by nothing.
func (l *Limit) AppendServiceKey(dst []byte, r keys.Request) []byte {
	exact, _ := l.appendKey(nil, r) // what is missing has a key of its own
	return fleet.AppendKey(dst, l.AppendReadable(nil, r, fleetHash), exact)
}

func fleetHash(secret []byte) uint64 {
	sum := sha256.Sum256(secret)
	return binary.BigEndian.Uint64(sum[:])
}
