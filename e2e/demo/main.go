// Command demo shows on a real Envoy what Sluice does: it starts Envoy with
// envoy/demo.yaml in front of a small server, sends requests, and prints what
// becomes of them. It checks what it shows, and exits with 0 only if all of it is
// as it says. Run it from the root of the repository, or by `make demo`, which
// builds and fetches what it needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	config  = "envoy/demo.yaml"
	folder  = "build/demo"
	workers = 2 // Envoy's threads; they share the buckets
)

func main() {
	binary := flag.String("envoy", "build/envoy/1.40.0/envoy", "the Envoy `binary`")
	module := flag.String("module", "build/sluice.wasm", "the filter, a `.wasm file`")
	flag.Parse()
	out := &timeline{out: os.Stdout, colours: wantsColours(os.Stdout, os.Getenv)}

	// A signal ends the context, and with it the requests and Envoy. SIGPIPE comes
	// when whoever reads the output has had enough of it.
	ctx, stop := signal.NotifyContext(context.Background(),
		os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	err := run(ctx, *binary, *module, out)
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

// run starts everything, shows everything, and ends everything.
func run(ctx context.Context, binary, module string, out *timeline) error {
	for _, file := range []string{config, binary, module} {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%w; run `make demo` in the root of the repository", err)
		}
	}
	up, err := newUpstream()
	if err != nil {
		return err
	}
	defer up.server.Close()

	out.Note("Starting Envoy with %d workers, configured by %s", workers, config)
	e, err := start(ctx, binary, module, up.port, folder)
	if err != nil {
		return err
	}
	defer e.stop()
	listener, err := e.ready(ctx)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, e.lastWords())
	}
	out.start = time.Now()
	if err := show(ctx, listener, out); err != nil {
		return fmt.Errorf("%w\n%s", err, e.lastWords())
	}
	if got := int(up.requests.Load()); got != out.admitted {
		return fmt.Errorf("%d requests reached the upstream, want the %d admitted ones", got, out.admitted)
	}
	out.Note("\nAll went as promised. %d requests reached the upstream: the admitted ones.", out.admitted)
	return nil
}

// upstream is the server behind Envoy. It counts what reaches it.
type upstream struct {
	server   *http.Server
	port     int
	requests atomic.Int64
}

func newUpstream() (*upstream, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u := &upstream{port: listener.Addr().(*net.TCPAddr).Port}
	u.server = &http.Server{Handler: u}
	go u.server.Serve(listener)
	return u, nil
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	u.requests.Add(1)
	io.WriteString(w, "hello from the upstream\n")
}
