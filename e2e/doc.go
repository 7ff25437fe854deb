// Package e2e tests the built filter on a real Envoy: what clients see, and
// what holds over several workers, config pushes and crashes. How Envoy is
// started and driven is in the package envoytest.
//
// The tests need build/sluice.wasm (`make build`) and the Envoy binaries
// (`make envoy`); a test that misses one fails and says so.
package e2e
