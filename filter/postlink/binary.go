package main

import (
	"errors"
	"fmt"
)

// reader reads WebAssembly's binary format (WebAssembly Core Specification 2.0,
// chapter 5). The first mistake stays in err, and what is read after it is 0.
type reader struct {
	data []byte
	at   int
	err  error
}

var errShort = errors.New("it ends too soon")

func (r *reader) more() bool { return r.err == nil && r.at < len(r.data) }

func (r *reader) byte() byte {
	if r.err == nil && r.at >= len(r.data) {
		r.err = errShort
	}
	if r.err != nil {
		return 0
	}
	r.at++
	return r.data[r.at-1]
}

// bytes returns the next n bytes, and nil where there are not as many.
func (r *reader) bytes(n uint32) []byte {
	if r.err == nil && uint64(n) > uint64(len(r.data)-r.at) {
		r.err = errShort
	}
	if r.err != nil {
		return nil
	}
	r.at += int(n)
	return r.data[r.at-int(n) : r.at]
}

func (r *reader) u32() uint32 {
	var value uint64
	for shift := 0; ; shift += 7 {
		b := r.byte()
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			break
		}
		if shift == 28 {
			r.err = errors.New("a number is longer than 32 bits")
			return 0
		}
	}
	return uint32(value)
}

// s64 also reads what is of type s32 or s33.
func (r *reader) s64() int64 {
	var value int64
	for shift := 0; ; shift += 7 {
		b := r.byte()
		value |= int64(b&0x7f) << shift
		if b < 0x80 {
			if rest := 64 - (shift + 7); rest > 0 {
				value = value << rest >> rest
			}
			return value
		}
		if shift == 63 {
			r.err = errors.New("a number is longer than 64 bits")
			return 0
		}
	}
}

// name reads a string.
func (r *reader) name() string { return string(r.bytes(r.u32())) }

func appendU32(b []byte, value uint32) []byte {
	for ; value >= 0x80; value >>= 7 {
		b = append(b, byte(value)|0x80)
	}
	return append(b, byte(value))
}

// appendSized appends b behind its length.
func appendSized(to, b []byte) []byte { return append(appendU32(to, uint32(len(b))), b...) }

// The opcodes that are told apart.
const (
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opCall         = 0x10
	opCallIndirect = 0x11
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opI32Const     = 0x41
	opI64Const     = 0x42
)

// instruction is one instruction of a function. Its bytes are data[start:end] of
// the function's code.
type instruction struct {
	opcode     byte
	start, end int
	operand    int64    // of those with one: index, label or constant
	labels     []uint32 // of br_table, the default's last
}

// instruction reads the next one: those of WebAssembly 1.0, with sign extension,
// conversion that saturates and bulk memory, which are all that Go 1.26 emits.
func (r *reader) instruction() instruction {
	i := instruction{start: r.at}
	i.opcode = r.byte()
	switch op := i.opcode; {
	case op <= 0x01, op == 0x05, op == opEnd, op == 0x0f, op == 0x1a, op == 0x1b, op >= 0x45 && op <= 0xc4:
		// no operand
	case op == opBlock, op == opLoop, op == opIf, op == opI32Const, op == opI64Const:
		i.operand = r.s64()
	case op == opBr, op == opBrIf, op == opCall, op >= opLocalGet && op <= 0x26, op == 0x3f, op == 0x40:
		i.operand = int64(r.u32())
	case op == opBrTable:
		for n := r.u32(); n > 0 && r.err == nil; n-- {
			i.labels = append(i.labels, r.u32())
		}
		i.labels = append(i.labels, r.u32())
	case op == opCallIndirect, op >= 0x28 && op <= 0x3e: // type and table; alignment and offset
		r.u32()
		r.u32()
	case op == 0x43:
		r.bytes(4)
	case op == 0x44:
		r.bytes(8)
	case op == 0xfc:
		r.prefixed()
	default:
		r.err = fmt.Errorf("instruction 0x%02x is not one that Go is known to emit", op)
	}
	i.end = r.at
	return i
}

// prefixed reads the rest of an instruction that begins with 0xfc.
func (r *reader) prefixed() {
	switch op := r.u32(); op {
	case 0, 1, 2, 3, 4, 5, 6, 7: // conversion
	case 10: // memory.copy
		r.bytes(2)
	case 11: // memory.fill
		r.bytes(1)
	default:
		r.err = fmt.Errorf("instruction 0xfc %d is not one that Go is known to emit", op)
	}
}

// skipLocals reads the declaration of a function's locals.
func (r *reader) skipLocals() {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		r.u32()
		r.byte()
	}
}
