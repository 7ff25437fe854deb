// Package envoytest starts a real Envoy for a test and talks to it: it builds
// the bootstrap, waits until Envoy is ready, pushes listeners, reads stats and
// logs, and sends requests from many clients, over HTTP/1.1 and HTTP/2. It also
// has the upstream server that stands behind Envoy.
//
// Envoys are processes of the binaries that `make envoy` fetches, or containers
// of the official image: see InDocker. Each is killed when its test ends, and
// when the test program dies before that. What a failed test's Envoys were given
// and what they logged stays in build/e2e-logs/NAME_OF_THE_TEST.
//
// The package expects Linux: clients take their addresses from 127.0.0.0/8,
// which is all loopback there, and memory is read from /proc.
package envoytest
