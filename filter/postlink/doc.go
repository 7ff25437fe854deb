// Command postlink makes a module that Go's compiler and linker have made for
// WebAssembly faster, without changing what it does:
//
//	postlink [-first FILE] IN OUT
//
// It does three things. Jumps forward within a function go where they lead at
// once, and not through the function's jump table (jumps.go). The functions that
// FILE names lie side by side, in its order (order.go). Names are left out, as
// the linker's -s leaves them out; IN must have them if FILE is given.
//
// What it does not know, a new instruction or another shape of functions, it
// leaves as it is or refuses: it never guesses. The name is that of tools which
// lay out native programs after linking, such as BOLT (Panchenko et al., "BOLT: A
// Practical Binary Optimizer for Data Centers and Beyond", 2019).
//
// It imports nothing of the filter's.
package main
