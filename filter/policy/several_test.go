package policy

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/table"
	"github.com/sluice-proxy/sluice/filter/table/tabletest"
)

func TestARefusalSaysOfTheOtherLimitsWhatIsReallyLeft(t *testing.T) {
	document := limits + `"rules": [
		{"match": {"path": "/one"}, "limits": ["one"]},
		{"limits": ["five", "one", "three"]}
	]}`
	b := start(t, document)
	client := at("/")
	b.ask(client)
	for _, what := range []string{"refused when it was looked at", "and again"} {
		o := b.ask(client)
		for name, want := range map[string]int64{"five": 4, "one": 0, "three": 2} {
			if got := ruling(o, name).Decision.Remaining; o.Verdict != Refused || got != want {
				t.Errorf("%s: %v, and %d of %s left, want %d", what, o.Verdict, got, name, want)
			}
		}
	}

	// Another worker takes the last place after this one has looked.
	b = start(t, document)
	b.store.BeforeSet = func() { startOn(t, b.store, document).ask(at("/one")) }
	o := b.ask(client)
	for name, want := range map[string]int64{"five": 5, "one": 0, "three": 3} {
		if got := ruling(o, name).Decision.Remaining; o.Verdict != Refused || got != want {
			t.Errorf("refused after all: %v, and %d of %s left, want %d", o.Verdict, got, name, want)
		}
	}
}

// yielding is a store that lets another worker run before every write.
type yielding struct {
	*tabletest.Memory
	yield func(struct{}) bool
}

func (s *yielding) Set(key, value []byte, version uint32) (stored, ok bool) {
	if s.yield != nil {
		s.yield(struct{}{})
	}
	return s.Memory.Set(key, value, version)
}

// stepped is a worker whose request runs from one write to the next.
type stepped struct {
	policy *Policy
	store  *yielding
	got    Verdict
	step   func() (struct{}, bool)
}

func newStepped(t *testing.T, memory *tabletest.Memory, document string, r request) *stepped {
	t.Helper()
	c, err := config.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	w := &stepped{policy: New(c), store: &yielding{Memory: memory}}
	opened, ok := table.Open(w.store, "test", c.MaxBuckets, tabletest.Random)
	if !ok {
		t.Fatal("the table did not open")
	}
	w.policy.Attach(opened)
	next, stop := iter.Pull(func(yield func(struct{}) bool) {
		w.store.yield = yield
		w.got = w.policy.Decide(w.policy.Prepare(w.policy.Match(r), r), algorithms.Time{}, true).Verdict
		w.store.yield = nil
	})
	t.Cleanup(stop)
	w.step = next
	return w
}

// If each request took from the limits in its rule's own order, each could take
// the last unit that the other needs, and both would be refused.
func TestRequestsThatNameTheSameLimitsInOppositeOrderDoNotRefuseEachOther(t *testing.T) {
	document := `{"limits": {
		"a": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["ip"]},
		"b": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["ip"]},
		"c": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["ip"]}},
		"always": ["b"],
		"rules": [{"match": {"path": "/one"}, "limits": ["c", "a"]}, {"limits": ["a", "b", "c"]}]}`
	for schedule := range 1 << 8 {
		memory := tabletest.New()
		workers := []*stepped{newStepped(t, memory, document, at("/one")), newStepped(t, memory, document, at("/two"))}
		for turn := range 8 {
			workers[schedule>>turn&1].step()
		}
		admitted := 0
		for _, w := range workers {
			for more := true; more; {
				_, more = w.step()
			}
			if w.got == Admitted {
				admitted++
			}
		}
		if admitted != 1 {
			t.Fatalf("in the schedule %08b %d of two requests were admitted, want exactly one", schedule, admitted)
		}
	}
}

// simple is a limit as one would count by hand: a number for each client.
type simple struct {
	capacity       int64
	shadow         bool
	percent        int
	byUser         bool
	missing        string
	goldCapacity   int64 // of an override for the path /gold; 0 for none, -1 for unlimited
	used           map[string]int64
	enforcedClient map[string]bool // what has been learned of a share that is enforced
}

func (s *simple) document() string {
	key, overrides := `["ip"]`, ""
	if s.byUser {
		key = `["header:x-user"]`
	}
	switch {
	case s.goldCapacity < 0:
		overrides = `, "overrides": [{"match": {"path": "/gold"}, "unlimited": true}]`
	case s.goldCapacity > 0:
		overrides = fmt.Sprintf(`, "overrides": [{"match": {"path": "/gold"}, "limit": %d}]`, s.goldCapacity)
	}
	return fmt.Sprintf(`{"algorithm": "fixed_window", "limit": %d, "window": "1d", "key": %s, "shadow": %v, "enforce_percent": %d, "missing": %q%s}`,
		s.capacity, key, s.shadow, s.percent, s.missing, overrides)
}

