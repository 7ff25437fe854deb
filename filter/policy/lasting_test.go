package policy

import (
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
)

// claimOf is what the last decision has taken of a limit.
func claimOf(t *testing.T, o Outcome, name string) Claim {
	t.Helper()
	for i := range o.Rulings {
		if o.Rulings[i].Limit.Name == name {
			c, ok := o.Rulings[i].Claim()
			if !ok {
				t.Fatalf("limit %s has not admitted the request", name)
			}
			return c
		}
	}
	t.Fatalf("limit %s has no part in the decision", name)
	return Claim{}
}

func (b *bench) time() algorithms.Time {
	return algorithms.Time{Mono: int64(b.now), Wall: int64(b.now)}
}

// What a limit does after a decision is told by its config alone.
func TestALimitIsWhatItsConfigSays(t *testing.T) {
	b := start(t, `{"limits": {
		"queue":   {"algorithm": "leaky_bucket", "capacity": 5, "leak_rate": "1/s", "key": []},
		"meter":   {"algorithm": "leaky_bucket", "mode": "meter", "capacity": 5, "leak_rate": "1/s", "key": []},
		"flight":  {"algorithm": "concurrency", "limit": 5, "key": []},
		"charge":  {"algorithm": "fixed_window", "limit": 5, "window": "1d", "key": [], "charge": {"response_trailer": "x", "max": 7}},
		"guesses": {"algorithm": "sliding_window", "limit": 5, "window": "1d", "key": [], "count_status": ["401", "5xx"]}},
		"rules": [
			{"match": {"path": "/meter"}, "limits": ["meter"]}, {"match": {"path": "/queue"}, "limits": ["queue"]}, {"match": {"path": "/flight"}, "limits": ["flight"]},
			{"match": {"path": "/charge"}, "limits": ["charge"]}, {"match": {"path": "/guesses"}, "limits": ["meter", "guesses"]}]}`)
	for path, want := range map[string]bool{"/meter": false, "/queue": true, "/flight": true, "/charge": true, "/guesses": true, "/none": false} {
		if rule := b.policy.Match(request{path: path}); rule.Lasts != want {
			t.Errorf("%s has more to do: %t", path, rule.Lasts)
		}
	}
	for _, l := range b.policy.limits {
		if l.Queue != (l.Name == "queue") || l.Concurrency != (l.Name == "flight") || (l.Charge != nil) != (l.Name == "charge") || (l.CountStatus != nil) != (l.Name == "guesses") {
			t.Errorf("limit %s: queue %t, concurrency %t, charge %v, statuses %v", l.Name, l.Queue, l.Concurrency, l.Charge, l.CountStatus)
		}
	}
}

func TestStatusesThatCount(t *testing.T) {
	limit := &Limit{CountStatus: []config.StatusRange{{From: 401, To: 401}, {From: 500, To: 599}}}
	for status, want := range map[int]bool{401: true, 500: true, 599: true, 400: false, 402: false, 499: false, 600: false, 200: false, 0: false} {
		if limit.Counts(status) != want || !(&Limit{}).Counts(status) {
			t.Errorf("%d counts: %t", status, !want)
		}
	}
}

const flightAndDay = `{"limits": {
	"a": {"algorithm": "concurrency", "limit": 2, "key": ["ip"]},
	"b": {"algorithm": "fixed_window", "limit": 3, "window": "1d", "key": ["ip"], "charge": {"response_trailer": "x", "max": 7}}},
	"rules": [{"limits": ["a", "b"]}]}`

func TestClaimsOutliveThePolicyAndGiveBackWhatTheyHold(t *testing.T) {
	b := start(t, flightAndDay)
	r := request{address: "10.0.0.1"}
	first := claimOf(t, b.ask(r), "a")
	second := b.ask(r)
	flight, day := claimOf(t, second, "a"), claimOf(t, second, "b")
	if b.ask(r).Verdict != Refused {
		t.Fatal("a third request is admitted beside two in flight")
	}
	after := startOn(t, b.store, flightAndDay) // as after a config push
	if !after.policy.Release(&flight, 1, flight.Window(), b.time()) || after.ask(r).Verdict != Admitted {
		t.Error("a place that was given back is not free")
	}
	var d algorithms.Decision
	if !after.policy.GiveBack(&day, b.time(), &d) || d.Remaining != 1 || d.Limit != 3 {
		t.Errorf("of the day %d are left of %d, want 1 of 3", d.Remaining, d.Limit)
	}
	if first.Bucket() != flight.Bucket() || first.Bucket() == day.Bucket() {
		t.Error("claims on one bucket do not say so")
	}
}

