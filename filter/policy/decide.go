package policy

import (
	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/keys"
	"github.com/sluice-proxy/sluice/filter/table"
)

// Host is what a decision needs of the world besides the request.
type Host interface {
	// Now reads the monotonic clock, and the wall clock if asked to. ok is false
	// where there is none.
	Now(wall bool) (t algorithms.Time, ok bool)
	// Undecided is told of each limit that could not be decided.
	Undecided(*Limit)
}

// Verdict is what becomes of a request.
type Verdict int

// The verdicts.
const (
	// Unlimited: no limit applied; the response is none of the filter's business.
	Unlimited Verdict = iota
	// Admitted: every limit admitted the request and has its cost.
	Admitted
	// Refused: a limit refused; none has been charged.
	Refused
	// MissingKey: the request lacks what a limit's key requires.
	MissingKey
	// Undecided: a limit could not be decided, and the config says to deny.
	Undecided
)

// Outcome is a verdict and what the response reports.
type Outcome struct {
	Verdict Verdict
	// Limit is the one that is reported; nil where the request is Unlimited.
	Limit *Limit
	// Decision is that limit's, if the request was Admitted or Refused, else
	// nil. It is good until the policy decides again.
	Decision *algorithms.Decision
}

// taking is one limit's part in a decision that is being made.
type taking struct {
	use
	bucket   table.Bucket
	record   table.Record
	now      algorithms.Time // of the decision
	next     algorithms.State
	decision algorithms.Decision
	changed  bool // next differs from what is stored
	skipped  bool // the limit does not apply, or could not be decided
}

// Decide decides about a request under a rule, all limits as one: either each
// is charged, or none stays charged.
func (p *Policy) Decide(rule *Rule, r keys.Request, h Host) Outcome {
	takings, outcome := p.prepare(rule, r)
	if len(takings) == 0 {
		return outcome
	}
	now, ok := h.Now(rule.usesWall)
	for i := range takings {
		t := &takings[i]
		if !ok || !p.look(t, now) {
			if !p.skip(t, h) {
				return Outcome{Verdict: Undecided, Limit: t.limit}
			}
		}
	}
	if refusal := worst(takings); refusal != nil {
		return outcomeOf(Refused, refusal)
	}
	for i := range takings {
		t := &takings[i]
		switch {
		case t.skipped || !t.changed:
			continue
		case !p.take(t, now):
			if !p.skip(t, h) {
				p.giveBack(takings[:i], now, h)
				return Outcome{Verdict: Undecided, Limit: t.limit}
			}
		case !t.decision.Allowed:
			p.giveBack(takings[:i], now, h)
			return outcomeOf(Refused, t)
		}
	}
	if tightest := tightest(takings); tightest != nil {
		return outcomeOf(Admitted, tightest)
	}
	return Outcome{}
}

// prepare finds the bucket of every limit that applies. Where none does, or a
// key that is required is missing, there is nothing to decide.
func (p *Policy) prepare(rule *Rule, r keys.Request) ([]taking, Outcome) {
	n := 0
	for i := range rule.uses {
		u := &rule.uses[i]
		key, complete := u.limit.appendKey(p.key[:0], r)
		p.key = key
		if !complete && u.limit.missing == config.MissingDeny {
			return nil, Outcome{Verdict: MissingKey, Limit: u.limit}
		}
		if !complete && u.limit.missing == config.MissingSkip {
			continue
		}
		t := &p.takings[n]
		t.limit, t.cost, t.skipped = u.limit, u.cost, false
		t.bucket = p.table.Bucket(u.limit.seed, key)
		n++
	}
	return p.takings[:n], Outcome{}
}

func (l *Limit) appendKey(key []byte, r keys.Request) (extended []byte, complete bool) {
	complete = true
	for i := range l.key {
		var present bool
		key, present = l.key[i].Append(key, r)
		complete = complete && present
	}
	return key, complete
}

// look reads a bucket and decides about it, without writing. It returns false
// where the store failed.
func (p *Policy) look(t *taking, now algorithms.Time) bool {
	if !p.table.Read(t.bucket, &t.record) {
		return false
	}
	t.now = notBefore(now, t.record.Written)
	t.next, t.decision = t.limit.limiter.Decide(t.record.State, t.now, t.cost)
	t.changed = t.decision.Allowed && t.cost > 0
	return true
}

// take writes what look decided, and decides again for as long as others write
// in between. It returns false where the store failed.
func (p *Policy) take(t *taking, now algorithms.Time) bool {
	for range table.MaxRetries {
		if !t.changed {
			return true
		}
		stored, ok := p.table.Write(t.bucket, &t.record, &t.next, &t.decision, t.now.Mono)
		if stored || !ok {
			return ok
		}
		if !p.look(t, now) {
			return false
		}
	}
	return false
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

// giveBack undoes takings that have been written.
func (p *Policy) giveBack(takings []taking, now algorithms.Time, h Host) {
	for i := range takings {
		t := &takings[i]
		if t.changed && !t.skipped && !p.giveBackOne(t, now) {
			h.Undecided(t.limit)
		}
	}
}

func (p *Policy) giveBackOne(t *taking, now algorithms.Time) bool {
	limiter := t.limit.limiter
	for range table.MaxRetries {
		if !p.table.Read(t.bucket, &t.record) {
			return false
		}
		now := notBefore(now, t.record.Written)
		next := limiter.GiveBack(t.record.State, now, t.cost, t.decision.Window)
		if next == t.record.State {
			return true
		}
		_, rest := limiter.Decide(next, now, 0)
		if stored, ok := p.table.Write(t.bucket, &t.record, &next, &rest, now.Mono); stored || !ok {
			return ok
		}
	}
	return false
}

// skip leaves out a limit that could not be decided, if the failure policy
// says so.
func (p *Policy) skip(t *taking, h Host) bool {
	h.Undecided(t.limit)
	t.skipped = true
	return p.failure == config.Allow
}

// Failed is the outcome of a request about which nothing could be decided.
func (p *Policy) Failed() Outcome {
	if p.failure == config.Deny {
		return Outcome{Verdict: Undecided}
	}
	return Outcome{}
}

// worst returns the refusal to report: one that can never be admitted, else the
// one that lasts longest; nil if no limit refuses.
func worst(takings []taking) *taking {
	var found *taking
	for i := range takings {
		t := &takings[i]
		if t.skipped || t.decision.Allowed {
			continue
		}
		if found == nil || t.decision.Never && !found.decision.Never ||
			t.decision.Never == found.decision.Never && t.decision.RetryAfter > found.decision.RetryAfter {
			found = t
		}
	}
	return found
}

// tightest returns the limit of which the smallest share remains.
func tightest(takings []taking) *taking {
	var found *taking
	for i := range takings {
		t := &takings[i]
		if t.skipped {
			continue
		}
		// Both products are below 2^60.
		if found == nil || t.decision.Remaining*found.decision.Limit < found.decision.Remaining*t.decision.Limit {
			found = t
		}
	}
	return found
}

func outcomeOf(v Verdict, t *taking) Outcome {
	return Outcome{Verdict: v, Limit: t.limit, Decision: &t.decision}
}
