package wasmtest_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// hundred is a bucket whose level no test's time changes.
const hundred = `"algorithm":"token_bucket","capacity":100,"refill_rate":"1/d"`

// charging is a config of one limit by client address that charges. A header
// says what a request costs beforehand.
func charging(limit, charge string) string {
	if charge != "" {
		limit += `,"charge":` + charge
	}
	return `{"limits":{"x":{` + limit + `,"key":["ip"]}},
		"rules":[{"limits":["x"],"cost":{"header":"x-cost","default":1,"max":100}}],"state":{"max_buckets":1000}}`
}

// startCharging starts a plugin and, in the same VM, one that has the same limit
// but charges nothing: with it a test can look.
func startCharging(t testing.TB, host *wasmtest.Host, limit, charge string) (plugin, looker *wasmtest.Plugin) {
	t.Helper()
	plugin = start(t, host, charging(limit, charge))
	looker, ok := plugin.VM().StartPlugin(wasmtest.PluginConfig{Name: "sluice", RootID: "sluice", Config: charging(limit, "")})
	if !ok {
		t.Fatalf("the config is refused: %v", plugin.VM().Logs())
	}
	return plugin, looker
}

func costing(n, cost int) request {
	return request{address: client(n), headers: wasmtest.Headers{{"x-cost", fmt.Sprint(cost)}}}
}

// look asks with a request of no cost what a client has left. In debt it is
// refused.
func look(looker *wasmtest.Plugin, n int) answer { return ask(looker, costing(n, 0)) }

// respondWith ends a request with a response that has these headers, in one piece.
func respondWith(s *wasmtest.Stream, headers ...[2]string) wasmtest.Headers {
	sent := s.ResponseHeaders(append(wasmtest.Headers{{":status", "200"}}, headers...))
	s.End()
	return sent
}

// metadata is what a stream's dynamic metadata is with one value: a
// google.protobuf.Value, serialized.
func metadata(filter, name, value string) string {
	piece := func(field byte, content string) string {
		return string([]byte{field<<3 | 2, byte(len(content))}) + content
	}
	return piece(1, piece(1, filter)+piece(2, piece(1, piece(1, name)+piece(2, value))))
}

func metadataNumber(n float64) string {
	return "\x11" + string(binary.LittleEndian.AppendUint64(nil, math.Float64bits(n)))
}

func metadataText(text string) string { return string([]byte{3<<3 | 2, byte(len(text))}) + text }

// source is where a charge may stand. respond ends a request with it there: absent
// if there is no value, and repeated if there are several.
type source struct {
	charge  string
	respond func(s *wasmtest.Stream, values ...string)
}

var sources = map[string]source{
	"a header": {`{"response_header":"X-Tokens","max":50}`, func(s *wasmtest.Stream, values ...string) {
		s.BeginResponse(append(wasmtest.Headers{{":status", "200"}}, tokens(values)...))
		s.ResponseTrailers(wasmtest.Headers{{"x-tokens", "9"}})
		s.End()
	}},
	"the headers of a response without a body": {`{"response_header":"x-tokens","max":50}`, func(s *wasmtest.Stream, values ...string) {
		respondWith(s, tokens(values)...)
	}},
	"a header to be removed": {`{"response_header":"x-tokens","max":50,"remove":true}`, func(s *wasmtest.Stream, values ...string) {
		respondWith(s, tokens(values)...)
	}},
	"a trailer": {`{"response_trailer":"x-tokens","max":50}`, func(s *wasmtest.Stream, values ...string) {
		s.BeginResponse(wasmtest.Headers{{":status", "200"}, {"x-tokens", "9"}})
		s.ResponseTrailers(tokens(values))
		s.End()
	}},
	"trailers alone": {`{"response_trailer":"x-tokens","max":50}`, func(s *wasmtest.Stream, values ...string) {
		respondWith(s, append(tokens(values), [2]string{"grpc-status", "0"})...)
	}},
	// Metadata comes when a stream ends, not with the response.
	"metadata as text": {`{"metadata":"ai/tokens","max":50}`, func(s *wasmtest.Stream, values ...string) {
		s.ResponseHeaders(wasmtest.Headers{{":status", "200"}, {"x-tokens", "9"}})
		if len(values) > 0 {
			s.SetProperty("metadata", metadata("ai", "tokens", metadataText(strings.Join(values, ","))))
		}
		s.End()
	}},
}

