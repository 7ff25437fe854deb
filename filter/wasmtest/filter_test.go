package wasmtest_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// replaySeed makes tests that race run one seed only: the one that failed.
var replaySeed = flag.Uint64("seed", 0, "run races with this seed only; failing races print theirs")

// eachSeed runs f with the seeds 1 to n, or with the one that is to be replayed,
// and reports the first that fails.
func eachSeed(t *testing.T, n uint64, f func(random *rand.Rand) error) {
	t.Helper()
	first, last := uint64(1), n
	if *replaySeed != 0 {
		first, last = *replaySeed, *replaySeed
	}
	for seed := first; seed <= last; seed++ {
		if err := f(rand.New(rand.NewPCG(seed, 0))); err != nil {
			t.Fatalf("%v\nreplay with: go test ./filter/wasmtest -run '^%s$' -seed %d", err, t.Name(), seed)
		}
	}
}

// start starts a VM with one plugin of the given config.
func start(t testing.TB, host *wasmtest.Host, config string) *wasmtest.Plugin {
	t.Helper()
	vm := host.NewVM()
	plugin, ok := vm.StartPlugin(wasmtest.PluginConfig{Name: "sluice", RootID: "sluice", Config: config})
	if !ok {
		t.Fatalf("the config is refused: %v", vm.Logs())
	}
	return plugin
}

// startWorkers starts n VMs with the same plugin.
func startWorkers(t testing.TB, host *wasmtest.Host, n int, config string) []*wasmtest.Plugin {
	t.Helper()
	var workers []*wasmtest.Plugin
	for range n {
		workers = append(workers, start(t, host, config))
	}
	return workers
}

// request is a request as a client sends it. The zero values mean GET / and no
// further headers.
type request struct {
	address string // with port
	path    string
	headers wasmtest.Headers
}

// answer is what a client is told.
type answer struct {
	status int
	// The headers of the same names; absent where there is none.
	limit, remaining, reset, retryAfter int64
}

// absent stands for a header that is not there.
const absent = -1

func (a answer) admitted() bool { return a.status == 200 }

// ask sends a request through a plugin. The upstream answers 200.
func ask(plugin *wasmtest.Plugin, r request) answer {
	a, _ := askStream(plugin, r)
	return a
}

// askStream is ask that also returns the stream's context id.
func askStream(plugin *wasmtest.Plugin, r request) (answer, uint32) {
	path := r.path
	if path == "" {
		path = "/"
	}
	headers := wasmtest.Headers{{":method", "GET"}, {":path", path}, {":authority", "example.com"}, {":scheme", "https"}}
	stream := plugin.NewStream(map[string]string{"source/address": r.address, "xds/route_name": "main"})
	defer stream.End()
	result := stream.RequestHeaders(append(headers, r.headers...))
	if result.Local != nil {
		return answerOf(result.Local.Sent), stream.ContextID()
	}
	if result.Action != wasmtest.Continue {
		return answer{}, stream.ContextID()
	}
	return answerOf(stream.ResponseHeaders(wasmtest.Headers{{":status", "200"}, {"ratelimit-remaining", "999"}})), stream.ContextID()
}

func answerOf(headers wasmtest.Headers) answer {
	number := func(name string) int64 {
		values := headers.Values(name)
		if len(values) == 0 {
			return absent
		}
		n, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil || len(values) > 1 {
			panic(fmt.Sprintf("header %s is %q", name, values))
		}
		return n
	}
	return answer{
		status:     int(number(":status")),
		limit:      number("ratelimit-limit"),
		remaining:  number("ratelimit-remaining"),
		reset:      number("ratelimit-reset"),
		retryAfter: number("retry-after"),
	}
}

// answerTo is what a client is to be told of a decision.
func answerTo(d algorithms.Decision) answer {
	seconds := func(d int64) int64 { return (d + 999_999_999) / 1_000_000_000 }
	a := answer{200, d.Limit, d.Remaining, seconds(int64(d.Reset)), absent}
	if !d.Allowed {
		a.status = 429
		if !d.Never {
			a.retryAfter = max(1, seconds(int64(d.RetryAfter)))
		}
	}
	return a
}

// limiterOf builds the limiter of a config's only limit, as the filter does,
// but natively.
func limiterOf(t testing.TB, document string) algorithms.Limiter {
	t.Helper()
	parsed, err := config.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Limits[0].Limiter
}

// oneLimit is a config of one limit by client address.
func oneLimit(limit string) string {
	return `{"limits":{"x":{` + limit + `,"key":["ip"]}},"rules":[{"limits":["x"]}],"state":{"max_buckets":1000}}`
}

// client is the address of the nth client.
func client(n int) string {
	return fmt.Sprintf("10.%d.%d.%d:4711", n>>16&255, n>>8&255, n&255)
}
