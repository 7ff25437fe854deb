// Package fleettest starts the real servers behind fleet-wide limits, for a test
// or for another program: Envoy's rate limit server with Valkey behind it, and
// Gubernator, alone or as several peers. It also makes their gRPC calls, with
// messages that it encodes itself, so that tests can look at a limit from beside
// the filter.
//
// The servers are processes of the binaries that `make servers` fetches, on free
// ports of loopback addresses. Each is killed when its test ends, and when the
// test program dies before that. What a failed test's servers logged stays in
// build/e2e-logs/NAME_OF_THE_TEST.
//
// Like envoytest the package expects Linux: peers need an address of 127.0.0.0/8
// each, and whether a process is paused is read from /proc.
package fleettest
