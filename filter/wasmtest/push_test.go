package wasmtest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// startBoth starts one VM with two plugins of the same name, as it is while an
// old listener drains after a config push.
func startBoth(t *testing.T, host *wasmtest.Host, before, after string) [2]*wasmtest.Plugin {
	t.Helper()
	vm := host.NewVM()
	var both [2]*wasmtest.Plugin
	for i, config := range []string{before, after} {
		plugin, ok := vm.StartPlugin(wasmtest.PluginConfig{Name: "sluice", RootID: "sluice", Config: config})
		if !ok {
			t.Fatalf("the config is refused: %v", vm.Logs())
		}
		both[i] = plugin
	}
	return both
}

func TestAConfigPushThatChangesTheResponseKeepsBuckets(t *testing.T) {
	const limits = `"limits":{"x":{"algorithm":"token_bucket","capacity":1,"refill_rate":"1/h","key":["ip"]}},"rules":[{"limits":["x"]}],"state":{"max_buckets":1000}`
	host := wasmtest.New(t, wasmtest.Module(t))
	both := startBoth(t, host, "{"+limits+"}", "{"+limits+`,"response":{"status":503}}`)
	r := request{address: client(1)}
	for i, want := range []int{200, 429} {
		if a := ask(both[0], r); a.status != want {
			t.Errorf("before, request %d: got %+v, want %d", i, a, want)
		}
	}
	if a := ask(both[1], r); a.status != 503 || a.retryAfter != 3600 {
		t.Errorf("after: got %+v, want 503 and a Retry-After of an hour", a)
	}
	if !both[0].Stop() {
		t.Error("the old plugin does not end")
	}
	if a := ask(both[1], r); a.status != 503 {
		t.Errorf("after the old plugin's end: got %+v, want 503", a)
	}
}

// largeAndSmall has every algorithm with numbers from before a config push and
// after it.
var largeAndSmall = map[string]struct {
	large, small string
	interval     bool // the definition is about any interval, not about windows
}{
	"token_bucket":   {`"algorithm":"token_bucket","capacity":5,"refill_rate":"1/s"`, `"algorithm":"token_bucket","capacity":3,"refill_rate":"1/2s"`, true},
	"gcra":           {`"algorithm":"gcra","rate":"1/s","burst":5`, `"algorithm":"gcra","rate":"1/2s","burst":3`, true},
	"leaky_bucket":   {`"algorithm":"leaky_bucket","mode":"meter","capacity":5,"leak_rate":"1/s"`, `"algorithm":"leaky_bucket","mode":"meter","capacity":3,"leak_rate":"1/2s"`, true},
	"fixed_window":   {`"algorithm":"fixed_window","limit":5,"window":"5s"`, `"algorithm":"fixed_window","limit":3,"window":"5s"`, false},
	"sliding_window": {`"algorithm":"sliding_window","limit":5,"window":"5s"`, `"algorithm":"sliding_window","limit":3,"window":"5s"`, false},
}

func TestOldAndNewNumbersSideBySideForgiveNothing(t *testing.T) {
	for name, limits := range largeAndSmall {
		t.Run(name, func(t *testing.T) {
			eachSeed(t, 1, func(random *rand.Rand) error {
				host := wasmtest.New(t, wasmtest.Module(t))
				plugins := startBoth(t, host, oneLimit(limits.large), oneLimit(limits.small))
				limiters := [2]algorithms.Limiter{limiterOf(t, oneLimit(limits.large)), limiterOf(t, oneLimit(limits.small))}
				admitted, err := alternate(host, plugins, limiters, random)
				if err == nil && limits.interval {
					err = checkIntervals(admitted, 5, time.Second)
				}
				return err
			})
		})
	}
}

// TestWorkersOfOldAndNewNumbersDecideAsOneWould has half of the workers still
// at the old config while the others have the new one, as it is while a push
// makes its way, and races them on one key after the other.
func TestWorkersOfOldAndNewNumbersDecideAsOneWould(t *testing.T) {
	for name, limits := range largeAndSmall {
		t.Run(name, func(t *testing.T) {
			large, small := limiterOf(t, oneLimit(limits.large)), limiterOf(t, oneLimit(limits.small))
			eachSeed(t, 2, func(random *rand.Rand) error {
				host := wasmtest.New(t, wasmtest.Module(t))
				defer host.Close()
				var workers []*wasmtest.Plugin
				for range 4 {
					workers = append(workers, start(t, host, oneLimit(limits.large)), start(t, host, oneLimit(limits.small)))
				}
				for round := range 100 {
					only := func() string { return client(round) }
					if err := race(host, workers, random, 3, only, ticking(host, random, false), large, small); err != nil {
						return fmt.Errorf("round %d: %w", round, err)
					}
				}
				return nil
			})
		})
	}
}

