package fleettest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// stopped reports whether every thread of a process has been stopped by a signal.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		// The state follows the name, which is in parentheses.
		if _, state, ok := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" ")); err != nil || !ok || state[0] != 'T' {
			return false
		}
	}
	return len(threads) > 0
}

// given are the ports that this program has given to servers. A server that is
// killed may come back to its port, so no other gets it.
var given = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// freeAddr returns an address at host at which nobody listens, by TCP or UDP. Its
// port is below those that the kernel gives to outgoing connections, so that none
// of them takes it while its server is down.
func freeAddr(host string) (string, error) {
	given.Lock()
	defer given.Unlock()
	for range 1000 {
		port := 12_000 + rand.IntN(20_000)
		addr := net.JoinHostPort(host, fmt.Sprint(port))
		if !given.ports[port] && isFree(addr) {
			given.ports[port] = true
			return addr, nil
		}
	}
	return "", fmt.Errorf("found no free port of %s", host)
}

func isFree(addr string) bool {
	stream, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	defer stream.Close()
	packets, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	packets.Close()
	return true
}

// freeAddrs returns several addresses, all different.
func freeAddrs(host string, n int) ([]string, error) {
	var addrs []string
	for range n {
		addr, err := freeAddr(host)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}
