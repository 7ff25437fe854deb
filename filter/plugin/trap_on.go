//go:build sluice_trap

package plugin

import "github.com/sluice-proxy/sluice/filter/host"

// testTrap fails where a request's or a response's header asks for it: with a
// panic, or with a recursion that recover cannot help and that kills the VM.
func testTrap() {
	const header = "x-sluice-trap"
	value, _ := host.RequestHeader(header)
	switch {
	case string(value) == "recursion":
		recurse(0)
	case string(value) == "panic", host.HasResponseHeader(header):
		panic("asked for by " + header)
	}
}

// testTrapAtAnswer panics where a request's header asks for that once a service
// has answered.
func testTrapAtAnswer() {
	if value, _ := host.RequestHeader("x-sluice-trap"); string(value) == "answer" {
		panic("asked for by x-sluice-trap")
	}
}

//go:noinline
func recurse(n int) int { return recurse(n+1) + n }
