//go:build !sluice_trap

package plugin

// testTrap and testTrapAtAnswer do nothing in a real build.
func testTrap() {}

func testTrapAtAnswer() {}
