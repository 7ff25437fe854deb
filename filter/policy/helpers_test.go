package policy

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/normal"
	"github.com/sluice-proxy/sluice/filter/table"
	"github.com/sluice-proxy/sluice/filter/table/tabletest"
)

// ipv4 is an address as a number, if it is an IPv4 one.
func ipv4(address netip.Addr, ok bool) (octets uint32, isIPv4 bool) {
	if !ok || !address.Is4() {
		return 0, false
	}
	bytes := address.As4()
	return binary.BigEndian.Uint32(bytes[:]), true
}

// request is a keys.Request from text.
type request struct {
	address, method, path, host, route, virtualHost, rule string
	headers                                               map[string]string
	// values are what else a request has, by key part as the config spells it.
	values map[string]string
}

func (r request) Address() (netip.Addr, bool) {
	a, err := netip.ParseAddr(r.address)
	return a, err == nil
}
func (r request) IPv4() (uint32, bool)      { return ipv4(r.Address()) }
func (r request) Header(name string) []byte { return []byte(r.headers[name]) }
func (r request) Method() []byte            { return []byte(r.method) }
func (r request) Path() []byte              { return []byte(normal.Path(r.path)) }
func (r request) Host() []byte              { return []byte(normal.Host(r.host)) }
func (r request) Route() []byte             { return []byte(r.route) }
func (r request) VirtualHost() []byte       { return []byte(r.virtualHost) }
func (r request) Rule() []byte              { return []byte(r.rule) }
func (r request) Bearer() []byte            { return r.value("bearer") }
func (r request) Cookie(name string) []byte { return r.value("cookie:" + name) }
func (r request) Query(name string) []byte  { return r.value("query:" + name) }
func (r request) Metadata(path string) []byte {
	return r.value("metadata:" + path)
}
func (r request) MetadataNumber(path string) []byte {
	return r.value("metadata_number:" + path)
}
func (r request) Property(path string) []byte { return r.value("property:" + path) }

func (r request) value(part string) []byte {
	return []byte(r.values[strings.ReplaceAll(part, "\x00", "/")])
}

// bench is a policy on a table and a clock of its own.
type bench struct {
	t         *testing.T
	config    *config.Config
	policy    *Policy
	store     *tabletest.Memory
	now       time.Duration
	clockless bool
	undecided []string
}

func start(t *testing.T, document string) *bench {
	t.Helper()
	return startOn(t, tabletest.New(), document)
}

func startOn(t *testing.T, store *tabletest.Memory, document string) *bench {
	t.Helper()
	c, err := config.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, config: c, policy: New(c), store: store}
	opened, ok := table.Open(store, "test", c.MaxBuckets, tabletest.Random)
	if !ok {
		t.Fatal("the table did not open")
	}
	b.policy.Attach(opened)
	return b
}

// withRoute returns a bench for the requests of a route that brings its own
// config.
func (b *bench) withRoute(name, document string) *bench {
	b.t.Helper()
	c, err := config.ParseRoute([]byte(document), b.config)
	if err != nil {
		b.t.Fatal(err)
	}
	return &bench{t: b.t, config: c, policy: b.policy.NewRoute(c, name), store: b.store}
}

func (b *bench) ask(r request) Outcome {
	now := algorithms.Time{Mono: int64(b.now), Wall: int64(b.now)}
	rule := b.policy.Match(r)
	r.rule = rule.Name
	o := *b.policy.Decide(b.policy.Prepare(rule, r), now, !b.clockless)
	for i := range o.Rulings {
		if g := &o.Rulings[i]; g.Failed {
			b.undecided = append(b.undecided, g.Limit.Name)
		}
	}
	return o
}

// admits asserts how many of ten requests are admitted.
func (b *bench) admits(what string, r request, want int) {
	b.t.Helper()
	got := 0
	for range 10 {
		if v := b.ask(r).Verdict; v == Admitted || v == Unlimited {
			got++
		}
	}
	if got != want {
		b.t.Errorf("%s: admitted %d of 10, want %d", what, got, want)
	}
}

// left is what remains of each limit that applies to the request, by name. It
// takes nothing if the request's cost is 0.
func (b *bench) left(r request) map[string]int64 {
	o := b.ask(r)
	left := map[string]int64{}
	for i := range o.Rulings {
		left[o.Rulings[i].Limit.Name] = o.Rulings[i].Decision.Remaining
	}
	return left
}
