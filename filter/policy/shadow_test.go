package policy

import (
	"fmt"
	"testing"
)

// shadowed are a limit of 2 in shadow and one of 4 that is enforced.
const shadowed = `{
	"limits": {
		"dark": {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/d", "key": ["ip"], "shadow": true},
		"lit":  {"algorithm": "token_bucket", "capacity": 4, "refill_rate": "1/d", "key": ["ip"]}
	},
	"rules": [
		{"match": {"path": "/look"}, "limits": ["dark", "lit"], "cost": 0},
		{"match": {"path": "/dark"}, "limits": ["dark"]},
		{"match": {"path": "/costly"}, "limits": ["dark", {"limit": "lit", "cost": 5}]},
		{"limits": ["dark", "lit"]}
	]
}`

func at(path string) request { return request{address: "192.0.2.1", path: path} }

// ruling returns what a limit had to say.
func ruling(o Outcome, name string) *Ruling {
	for i := range o.Rulings {
		if o.Rulings[i].Limit.Name == name {
			return &o.Rulings[i]
		}
	}
	return &Ruling{}
}

func TestAShadowLimitRefusesNobodyAndIsNeverReported(t *testing.T) {
	b := start(t, shadowed)
	for i, want := range []int64{3, 2, 1, 0} {
		o := b.ask(at("/"))
		if o.Verdict != Admitted || o.Limit.Name != "lit" || o.Reported.Decision.Remaining != want {
			t.Errorf("request %d: got %v by %v, want admitted with %d of lit left", i, o.Verdict, o.Limit, want)
		}
		if dark := ruling(o, "dark"); dark.Refuses() != (i >= 2) || !dark.Shadow {
			t.Errorf("request %d: the shadow limit of 2 refuses %v", i, dark.Refuses())
		}
	}
	if o := b.ask(at("/")); o.Verdict != Refused || o.Limit.Name != "lit" {
		t.Errorf("got %v by %v, want refused by lit, though dark refuses as well", o.Verdict, o.Limit)
	}
	for range 5 {
		if o := b.ask(at("/dark")); o.Verdict != Unlimited || o.Limit != nil || o.Reported != nil {
			t.Errorf("by a shadow limit alone: got %v by %v, want unlimited and nothing to report", o.Verdict, o.Limit)
		}
	}
}

func TestAShadowLimitMovesAsIfItWereEnforced(t *testing.T) {
	b := start(t, shadowed)
	for i, want := range []int64{1, 0, 0} {
		if got := ruling(b.ask(at("/dark")), "dark").Decision.Remaining; got != want {
			t.Errorf("request %d: %d left, want %d", i, got, want)
		}
	}
}

func TestWhatAShadowLimitTookIsNotChargedWhenAnEnforcedOneRefuses(t *testing.T) {
	b := start(t, shadowed)
	for range 10 {
		if o := b.ask(at("/costly")); o.Verdict != Refused {
			t.Fatalf("got %v, want refused", o.Verdict)
		}
	}
	if left := b.left(at("/look")); left["dark"] != 2 || left["lit"] != 4 {
		t.Errorf("%v left, want all of both", left)
	}

	// The same where the enforced limit refuses only after it had been looked at.
	b.store.BeforeSet = func() {
		other := startOn(t, b.store, shadowed)
		for range 4 {
			other.ask(request{address: "192.0.2.1", path: "/"})
		}
	}
	if o := b.ask(at("/")); o.Verdict != Refused || o.Limit.Name != "lit" {
		t.Fatalf("got %v by %v, want refused by lit", o.Verdict, o.Limit)
	}
	if left := b.left(at("/look")); left["dark"] != 0 || left["lit"] != 0 {
		t.Errorf("%v left, want what the other worker left: nothing", left)
	}
}

// A limit that is in shadow for some clients only may have taken its cost in an
// earlier request, and refuse in this one: there is nothing to give back.
func TestALimitThatRefusedInShadowIsNotGivenWhatItDidNotTake(t *testing.T) {
	const document = `{
		"limits": {
			"dark": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["ip"], "enforce_percent": 0},
			"lit":  {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/d", "key": ["ip"]}
		},
		"rules": [{"match": {"path": "/lit"}, "limits": ["lit"]}, {"limits": ["dark", "lit"]}]
	}`
	b := start(t, document)
	b.ask(at("/"))
	b.store.BeforeSet = func() { startOn(t, b.store, document).ask(at("/lit")) }
	if o := b.ask(at("/")); o.Verdict != Refused || ruling(o, "dark").Decision.Remaining != 0 {
		t.Errorf("got %v with %d of dark left, want refused, and nothing left", o.Verdict, ruling(o, "dark").Decision.Remaining)
	}
	if o := b.ask(at("/")); !ruling(o, "dark").Refuses() {
		t.Error("the limit in shadow was given a unit that nobody had taken")
	}
}

// Shadow limits come last, so that a refusal costs no writes for them.
func TestARefusalWritesNothingToLimitsInShadow(t *testing.T) {
	b := start(t, shadowed)
	b.store.BeforeSet = func() {
		other := startOn(t, b.store, shadowed)
		for range 4 {
			other.ask(at("/"))
		}
		b.store.Sets = 0
	}
	if o := b.ask(at("/")); o.Verdict != Refused || b.store.Sets != 1 {
		t.Errorf("got %v after %d writes, want refused after the one that came too late", o.Verdict, b.store.Sets)
	}
}

