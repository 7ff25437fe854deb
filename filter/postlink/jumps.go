package main

import "fmt"

// Goroutines need to leave a function in the middle and to come back to it later,
// which WebAssembly can not. So Go makes of each function a loop around a jump
// table (cmd/internal/obj/wasm), whose index is the function's only parameter:
//
//	global.get SP
//	local.set 1
//	[block]
//	loop
//	  block block block         ;; as many as the function has pieces
//	    local.get 0
//	    br_table …              ;; to the end of one of the blocks
//	  end
//	  …                         ;; piece 0
//	  end
//	  …                         ;; piece 1
//
// A jump to another piece sets the parameter and begins the loop again:
//
//	i32.const 7
//	local.set 0
//	br loop
//
// That is an indirect jump, which a processor predicts badly, and engines see a
// flow of control in which everything may come before everything. Where the jump
// leads forward, the block at whose end its piece begins is still open:
//
//	br block
//
// does the same.

// directJumps makes the forward jumps of all functions direct and says how many
// there were.
func (m *module) directJumps() (count int, err error) {
	for i, function := range m.code {
		direct, n, err := directJumpsOf(function)
		if err != nil {
			return count, fmt.Errorf("function %d: %w", uint32(i)+m.imported, err)
		}
		m.code[i] = direct
		count += n
	}
	return count, nil
}

// directJumpsOf is directJumps of one function. One of another shape is returned
// as it is.
func directJumpsOf(function []byte) (direct []byte, count int, err error) {
	code, err := decode(function)
	if err != nil {
		return nil, 0, err
	}
	d, ok := dispatchOf(code)
	if !ok {
		return function, 0, nil
	}
	copied := 0 // of function, into direct
	for at := d.body; at < len(code); at++ {
		switch i := code[at]; i.opcode {
		case opBlock, opLoop, opIf:
			d.depth++
		case opEnd:
			d.depth--
			if d.depth == d.loop+d.blocks-d.closed-1 {
				d.closed++
			}
		case opLocalGet, opLocalSet, opLocalTee:
			if i.operand != 0 {
				continue
			}
			if swaps(code, at) {
				at += 2
				continue
			}
			// Else the parameter is for the jump table alone: if it were not, it
			// would matter that a direct jump leaves it as it is.
			if i.opcode != opLocalSet || !d.jumps(code, at) {
				return function, 0, nil
			}
			block := d.table[min(code[at-1].operand, int64(len(d.table)-1))]
			if int(block) < d.closed {
				continue // it leads back
			}
			direct = append(direct, function[copied:code[at-1].start]...)
			direct = appendU32(append(direct, opBr), uint32(d.label(int(block))))
			copied = code[at+1].end
			count++
		}
	}
	return append(direct, function[copied:]...), count, nil
}

// decode returns the instructions of a function.
func decode(function []byte) ([]instruction, error) {
	r := &reader{data: function}
	r.skipLocals()
	var code []instruction
	for r.more() {
		code = append(code, r.instruction())
	}
	return code, r.err
}

// dispatch is the jump table of a function, and where in the function one is.
type dispatch struct {
	table  []uint32 // the number of the block at whose end each piece begins
	loop   int      // the depth within the loop
	blocks int      // that are opened at the loop's start; number 0 is the innermost
	body   int      // the first instruction behind the table

	depth  int // of the blocks that are open
	closed int // of the loop's blocks: from number 0 to closed-1
}

// dispatchOf finds a function's jump table.
func dispatchOf(code []instruction) (d dispatch, ok bool) {
	at := 0
	is := func(opcode byte) bool { return at < len(code) && code[at].opcode == opcode }
	next := func(opcode byte) bool {
		if !is(opcode) {
			return false
		}
		at++
		return true
	}
	if !next(opGlobalGet) || !next(opLocalSet) || code[at-1].operand == 0 {
		return d, false
	}
	for next(opBlock) {
		d.depth++
	}
	if !next(opLoop) {
		return d, false
	}
	d.depth++
	d.loop = d.depth
	for next(opBlock) {
		d.depth++
		d.blocks++
	}
	if !next(opLocalGet) || code[at-1].operand != 0 || !next(opBrTable) {
		return d, false
	}
	d.table, d.body = code[at-1].labels, at
	for _, block := range d.table {
		if int(block) >= d.blocks {
			return d, false
		}
	}
	return d, true
}

// swaps says whether at at the parameter is used to put a constant below the value
// on the stack, as before an indirect call. It is written before it is read then.
func swaps(code []instruction, at int) bool {
	return at+2 < len(code) && code[at].opcode == opLocalSet && code[at+1].opcode == opI32Const &&
		code[at+2].opcode == opLocalGet && code[at+2].operand == 0
}

// jumps says whether the local.set at at is that of a jump through the table.
func (d *dispatch) jumps(code []instruction, at int) bool {
	before, after := code[at-1], instruction{}
	if at+1 < len(code) {
		after = code[at+1]
	}
	return before.opcode == opI32Const && before.operand >= 0 && after.opcode == opBr && int(after.operand) == d.depth-d.loop
}

// label is how a jump that is where d is names one of the loop's blocks.
func (d *dispatch) label(block int) int { return d.depth - (d.loop + d.blocks - block) }
