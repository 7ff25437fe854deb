package wasmtest

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// built are modules by their file's name, read once for all tests of a binary.
var built struct {
	sync.Mutex
	modules map[string][]byte
}

// Module reads the built filter, build/sluice.wasm at the root of the
// repository.
func Module(t testing.TB) []byte {
	t.Helper()
	return read(t, "sluice.wasm")
}

// TrapModule reads the filter in a build for tests, build/sluice-trap.wasm, which
// panics where the header x-sluice-trap asks for it.
func TrapModule(t testing.TB) []byte {
	t.Helper()
	return read(t, "sluice-trap.wasm")
}

// LinkedModule reads the filter as the linker has made it, with the names of its
// functions, build/linked/sluice.wasm.
func LinkedModule(t testing.TB) []byte {
	t.Helper()
	return read(t, "linked/sluice.wasm")
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if module := built.modules[name]; module != nil {
		return module
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
	module, err := os.ReadFile(filepath.Join(dir, "build", name))
	if err != nil {
		t.Fatalf("the filter is not built, run `make build/%s` first: %v", name, err)
	}
	if built.modules == nil {
		built.modules = map[string][]byte{}
	}
	built.modules[name] = module
	return module
}
