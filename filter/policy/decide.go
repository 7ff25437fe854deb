package policy

import (
	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/field"
	"github.com/sluice-proxy/sluice/filter/keys"
	"github.com/sluice-proxy/sluice/filter/response"
	"github.com/sluice-proxy/sluice/filter/table"
)

// Verdict is what becomes of a request.
type Verdict int

// The verdicts.
const (
	// Unlimited: no limit that may refuse applied; the response is none of the
	// filter's business.
	Unlimited Verdict = iota
	// Admitted: every limit admitted the request and has its cost.
	Admitted
	// Refused: a limit refused; none has been charged.
	Refused
	// MissingKey: the request lacks what a limit's key requires.
	MissingKey
	// Undecided: a limit could not be decided, and the config says to deny.
	Undecided
	// Pending: the process' limits admit the request, and a service has to be
	// asked about others: see Conclude.
	Pending
)

// Outcome is a verdict and what the response reports. It is good until the
// policy decides again.
type Outcome struct {
	Verdict Verdict
	// Limit is the one that is reported; nil where the request is Unlimited.
	Limit *Limit
	// Reported is that limit's ruling, if the request was Admitted or Refused,
	// else nil.
	Reported *Ruling
	// Rulings are those of all limits that apply, as far as they were asked.
	Rulings []Ruling
}

// Ruling is one limit's part in a decision.
type Ruling struct {
	Limit    *Limit
	Decision algorithms.Decision
	// Shadow is set where the limit does not refuse this client.
	Shadow bool
	// Missing is set where the request lacks what the key requires.
	Missing bool
	// Failed is set where the limit could not be decided.
	Failed bool

	numbers *numbers
	cost    int64
	bucket  table.Bucket
	record  table.Record
	now     algorithms.Time  // of the decision
	next    algorithms.State // what the decision makes of the bucket
	taken   bool             // the cost has been taken

	// Of fleet-wide limits:
	asked       asked
	loan        Loan         // for which to ask the service
	away        bool         // Failed, for the service has
	localBucket table.Bucket // to fall back on
}

// Refuses says whether the limit refuses the request, or would if it were
// enforced.
func (g *Ruling) Refuses() bool { return !g.Failed && !g.Decision.Allowed }

// Share is what is left of the limit, as clients are told of it.
func (g *Ruling) Share() response.Share {
	_, window := g.numbers.limiter.Quota()
	return response.NewShare(g.Limit.Name, &g.Decision, window)
}

// Prepare finds the bucket of every limit that applies to a request under a
// rule. Where there is none, there is nothing to decide.
//
// It is not inlined, and neither are prepare and Decide: in WebAssembly a jump
// within a function costs more the more the function has to keep, so what most
// requests go through is in small pieces, and what few do is elsewhere.
//
//go:noinline
func (p *Policy) Prepare(rule *Rule, r keys.Request) []Ruling {
	n := 0
	for i := range rule.uses {
		if p.prepare(&rule.uses[i], &p.rulings[n], r) {
			n++
		}
	}
	return p.rulings[:n]
}

// prepare finds the bucket of one limit. It returns false where the limit does not
// apply.
//
//go:noinline
func (p *Policy) prepare(u *use, g *Ruling, r keys.Request) bool {
	l := u.limit
	key, complete := l.appendKey(p.key[:0], r)
	p.key = key
	if !u.plain || !complete {
		return p.prepareAny(u, g, r, complete)
	}
	g.begin(l, &l.plain, u.cost.Units)
	g.bucket = p.table.Bucket(l.plain.seed, key)
	return true
}

// prepareAny is prepare for a limit that depends on more of the request than its
// key, which p.key is.
//
//go:noinline
func (p *Policy) prepareAny(u *use, g *Ruling, r keys.Request, complete bool) bool {
	l := u.limit
	numbers := l.numbersFor(r)
	if numbers.limiter == nil || !complete && l.missing == config.MissingSkip {
		return false
	}
	g.begin(l, numbers, u.costOf(r))
	g.Shadow = !l.enforcedFor(p.key)
	g.Missing = !complete && l.missing == config.MissingDeny
	if g.Missing {
		g.Decision = algorithms.Decision{Never: true}
	}
	g.bucket = p.table.Bucket(numbers.seed, p.key)
	if l.global {
		g.localBucket = p.table.Bucket(numbers.global.local.seed, p.key)
	}
	return true
}

// begin makes g a limit's part in a decision that is still to be made. What is left
// there is of another limit, where another rule's came before.
func (g *Ruling) begin(l *Limit, n *numbers, cost int64) {
	g.Limit, g.numbers, g.cost = l, n, cost
	g.Shadow, g.Missing, g.taken, g.away = false, false, false, false
	g.asked, g.loan.Units = unasked, 0
}