// applies returns the bucket of a request and how much it holds; not ok where
// the limit does not apply.
func (s *simple) applies(r request) (bucket string, capacity int64, ok bool) {
	capacity = s.capacity
	if s.goldCapacity != 0 && r.path == "/gold" {
		bucket, capacity = "gold ", s.goldCapacity
	}
	client := r.address
	if s.byUser {
		client = r.headers["x-user"]
	}
	return bucket + client, capacity, capacity > 0 && (client != "" || s.missing != "skip")
}

func TestSeveralLimitsAreDecidedAsCountingByHandWould(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		byName := map[string]*simple{}
		var named, documents []string
		for _, name := range []string{"a", "b", "c", "d"}[:rapid.IntRange(1, 4).Draw(rt, "limits")] {
			s := &simple{
				capacity:       rapid.Int64Range(1, 6).Draw(rt, "capacity"),
				shadow:         rapid.IntRange(0, 2).Draw(rt, "shadow") == 0,
				percent:        rapid.SampledFrom([]int{100, 100, 50, 0}).Draw(rt, "percent"),
				byUser:         rapid.Bool().Draw(rt, "by user"),
				missing:        rapid.SampledFrom([]string{"shared", "skip", "deny"}).Draw(rt, "missing"),
				goldCapacity:   rapid.SampledFrom([]int64{0, 0, -1, 1, 9}).Draw(rt, "gold"),
				used:           map[string]int64{},
				enforcedClient: map[string]bool{},
			}
			byName[name] = s
			documents = append(documents, fmt.Sprintf("%q: %s", name, s.document()))
			named = append(named, fmt.Sprintf(`{"limit": %q, "cost": {"header": "x-cost", "max": 9}}`, name))
		}
		named = rapid.Permutation(named).Draw(rt, "order")
		b := start(t, `{"limits": {`+strings.Join(documents, ",")+`}, "rules": [{"limits": [`+strings.Join(named, ",")+`]}]}`)
		for range rapid.IntRange(1, 40).Draw(rt, "requests") {
			units := rapid.Int64Range(0, 3).Draw(rt, "cost")
			r := request{
				address: rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.2"}).Draw(rt, "address"),
				path:    rapid.SampledFrom([]string{"/", "/gold"}).Draw(rt, "path"),
				headers: map[string]string{"x-user": rapid.SampledFrom([]string{"alice", "bob", ""}).Draw(rt, "user"), "x-cost": fmt.Sprint(units)},
			}
			decideByHand(rt, byName, r, units, b.ask(r))
		}
	})
}

// decideByHand fails where an outcome is not what the counts say, and counts the
// request.
func decideByHand(t *rapid.T, limits map[string]*simple, r request, units int64, got Outcome) {
	enforced, refused, missing := 0, 0, 0
	for name, s := range limits {
		bucket, capacity, ok := s.applies(r)
		if g := ruling(got, name); ok && s.enforces(t, bucket, g) {
			enforced++
			switch {
			case s.lacks(r):
				missing++
			case s.used[bucket]+units > capacity:
				refused++
			}
		}
	}
	want := Admitted
	switch {
	case missing > 0:
		want = MissingKey
	case refused > 0:
		want = Refused
	case enforced == 0:
		want = Unlimited
	}
	if got.Verdict != want {
		t.Fatalf("%+v: got %v, want %v", r, got.Verdict, want)
	}
	if want != Admitted && want != Unlimited {
		if got.Limit == nil || ruling(got, got.Limit.Name).Shadow {
			t.Fatalf("%+v: the refusal speaks of %v, want an enforced limit", r, got.Limit)
		}
		return
	}
	for name, s := range limits {
		bucket, capacity, ok := s.applies(r)
		if !ok {
			if g := ruling(got, name); g.Limit != nil {
				t.Fatalf("%+v: %s has a say, to which it does not apply", r, name)
			}
			continue
		}
		fits := !s.lacks(r) && s.used[bucket]+units <= capacity
		if fits {
			s.used[bucket] += units
		}
		if g := ruling(got, name); g.Refuses() == fits || fits && g.Decision.Remaining != capacity-s.used[bucket] {
			t.Fatalf("%+v: %s says %+v, want %d of %d used", r, name, g.Decision, s.used[bucket], capacity)
		}
	}
}

// lacks says whether a request is refused for what it lacks.
func (s *simple) lacks(r request) bool {
	return s.byUser && r.headers["x-user"] == "" && s.missing == "deny"
}

// enforces says whether the limit refuses this client. Of a share it learns that
// from the first ruling about the client, which all later ones must agree with.
func (s *simple) enforces(t *rapid.T, bucket string, g *Ruling) bool {
	switch {
	case s.shadow || s.percent == 0:
		return false
	case s.percent == 100:
		return true
	case g.Limit == nil: // another limit has ended the request before
		return false
	}
	client := strings.TrimPrefix(bucket, "gold ")
	if known, seen := s.enforcedClient[client]; seen && known == g.Shadow {
		t.Fatalf("%q is enforced in one request and in shadow in the next", client)
	}
	s.enforcedClient[client] = !g.Shadow
	return !g.Shadow
}
