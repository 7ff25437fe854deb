package fleettest

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// Domain is the one domain that the rate limit server knows. It has no limits of
// its own there: descriptors bring theirs.
const Domain = "sluice"

// StartRateLimit starts a rate limit server that keeps its counters in the given
// Valkey. It ends with the test.
func StartRateLimit(t testing.TB, valkey *Server) *Server {
	t.Helper()
	s, err := RunRateLimit(t.Name(), valkey)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, s)
	return s
}

// RunRateLimit is StartRateLimit for what outlives a test or is none. Whoever
// calls it calls Stop.
func RunRateLimit(name string, valkey *Server) (*Server, error) {
	const host = "127.0.0.1"
	addrs, err := freeAddrs(host, 3)
	if err != nil {
		return nil, err
	}
	s, err := newServer(name, "ratelimit", addrs[0])
	if err != nil {
		return nil, err
	}
	config := filepath.Join(s.dir, "sluice", "config")
	if err := os.MkdirAll(config, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(config, "sluice.yaml"), []byte("domain: "+Domain+"\n"), 0o644); err != nil {
		return nil, err
	}
	s.environment = []string{
		"RUNTIME_ROOT=" + s.dir,
		"RUNTIME_SUBDIRECTORY=sluice",
		"RUNTIME_WATCH_ROOT=false",
		"GRPC_HOST=" + host, "GRPC_PORT=" + port(addrs[0]),
		"HOST=" + host, "PORT=" + port(addrs[1]),
		"DEBUG_HOST=" + host, "DEBUG_PORT=" + port(addrs[2]),
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + valkey.Addr(),
		"USE_STATSD=false",
		"LOG_LEVEL=warn",
	}
	s.answers = func(ctx context.Context) error {
		// Without its config it would admit the request, and not say of what limit.
		decision, err := AskRateLimit(ctx, s.addr, Limit{Key: "ready", Value: "yes", Requests: 1, Unit: Second}, 1)
		if err == nil && decision.Limit != 1 {
			err = errors.New("it does not know the domain yet")
		}
		return err
	}
	return s, run(s)
}

// Unit is the length of a rate limit server's window, by its number in Envoy's API.
type Unit uint64

// The units whose windows begin at whole multiples of them, in UTC.
const (
	Second Unit = 1 + iota
	Minute
	Hour
	Day
)

// Limit is a descriptor of one entry, with its own limit.
type Limit struct {
	Key, Value string
	Requests   int // in a window
	Unit       Unit
}

// Decision is what a server answers of one limit.
type Decision struct {
	Admitted  bool
	Limit     int // what the server takes the limit to be; 0 if it knows of none
	Remaining int
}

// AskRateLimit asks a rate limit server at addr to count hits against a limit.
func AskRateLimit(ctx context.Context, addr string, l Limit, hits int) (Decision, error) {
	var entry, own, descriptor, request message
	entry = entry.text(1, l.Key).text(2, l.Value)
	own = own.number(1, l.Requests).number(2, int(l.Unit))
	descriptor = descriptor.text(1, string(entry)).text(2, string(own))
	request = request.text(1, Domain).text(2, string(descriptor)).number(3, hits)
	answer, err := Call(ctx, addr, "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", request)
	if err != nil {
		return Decision{}, err
	}
	fields, err := parse(answer)
	if err != nil {
		return Decision{}, err
	}
	status, err := parse(fields.last(2).bytes)
	if err != nil {
		return Decision{}, err
	}
	current, err := parse(status.last(2).bytes)
	return Decision{
		Admitted:  fields.last(1).number == codeOK,
		Limit:     int(current.last(1).number),
		Remaining: int(status.last(3).number),
	}, err
}

// codeOK is the overall code of a request that is admitted.
const codeOK = 1

func port(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}