func tokens(values []string) (headers wasmtest.Headers) {
	for _, value := range values {
		headers = append(headers, [2]string{"x-tokens", value})
	}
	return headers
}

func TestAChargeIsTakenFromWhereverItStandsOrCountedAsAnError(t *testing.T) {
	const bad = -1
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			host := wasmtest.New(t, wasmtest.Module(t))
			plugin, looker := startCharging(t, host, hundred, source.charge)
			for i, c := range []struct {
				values []string
				charge int64
			}{
				{[]string{"7"}, 7}, {[]string{"0"}, 0}, {[]string{"007"}, 7}, {[]string{"50"}, 50}, {[]string{"51"}, 50}, {[]string{"1000000000000"}, 50},
				{[]string{"99999999999999999999999999"}, 50},
				{nil, bad}, {[]string{""}, bad}, {[]string{"-3"}, bad}, {[]string{"-0"}, bad}, {[]string{"+3"}, bad}, {[]string{"1.5"}, bad}, {[]string{"5.0"}, bad},
				{[]string{"1e3"}, bad}, {[]string{"0x10"}, bad}, {[]string{"five"}, bad}, {[]string{"5 "}, bad}, {[]string{"5,5"}, bad},
				{[]string{"5", "5"}, bad}, {[]string{"5", "x"}, bad}, {[]string{"", "5"}, bad},
			} {
				clear(host.Metrics)
				source.respond(begin(plugin, costing(i, 2)), c.values...)
				errors, charge := uint64(0), c.charge
				if charge == bad {
					errors, charge = 1, 0
				}
				if a := look(looker, i); a.remaining != 98-charge {
					t.Errorf("%q: %d are left, want %d", c.values, a.remaining, 98-charge)
				}
				if n := host.Metrics["sluice.limit.x.errors"]; n != errors {
					t.Errorf("%q: %d errors, want %d", c.values, n, errors)
				}
			}
			if logs := plugin.VM().Logs(); len(logs) > 0 {
				t.Errorf("logged: %v", logs)
			}
		})
	}
}

func TestAChargeFromMetadataIsAWholeNumberOrText(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin, looker := startCharging(t, host, hundred, `{"metadata":"ai/tokens","max":50}`)
	for i, c := range []struct {
		metadata string
		charge   int64
		errors   uint64
	}{
		{metadata("ai", "tokens", metadataNumber(7)), 7, 0},
		{metadata("ai", "tokens", metadataNumber(0)), 0, 0},
		{metadata("ai", "tokens", metadataNumber(1e15)), 50, 0},
		{metadata("ai", "tokens", metadataNumber(1.5)), 0, 1},
		{metadata("ai", "tokens", metadataNumber(-7)), 0, 1},
		{metadata("ai", "tokens", metadataNumber(math.NaN())), 0, 1},
		{metadata("ai", "tokens", metadataNumber(1e300)), 0, 1},
		{metadata("ai", "tokens", metadataText("7")), 7, 0},
		{metadata("ai", "tokens", "\x20\x01"), 0, 1}, // true
		{metadata("ai", "token", metadataNumber(7)), 0, 1},
		{metadata("other", "tokens", metadataNumber(7)), 0, 1},
		{"\xff\xff damaged", 0, 1},
		{"", 0, 1},
	} {
		clear(host.Metrics)
		s := begin(plugin, costing(i, 1))
		s.SetProperty("metadata", metadata("ai", "tokens", metadataNumber(33))) // not the last word
		s.ResponseHeaders(wasmtest.Headers{{":status", "200"}})
		s.SetProperty("metadata", c.metadata)
		s.End()
		if a := look(looker, i); a.remaining != 99-c.charge || host.Metrics["sluice.limit.x.errors"] != c.errors {
			t.Errorf("%q: %d are left, want %d; %d errors, want %d", c.metadata, a.remaining, 99-c.charge, host.Metrics["sluice.limit.x.errors"], c.errors)
		}
	}
}

