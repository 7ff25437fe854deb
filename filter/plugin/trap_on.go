//go:build sluice_trap

package plugin

import "github.com/sluice-proxy/sluice/filter/host"

// testTrap kills the VM where a request asks for it, in the way that recover
// cannot help: the test of what Envoy does then needs a VM that dies.
func testTrap() {
	if value, status := host.RequestHeader("x-sluice-trap"); status == host.OK && string(value) == "recursion" {
		recurse(0)
	}
}

//go:noinline
func recurse(n int) int { return recurse(n+1) + n }
