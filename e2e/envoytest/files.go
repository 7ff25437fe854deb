package envoytest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Module returns the path of a module under build/, such as "sluice.wasm". The
// test fails if it isn't there.
func Module(t testing.TB, name string) string {
	t.Helper()
	file, err := built("make build", name)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// built returns the path of a file under build/. The error says by which
// command to make it if it isn't there.
func built(command string, path ...string) (string, error) {
	root, err := root()
	if err != nil {
		return "", err
	}
	file := filepath.Join(append([]string{root, "build"}, path...)...)
	if _, err := os.Stat(file); err != nil {
		return "", fmt.Errorf("build/%s is not there: run `%s`", strings.Join(path, "/"), command)
	}
	return file, nil
}

// root returns the folder of go.mod. Tests run in the folder of their package,
// which is below it.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("found no go.mod above the test's folder")
		}
		dir = parent
	}
}

// started counts the Envoys that were started under each name, so that each
// has a folder of its own. Tests may run in parallel, so it has a lock.
var started = struct {
	sync.Mutex
	byName map[string]int
}{byName: map[string]int{}}

// logFolder makes the folder for the next Envoy of this name, and removes what
// an earlier run has left.
func logFolder(name string) (string, error) {
	root, err := root()
	if err != nil {
		return "", err
	}
	started.Lock()
	started.byName[name]++
	n := started.byName[name]
	started.Unlock()
	ofName := filepath.Join(root, "build", "e2e-logs", strings.ReplaceAll(name, "/", "_"))
	if n == 1 {
		if err := os.RemoveAll(ofName); err != nil {
			return "", err
		}
	}
	dir := filepath.Join(ofName, fmt.Sprintf("envoy-%d", n))
	return dir, os.MkdirAll(dir, 0o755)
}

// removeFolder removes what logFolder has made.
func removeFolder(dir string) {
	os.RemoveAll(dir)
	os.Remove(filepath.Dir(dir)) // unless another Envoy's folder is in it
}
