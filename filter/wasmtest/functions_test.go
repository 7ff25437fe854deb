package wasmtest_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

var functionsFile = flag.String("functions", "", "write the functions that an ordinary request runs to this file")

// With this flag the test writes filter/wasm/first.txt.
func TestFunctionsOfARequest(t *testing.T) {
	var functions []string
	called := func(function string) {
		if !slices.Contains(functions, function) {
			functions = append(functions, function)
		}
	}
	plugin := start(t, wasmtest.NewListening(t, wasmtest.LinkedModule(t), called), `{
		"limits": {"client": {"algorithm": "token_bucket", "capacity": 1000, "refill_rate": "1000/s", "key": ["ip"]}},
		"rules":  [{"limits": ["client"]}]}`)
	const address = "203.0.113.10:4711"
	for range 3 { // what the first requests do is done once
		functions = nil
		if got := ask(plugin, request{address: address}); !got.admitted() {
			t.Fatalf("a request was refused: %+v", got)
		}
	}
	for _, callback := range []string{"proxy_on_context_create", "proxy_on_request_headers", "proxy_on_memory_allocate",
		"proxy_on_response_headers", "proxy_on_delete"} {
		if !slices.Contains(functions, callback) {
			t.Errorf("%s is not among the functions of a request:\n%s", callback, strings.Join(functions, "\n"))
		}
	}
	// A request allocates nothing, not in a native build alone.
	for _, allocates := range []string{"runtime.mallocgc", "runtime.newobject", "runtime.makeslice", "runtime.growslice", "runtime.concatstrings"} {
		if slices.Contains(functions, allocates) {
			t.Errorf("a request calls %s", allocates)
		}
	}
	if *functionsFile != "" {
		text := "# The functions that an admitted request with one limit runs, in the order of\n" +
			"# their first call. Written by `make profile`.\n" + strings.Join(functions, "\n") + "\n"
		if err := os.WriteFile(*functionsFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