// Decide decides about a request that Prepare has prepared, all limits as one:
// either each is charged, or none stays charged. Limits in shadow are charged if
// the request is admitted and they themselves would admit it. ok is false where
// there is no telling what time it is: nothing can be decided then.
//
//go:noinline
func (p *Policy) Decide(rulings []Ruling, now algorithms.Time, ok bool) *Outcome {
	if len(rulings) == 1 && !rulings[0].isStrict() {
		return p.decideOne(rulings, now, ok)
	}
	return p.decideFrom(rulings, 0, now, ok)
}

// decideFrom decides by the limits from the given one on; those before it have
// been taken from. It ends before the first about which a service has to be
// asked.
func (p *Policy) decideFrom(rulings []Ruling, from int, now algorithms.Time, ok bool) *Outcome {
	refused := false
	for i := from; i < len(rulings); i++ {
		g := &rulings[i]
		p.lookAt(g, now, ok)
		switch {
		case g.Missing && !g.Shadow:
			return p.comesTo(MissingKey, g.Limit, nil, rulings[:i+1])
		case g.Failed && p.denies(g):
			p.giveBack(rulings[:from], now)
			return p.comesTo(Undecided, g.Limit, nil, rulings[:i+1])
		case !g.Shadow && g.Refuses():
			refused = true
		}
	}
	if refused {
		p.giveBack(rulings[:from], now)
		return p.refusal(rulings)
	}
	for i := from; i < len(rulings); i++ {
		g := &rulings[i]
		if g.asked == pending && !g.Shadow {
			return p.comesTo(Pending, nil, nil, rulings)
		}
		if g.asked != unasked || g.Refuses() || g.Failed {
			continue
		}
		g.Failed = !p.take(g, now)
		switch {
		case g.Failed && p.denies(g):
			p.giveBack(rulings[:i], now)
			return p.comesTo(Undecided, g.Limit, nil, rulings)
		case !g.Shadow && g.Refuses():
			p.giveBack(rulings[:i], now)
			return p.refusal(rulings)
		}
	}
	return p.admission(rulings)
}

// admission reports the limit of which the smallest share is left.
func (p *Policy) admission(rulings []Ruling) *Outcome {
	if tightest := tightest(rulings); tightest != nil {
		return p.comesTo(Admitted, tightest.Limit, tightest, rulings)
	}
	return p.comesTo(Unlimited, nil, nil, rulings)
}

// comesTo makes the outcome, which has one place: a copy of a struct of this size
// is a call of the host's in WebAssembly.
func (p *Policy) comesTo(v Verdict, l *Limit, reported *Ruling, rulings []Ruling) *Outcome {
	o := &p.outcome
	o.Verdict, o.Limit, o.Reported, o.Rulings = v, l, reported, rulings
	return o
}

// decideOne is Decide for a limit that is the only one, as most are, in fewer
// steps.
func (p *Policy) decideOne(rulings []Ruling, now algorithms.Time, ok bool) *Outcome {
	g := &rulings[0]
	g.Failed = !g.Missing && (!ok || !p.lookAndTake(g, now))
	if g.Failed || g.Missing || g.Shadow || !g.Decision.Allowed {
		return p.otherwise(g, rulings)
	}
	return p.comesTo(Admitted, g.Limit, g, rulings)
}

// otherwise is the outcome of a request that the only limit has not admitted, or
// has no say about.
//
//go:noinline
func (p *Policy) otherwise(g *Ruling, rulings []Ruling) *Outcome {
	switch {
	case g.Shadow || g.Failed && !p.denies(g):
		return p.comesTo(Unlimited, nil, nil, rulings)
	case g.Failed:
		return p.comesTo(Undecided, g.Limit, nil, rulings)
	case g.Missing:
		return p.comesTo(MissingKey, g.Limit, nil, rulings)
	default:
		return p.comesTo(Refused, g.Limit, g, rulings)
	}
}

// lookAndTake returns false where the limit could not be decided.
func (p *Policy) lookAndTake(g *Ruling, now algorithms.Time) bool {
	if !p.look(g, now) {
		return false
	}
	return !g.Decision.Allowed || p.take(g, now)
}

// costOf returns how many units a request takes. Of requests in flight it is one,
// whatever it costs.
func (u *use) costOf(r keys.Request) int64 {
	cost := u.cost.Units
	if u.cost.Header != "" {
		if said, ok := field.Whole(r.Header(u.cost.Header)); ok {
			cost = min(said, u.cost.Max)
		}
	}
	return max(cost, u.least)
}