func TestAResponseTellsWhatIsLeftAfterItsCharge(t *testing.T) {
	for _, remove := range []bool{false, true} {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, strings.Replace(charging(`"algorithm":"token_bucket","capacity":100,"refill_rate":"10/s"`, fmt.Sprintf(`{"response_header":"x-tokens","max":50,"remove":%t}`, remove)),
			"{", `{"response":{"rate_limit_headers":["ratelimit","draft","x-ratelimit"]},`, 1))
		for i, c := range []struct {
			tokens                  string
			remaining, reset, draft string
		}{
			{"39", "60", "4", `"x";r=60;t=4`},
			{"30", "29", "8", `"x";r=29;t=8`},
			{"50", "0", "13", `"x";r=0;t=13`}, // 22 in debt
		} {
			sent := respondWith(begin(plugin, request{address: client(1)}), [2]string{"x-tokens", c.tokens}, [2]string{"ratelimit-remaining", "999"})
			for name, want := range map[string]string{
				"ratelimit-limit": "100", "ratelimit-remaining": c.remaining, "ratelimit-reset": c.reset,
				"x-ratelimit-remaining": c.remaining, "x-ratelimit-reset": c.reset, "ratelimit": c.draft,
			} {
				if got := sent.Values(name); !slices.Equal(got, []string{want}) {
					t.Errorf("response %d: %s is %q, want %q", i, name, got, want)
				}
			}
			if _, there := sent.Get("x-tokens"); there == remove {
				t.Errorf("response %d: with remove %t x-tokens went on: %t", i, remove, there)
			}
		}
		if got, want := ask(plugin, request{address: client(1)}), (answer{429, 100, 0, 13, 3}); got != want {
			t.Errorf("in debt: got %+v, want %+v", got, want)
		}
	}
}

// What comes after a response's headers cannot be told in them.
func TestAChargeThatComesLateIsToldToTheNextRequest(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin, looker := startCharging(t, host, hundred, sources["a trailer"].charge)
	s := begin(plugin, costing(1, 1))
	if sent := answerOf(s.BeginResponse(wasmtest.Headers{{":status", "200"}})); sent.remaining != 99 {
		t.Errorf("the headers tell of %d left, want 99", sent.remaining)
	}
	s.ResponseTrailers(wasmtest.Headers{{"x-tokens", "40"}})
	if a := look(looker, 1); a.remaining != 59 {
		t.Errorf("before the stream ends: %d left, want 59", a.remaining)
	}
	s.End()
	if a := look(looker, 1); a.remaining != 59 {
		t.Errorf("after it: %d left, want 59", a.remaining)
	}
}

func TestAResponseIsChargedOnceHoweverOftenItIsSeen(t *testing.T) {
	for name, source := range sources {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin, looker := startCharging(t, host, hundred, source.charge)
		s := begin(plugin, costing(1, 1))
		source.respond(s, "10")
		source.respond(s, "10")
		s.ResponseTrailers(wasmtest.Headers{{"x-tokens", "10"}})
		s.End()
		if a := look(looker, 1); a.remaining != 89 || host.Metrics["sluice.limit.x.errors"] != 0 {
			t.Errorf("%s: %d left, want 89; %d errors", name, a.remaining, host.Metrics["sluice.limit.x.errors"])
		}
	}
}

func TestAStreamWithoutAResponseChargesNothingAndIsCounted(t *testing.T) {
	for name, source := range sources {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin, looker := startCharging(t, host, hundred, source.charge)
		begin(plugin, costing(1, 1)).End()
		if a := look(looker, 1); a.remaining != 99 || host.Metrics["sluice.limit.x.errors"] != 1 {
			t.Errorf("%s: %d left, want 99; %d errors, want 1", name, a.remaining, host.Metrics["sluice.limit.x.errors"])
		}
	}
}

