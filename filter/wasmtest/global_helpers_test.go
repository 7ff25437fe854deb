package wasmtest_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// fields are the fields of a protobuf message: numbers as they are, what is
// length-delimited as text.
type fields map[int][]any

func decode(t testing.TB, message string) fields {
	t.Helper()
	all := fields{}
	for b := []byte(message); len(b) > 0; {
		id, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			t.Fatalf("%q is no message", message)
		}
		b = b[n:]
		var value any
		if kind == protowire.VarintType {
			value, n = protowire.ConsumeVarint(b)
		} else {
			value, n = protowire.ConsumeString(b)
		}
		if n < 0 {
			t.Fatalf("%q is no message", message)
		}
		b = b[n:]
		all[int(id)] = append(all[int(id)], value)
	}
	return all
}

// text and number are the only value of a field, the zero value if there is none.
func (f fields) text(t testing.TB, id int) string {
	t.Helper()
	if len(f[id]) > 1 {
		t.Fatalf("field %d is %v, want one value", id, f[id])
	}
	for _, value := range f[id] {
		return value.(string)
	}
	return ""
}

func (f fields) number(t testing.TB, id int) uint64 {
	t.Helper()
	if len(f[id]) > 1 {
		t.Fatalf("field %d is %v, want one value", id, f[id])
	}
	for _, value := range f[id] {
		return value.(uint64)
	}
	return 0
}

// rlsRequest is what a rate limit server was asked: for one descriptor.
type rlsRequest struct {
	domain     string
	entries    string // "limit=x unit=minute"; the client's is client
	client     string
	units      uint64 // a unit
	unit, hits uint64
}

// gubRequest is what a Gubernator was asked.
type gubRequest struct {
	name, key                                          string
	hits, limit, duration, algorithm, behaviour, burst uint64
}

// The numbers of the services' types.
const (
	rlsOK, rlsOver            = 1, 2
	rlsSecond, rlsMinute      = 1, 2
	gubUnder, gubOver         = 0, 1
	gubGregorian, gubDraining = 4, 36
)

func readRLS(t testing.TB, call wasmtest.GRPCCall) rlsRequest {
	t.Helper()
	if path := call.Service + "/" + call.Method; path != "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit" {
		t.Fatalf("the call is %s", path)
	}
	message := decode(t, call.Message)
	descriptor := decode(t, message.text(t, 2))
	limit := decode(t, descriptor.text(t, 2))
	if len(descriptor[3]) != 1 || len(message[3]) != 0 {
		t.Fatalf("the hits are not the descriptor's: %v", message)
	}
	r := rlsRequest{
		domain: message.text(t, 1),
		units:  limit.number(t, 1),
		unit:   limit.number(t, 2),
		hits:   decode(t, descriptor.text(t, 3)).number(t, 1),
	}
	var entries []string
	for _, e := range descriptor[1] {
		entry := decode(t, e.(string))
		key, value := entry.text(t, 1), entry.text(t, 2)
		if key == "key" {
			r.client = value
			continue
		}
		entries = append(entries, key+"="+value)
	}
	r.entries = strings.Join(entries, " ")
	return r
}

func readGubernator(t testing.TB, call wasmtest.GRPCCall) gubRequest {
	t.Helper()
	if path := call.Service + "/" + call.Method; path != "pb.gubernator.V1/GetRateLimits" {
		t.Fatalf("the call is %s", path)
	}
	r := decode(t, decode(t, call.Message).text(t, 1))
	return gubRequest{r.text(t, 1), r.text(t, 2), r.number(t, 3), r.number(t, 4), r.number(t, 5), r.number(t, 6), r.number(t, 7), r.number(t, 8)}
}

func number(id protowire.Number, n uint64) string {
	return string(protowire.AppendVarint(protowire.AppendTag(nil, id, protowire.VarintType), n))
}

func inside(id protowire.Number, content string) string {
	return string(protowire.AppendString(protowire.AppendTag(nil, id, protowire.BytesType), content))
}

// rlsAnswer is a rate limit server's answer about a limit of so many units. reset
// is in seconds.
func rlsAnswer(code, units, unit, remaining, reset uint64) string {
	status := number(1, code) + inside(2, number(1, units)+number(2, unit)) + number(3, remaining) + inside(4, number(1, reset))
	return number(1, code) + inside(2, status)
}

// gubAnswer is a Gubernator's answer. reset is in ms since 1970.
func gubAnswer(status, limit, remaining, reset uint64, err string) string {
	r := number(1, status) + number(2, limit) + number(3, remaining) + number(4, reset)
	if err != "" {
		r += inside(5, err)
	}
	return inside(1, r)
}

// target is the serialized GrpcService of a cluster.
func target(cluster string) string { return inside(1, inside(1, cluster)) }

// fleetConfig is a config whose limits a service counts. global, limits and rules
// are the insides of these fields.
func fleetConfig(protocol, global, limits, rules string) string {
	return fmt.Sprintf(`{"global":{"cluster":"service","protocol":%q%s},"limits":{%s},"rules":[%s],"state":{"max_buckets":1000},
		"response":{"rate_limit_headers":["ratelimit","draft"]}}`, protocol, global, limits, rules)
}

// minute is a fleet-wide limit of ten a minute for each client address.
const minute = `"x":{"algorithm":"fixed_window","limit":10,"window":"1m","key":["ip"],"scope":"global"}`

// anyCost is a rule that has a header say what a request costs.
const anyCost = `{"limits":["x"],"cost":{"header":"x-cost","default":1,"max":100}}`

// only is a plugin's only call that waits for an answer.
func only(t testing.TB, plugin *wasmtest.Plugin) wasmtest.GRPCCall {
	t.Helper()
	calls := plugin.GRPCCalls()
	if len(calls) != 1 {
		t.Fatalf("%d calls wait for an answer, want one", len(calls))
	}
	return calls[0]
}

func expectCalls(t testing.TB, plugin *wasmtest.Plugin, n int) {
	t.Helper()
	if got := len(plugin.GRPCCalls()); got != n {
		t.Fatalf("%d calls wait for an answer, want %d", got, n)
	}
}

// waits begins a request that must wait for the service.
func waits(t testing.TB, plugin *wasmtest.Plugin, r request) *wasmtest.Stream {
	t.Helper()
	s := begin(plugin, r)
	if !s.Paused() {
		t.Fatalf("the request does not wait; its answer: %+v", s.Local())
	}
	return s
}

// finish ends a request as a client sees it: by the filter's own answer, or by the
// upstream's, which is 200.
func finish(t testing.TB, s *wasmtest.Stream) answer {
	t.Helper()
	if s.Paused() {
		t.Fatal("the request still waits")
	}
	if local := s.Local(); local != nil {
		s.End()
		return answerOf(local.Sent)
	}
	return answerOf(respondWith(s))
}

func expectAnswer(t testing.TB, s *wasmtest.Stream, want answer) {
	t.Helper()
	if got := finish(t, s); got != want {
		t.Errorf("the client is told %+v, want %+v", got, want)
	}
}

func expectCounts(t testing.TB, host *wasmtest.Host, want map[string]uint64) {
	t.Helper()
	for name, n := range want {
		if got := host.Metrics["sluice.limit."+name]; got != n {
			t.Errorf("%s is %d, want %d", name, got, n)
		}
	}
}