func TestAShadowLimitThatFailsDeniesNobody(t *testing.T) {
	b := start(t, `{"on_error": "deny", "limits": {"dark": {"algorithm": "gcra", "rate": "1/d", "key": [], "shadow": true}}, "rules": [{"limits": ["dark"]}]}`)
	b.store.Broken = true
	if o := b.ask(request{}); o.Verdict != Unlimited || fmt.Sprint(b.undecided) != "[dark]" {
		t.Errorf("got %v with %v undecided, want unlimited and an error of dark", o.Verdict, b.undecided)
	}
}

func TestAMissingCredentialIsNoRefusalInShadow(t *testing.T) {
	document := func(missing string) string {
		return `{"limits": {
			"dark": {"algorithm": "gcra", "rate": "1/d", "burst": 2, "key": ["header:x-user"], "missing": "` + missing + `", "shadow": true},
			"lit": {"algorithm": "gcra", "rate": "1/d", "burst": 5, "key": []}}, "rules": [{"limits": ["dark", "lit"]}]}`
	}
	b := start(t, document("deny"))
	o := b.ask(request{})
	if dark := ruling(o, "dark"); o.Verdict != Admitted || !dark.Missing || !dark.Refuses() || !dark.Shadow {
		t.Errorf("deny: got %v with %+v, want admitted by lit, and refused in shadow", o.Verdict, *dark)
	}
	b.admits("deny", request{}, 4)
	if o := start(t, document("skip")).ask(request{}); len(o.Rulings) != 1 || o.Rulings[0].Limit.Name != "lit" {
		t.Errorf("skip: got %d rulings, want that of lit alone", len(o.Rulings))
	}
}

func TestShadowAtTheTopIsForEveryLimit(t *testing.T) {
	b := start(t, `{"shadow": true, `+limits[1:]+`"always": ["three"], "rules": [{"limits": ["one", "five"]}]}`)
	for i := range 10 {
		o := b.ask(at("/"))
		if o.Verdict != Unlimited || ruling(o, "one").Refuses() != (i >= 1) || ruling(o, "three").Refuses() != (i >= 3) || ruling(o, "five").Refuses() != (i >= 5) {
			t.Errorf("request %d: got %v", i, o.Verdict)
		}
	}
}

// enforcing is a config with limits of 1 by address, enforced on a share of
// clients: "a" on the given one, "b" on half.
func enforcing(percent int) string {
	return fmt.Sprintf(`{"limits": {
		"a": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["ip"], "enforce_percent": %d},
		"b": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["ip"], "enforce_percent": 50}},
		"rules": [{"match": {"path": "/a"}, "limits": ["a"]}, {"limits": ["b"]}], "state": {"max_buckets": 10000}}`, percent)
}

// refused are those of 2,000 clients that are refused when they come back.
func refused(t *testing.T, b *bench, path string) map[string]bool {
	t.Helper()
	clients := map[string]bool{}
	for i := range 2000 {
		r := request{address: fmt.Sprintf("10.0.%d.%d", i>>8, i&255), path: path}
		if b.ask(r).Verdict == Refused {
			t.Fatalf("%s is refused its first request", r.address)
		}
		o := b.ask(r)
		if o.Verdict == Refused {
			clients[r.address] = true
		} else if o.Verdict != Unlimited || !o.Rulings[0].Refuses() || !o.Rulings[0].Shadow {
			t.Fatalf("%s: got %v, want what a shadow limit says", r.address, o.Verdict)
		}
	}
	return clients
}

func TestAShareOfClientsIsRefusedAndTheOthersAreInShadow(t *testing.T) {
	// Six standard deviations of a draw of 2,000.
	for percent, slack := range map[int]int{0: 0, 1: 27, 25: 116, 50: 134, 99: 27, 100: 0} {
		got := len(refused(t, start(t, enforcing(percent)), "/a"))
		if want := 2000 * percent / 100; got < want-slack || got > want+slack {
			t.Errorf("at %d percent %d of 2000 clients are refused", percent, got)
		}
	}
}

func TestItIsAlwaysTheSameClientsThatAreRefused(t *testing.T) {
	half := refused(t, start(t, enforcing(50)), "/a")
	again := refused(t, start(t, enforcing(50)), "/a") // with a table of its own: another Envoy, or a restart
	more := refused(t, start(t, enforcing(60)), "/a")
	other := refused(t, start(t, enforcing(50)), "/b")
	common := 0
	for client := range half {
		if !again[client] {
			t.Fatalf("%s is refused by one Envoy and not by another", client)
		}
		if !more[client] {
			t.Fatalf("%s is refused at 50 percent and not at 60", client)
		}
		if other[client] {
			common++
		}
	}
	if len(again) != len(half) {
		t.Errorf("%d clients are refused by one Envoy, %d by another", len(half), len(again))
	}
	if common > len(half)*2/3 {
		t.Errorf("two limits refuse the same clients: %d of %d", common, len(half))
	}
}

func TestAMissingCredentialIsRefusedToTheShareThatIsEnforced(t *testing.T) {
	for percent, want := range map[int]Verdict{0: Unlimited, 100: MissingKey} {
		b := start(t, fmt.Sprintf(`{"limits": {"a": {"algorithm": "gcra", "rate": "1/d", "key": ["bearer"], "missing": "deny", "enforce_percent": %d}}, "rules": [{"limits": ["a"]}]}`, percent))
		if got := b.ask(request{}).Verdict; got != want {
			t.Errorf("at %d percent: got %v, want %v", percent, got, want)
		}
	}
}