func TestARequestThatWasRefusedIsNotCharged(t *testing.T) {
	for name, source := range sources {
		for _, shadow := range []string{"", `,"shadow":true`} {
			host := wasmtest.New(t, wasmtest.Module(t))
			limit := `"algorithm":"token_bucket","capacity":2,"refill_rate":"1/d"` + shadow
			plugin, _ := startCharging(t, host, limit, source.charge)
			source.respond(begin(plugin, costing(1, 2)), "10")
			for range 3 {
				s := begin(plugin, costing(1, 1))
				if wentOn(s) != (shadow != "") {
					t.Fatalf("%s: went on: %t", name, wentOn(s))
				}
				source.respond(s, "10") // by another filter, or by an upstream
			}
			if n := host.Metrics["sluice.limit.x.errors"]; n != 0 {
				t.Errorf("%s%s: %d errors", name, shadow, n)
			}
			host.Clock.Advance(11*24*time.Hour - time.Second) // 10 of debt, and one
			if s := begin(plugin, costing(1, 1)); wentOn(s) != (shadow != "") || host.Metrics["sluice.limit.x.allowed"] != 1 {
				t.Errorf("%s%s: the first alone was charged, and one is admitted too early", name, shadow)
			}
			host.Clock.Advance(time.Second)
			if s := begin(plugin, costing(1, 1)); !wentOn(s) || host.Metrics["sluice.limit.x.allowed"] != 2 {
				t.Errorf("%s%s: the first alone was charged, and the next is not admitted when that is back", name, shadow)
			}
		}
	}
}

// A header that is for the filter alone goes on to no client, whatever the filter
// makes of the request.
func TestAHeaderToBeRemovedIsRemovedFromEveryResponse(t *testing.T) {
	const charge = `{"response_header":"x-tokens","max":50,"remove":true}`
	for name, c := range map[string]struct {
		limit string
		fail  bool
	}{
		"admitted":          {`"algorithm":"fixed_window","limit":2,"window":"1d"`, false},
		"refused in shadow": {`"algorithm":"fixed_window","limit":1,"window":"1d","shadow":true`, false},
		"undecided":         {hundred, true},
	} {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin, _ := startCharging(t, host, c.limit, charge)
		respondWith(begin(plugin, costing(1, 1)), [2]string{"x-tokens", "0"})
		host.Fail = func(call *wasmtest.Call) (wasmtest.Status, bool) {
			return wasmtest.InternalFailure, c.fail && call.Name == "proxy_get_shared_data"
		}
		sent := respondWith(begin(plugin, costing(1, 1)), [2]string{"x-tokens", "5"})
		if value, there := sent.Get("x-tokens"); there {
			t.Errorf("%s: the client is sent x-tokens: %s", name, value)
		}
	}
}

