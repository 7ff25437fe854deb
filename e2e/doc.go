// Package e2e tests the built filter on a real Envoy: what clients see, and
// what holds over several workers, config pushes and crashes. How Envoy is
// started and driven is in the package envoytest.
//
// The tests need build/sluice.wasm (`make build`) and the Envoy binaries
// (`make envoy`); a test that misses one fails and says so. `make e2e-docker`
// runs them on Envoys in containers, and with them those of what is shipped for
// Docker.
package e2e