func TestALeaseLastsForAsLongAsItIsRenewed(t *testing.T) {
	b := start(t, `{"limits": {"a": {"algorithm": "concurrency", "limit": 2, "key": ["ip"]}}, "rules": [{"limits": ["a"]}]}`)
	r := request{address: "10.0.0.1"}
	claim := claimOf(t, b.ask(r), "a")
	window := claim.Window()
	for range 100 {
		b.now += 2 * time.Second
		renewed, ok := b.policy.Renew(&claim, 1, window, b.time())
		if !ok || renewed < window {
			t.Fatalf("renewed %t, in window %d after %d", ok, renewed, window)
		}
		window = renewed
	}
	sets := b.store.Sets
	b.policy.Renew(&claim, 1, window, b.time())
	if b.store.Sets != sets {
		t.Error("renewing what is renewed already writes")
	}
	if left := b.left(r)["a"]; left != 0 { // with this one
		t.Errorf("%d places are left, want none", left)
	}
	b.now += 8 * time.Second
	if left := b.left(r)["a"]; left != 1 {
		t.Errorf("%d places are left 8 s after the last renewal, want 1", left)
	}
	b.policy.Release(&claim, 1, window, b.time())
	if left := b.left(r)["a"]; left != 0 {
		t.Errorf("a lease that has lapsed gives back another's place: %d are left", left)
	}
}

func TestAChargeIsCutAtItsMaxAndTheDebtToo(t *testing.T) {
	b := start(t, flightAndDay)
	r := request{address: "10.0.0.1"}
	claim := claimOf(t, b.ask(r), "b")
	var d algorithms.Decision
	for i, units := range []int64{1, 1 << 62, 5} { // 1 left; 7 in debt at most
		if !b.policy.Charge(&claim, units, b.time(), &d) || d.Remaining != max(0, 1-int64(i)) {
			t.Fatalf("charge %d: %d are left", i, d.Remaining)
		}
	}
	b.now += 24 * time.Hour
	if left := b.left(r)["b"]; left != 2 {
		t.Errorf("on the next day %d are left, want 2", left)
	}
	d = algorithms.Decision{}
	sets := b.store.Sets
	if !b.policy.Charge(&claim, 0, b.time(), &d) || d.Limit != 0 || b.store.Sets != sets {
		t.Error("a charge of nothing does something")
	}
}

// What happens between reading and writing is not lost.
func TestAClaimThatIsChangedAtOnceWithOthersLosesNothing(t *testing.T) {
	b := start(t, flightAndDay)
	r := request{address: "10.0.0.1"}
	claim := claimOf(t, b.ask(r), "b")
	b.store.BeforeSet = func() {
		c := claim
		var d algorithms.Decision
		startOn(t, b.store, flightAndDay).policy.Charge(&c, 1, b.time(), &d)
	}
	var d algorithms.Decision
	if !b.policy.Charge(&claim, 1, b.time(), &d) || d.Remaining != 0 {
		t.Errorf("%d are left after one request and two charges of three, want none", d.Remaining)
	}
	b.store.Broken = true
	_, renewed := b.policy.Renew(&claim, 1, claim.Window()-1, b.time())
	flight := claimOf(t, Outcome{Rulings: b.policy.rulings}, "a")
	_, kept := b.policy.Renew(&flight, 1, flight.Window()-1, b.time())
	if b.policy.Charge(&claim, 1, b.time(), &d) || b.policy.GiveBack(&claim, b.time(), &d) || b.policy.Release(&flight, 1, flight.Window(), b.time()) || kept || !renewed {
		t.Error("a store that fails is not told of")
	}
}
