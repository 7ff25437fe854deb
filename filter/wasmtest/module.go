package wasmtest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// built is the filter, read once for all tests of a binary.
var built struct {
	sync.Mutex
	module []byte
}

// Module reads the built filter, build/sluice.wasm at the root of the
// repository.
func Module(t testing.TB) []byte {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.module != nil {
		return built.module
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod in this directory or above it")
		}
		dir = parent
	}
	module, err := os.ReadFile(filepath.Join(dir, "build", "sluice.wasm"))
	if err != nil {
		t.Fatalf("the filter is not built, run `make build` first: %v", err)
	}
	built.module = module
	return module
}
