package wasmtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// hostileConfig reads everything that a client can choose.
const hostileConfig = `{
  "limits": {"x": {"algorithm":"token_bucket","capacity":2,"refill_rate":"1/h","key":["ip","header:x-key","path","host","method"]}},
  "rules": [{"match":{"host":"blocked.example.com","path_prefix":"/blocked"},"limits":[]},{"limits":["x"]}],
  "state": {"max_buckets":1000}
}`

var hostileTexts = map[string]string{
	"empty":           "",
	"a zero byte":     "a\x00b",
	"only zero bytes": "\x00\x00\x00\x00",
	"invalid UTF-8":   "\xff\xfe\xc0\xaf\xed\xa0\x80",
	"line breaks":     "a\r\nx-injected: 1\r\n\r\n",
	"percent":         "%",
	"percent 2":       "/%zz%2f%00%ff%2e%2e",
	"dots":            strings.Repeat("/..", 10_000),
	"slashes":         strings.Repeat("/", 100_000),
	"long":            strings.Repeat("long", 64<<10),
	"a megabyte":      strings.Repeat("m", 1<<20),
}

func TestHostileRequestsAreDecidedLikeAnyOther(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, hostileConfig)
	for what, text := range hostileTexts {
		for _, place := range []string{"address", "x-key", ":path", ":authority", ":method", "content-type", "host", "a header nobody reads"} {
			send := func() wasmtest.Result {
				headers := wasmtest.Headers{{":method", "GET"}, {":path", "/" + what}, {":authority", place}}
				properties := map[string]string{"source/address": "192.0.2.1:80"}
				if place == "address" {
					properties["source/address"] = text
				} else {
					headers = append(headers, [2]string{place, text})
				}
				stream := worker.NewStream(properties)
				defer stream.End()
				return stream.RequestHeaders(headers)
			}
			// The bucket holds 2, whatever is in the key.
			for i, want := range []wasmtest.Action{wasmtest.Continue, wasmtest.Continue, wasmtest.Pause} {
				result := send()
				if result.Action != want || (want == wasmtest.Pause && (result.Local == nil || result.Local.Status != 429)) {
					t.Errorf("%s as %s, request %d: got %+v", what, place, i, result)
				}
			}
			if worker.VM().Err() != nil {
				t.Fatalf("%s as %s: the VM is dead", what, place)
			}
		}
	}
}

func TestTenThousandHeadersAreRead(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, hostileConfig)
	var many wasmtest.Headers
	for i := range 10_000 {
		many = append(many, [2]string{fmt.Sprintf("x-%d", i), strings.Repeat("v", i%100)})
	}
	many = append(many, [2]string{"x-key", "last"})
	for i, want := range []int{200, 200, 429} {
		if a := ask(worker, request{address: client(1), headers: many}); a.status != want {
			t.Errorf("request %d: got %+v, want %d", i, a, want)
		}
	}
	var same wasmtest.Headers
	for range 10_000 {
		same = append(same, [2]string{"x-key", "again"})
	}
	for i, want := range []int{200, 200, 429} {
		if a := ask(worker, request{address: client(1), headers: same}); a.status != want {
			t.Errorf("10,000 times the same header, request %d: got %+v, want %d", i, a, want)
		}
	}
	if a := ask(worker, request{address: client(1), headers: same[1:]}); a.status != 200 {
		t.Errorf("9,999 times, which is another client: got %+v", a)
	}
}

func TestAClientIsOneFromAnyPortAndNoneWithoutAnAddress(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, oneLimit(`"algorithm":"token_bucket","capacity":100,"refill_rate":"1/h"`))
	left := map[string]int64{}
	for i, c := range []struct{ address, client string }{
		{"203.0.113.10:4711", "v4"}, {"203.0.113.10:1", "v4"}, {"203.0.113.10", "v4"},
		{"[::ffff:203.0.113.10]:80", "v4"}, {"[::ffff:cb00:710a]:80", "v4"},
		{"203.0.113.11:4711", "another"},
		{"[2001:db8::1]:80", "v6"}, {"[2001:db8::1]:81", "v6"}, {"2001:db8::1", "v6"},
		// What is no address is missing, and all that lack one share a bucket.
		{"", "none"}, {"/run/envoy.sock", "none"}, {"@abstract", "none"}, {"203.0.113", "none"}, {"[::1", "none"}, {":80", "none"},
	} {
		want, seen := left[c.client]
		if !seen {
			want = 100
		}
		want--
		left[c.client] = want
		if a := ask(worker, request{address: c.address}); a.remaining != want {
			t.Errorf("request %d from %q: %d left, want %d", i, c.address, a.remaining, want)
		}
	}
}

// The header belongs to a build for tests only, in which it ends the VM.
func TestNoHeaderEndsTheVM(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, hostileConfig)
	r := request{address: client(1), headers: wasmtest.Headers{{"x-sluice-trap", "recursion"}}}
	for i, want := range []int{200, 200, 429} {
		if a := ask(worker, r); a.status != want || worker.VM().Err() != nil {
			t.Fatalf("request %d: got %+v and %v, want %d", i, a, worker.VM().Err(), want)
		}
	}
}
