package policy

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
)

// leased is a config with one leased limit of ten a minute, of which a process
// takes two at a time.
func leased(further string) string {
	return fmt.Sprintf(`{
		"global": {"cluster": "c", "protocol": "rls", "mode": "lease", "lease": 0.2%s},
		"limits": {"l": {"algorithm": "fixed_window", "limit": 10, "window": "1m", "key": [], "scope": "global"}},
		"rules":  [{"limits": ["l"]}]}`, further)
}

// loan is the call that a decision has begun.
func loan(t *testing.T, o Outcome) Loan {
	t.Helper()
	l, ok := o.Rulings[0].Loan()
	if !ok || l.Counter == nil {
		t.Fatalf("no lease is asked for (%t), or of nobody", ok)
	}
	if _, again := o.Rulings[0].Loan(); again {
		t.Fatal("a lease is asked for twice")
	}
	return l
}

// fail has the call for a lease come to nothing.
func (b *bench) fail(l Loan) {
	b.t.Helper()
	if !b.policy.Lease(&l.Claim, algorithms.LeaseAnswer{Asked: l.Units, Failed: true, Pause: time.Second}, b.time()) {
		b.t.Fatal("the failure could not be put down")
	}
}

// What is asked for comes to what the service grants, and to that alone: the
// credit is repaid first.
func TestALeaseIsWhatTheServiceGrants(t *testing.T) {
	b := start(t, leased(""))
	o := b.ask(request{})
	if o.Verdict != Admitted {
		t.Fatalf("the first request: %v, want it admitted on credit", o.Verdict)
	}
	l := loan(t, o)
	b.admits("on credit, one of two spent", request{}, 1)
	ends := int64(30 * time.Second)
	b.policy.Lease(&l.Claim, algorithms.LeaseAnswer{Asked: l.Units, Allowed: true, Remaining: 9, EndsAfter: ends, EndsBefore: ends + 1}, b.time())
	// One unit repays one of two; the next call is in flight from then on.
	b.admits("after a lease of one", request{}, 1)
}

// While a service is away on_failure decides, the request that asks whether it is
// back included.
func TestALeasesServiceThatIsAwayIsNotWaitedFor(t *testing.T) {
	for _, c := range []struct {
		policy string
		want   []Verdict // of requests that find no credit
	}{
		{"local", []Verdict{Admitted, Admitted, Admitted}},
		{"allow", []Verdict{Unlimited, Unlimited, Unlimited}},
		{"deny", []Verdict{Undecided, Undecided, Undecided}},
	} {
		t.Run(c.policy, func(t *testing.T) {
			b := start(t, leased(fmt.Sprintf(`, "on_failure": %q`, c.policy)))
			first := loan(t, b.ask(request{}))
			b.ask(request{}) // spends the rest of the credit
			b.fail(first)
			away := b.ask(request{})
			if _, asks := away.Rulings[0].Loan(); asks || away.Verdict != c.want[0] {
				t.Fatalf("while the service is away: %v, asked again: %t, want %v", away.Verdict, asks, c.want[0])
			}
			b.now += 2 * time.Second
			probe := b.ask(request{})
			if probe.Verdict != c.want[1] {
				t.Fatalf("the request that asks again: %v, want %v", probe.Verdict, c.want[1])
			}
			l := loan(t, probe)
			if o := b.ask(request{}); o.Verdict != c.want[2] {
				t.Fatalf("while that is in flight: %v, want %v", o.Verdict, c.want[2])
			}
			b.policy.Lease(&l.Claim, algorithms.LeaseAnswer{Asked: l.Units, Allowed: true, Remaining: 5, EndsAfter: int64(time.Minute), EndsBefore: int64(time.Minute) + 1}, b.time())
			if o := b.ask(request{}); o.Rulings[0].numbers.global == nil {
				t.Fatal("the process still decides by itself though the service is back")
			}
		})
	}
}

// A process that decides by itself enforces the whole limit, no less and no more.
func TestALeasedLimitIsEnforcedInTheProcessWhileTheServiceIsAway(t *testing.T) {
	b := start(t, leased(""))
	first := loan(t, b.ask(request{}))
	b.ask(request{})
	b.fail(first)
	b.admits("in the process", request{}, 10)
	b.admits("after that", request{}, 0)
}
