package main

import (
	"bytes"
	"context"
	"testing"

	"pgregory.net/rapid"
)

// shaped is a function as Go shapes it. The sum is a record of what it has run,
// in which the order counts.
type shaped struct {
	pieces   [][]step
	table    []uint32 // of each pc, the piece that begins there or goes on
	unwinds  bool     // there is a block around the loop
	indirect bool     // there are indirect calls, for which Go uses the parameter
}

// step is what a piece does: it notes a number and, where the bit of the sum is
// set that bit says, jumps to a pc, from within so many blocks.
type step struct {
	note  int64
	bit   int64
	pc    int64
	depth int
}

// note appends the instructions that note a number, and leave the function where
// no fuel is left.
func note(b []byte, number int64) []byte {
	b = append(b, opGlobalGet, globalSum, opI64Const, 31, 0x7e)                                            // sum * 31
	b = append(appendS64(append(b, opI64Const), number), 0x7c, 0x24, globalSum)                            // + number
	b = append(b, opGlobalGet, globalFuel, opI32Const, 1, 0x6b, 0x24, globalFuel)                          // fuel - 1
	return append(b, opGlobalGet, globalFuel, opI32Const, 0, 0x4c, opIf, 0x40, opI32Const, 0, 0x0f, opEnd) // if <= 0: return 0
}

func appendS64(b []byte, value int64) []byte {
	for {
		low := byte(value & 0x7f)
		value >>= 7
		if value == 0 && low&0x40 == 0 || value == -1 && low&0x40 != 0 {
			return append(b, low)
		}
		b = append(b, low|0x80)
	}
}

func (f shaped) encode() []byte {
	b := []byte{1, 1, i32, opGlobalGet, globalSP, opLocalSet, 1}
	depth := 0 // of open blocks
	open := func(opcode byte) { b = append(b, opcode, 0x40); depth++ }
	end := func() { b = append(b, opEnd); depth-- }
	if f.unwinds {
		open(opBlock)
	}
	open(opLoop)
	loop := depth
	for range f.pieces {
		open(opBlock)
	}
	b = append(b, opLocalGet, 0, opBrTable)
	b = appendU32(b, uint32(len(f.table)-1))
	for _, piece := range f.table {
		b = appendU32(b, piece)
	}
	end()
	for i, steps := range f.pieces {
		for _, s := range steps {
			if f.indirect { // of the callee
				b = append(b, opI32Const, 1, opLocalSet, 0, opI32Const, 0, opLocalGet, 0, opCallIndirect, 0, 0, 0x1a)
			}
			b = note(b, s.note)
			for range s.depth {
				open(opBlock)
			}
			b = append(b, opGlobalGet, globalSum)
			b = append(appendS64(append(b, opI64Const), s.bit), 0x88, opI64Const, 1, 0x83, 0xa7) // sum >> bit & 1
			open(opIf)
			b = appendS64(append(b, opI32Const), s.pc)
			b = append(b, opLocalSet, 0, opBr)
			b = appendU32(b, uint32(depth-loop))
			end()
			for range s.depth {
				end()
			}
		}
		if i < len(f.pieces)-1 {
			end()
		}
	}
	b = append(b, opI32Const, 1, 0x0f)
	for depth > 0 {
		end()
	}
	return append(b, 0x00, opEnd)
}

func drawShaped(t *rapid.T) shaped {
	f := shaped{unwinds: rapid.Bool().Draw(t, "unwinds"), indirect: rapid.Bool().Draw(t, "indirect")}
	pieces := rapid.IntRange(1, 8).Draw(t, "pieces")
	for piece := range pieces {
		for range rapid.IntRange(1, 3).Draw(t, "pcs") {
			f.table = append(f.table, uint32(piece))
		}
	}
	for range pieces {
		var steps []step
		for range rapid.IntRange(0, 4).Draw(t, "steps") {
			steps = append(steps, step{
				note:  rapid.Int64Range(1, 1000).Draw(t, "note"),
				bit:   rapid.Int64Range(0, 7).Draw(t, "bit"),
				pc:    rapid.Int64Range(0, int64(len(f.table)-1)).Draw(t, "pc"),
				depth: rapid.IntRange(0, 2).Draw(t, "depth"),
			})
		}
		f.pieces = append(f.pieces, steps)
	}
	return f
}

// forward is how many jumps lead to a later piece.
func (f shaped) forward() (n int) {
	for piece, steps := range f.pieces {
		for _, s := range steps {
			if int(f.table[s.pc]) > piece {
				n++
			}
		}
	}
	return n
}

func TestAFunctionDoesTheSameWithDirectJumps(t *testing.T) {
	e := newEngine(t)
	rapid.Check(t, func(t *rapid.T) {
		f := drawShaped(t)
		before := built{
			functions: [][]byte{f.encode(), callee},
			exports:   map[string]int{"run": 0},
			elements:  []int{0, 1},
		}.module()
		after, did, err := transform(before, nil)
		if err != nil {
			t.Fatal(err)
		}
		if did.direct != f.forward() {
			t.Fatalf("%d jumps are direct, of %d that lead forward", did.direct, f.forward())
		}
		one, other := e.start(t, before), e.start(t, after)
		defer one.Close(context.Background())
		defer other.Close(context.Background())
		for pc := range len(f.table) + 2 { // the last two are none
			wantResult, wantSum := one.run(t, "run", uint32(pc))
			result, sum := other.run(t, "run", uint32(pc))
			if result != wantResult || sum != wantSum {
				t.Fatalf("from pc %d: result %d and sum %d, want %d and %d", pc, result, sum, wantResult, wantSum)
			}
		}
	})
}

// callee notes its parameter.
var callee = []byte{0, opGlobalGet, globalSum, opI64Const, 7, 0x7e, opLocalGet, 0, 0xad, 0x7c, 0x24, globalSum, opI32Const, 0, opEnd}

func TestAFunctionOfAnotherShapeIsLeftAsItIs(t *testing.T) {
	f := shaped{table: []uint32{0, 1}, pieces: [][]step{{{note: 1, pc: 1}}, {}}}
	shapedAsGo := f.encode()
	if direct, n, err := directJumpsOf(shapedAsGo); err != nil || n != 1 || bytes.Equal(direct, shapedAsGo) {
		t.Fatalf("%d jumps of Go's own shape are direct, want 1 (%v)", n, err)
	}
	readsParameter := bytes.Replace(shapedAsGo, []byte{opI32Const, 1, 0x0f}, []byte{opLocalGet, 0, 0x0f}, 1)
	for name, function := range map[string][]byte{
		"it reads the parameter once more": readsParameter,
		"there is no loop":                 callee,
		"there are no instructions":        {0},
	} {
		t.Run(name, func(t *testing.T) {
			direct, n, err := directJumpsOf(function)
			if err != nil || n != 0 || !bytes.Equal(direct, function) {
				t.Errorf("%d jumps have become direct (%v)", n, err)
			}
		})
	}
}
