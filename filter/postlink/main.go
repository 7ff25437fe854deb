package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	first := flag.String("first", "", "a `file` with the names of the functions to put side by side, one per line, '#' begins a comment")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, "usage: postlink [-first FILE] IN OUT\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 2 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*first, flag.Arg(0), flag.Arg(1)); err != nil {
		fmt.Fprintln(os.Stderr, "postlink:", err)
		os.Exit(1)
	}
}

func run(first, in, out string) error {
	var names []string
	if first != "" {
		text, err := os.ReadFile(first)
		if err != nil {
			return err
		}
		names = parseNames(string(text))
	}
	linked, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	module, did, err := transform(linked, names)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	if err := os.WriteFile(out, module, 0o644); err != nil {
		return err
	}
	fmt.Println(did)
	return nil
}

// parseNames reads the names of a file for -first.
func parseNames(text string) []string {
	var names []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			names = append(names, line)
		}
	}
	return names
}

// summary is what was done to a module.
type summary struct {
	direct     int // jumps that have become direct
	first      int // functions that were asked for first
	sideBySide int // those of them that are there: the compiler inlines or leaves out others
}

func (s summary) String() string {
	text := fmt.Sprintf("postlink: %d jumps made direct", s.direct)
	if s.sideBySide > 0 {
		text += fmt.Sprintf(", %d of %d functions put side by side", s.sideBySide, s.first)
	}
	return text
}

// transform returns a module with direct jumps, with the functions of the given
// names first and without names.
func transform(linked []byte, first []string) ([]byte, summary, error) {
	var did summary
	m, err := parseModule(linked)
	if err != nil {
		return nil, did, err
	}
	if did.direct, err = m.directJumps(); err != nil {
		return nil, did, err
	}
	if len(first) > 0 {
		names, err := m.functionNames()
		if err != nil {
			return nil, did, err
		}
		if len(names) == 0 {
			return nil, did, errors.New("it has no names of functions: link it without -s")
		}
		var functions []uint32
		for _, name := range first {
			if index, found := names[name]; found {
				functions = append(functions, index)
			}
		}
		did.first = len(first)
		if did.sideBySide, err = m.putFirst(functions); err != nil {
			return nil, did, err
		}
	}
	m.dropNames()
	return m.encode(), did, nil
}
