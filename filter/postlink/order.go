package main

import (
	"errors"
	"fmt"
)

// An engine compiles functions in the order of their indices and lays them out so.
// Those of one request come from a dozen packages, and would lie on about fifty
// pages of memory between others that never run. Side by side they are on a
// dozen, for which a processor keeps the addresses; and so are the places through
// which they call each other.

// putFirst renumbers the module's own functions, so that those with the given
// indices come first, in that order, and the others behind them as they were. It
// returns how many there are; imported ones and repeated ones do not count.
func (m *module) putFirst(indices []uint32) (count int, err error) {
	own := uint32(len(m.code))
	order := make([]uint32, 0, own) // the old places of the module's own functions
	placed := make([]bool, own)
	for _, index := range indices {
		if place := index - m.imported; index >= m.imported && place < own && !placed[place] {
			placed[place] = true
			order = append(order, place)
		}
	}
	count = len(order)
	for place := range own {
		if !placed[place] {
			order = append(order, place)
		}
	}
	n := numbering{imported: m.imported, places: make([]uint32, own)}
	for place, old := range order {
		n.places[old] = uint32(place)
	}
	for i := range m.sections {
		s := &m.sections[i]
		if err := n.section(s, order); err != nil {
			return 0, fmt.Errorf("section %d: %w", s.id, err)
		}
	}
	code := make([][]byte, own)
	for place, old := range order {
		if code[place], err = n.calls(m.code[old]); err != nil {
			return 0, fmt.Errorf("function %d: %w", old+m.imported, err)
		}
	}
	m.code = code
	return count, nil
}

// numbering is what becomes of the functions' indices.
type numbering struct {
	imported uint32
	places   []uint32 // of the module's own functions, by the place that each had
}

func (n *numbering) of(r *reader) uint32 {
	index := r.u32()
	if index < n.imported || r.err != nil {
		return index
	}
	if index-n.imported >= uint32(len(n.places)) {
		r.err = fmt.Errorf("there is no function %d", index)
		return 0
	}
	return n.imported + n.places[index-n.imported]
}

// section renumbers a section that has indices of functions. order are the old
// places of the functions.
func (n *numbering) section(s *section, order []uint32) error {
	r := &reader{data: s.content}
	var out []byte
	switch s.id {
	case functionSection:
		out = n.types(r, order)
	case exportSection:
		out = n.exports(r)
	case startSection:
		out = appendU32(nil, n.of(r))
	case elementSection:
		out = n.elements(r)
	default:
		return nil
	}
	if r.err == nil && r.at != len(r.data) {
		r.err = errors.New("there is more in it than is understood")
	}
	s.content = out
	return r.err
}

// types puts the functions' types into their order.
func (n *numbering) types(r *reader, order []uint32) []byte {
	if count := r.u32(); count != uint32(len(order)) {
		r.err = errors.New("there is not one type for each function")
		return nil
	}
	types := make([]uint32, len(order))
	for i := range types {
		types[i] = r.u32()
	}
	out := appendU32(nil, uint32(len(order)))
	for _, old := range order {
		out = appendU32(out, types[old])
	}
	return out
}

func (n *numbering) exports(r *reader) []byte {
	count := r.u32()
	out := appendU32(nil, count)
	for ; count > 0 && r.err == nil; count-- {
		start := r.at
		r.name()
		kind := r.byte()
		out = append(out, r.data[start:r.at]...)
		if kind == 0 {
			out = appendU32(out, n.of(r))
		} else {
			out = appendU32(out, r.u32())
		}
	}
	return out
}

// elements renumbers what is in the table of functions for indirect calls. Its
// places, which Go takes for the addresses of functions, stay.
func (n *numbering) elements(r *reader) []byte {
	count := r.u32()
	out := appendU32(nil, count)
	for ; count > 0 && r.err == nil; count-- {
		start := r.at
		if kind := r.u32(); kind != 0 {
			r.err = fmt.Errorf("elements of kind %d are not what Go is known to make", kind)
			return nil
		}
		for r.more() && r.instruction().opcode != opEnd { // where in the table they go
		}
		out = append(out, r.data[start:r.at]...)
		functions := r.u32()
		out = appendU32(out, functions)
		for ; functions > 0 && r.err == nil; functions-- {
			out = appendU32(out, n.of(r))
		}
	}
	return out
}

// calls renumbers the calls of a function.
func (n *numbering) calls(function []byte) ([]byte, error) {
	r := &reader{data: function}
	r.skipLocals()
	var out []byte
	copied := 0
	for r.more() {
		i := r.instruction()
		if i.opcode != opCall || r.err != nil {
			continue
		}
		out = append(out, function[copied:i.start+1]...)
		target := &reader{data: function, at: i.start + 1}
		out = appendU32(out, n.of(target))
		if target.err != nil {
			return nil, target.err
		}
		copied = i.end
	}
	return append(out, function[copied:]...), r.err
}
