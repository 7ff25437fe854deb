package policy

import (
	"net/netip"
	"testing"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/keys"
	"github.com/sluice-proxy/sluice/filter/table"
	"github.com/sluice-proxy/sluice/filter/table/tabletest"
)

// onePage is a store that always holds the page that was written last, so that
// it costs a decision next to nothing.
type onePage struct {
	page    []byte
	version uint32
}

func (s *onePage) Get([]byte) (value []byte, version uint32, found, ok bool) {
	return s.page, s.version, s.page != nil, true
}

func (s *onePage) Set(_, value []byte, _ uint32) (stored, ok bool) {
	s.page, s.version = append(s.page[:0], value...), s.version+1
	return true, true
}

// plain is a request of which nothing is computed.
type plain struct {
	keys.Request
	address netip.Addr
}

func (r *plain) Address() (netip.Addr, bool) { return r.address, true }
func (r *plain) IPv4() (uint32, bool)        { return ipv4(r.address, true) }
func (r *plain) Header(string) []byte        { return nil }
func (r *plain) Method() []byte              { return nil }
func (r *plain) Path() []byte                { return nil }
func (r *plain) Host() []byte                { return nil }
func (r *plain) Route() []byte               { return nil }

func decider(tb testing.TB) func() *Outcome {
	c, err := config.Parse([]byte(`{
		"limits": {"ip": {"algorithm": "token_bucket", "capacity": 1000000000, "refill_rate": "1000000000/s", "key": ["ip"]}},
		"rules": [{"limits": ["ip"]}]
	}`))
	if err != nil {
		tb.Fatal(err)
	}
	// Opening needs a store with a secret in it.
	opened, ok := table.Open(&onePage{page: make([]byte, 16)}, "test", 100_000, tabletest.Random)
	if !ok {
		tb.Fatal("the table did not open")
	}
	p := New(c)
	p.Attach(opened)
	r := &plain{address: netip.MustParseAddr("192.0.2.1")}
	return func() *Outcome { return p.Decide(p.Prepare(p.Match(r), r), algorithms.Time{Mono: 1}, true) }
}

func TestDecidingDoesNotAllocate(t *testing.T) {
	decide := decider(t)
	if n := testing.AllocsPerRun(100, func() {
		if o := decide(); o.Verdict != Admitted {
			t.Fatalf("got %v, want admitted", o.Verdict)
		}
	}); n != 0 {
		t.Errorf("a decision allocates %v times", n)
	}
}

// versioned is onePage for decisions about several limits: their reads stay good
// while others are written, and what is written must have been read last.
type versioned struct {
	onePage
	reads [32][]byte // more than a decision has
	next  int
}

func (s *versioned) Get(key []byte) (value []byte, version uint32, found, ok bool) {
	s.next = (s.next + 1) % len(s.reads)
	s.reads[s.next] = append(s.reads[s.next][:0], s.page...)
	return s.reads[s.next], s.version, s.page != nil, true
}

func (s *versioned) Set(key, value []byte, version uint32) (stored, ok bool) {
	if version != s.version {
		return false, true
	}
	return s.onePage.Set(key, value, version)
}

// full is a request that has everything, as the plugin would give it.
type full struct{ plain }

var fullHeader, fullMethod, fullPath, fullHost, fullRoute = []byte("partner-7"), []byte("POST"), []byte("/api/things"), []byte("api.example.com"), []byte("things")

func (r *full) Header(name string) []byte {
	if name == "x-absent" {
		return nil
	}
	return fullHeader
}
func (r *full) Method() []byte { return fullMethod }
func (r *full) Path() []byte   { return fullPath }
func (r *full) Host() []byte   { return fullHost }
func (r *full) Route() []byte  { return fullRoute }

func TestNoRuleKeyOrAlgorithmMakesADecisionAllocate(t *testing.T) {
	c, err := config.Parse([]byte(`{
		"limits": {
			"ip":      {"algorithm": "token_bucket", "capacity": 100, "refill_rate": "1/d", "key": ["ip"]},
			"user":    {"algorithm": "gcra", "rate": "1/d", "burst": 100, "key": ["user=header:x-absent|header:x-user|ip", "const:a"]},
			"request": {"algorithm": "fixed_window", "limit": 50, "window": "1d", "key": ["method", "path", "host", "route", "header:x-absent"]},
			"meter":   {"algorithm": "leaky_bucket", "mode": "meter", "capacity": 100, "leak_rate": "1/d", "key": ["route"]},
			"all":     {"algorithm": "sliding_window", "limit": 100, "window": "1d", "key": []},
			"skipped": {"algorithm": "gcra", "rate": "1/d", "key": ["header:x-absent"], "missing": "skip"}
		},
		"always": ["all", "ip"],
		"rules": [
			{"match": {"method": ["GET", "PUT"]}, "limits": []},
			{"match": {"path": ["/login", "/api"]}, "limits": []},
			{"match": {"host": ["example.com", "*.example.org"]}, "limits": []},
			{"match": {"route": ["a", "b"]}, "limits": []},
			{"match": {"method": "POST", "path_prefix": "/api", "host": "*.example.com", "route": "things"},
			 "limits": ["user", "request", {"limit": "meter", "cost": 2}, "skipped"]}
		]
	}`))
	if err != nil {
		t.Fatal(err)
	}
	p := New(c)
	store := &versioned{onePage: onePage{page: make([]byte, 16, 4096)}}
	for i := range store.reads {
		store.reads[i] = make([]byte, 0, cap(store.page))
	}
	opened, ok := table.Open(store, "test", 1000, tabletest.Random)
	if !ok {
		t.Fatal("the table did not open")
	}
	p.Attach(opened)
	r := &full{plain{address: netip.MustParseAddr("2001:db8::1")}}
	// The limit called request has 50, and a run to warm up goes ahead of each.
	for _, c := range []struct {
		runs int
		want Verdict
	}{{40, Admitted}, {8, Admitted}, {100, Refused}} {
		if n := testing.AllocsPerRun(c.runs, func() {
			if o := p.Decide(p.Prepare(p.Match(r), r), algorithms.Time{Mono: 1}, true); o.Verdict != c.want {
				t.Fatalf("got %v, want %v", o.Verdict, c.want)
			}
		}); n != 0 {
			t.Errorf("a decision with the verdict %v allocates %v times", c.want, n)
		}
	}
}

// Everything between a request's address and its headers, without the host.
func BenchmarkDecide(b *testing.B) {
	decide := decider(b)
	b.ReportAllocs()
	for range b.N {
		decide()
	}
}