func TestSeveralLimitsAreChargedByOneResponse(t *testing.T) {
	for name, charges := range map[string][2]string{
		"two headers":               {`{"response_header":"x-tokens","max":50}`, `{"response_header":"x-bytes","max":50}`},
		"one header":                {`{"response_header":"x-tokens","max":50}`, `{"response_header":"x-tokens","max":20}`},
		"one header to be removed":  {`{"response_header":"x-tokens","max":50,"remove":true}`, `{"response_header":"x-tokens","max":20,"remove":true}`},
		"removed by the first":      {`{"response_header":"x-tokens","max":50,"remove":true}`, `{"response_header":"x-tokens","max":20}`},
		"removed by the second":     {`{"response_header":"x-tokens","max":50}`, `{"response_header":"x-tokens","max":20,"remove":true}`},
		"header and trailer":        {`{"response_header":"x-tokens","max":50}`, `{"response_trailer":"x-bytes","max":50}`},
		"trailer and metadata":      {`{"response_trailer":"x-bytes","max":50}`, `{"metadata":"ai/tokens","max":50}`},
		"header that is a trailers": {`{"response_header":"x-tokens","max":50,"remove":true}`, `{"response_trailer":"x-tokens","max":50}`},
	} {
		host := wasmtest.New(t, wasmtest.Module(t))
		const rest = `"algorithm":"fixed_window","limit":100,"window":"1d","key":["ip"]`
		config := func(first, second string) string {
			return `{"limits":{"a":{` + rest + first + `},"b":{` + rest + second + `}},"rules":[
				{"match":{"path":"/a"},"limits":[{"limit":"a","cost":0}]},{"match":{"path":"/b"},"limits":[{"limit":"b","cost":0}]},
				{"limits":["a","b"]}],"state":{"max_buckets":1000}}`
		}
		plugin := start(t, host, config(`,"charge":`+charges[0], `,"charge":`+charges[1]))
		looker, ok := plugin.VM().StartPlugin(wasmtest.PluginConfig{Name: "sluice", Config: config("", "")})
		if !ok {
			t.Fatal(plugin.VM().Logs())
		}
		s := begin(plugin, request{address: client(1)})
		headers := wasmtest.Headers{{":status", "200"}, {"x-tokens", "30"}, {"x-bytes", "40"}}
		if name == "header that is a trailers" {
			s.ResponseHeaders(headers)
		} else {
			s.BeginResponse(headers)
			s.ResponseTrailers(wasmtest.Headers{{"x-bytes", "41"}})
		}
		s.SetProperty("metadata", metadata("ai", "tokens", metadataNumber(42)))
		s.End()
		want := map[string][2]int64{
			"two headers": {69, 59}, "one header": {69, 79}, "one header to be removed": {69, 79}, "removed by the first": {69, 79},
			"removed by the second": {69, 79}, "header and trailer": {69, 58}, "trailer and metadata": {58, 57}, "header that is a trailers": {69, 69},
		}[name]
		for i, path := range []string{"/a", "/b"} {
			if a := ask(looker, request{address: client(1), path: path}); a.remaining != want[i] {
				t.Errorf("%s: of limit %s %d are left, want %d", name, path[1:], a.remaining, want[i])
			}
		}
		for _, limit := range []string{"a", "b"} {
			if n := host.Metrics["sluice.limit."+limit+".errors"]; n != 0 {
				t.Errorf("%s: %d errors of limit %s", name, n, limit)
			}
		}
	}
}

// On an admitted response the limit with the smallest share tells, after the charge
// as before it.
func TestAfterAChargeTheSmallestShareTells(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, `{"limits":{
		"requests":{"algorithm":"fixed_window","limit":10,"window":"1d","key":["ip"]},
		"tokens":{"algorithm":"fixed_window","limit":1000,"window":"1d","key":["ip"],"charge":{"response_header":"x-tokens","max":1000}}},
		"rules":[{"limits":["requests",{"limit":"tokens","cost":0}]}],"state":{"max_buckets":1000}}`)
	sent := answerOf(respondWith(begin(plugin, request{address: client(1)}), [2]string{"x-tokens", "990"}))
	if sent.limit != 1000 || sent.remaining != 10 {
		t.Errorf("the response tells of %d left of %d, want 10 of 1000: of the other 9 of 10 are left", sent.remaining, sent.limit)
	}
}

func TestAFixedWindowForgetsItsDebt(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin, looker := startCharging(t, host, `"algorithm":"fixed_window","limit":10,"window":"1m"`, `{"response_header":"x-tokens","max":1000}`)
	s := begin(plugin, costing(1, 1))
	sent := answerOf(respondWith(s, [2]string{"x-tokens", "900"}))
	untilNext := time.Minute - time.Duration(host.Clock.Wall%int64(time.Minute))
	if a := look(looker, 1); a.admitted() || a.retryAfter != int64((untilNext+time.Second-1)/time.Second) || sent.remaining != 0 {
		t.Errorf("in debt: got %+v", a)
	}
	host.Clock.Advance(untilNext - 1)
	if a := look(looker, 1); a.admitted() {
		t.Error("the debt is forgotten before the window ends")
	}
	late := begin(plugin, costing(2, 1)) // of this window
	host.Clock.Advance(1)
	if a := look(looker, 1); a.remaining != 10 {
		t.Errorf("in the next window: got %+v, want 10 left", a)
	}
	respondWith(late, [2]string{"x-tokens", "4"}) // in the next one, by which it is charged
	if a := look(looker, 2); a.remaining != 6 {
		t.Errorf("a charge that comes in the next window: got %+v, want 6 left", a)
	}
}

