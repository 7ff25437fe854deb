package fleettest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"testing"
)

// StartValkey starts a Valkey that ends with the test. It holds everything in
// memory alone: a Restart finds it empty.
func StartValkey(t testing.TB) *Server {
	t.Helper()
	s, err := RunValkey(t.Name())
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, s)
	return s
}

// RunValkey is StartValkey for what outlives a test or is none. Whoever calls it
// calls Stop.
func RunValkey(name string) (*Server, error) {
	addr, err := freeAddr("127.0.0.1")
	if err != nil {
		return nil, err
	}
	s, err := newServer(name, "valkey", addr)
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(addr)
	s.arguments = []string{"--bind", host, "--port", port, "--save", "", "--appendonly", "no"}
	s.answers = func(ctx context.Context) error {
		return Ping(ctx, addr)
	}
	return s, run(s)
}

// Ping asks a Valkey for a sign of life.
func Ping(ctx context.Context, addr string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && answer != "+PONG\r\n" {
		err = fmt.Errorf("valkey answers %q to PING", answer)
	}
	return err
}
