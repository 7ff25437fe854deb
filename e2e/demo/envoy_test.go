package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The tests run in the folder of the package; the demo runs in the root of the
// repository.
const root = "../.."

func bootstrap(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, config))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestOnlyPortsAndTheModuleDifferFromTheFile(t *testing.T) {
	original := strings.Split(bootstrap(t), "\n")
	filled, err := fill(bootstrap(t), "elsewhere/sluice.wasm", 4711)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(filled, "\n")
	if len(lines) != len(original) {
		t.Fatalf("%d lines became %d", len(original), len(lines))
	}
	var changed []string
	for i := range lines {
		if lines[i] != original[i] {
			changed = append(changed, strings.TrimSpace(lines[i]))
		}
	}
	want := []string{
		"socket_address: { address: 127.0.0.1, port_value: 0 }",
		"socket_address: { address: 127.0.0.1, port_value: 0 }",
		`filename: "elsewhere/sluice.wasm"`,
		"socket_address: { address: 127.0.0.1, port_value: 4711 }",
	}
	if strings.Join(changed, "\n") != strings.Join(want, "\n") {
		t.Errorf("changed lines:\n%s\nwant\n%s", strings.Join(changed, "\n"), strings.Join(want, "\n"))
	}
}

func TestAFileWithoutItsPlainValuesIsNotRun(t *testing.T) {
	for name, changed := range map[string]string{
		"another port": strings.Replace(bootstrap(t), "10000", "10001", 1),
		"a port twice": strings.Replace(bootstrap(t), "9901", "8080", 1) + "# port_value: 9901 ",
	} {
		if _, err := fill(changed, "sluice.wasm", 1); err == nil {
			t.Errorf("%s: filled all the same", name)
		}
	}
}

// startBuilt starts the Envoy that the demo runs on by default.
func startBuilt(t *testing.T, ctx context.Context, module string) *envoy {
	t.Helper()
	t.Chdir(root)
	e, err := start(ctx, "build/envoy/1.40.0/envoy", module, 1, t.TempDir())
	if err != nil {
		t.Fatalf("%v (`make build envoy` makes what this test needs)", err)
	}
	t.Cleanup(e.stop)
	return e
}

func TestEnvoyTakesTheDemosConfigAndEndsWithTheDemo(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	e := startBuilt(t, ctx, "build/sluice.wasm")
	listener, err := e.ready(ctx)
	if err != nil {
		t.Fatalf("%v\n%s", err, e.lastWords())
	}
	c, err := newClient("127.0.0.1", listener)
	if err != nil {
		t.Fatal(err)
	}
	// There is no upstream, which is 503; the header says that the filter was
	// there.
	if a := c.send(ctx, "GET", "/classic"); a.status != 503 || a.number("RateLimit-Limit") != 5 {
		t.Errorf("got %d %q with the limit %d, want 503 with 5", a.status, a.body, a.number("RateLimit-Limit"))
	}
	interrupt()
	<-e.exited
}

func TestAnEnvoyThatDoesNotStartShowsTheEndOfItsLog(t *testing.T) {
	e := startBuilt(t, t.Context(), "build/no-such-module.wasm")
	if _, err := e.ready(t.Context()); err == nil {
		t.Fatal("it became ready")
	}
	words := e.lastWords()
	if !strings.Contains(words, "no-such-module.wasm") || !strings.Contains(words, logFile) {
		t.Errorf("says %q, want where the log is and that there is no such module", words)
	}
}