// lookAt has a limit say what it would decide, if the process can know.
func (p *Policy) lookAt(g *Ruling, now algorithms.Time, ok bool) {
	switch {
	case g.Missing || g.asked == answered:
	case g.asked == unanswered:
		p.fallBack(g, now, ok)
	case g.isStrict():
		g.await()
	default:
		g.Failed = !ok || !p.look(g, now)
	}
}

// look reads a bucket and decides about it, without writing. It returns false
// where the store failed, or a service has and the config does not have the
// process decide.
func (p *Policy) look(g *Ruling, now algorithms.Time) bool {
	if g.Limit.leased && g.numbers.global != nil {
		return p.lookAtLease(g, now)
	}
	return p.lookAtBucket(g, now)
}

func (p *Policy) lookAtBucket(g *Ruling, now algorithms.Time) bool {
	if !p.table.Read(g.bucket, &g.record) {
		return false
	}
	g.now = notBefore(now, g.record.Written)
	g.next.Set(&g.record.State)
	g.numbers.limiter.Decide(&g.next, g.now, g.cost, &g.Decision)
	return true
}

// take writes what look decided, and decides again for as long as others write
// in between. It returns false where the store failed.
func (p *Policy) take(g *Ruling, now algorithms.Time) bool {
	if g.cost == 0 {
		return true
	}
	stored, ok := p.write(g)
	if stored || !ok {
		return ok
	}
	return p.retake(g, now)
}

// retake is take after somebody else has written in between.
//
//go:noinline
func (p *Policy) retake(g *Ruling, now algorithms.Time) bool {
	for range table.MaxRetries {
		if !p.look(g, now) {
			return false
		}
		if !g.Decision.Allowed {
			return true
		}
		if stored, ok := p.write(g); stored || !ok {
			return ok
		}
	}
	return false
}

// write writes what look decided, if nobody else has written since.
func (p *Policy) write(g *Ruling) (stored, ok bool) {
	stored, ok = p.table.Write(g.bucket, &g.record, &g.next, &g.Decision, g.now.Mono)
	g.taken = stored
	if stored && g.Limit.leased {
		g.borrow()
	}
	return stored, ok
}

// notBefore returns the time that a request has read, or the monotonic moment
// written if that is later: while this worker was on its way from the clock to
// the table, another has decided about the page as of that moment.
func notBefore(t algorithms.Time, written int64) algorithms.Time {
	if late := written - t.Mono; late > 0 {
		t.Mono += late
		t.Wall += late
	}
	return t
}

// giveBack undoes what was taken. What cannot be given back is a failure of
// that limit.
func (p *Policy) giveBack(rulings []Ruling, now algorithms.Time) {
	for i := range rulings {
		g := &rulings[i]
		if g.taken {
			g.Failed = !p.giveBackOne(g, now)
		}
	}
}

func (p *Policy) giveBackOne(g *Ruling, now algorithms.Time) bool {
	c := g.empty()
	return c.giveBack(&g.record, now, g.cost, g.Decision.Window, &p.rest)
}

// denies says whether a limit that could not be decided ends the request.
func (p *Policy) denies(g *Ruling) bool {
	if g.away {
		return p.onFailure == config.FailDeny && !g.Shadow
	}
	return p.failure == config.Deny && !g.Shadow
}

// Failed is the outcome of a request about which nothing could be decided.
func (p *Policy) Failed() Outcome {
	if p.failure == config.Deny {
		return Outcome{Verdict: Undecided}
	}
	return Outcome{}
}

// refusal reports the limit that can never admit the request, else the one that
// refuses longest. What the others have left is told as nothing was taken.
func (p *Policy) refusal(rulings []Ruling) *Outcome {
	var found *Ruling
	for i := range rulings {
		g := &rulings[i]
		if !g.Failed && !g.Refuses() {
			if g.asked != unasked {
				continue // the service takes nothing back
			}
			g.numbers.limiter.Decide(&g.record.State, g.now, 0, &g.Decision)
			continue
		}
		if g.Shadow || !g.Refuses() {
			continue
		}
		if d := &g.Decision; found == nil || d.Never && !found.Decision.Never ||
			d.Never == found.Decision.Never && d.RetryAfter > found.Decision.RetryAfter {
			found = g
		}
	}
	return p.comesTo(Refused, found.Limit, found, rulings)
}

// tightest returns the enforced limit of which the smallest share remains, or
// nil.
func tightest(rulings []Ruling) *Ruling {
	var found *Ruling
	for i := range rulings {
		g := &rulings[i]
		if g.Shadow || g.Failed {
			continue
		}
		if d := &g.Decision; found == nil || response.IsSmaller(d.Remaining, d.Limit, found.Decision.Remaining, found.Decision.Limit) {
			found = g
		}
	}
	return found
}
