// Command fleetdemo shows limits that several Envoys count together: it starts
// three of them, Envoy's rate limit server on Valkey and two Gubernators, sends
// requests to all three Envoys, and prints what each has admitted and the sum
// beside the limit. Then it kills an Envoy and the server. It checks what it
// shows, and exits with 0 only if all of it is as it says. Run it in the
// repository by `make fleet`, which builds and fetches what it needs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(),
		os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, os.Stdout) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		// Envoys take long to start. Whatever runs dies with this program.
		err = errors.New("interrupted")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nfleet:", err)
		os.Exit(1)
	}
}

// run shows everything. Windows are those of a day: where midnight splits them, it
// shows everything once more.
func run(ctx context.Context, out io.Writer) error {
	day := today()
	err := show(ctx, out)
	if ctx.Err() == nil && today() != day {
		fmt.Fprint(out, "\nMeanwhile a day has ended, and its windows with it. Once more:\n\n")
		err = show(ctx, out)
	}
	return err
}

func today() string { return time.Now().UTC().Format(time.DateOnly) }
