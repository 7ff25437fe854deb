package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every config that the documentation shows must be one that loads.
func TestEveryConfigInTheDocumentationIsRight(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../../README.md", "../../envoy/demo.yaml")
	configs := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range configsIn(string(text)) {
			configs++
			if _, err := Parse([]byte(document)); err != nil {
				t.Errorf("%s: %v\nin\n%s", file, err, document)
			}
		}
	}
	if configs < 4 {
		t.Errorf("found %d configs, want at least the four that are known", configs)
	}
}

var (
	jsonBlock  = regexp.MustCompile("(?s)```json\n(.*?)```")
	yamlString = regexp.MustCompile(`(?m)^( *)value: \|\n((?:(?:\s*\n)|(?: +.*\n))+)`)
)

// configsIn returns the configs in a text: Markdown's JSON blocks and YAML's
// block strings that hold one. Other JSON, such as a response, is not one.
func configsIn(text string) (found []string) {
	for _, m := range jsonBlock.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	for _, m := range yamlString.FindAllStringSubmatch(text, -1) {
		indent := m[1] + "  "
		var document strings.Builder
		for line := range strings.Lines(m[2]) {
			if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, indent) {
				break
			}
			document.WriteString(line)
		}
		found = append(found, document.String())
	}
	var configs []string
	for _, document := range found {
		if strings.Contains(document, `"limits"`) {
			configs = append(configs, document)
		}
	}
	return configs
}
