package main

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Types of values.
const (
	i32 = 0x7f
	i64 = 0x7e
)

// The globals of the modules of these tests: Go's stack pointer, which none of
// them uses, a record of what has run, and how many more notes it takes.
const (
	globalSP = iota
	globalSum
	globalFuel
)

// built is a module that is written by hand. Its functions have the type of Go's,
// whose parameter is where to go on and whose result is whether the goroutine is
// left; those of type 1 have another parameter.
type built struct {
	functions [][]byte // locals and instructions
	types     []uint32 // of the functions; nil if all are of type 0
	exports   map[string]int
	elements  []int // of the table, from place 0
	names     []string
}

func (b built) module() []byte {
	vector := func(items ...[]byte) []byte {
		out := appendU32(nil, uint32(len(items)))
		for _, item := range items {
			out = append(out, item...)
		}
		return out
	}
	name := func(s string) []byte { return appendSized(nil, []byte(s)) }
	sized := func(b []byte) []byte { return appendSized(nil, b) }
	types := make([][]byte, len(b.functions))
	code := make([][]byte, len(b.functions))
	for i, function := range b.functions {
		types[i], code[i] = []byte{0}, sized(function)
		if b.types != nil {
			types[i] = appendU32(nil, b.types[i])
		}
	}
	exports := [][]byte{append(name("sum"), 3, globalSum), append(name("fuel"), 3, globalFuel)}
	for export, function := range b.exports {
		exports = append(exports, append(append(name(export), 0), appendU32(nil, uint32(function))...))
	}
	out := []byte(preamble)
	add := func(id byte, content []byte) { out = appendSized(append(out, id), content) }
	add(1, vector([]byte{0x60, 1, i32, 1, i32}, []byte{0x60, 1, i64, 1, i32}))
	add(functionSection, vector(types...))
	add(4, vector(append([]byte{0x70, 0}, appendU32(nil, uint32(len(b.elements)))...)))
	zero := []byte{i32, 1, opI32Const, 0, opEnd}
	add(6, vector(zero, []byte{i64, 1, opI64Const, 0, opEnd}, zero))
	add(exportSection, vector(exports...))
	if len(b.elements) > 0 {
		var functions [][]byte
		for _, function := range b.elements {
			functions = append(functions, appendU32(nil, uint32(function)))
		}
		add(elementSection, vector(append([]byte{0, opI32Const, 0, opEnd}, vector(functions...)...)))
	}
	add(codeSection, vector(code...))
	if len(b.names) > 0 {
		var names [][]byte
		for i, n := range b.names {
			names = append(names, append(appendU32(nil, uint32(i)), name(n)...))
		}
		add(customSection, append(append(name(nameSection), 1), sized(vector(names...))...))
	}
	return out
}

// instance is a module that runs.
type instance struct{ api.Module }

// run calls a function with a sum of 0, and returns its result and the sum.
func (i instance) run(t interface{ Fatalf(string, ...any) }, export string, pc uint32) (result, sum uint64) {
	i.ExportedGlobal("sum").(api.MutableGlobal).Set(0)
	i.ExportedGlobal("fuel").(api.MutableGlobal).Set(60)
	results, err := i.ExportedFunction(export).Call(context.Background(), uint64(pc))
	if err != nil {
		t.Fatalf("%s(%d) traps: %v", export, pc, err)
	}
	return results[0], i.ExportedGlobal("sum").Get()
}

// engine runs the modules of one test.
type engine struct{ wazero.Runtime }

func newEngine(t *testing.T) engine {
	runtime := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter())
	t.Cleanup(func() { runtime.Close(context.Background()) })
	return engine{runtime}
}

func (e engine) start(t interface{ Fatalf(string, ...any) }, module []byte) instance {
	started, err := e.InstantiateWithConfig(context.Background(), module, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatalf("a module is not valid: %v\n% x", err, module)
	}
	return instance{started}
}
