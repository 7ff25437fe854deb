package policy

import (
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/table"
)

// Claim is what an admitted request has in one limit's bucket, for as long as
// that may have to be given back, added to or kept alive. It outlives the
// callback that decided, and the policy as well.
type Claim struct {
	Limit *Limit

	limiter algorithms.Limiter
	table   *table.Table
	bucket  table.Bucket
	cost    int64 // units, 0 where nothing was taken
	window  int64 // the decision's
}

// Lasts says whether the limit has more to do with a request that it has
// admitted.
func (l *Limit) Lasts() bool {
	return l.Queue || l.Concurrency || l.Charge != nil || l.CountStatus != nil
}

// Counts says whether a response of this status stays charged.
func (l *Limit) Counts(status int) bool {
	if l.CountStatus == nil {
		return true
	}
	for _, r := range l.CountStatus {
		if r.From <= status && status <= r.To {
			return true
		}
	}
	return false
}

// Claim is what the request has in the limit's bucket. ok is false where the
// limit has not admitted it.
func (g *Ruling) Claim() (c Claim, ok bool) {
	if g.Failed || g.Refuses() {
		return Claim{}, false
	}
	c = g.empty()
	if g.taken {
		c.cost, c.window = g.cost, g.Decision.Window
	}
	return c, true
}

// empty is a claim on the ruling's bucket that has nothing in it.
func (g *Ruling) empty() Claim {
	return Claim{Limit: g.Limit, limiter: g.numbers.limiter, table: g.Limit.table, bucket: g.bucket}
}

// Bucket tells claims on one bucket from claims on others.
func (c *Claim) Bucket() table.Bucket { return c.bucket }

// Window is where in the bucket's time the claim was counted: see
// algorithms.Decision.
func (c *Claim) Window() int64 { return c.window }

// UsesWall says whether what is done about the claim needs the wall clock.
func (c *Claim) UsesWall() bool { return c.limiter.UsesWall() }

// GiveBack gives back what a claim took. d becomes what the limit then is for a
// request of no cost, if the claim took anything. It returns false where the
// store failed.
func (p *Policy) GiveBack(c *Claim, now algorithms.Time, d *algorithms.Decision) bool {
	if c.cost == 0 {
		return true
	}
	return c.giveBack(&p.record, now, c.cost, c.window, d)
}

// Release gives back n requests in flight that were counted in a window of a
// concurrency limit. It returns false where the store failed.
func (p *Policy) Release(c *Claim, n, window int64, now algorithms.Time) bool {
	return c.giveBack(&p.record, now, n, window, &p.rest)
}

func (c *Claim) giveBack(record *table.Record, now algorithms.Time, units, window int64, d *algorithms.Decision) bool {
	return c.change(record, now, d, func(s *algorithms.State, now algorithms.Time) {
		*s = c.limiter.GiveBack(*s, now, units, window)
	})
}

// Renew keeps n requests in flight that were counted in a window of a
// concurrency limit, and returns the window in which they are counted from now
// on. ok is false where the store failed.
func (p *Policy) Renew(c *Claim, n, window int64, now algorithms.Time) (renewed int64, ok bool) {
	limiter, isConcurrency := c.limiter.(*algorithms.Concurrency)
	if !isConcurrency {
		return window, true
	}
	ok = c.change(&p.record, now, &p.rest, func(s *algorithms.State, now algorithms.Time) {
		renewed = limiter.Renew(s, now, n, window)
	})
	return renewed, ok
}

// Charge takes units more from the bucket, down to the debt that the limit
// bears. d is as with GiveBack. It returns false where the store failed.
func (p *Policy) Charge(c *Claim, units int64, now algorithms.Time, d *algorithms.Decision) bool {
	charger, ok := c.limiter.(algorithms.Charger)
	if !ok || units == 0 {
		return true
	}
	return c.change(&p.record, now, d, func(s *algorithms.State, now algorithms.Time) {
		charger.Charge(s, now, min(units, c.Limit.Charge.Max), c.Limit.Charge.Max)
	})
}

// change makes a bucket what f makes of its state, and decides about a request
// of no cost then. It returns false where the store failed.
func (c *Claim) change(record *table.Record, now algorithms.Time, d *algorithms.Decision, f func(s *algorithms.State, now algorithms.Time)) bool {
	for range table.MaxRetries {
		if !c.table.Read(c.bucket, record) {
			return false
		}
		now := notBefore(now, record.Written)
		next := record.State
		f(&next, now)
		changed := next != record.State
		c.limiter.Decide(&next, now, 0, d)
		if !changed {
			return true
		}
		if stored, ok := c.table.Write(c.bucket, record, &next, d, now.Mono); stored || !ok {
			record.State = next
			return ok
		}
	}
	return false
}

// Waits is how long an admitted request has to wait by the ruling.
func (g *Ruling) Waits() time.Duration {
	if g.Failed || g.Shadow || !g.Decision.Allowed {
		return 0
	}
	return g.Decision.Wait
}

// Departs is when the wait is over, in monotonic ns.
func (g *Ruling) Departs() int64 { return g.now.Mono + int64(g.Decision.Wait) }

// Waiting returns the ruling of the queue that the request has to wait in, nil
// if it may go on at once.
func (o *Outcome) Waiting() *Ruling {
	if o.Verdict != Admitted {
		return nil
	}
	for i := range o.Rulings {
		if g := &o.Rulings[i]; g.Waits() > 0 {
			return g
		}
	}
	return nil
}

// HideResets takes the Reset out of the rulings of limits that know no time. What
// they have said is when leases lapse, which is the table's business alone.
func (o *Outcome) HideResets() {
	for i := range o.Rulings {
		if g := &o.Rulings[i]; g.Limit.Concurrency {
			g.Decision.Reset = -1
		}
	}
}

// CannotWait is the outcome of a request that cannot be made to wait though it
// has to: its queue could not be decided. The place goes back, and the rest as
// well where that ends the request.
func (p *Policy) CannotWait(queue *Ruling, rulings []Ruling, now algorithms.Time) *Outcome {
	if p.failure == config.Deny {
		p.giveBack(rulings, now)
		queue.Failed = true
		return p.comesTo(Undecided, queue.Limit, nil, rulings)
	}
	p.giveBackOne(queue, now)
	queue.Failed = true
	return p.admission(rulings)
}
