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
	file, err := Built("make build", name)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Built returns the path of a file under build/. The error says by which
// command to make it if it isn't there.
func Built(command string, path ...string) (string, error) {
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

// started counts the processes that were started under each name, so that each
// has a folder of its own. Tests may run in parallel, so it has a lock.
var started = struct {
	sync.Mutex
	byName map[string]int
}{byName: map[string]int{}}

// LogFolder makes the folder for the next process of a test, or of another name,
// and removes what an earlier run has left. What names the program, such as
// "envoy".
func LogFolder(name, what string) (string, error) {
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
	dir := filepath.Join(ofName, fmt.Sprintf("%s-%d", what, n))
	return dir, os.MkdirAll(dir, 0o755)
}

// RemoveFolder removes what LogFolder has made.
func RemoveFolder(dir string) {
	os.RemoveAll(dir)
	os.Remove(filepath.Dir(dir)) // unless another process's folder is in it
}

// LastWords says where a process's folder is and how its log there ends. Who
// names the program, such as "Envoy".
func LastWords(who, log string) string {
	dir := filepath.Dir(log)
	if root, err := root(); err == nil {
		if relative, err := filepath.Rel(root, dir); err == nil {
			dir = relative
		}
	}
	text, _ := os.ReadFile(log)
	const lines = 30
	all := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return fmt.Sprintf("what %s was given and what it logged is in %s; its log ends so:\n%s",
		who, dir, strings.Join(all[max(len(all)-lines, 0):], "\n"))
}