// ledger is a naive model of one client's bucket.
type ledger interface {
	// take decides about a request.
	take(now int64, cost int64) bool
	// charge takes units, down to a debt.
	charge(now int64, units, debt int64)
	// left is what remains, below 0 in debt; times are until the bucket is whole,
	// and until a cost fits, absent where this model does not know.
	left(now int64) int64
	reset(now int64) int64
	retryAfter(now, cost int64) int64
}

// tokenLedger is a bucket of 10 that loses one a second: the level is kept in
// billionths, which is one a nanosecond.
type tokenLedger struct{ level, at int64 }

const ledgerLimit = 10

func (l *tokenLedger) fall(now int64) {
	l.level = max(0, l.level-(now-l.at))
	l.at = now
}

func (l *tokenLedger) take(now, cost int64) bool {
	l.fall(now)
	if l.level+cost*1e9 > ledgerLimit*1e9 {
		return false
	}
	l.level += cost * 1e9
	return true
}

func (l *tokenLedger) charge(now, units, debt int64) {
	l.fall(now)
	l.level = max(l.level, min(l.level+units*1e9, (ledgerLimit+debt)*1e9))
}

func (l *tokenLedger) left(now int64) int64 {
	l.fall(now)
	return ledgerLimit - (l.level+1e9-1)/1e9
}

func (l *tokenLedger) reset(now int64) int64 {
	l.fall(now)
	return (l.level + 1e9 - 1) / 1e9
}

func (l *tokenLedger) retryAfter(now, cost int64) int64 {
	l.fall(now)
	return (l.level - (ledgerLimit-cost)*1e9 + 1e9 - 1) / 1e9
}

// windowLedger counts by windows of ten seconds, of which the one before counts
// as far as it is inside the last ten if the window slides.
type windowLedger struct {
	slides bool
	counts map[int64]int64
}

const ledgerWindow = int64(10 * time.Second)

// spent is what counts at a moment, times the window's length.
func (l *windowLedger) spent(now int64) int64 {
	n := now / ledgerWindow
	spent := l.counts[n] * ledgerWindow
	if l.slides {
		spent += l.counts[n-1] * ((n+1)*ledgerWindow - now)
	}
	return spent
}

func (l *windowLedger) add(now, units, most int64) bool {
	if l.spent(now)+units*ledgerWindow > most*ledgerWindow {
		return false
	}
	l.counts[now/ledgerWindow] += units
	return true
}

func (l *windowLedger) take(now, cost int64) bool { return l.add(now, cost, ledgerLimit) }

func (l *windowLedger) charge(now, units, debt int64) {
	for range units {
		l.add(now, 1, ledgerLimit+debt)
	}
}

func (l *windowLedger) left(now int64) int64 {
	return ledgerLimit - (l.spent(now)+ledgerWindow-1)/ledgerWindow
}

func (l *windowLedger) reset(int64) int64 { return absent }

func (l *windowLedger) retryAfter(now, cost int64) int64 {
	for seconds := int64(1); ; seconds++ {
		// The moment is known to the second only, rounded up.
		later := &windowLedger{l.slides, l.counts}
		if later.spent(now+seconds*1e9)+cost*ledgerWindow <= ledgerLimit*ledgerWindow {
			return seconds
		}
	}
}