// alternate sends thousands of requests of one client through either of the
// two plugins, checks each against the native limiters, and returns the times
// at which requests were admitted.
func alternate(host *wasmtest.Host, plugins [2]*wasmtest.Plugin, limiters [2]algorithms.Limiter, random *rand.Rand) (admitted []int64, err error) {
	var state algorithms.State
	for i := range 4000 {
		host.Clock.Advance(time.Duration(random.IntN(5)) * 250 * time.Millisecond)
		which := random.IntN(2)
		next, decision := algorithms.Decide(limiters[which], state, algorithms.Time(host.Clock), 1)
		state = next
		got := ask(plugins[which], request{address: client(1)})
		if want := answerTo(decision); got != want {
			return nil, fmt.Errorf("request %d: got %+v, want %+v", i, got, want)
		}
		if got.admitted() {
			admitted = append(admitted, host.Clock.Mono)
		}
	}
	if len(admitted) < 500 {
		return nil, fmt.Errorf("only %d requests were admitted, which shows little", len(admitted))
	}
	return admitted, nil
}

// checkIntervals checks that in no interval more is admitted than capacity and
// what has come back in it, at one unit each period.
func checkIntervals(admitted []int64, capacity int, period time.Duration) error {
	for i := range admitted {
		for j := i; j < len(admitted); j++ {
			count, length := int64(j-i+1), admitted[j]-admitted[i]
			if (count-int64(capacity))*int64(period) > length {
				return fmt.Errorf("%d were admitted within %v", count, time.Duration(length))
			}
		}
	}
	return nil
}

func TestPluginsOfOneNamespaceShareTheirLimitsWhateverTheirNames(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	vm := host.NewVM()
	plugin := func(name, further string) *wasmtest.Plugin {
		t.Helper()
		config := strings.Replace(oneLimit(everyAlgorithm["token_bucket"]), "{", "{"+further, 1)
		plugin, ok := vm.StartPlugin(wasmtest.PluginConfig{Name: name, RootID: name, Config: config})
		if !ok {
			t.Fatalf("the config is refused: %v", vm.Logs())
		}
		return plugin
	}
	for i, c := range []struct {
		plugin *wasmtest.Plugin
		left   int64
	}{
		{plugin("one", `"namespace":"shared",`), 4},
		{plugin("two", `"namespace":"shared",`), 3},
		{plugin("shared", ``), 2}, // its name, as it is
		{plugin("shared", `"namespace":"other",`), 4},
		{plugin("three", ``), 4},
		{plugin("three", `"namespace":"",`), 4},
	} {
		if a := ask(c.plugin, request{address: client(1)}); a.remaining != c.left {
			t.Errorf("plugin %d: got %+v, want %d left", i, a, c.left)
		}
	}
}

func TestAStreamWithoutRequestHeadersDoesNoHarm(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, oneLimit(everyAlgorithm["token_bucket"]))
	for range 10 {
		worker.NewStream(nil).End()
	}
	alone := worker.NewStream(nil)
	alone.ResponseHeaders(wasmtest.Headers{{":status", "400"}})
	alone.End()
	if a := ask(worker, request{address: client(1)}); !a.admitted() || a.remaining != 4 {
		t.Errorf("the request after them: got %+v", a)
	}
}

func TestUnknownContextsAreIgnored(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, oneLimit(everyAlgorithm["token_bucket"]))
	vm := worker.VM()
	for _, callback := range []struct {
		name      string
		arguments []uint32
	}{
		{"proxy_on_request_headers", []uint32{999, 3, 1}},
		{"proxy_on_response_headers", []uint32{999, 3, 1}},
		{"proxy_on_done", []uint32{999}},
		{"proxy_on_log", []uint32{999}},
		{"proxy_on_delete", []uint32{999}},
		{"proxy_on_tick", []uint32{999}},
		{"proxy_on_context_create", []uint32{1000, 999}},
		{"proxy_on_request_headers", []uint32{1000, 3, 1}},
		{"proxy_on_configure", []uint32{999, 0}},
		{"proxy_on_http_call_response", []uint32{999, 1, 0, 0, 0}},
		{"proxy_on_http_call_response", []uint32{worker.ContextID(), 77, 0, 0, 0}},
		{"proxy_on_grpc_receive", []uint32{worker.ContextID(), 77, 0}},
		{"proxy_on_grpc_close", []uint32{worker.ContextID(), 77, 14}},
	} {
		vm.Callback(callback.name, callback.arguments...)
		if vm.Err() != nil {
			t.Fatalf("%s with %v: %v", callback.name, callback.arguments, vm.Err())
		}
	}
	if a := ask(worker, request{address: client(1)}); !a.admitted() || a.remaining != 4 {
		t.Errorf("the request after them: got %+v", a)
	}
}

func TestABadConfigIsRefusedAndLeavesTheOldOneAtWork(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	worker := start(t, host, oneLimit(everyAlgorithm["token_bucket"]))
	logged := len(worker.VM().Logs())
	bad := wasmtest.PluginConfig{Name: "sluice", Config: `{"limits":{"x":{"algorithm":"token_bukket"}}}`}
	if _, ok := worker.VM().StartPlugin(bad); ok {
		t.Error("the config is accepted")
	}
	if len(worker.VM().Logs()) == logged {
		t.Error("no line says what is wrong")
	}
	if a := ask(worker, request{address: client(1)}); !a.admitted() || a.remaining != 4 {
		t.Errorf("under the old config: got %+v", a)
	}
}
