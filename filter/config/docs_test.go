package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every config that the documentation and Envoy's files show must be one that
// loads, and one that editors find right.
func TestEveryConfigInTheDocumentationIsRight(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../../README.md")
	err = filepath.WalkDir("../../envoy", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".yaml" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	plugins, routes := 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range configsIn(string(text)) {
			if document.ofRoute {
				routes++
				_, err = ParseRoute([]byte(document.text), &Config{})
			} else {
				plugins++
				_, err = Parse([]byte(document.text))
			}
			if err == nil {
				err = validate(t, document.text)
			}
			if err != nil {
				t.Errorf("%s: %v\nin\n%s", file, err, document.text)
			}
		}
	}
	if plugins < 10 || routes < 1 {
		t.Errorf("found %d configs and %d of routes, want at least those that are known", plugins, routes)
	}
}

var (
	jsonBlock  = regexp.MustCompile("(?s)```json\n(.*?)```")
	yamlString = regexp.MustCompile(`(?m)^( *)(value|config): \|\n`)
)

// shown is a config in a text: the plugin's, or a route's in its metadata.
type shown struct {
	text    string
	ofRoute bool
}

// configsIn returns the configs in a text: Markdown's JSON blocks and YAML's
// block strings that hold one. Other JSON, such as a response, is not one.
func configsIn(text string) (found []shown) {
	for _, m := range jsonBlock.FindAllStringSubmatch(text, -1) {
		found = append(found, shown{text: m[1]})
	}
	for _, m := range yamlString.FindAllStringSubmatchIndex(text, -1) {
		indent := text[m[2]:m[3]] + "  "
		var document strings.Builder
		for line := range strings.Lines(text[m[1]:]) {
			if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, indent) {
				break
			}
			document.WriteString(line)
		}
		found = append(found, shown{document.String(), text[m[4]:m[5]] == "config"})
	}
	return slices.DeleteFunc(found, func(s shown) bool { return !strings.Contains(s.text, `"limits"`) })
}