var ledgers = map[string]struct {
	limit string
	make  func() ledger
}{
	"token_bucket":   {`"algorithm":"token_bucket","capacity":10,"refill_rate":"1/s"`, func() ledger { return &tokenLedger{} }},
	"gcra":           {`"algorithm":"gcra","rate":"1/s","burst":10`, func() ledger { return &tokenLedger{} }},
	"leaky_bucket":   {`"algorithm":"leaky_bucket","mode":"meter","capacity":10,"leak_rate":"1/s"`, func() ledger { return &tokenLedger{} }},
	"fixed_window":   {`"algorithm":"fixed_window","limit":10,"window":"10s"`, func() ledger { return &windowLedger{false, map[int64]int64{}} }},
	"sliding_window": {`"algorithm":"sliding_window","limit":10,"window":"10s"`, func() ledger { return &windowLedger{true, map[int64]int64{}} }},
}

func TestDebtsAndDecisionsAreThoseOfANaiveLedger(t *testing.T) {
	const most = 30 // of a charge, and of the debt
	for name, l := range ledgers {
		t.Run(name, func(t *testing.T) {
			host := wasmtest.New(t, wasmtest.Module(t))
			workers := startWorkers(t, host, 2, charging(l.limit, `{"response_header":"x-tokens","max":30}`))
			clients := 0
			rapid.Check(t, func(t *rapid.T) {
				clients++
				ledger := l.make()
				if _, aligned := ledger.(*windowLedger); aligned {
					// The filter keeps a window of its own, which begins where the wall clock says.
					host.Clock.Advance(time.Duration(2*ledgerWindow - host.Clock.Wall%ledgerWindow))
				}
				type open struct {
					stream *wasmtest.Stream
					told   answer
				}
				var flying []open
				pick := func(t *rapid.T) open {
					if len(flying) == 0 {
						t.Skip("nobody is there")
					}
					i := rapid.IntRange(0, len(flying)-1).Draw(t, "request")
					o := flying[i]
					flying = slices.Delete(flying, i, i+1)
					return o
				}
				state := func() answer {
					now := host.Clock.Wall
					return answer{200, ledgerLimit, max(0, ledger.left(now)), ledger.reset(now), absent}
				}
				compare := func(t *rapid.T, what string, got, want answer) {
					if want.reset == absent {
						got.reset = absent
					}
					if got != want {
						t.Fatalf("%s: got %+v, want %+v", what, got, want)
					}
				}
				t.Repeat(map[string]func(*rapid.T){
					"advance": func(t *rapid.T) {
						host.Clock.Advance(time.Duration(rapid.Int64Range(0, 6e9).Draw(t, "ns")))
					},
					"request": func(t *rapid.T) {
						cost := rapid.IntRange(0, 4).Draw(t, "cost")
						s := begin(workers[rapid.IntRange(0, 1).Draw(t, "worker")], costing(clients, cost))
						want := ledger.take(host.Clock.Wall, int64(cost))
						told := state()
						if !want {
							told.status, told.retryAfter = 429, ledger.retryAfter(host.Clock.Wall, int64(cost))
						}
						if wentOn(s) != want {
							t.Fatalf("cost %d with %d left: went on: %t", cost, ledger.left(host.Clock.Wall), !want)
						}
						if !want {
							compare(t, "refusal", answerOf(s.Local().Sent), told)
							s.End()
							return
						}
						flying = append(flying, open{s, told})
					},
					"respond": func(t *rapid.T) {
						o := pick(t)
						units := rapid.IntRange(0, 40).Draw(t, "units")
						if units > 0 {
							ledger.charge(host.Clock.Wall, int64(min(units, most)), most)
							o.told = state()
						}
						compare(t, "response", answerOf(respondWith(o.stream, [2]string{"x-tokens", strconv.Itoa(units)})), o.told)
					},
					"respond with nonsense": func(t *rapid.T) {
						o := pick(t)
						compare(t, "response", answerOf(respondWith(o.stream, [2]string{"x-tokens", "many"})), o.told)
					},
					"end": func(t *rapid.T) { pick(t).stream.End() },
				})
				for _, o := range flying {
					o.stream.End()
				}
			})
		})
	}
}
