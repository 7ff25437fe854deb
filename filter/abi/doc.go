// Package abi declares the proxy-wasm 0.2.1 hostcalls of Envoy as they are:
// names, argument order and sizes, and nothing else. It exists only in the
// WebAssembly build. Packages host and bridge are its only users.
//
// Sizes and addresses in linear memory are 32 bits wide, while Go's pointers
// and ints take 64 bits there: whoever passes the address of a Go variable for
// a result must clear the variable first, because the host writes only its
// lower half.
//
// Results must not be received in variables on the goroutine's stack: a call
// that returns data makes the host call back proxy_on_memory_allocate, which
// runs Go code and may move the stack. Pointer arguments escape to the heap
// here, so the compiler sees to that.
package abi
