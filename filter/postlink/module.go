package main

import (
	"bytes"
	"errors"
	"fmt"
)

// The ids of the sections that are told apart.
const (
	customSection   = 0
	importSection   = 2
	functionSection = 3
	exportSection   = 7
	startSection    = 8
	elementSection  = 9
	codeSection     = 10
)

const nameSection = "name" // a custom section's name

const preamble = "\x00asm\x01\x00\x00\x00"

type section struct {
	id      byte
	content []byte
}

// module is a module with what is changed of it taken apart.
type module struct {
	sections []section // the code section's content is in code
	imported uint32    // functions; their indices come before those of the module's own
	code     [][]byte  // of the module's own functions: locals and instructions
}

func parseModule(data []byte) (*module, error) {
	if !bytes.HasPrefix(data, []byte(preamble)) {
		return nil, errors.New("it is no WebAssembly module of version 1")
	}
	m := &module{}
	r := &reader{data: data, at: len(preamble)}
	for r.more() {
		s := section{id: r.byte()}
		s.content = r.bytes(r.u32())
		m.sections = append(m.sections, s)
		content := &reader{data: s.content}
		switch s.id {
		case importSection:
			m.countImports(content)
		case codeSection:
			for n := content.u32(); n > 0 && content.err == nil; n-- {
				m.code = append(m.code, content.bytes(content.u32()))
			}
		}
		if content.err != nil {
			return nil, fmt.Errorf("section %d: %w", s.id, content.err)
		}
	}
	return m, r.err
}

// countImports reads the import section of a module that imports functions only,
// as Go's do.
func (m *module) countImports(r *reader) {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		r.name()
		r.name()
		if kind := r.byte(); kind != 0 && r.err == nil {
			r.err = fmt.Errorf("an import is of kind %d and no function", kind)
		}
		r.u32()
		m.imported++
	}
}

func (m *module) encode() []byte {
	out := []byte(preamble)
	for _, s := range m.sections {
		content := s.content
		if s.id == codeSection {
			content = appendU32(nil, uint32(len(m.code)))
			for _, function := range m.code {
				content = appendSized(content, function)
			}
		}
		out = appendSized(append(out, s.id), content)
	}
	return out
}

// isNames says whether a section is that of names, and returns a reader that is
// behind its own name.
func (s section) isNames() (*reader, bool) {
	r := &reader{data: s.content}
	return r, s.id == customSection && r.name() == nameSection
}

// functionNames returns the indices of the functions that have a name.
func (m *module) functionNames() (map[string]uint32, error) {
	const ofFunctions = 1
	names := map[string]uint32{}
	for _, s := range m.sections {
		r, ok := s.isNames()
		for ok && r.more() {
			kind := r.byte()
			list := &reader{data: r.bytes(r.u32())}
			if kind != ofFunctions {
				continue
			}
			for n := list.u32(); n > 0 && list.err == nil; n-- {
				index := list.u32()
				names[list.name()] = index
			}
			if list.err != nil {
				return nil, fmt.Errorf("names: %w", list.err)
			}
		}
		if ok && r.err != nil {
			return nil, fmt.Errorf("names: %w", r.err)
		}
	}
	return names, nil
}

// dropNames leaves out the names, whose indices may be wrong by now.
func (m *module) dropNames() {
	var kept []section
	for _, s := range m.sections {
		if _, names := s.isNames(); !names {
			kept = append(kept, s)
		}
	}
	m.sections = kept
}
