//go:build !sluice_trap

package plugin

// testTrap does nothing in a real build.
func testTrap() {}
