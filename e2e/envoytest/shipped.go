package envoytest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Ship returns the text of a file that the project ships, by its path from the
// root of the repository.
func Ship(t testing.TB, path string) string {
	t.Helper()
	root, err := root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ShippedBootstrap returns a bootstrap that the project ships, so that it can
// run in a test: it listens on free ports, and loads the built module if it loads
// any. Of each further pair of texts the first is replaced by the second. The
// test fails if the file doesn't say what is to be replaced: it would show
// something else than the file does.
func ShippedBootstrap(t testing.TB, path string, replace ...string) string {
	t.Helper()
	text := Ship(t, path)
	const module = "build/sluice.wasm"
	if strings.Contains(text, module) {
		replace = append(replace, module, fmt.Sprintf("%q", Module(t, "sluice.wasm")))
	}
	replace = append(replace, "port_value: 9901 ", "port_value: 0 ", "port_value: 10000 ", "port_value: 0 ")
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("%s does not say %q", path, replace[i])
		}
	}
	return strings.NewReplacer(replace...).Replace(text)
}

// Validate has Envoy check a bootstrap without serving it. Paths in it are taken
// from the root of the repository.
func Validate(t testing.TB, bootstrap string) {
	t.Helper()
	dir, err := LogFolder(t.Name(), "envoy")
	if err != nil {
		t.Fatal(err)
	}
	file, err := Options{Bootstrap: bootstrap}.writeBootstrap(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := envoyCommand(Current, "--mode", "validate", "--config-path", file,
		"--use-dynamic-base-id", "--log-level", "warning")
	if err != nil {
		t.Fatal(err)
	}
	if output, err := p.cmd.CombinedOutput(); err != nil {
		t.Errorf("Envoy says that it is not valid: %v\n%s", err, output)
		return
	}
	RemoveFolder(dir)
}

// ShippedFiles returns the paths, from the root of the repository, of the files
// that match any of the patterns. The test fails if a pattern matches none.
func ShippedFiles(t testing.TB, patterns ...string) []string {
	t.Helper()
	root, err := root()
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, pattern := range patterns {
		matches, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(matches) == 0 {
			t.Fatalf("no file is called %s (%v)", pattern, err)
		}
		for _, match := range matches {
			file, err := filepath.Rel(root, match)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
	}
	return files
}
