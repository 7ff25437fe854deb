package main

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// noter is a function that notes a number, calls others, which are of the given
// types, some of them by the table, and returns a 0.
func noter(number int64, types []uint32, calls, indirect []int) []byte {
	b := note([]byte{0}, number)
	for _, function := range calls {
		constant := byte(opI32Const)
		if types[function] == 1 {
			constant = opI64Const
		}
		b = append(appendU32(append(b, constant, 0, opCall), uint32(function)), 0x1a)
	}
	for _, place := range indirect {
		b = append(appendS64(append(b, opI32Const, 0, opI32Const), int64(place)), opCallIndirect, 0, 0, 0x1a)
	}
	return append(b, opI32Const, 0, opEnd)
}

func TestFunctionsInAnotherOrderDoTheSame(t *testing.T) {
	e := newEngine(t)
	rapid.Check(t, func(t *rapid.T) {
		// More than 127, so that indices are longer or shorter than they were.
		count := rapid.IntRange(1, 200).Draw(t, "functions")
		index := rapid.IntRange(0, count-1)
		b := built{types: rapid.SliceOfN(rapid.Uint32Max(1), count, count).Draw(t, "types")}
		b.types[0] = 0
		ofTypeZero := index.Filter(func(i int) bool { return b.types[i] == 0 })
		b.exports = map[string]int{"a": ofTypeZero.Draw(t, "a"), "b": ofTypeZero.Draw(t, "b")}
		b.elements = rapid.SliceOfN(ofTypeZero, 1, 8).Draw(t, "elements")
		for i := range count {
			var calls, indirect []int
			if i > 0 && rapid.IntRange(0, 3).Draw(t, "any") == 0 {
				calls = rapid.SliceOfN(index, 0, 2).Draw(t, "calls")
				indirect = rapid.SliceOfN(rapid.IntRange(0, len(b.elements)-1), 0, 2).Draw(t, "indirect")
			}
			b.functions = append(b.functions, noter(int64(i+1), b.types, calls, indirect))
			b.names = append(b.names, "f"+string(rune('0'+i)))
		}
		chosen := rapid.SliceOfNDistinct(index, 0, 10, rapid.ID).Draw(t, "first")
		first := []string{"inlined"}
		for _, i := range chosen {
			first = append(first, b.names[i], b.names[i])
		}
		before := b.module()
		after, did, err := transform(before, first)
		if err != nil {
			t.Fatal(err)
		}
		if did.sideBySide != len(chosen) {
			t.Fatalf("%d functions are side by side, want %d", did.sideBySide, len(chosen))
		}
		m, err := parseModule(after)
		if err != nil {
			t.Fatal(err)
		}
		if names, err := m.functionNames(); err != nil || len(names) > 0 {
			t.Fatalf("names are left: %v (%v)", names, err)
		}
		for place, i := range chosen {
			if got := noted(m.code[place]); got != int64(i+1) {
				t.Fatalf("function %d notes %d, want %d", place, got, i+1)
			}
		}
		one, other := e.start(t, before), e.start(t, after)
		defer one.Close(context.Background())
		defer other.Close(context.Background())
		for export := range b.exports {
			_, want := one.run(t, export, 0)
			if _, sum := other.run(t, export, 0); sum != want {
				t.Fatalf("%s: sum %d, want %d", export, sum, want)
			}
		}
	})
}

// noted is what a noter notes.
func noted(function []byte) int64 {
	code, _ := decode(function)
	at := slices.IndexFunc(code, func(i instruction) bool { return i.opcode == 0x7e })
	return code[at+1].operand
}

func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	good := built{functions: [][]byte{noter(1, nil, nil, nil)}, exports: map[string]int{"a": 0}, elements: []int{0}, names: []string{"f"}}
	function := func(code ...byte) []byte {
		b := good
		b.functions = [][]byte{append([]byte{0}, code...)}
		return b.module()
	}
	nameless := good
	nameless.names = nil
	truncated := good.module()
	for name, module := range map[string][]byte{
		"no module":            []byte("#!/bin/sh"),
		"cut off":              truncated[:len(truncated)-3],
		"SIMD":                 function(0xfd, 0x0c),
		"a table instruction":  function(0xfc, 12, 0, 0),
		"a call to nowhere":    function(opI32Const, 0, opCall, 9, opEnd),
		"a number of 40 bits":  function(opCall, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, opEnd),
		"a function cut short": function(opI32Const),
		"no names":             nameless.module(),
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := transform(module, []string{"f"}); err == nil {
				t.Error("it is accepted")
			} else {
				t.Log(err)
			}
		})
	}
	if _, _, err := transform(good.module(), []string{"f"}); err != nil {
		t.Errorf("what all of these are made of is refused: %v", err)
	}
}

func TestNamesAreOnePerLine(t *testing.T) {
	got := parseNames("# a comment\nruntime.memmove\n\n  main.f # behind\n")
	if want := []string{"runtime.memmove", "main.f"}; !slices.Equal(got, want) {
		t.Errorf("the names are %q, want %q", got, want)
	}
}
