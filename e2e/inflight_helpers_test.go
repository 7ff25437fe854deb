package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// inFlightConfig has one concurrency limit for each client, by the header
// x-client. It has further fields after that, with a comma before them.
func inFlightConfig(limit int, further string) string {
	return fmt.Sprintf(`{
		"limits": {"busy": {"algorithm": "concurrency", "limit": %d, "key": ["header:x-client"]}},
		"rules":  [{"limits": ["busy"]}]
		%s
	}`, limit, further)
}

// holding is an Envoy with the filter in front of an upstream that holds
// requests.
type holding struct {
	envoy    *envoytest.Envoy
	upstream *envoytest.Holding
	addr     string
	holds    int
}

// serveHolding starts an Envoy with several workers and one listener, "main",
// in which the filter follows the chain's first filters and precedes the others.
func serveHolding(t *testing.T, o envoytest.Options, wasm envoytest.Wasm, l envoytest.Listener, behind ...envoytest.Object) *holding {
	t.Helper()
	if wasm.Module == "" {
		wasm.Module = envoytest.Module(t, "sluice.wasm")
	}
	upstream := envoytest.NewHolding(t)
	l.Filters = append(append(l.Filters, wasm.Filter()), behind...)
	if o.Workers == 0 {
		o.Workers = workers
	}
	o.Upstream, o.Listeners = upstream.Upstream, []envoytest.Listener{l}
	o.Clusters = append(o.Clusters, envoytest.Refusing(t, "refusing"), upstream.WithTrailers("http1"))
	envoy := envoytest.Start(t, o)
	return &holding{envoy: envoy, upstream: upstream, addr: envoy.Addr(t, "main")}
}

// newcomer returns a client that connects anew for every request, and so meets
// any worker.
func (h *holding) newcomer(t *testing.T) *envoytest.Client {
	return envoytest.NewClient(t, h.addr, envoytest.ClientOptions{NewConnections: true})
}

// newHold returns a name under which nothing has been held yet.
func (h *holding) newHold() string {
	h.holds++
	return fmt.Sprint("hold-", h.holds)
}

func (h *holding) inFlight(t *testing.T) int64 {
	t.Helper()
	return h.envoy.Stat(t, limitStat("busy", "in_flight"))
}

func (h *holding) awaitInFlight(t *testing.T, want int64) {
	t.Helper()
	var got int64
	defer func() {
		if got != want {
			t.Logf("%d are in flight", got)
		}
	}()
	envoytest.Eventually(t, fmt.Sprintf("%d requests are in flight", want), func() bool {
		got = h.inFlight(t)
		return got == want
	})
}

// held is requests that the upstream holds.
type held struct {
	on   *holding
	name string
	done sync.WaitGroup

	mu       sync.Mutex
	answers  []envoytest.Response
	failures []error
}

// hold sends n requests at once with these headers, and returns when each is
// held by the upstream or has its answer.
func (h *holding) hold(t *testing.T, client *envoytest.Client, n int, headers ...string) *held {
	t.Helper()
	return h.holdAt(t, client, "/", n, headers...)
}

// holdAt is hold for another path.
func (h *holding) holdAt(t *testing.T, client *envoytest.Client, path string, n int, headers ...string) *held {
	t.Helper()
	b := &held{on: h, name: h.newHold()}
	headers = append([]string{"x-hold: " + b.name}, headers...)
	t.Cleanup(func() { // of a test that has failed
		h.upstream.Release(b.name)
		b.done.Wait()
	})
	for range n {
		b.done.Go(func() {
			response, err := client.Send("GET", path, headers...)
			b.mu.Lock()
			defer b.mu.Unlock()
			if err != nil {
				b.failures = append(b.failures, err)
				return
			}
			b.answers = append(b.answers, response)
		})
	}
	envoytest.Eventually(t, fmt.Sprintf("all %d requests are held or answered", n), func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return h.upstream.Held(b.name)+len(b.answers)+len(b.failures) == n
	})
	return b
}

// refused returns the answers so far.
func (b *held) refused() []envoytest.Response {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answers
}

// expectHeld checks that this many are held, and that the others have been
// refused.
func (b *held) expectHeld(t *testing.T, want int) {
	t.Helper()
	if n := b.on.upstream.Held(b.name); n != want {
		t.Fatalf("the upstream holds %d requests, want %d", n, want)
	}
	for _, response := range b.refused() {
		expectRefused(t, response)
	}
}

// release lets the upstream answer, and returns how many requests were answered
// with which status.
func (b *held) release(t *testing.T) envoytest.Tally {
	t.Helper()
	b.on.upstream.Release(b.name)
	b.done.Wait()
	if len(b.failures) > 0 {
		t.Fatal(b.failures[0])
	}
	tally := envoytest.Tally{}
	for _, response := range b.answers {
		tally[response.Status]++
	}
	return tally
}

// expectExactly checks that of many requests at once this many are admitted.
func (h *holding) expectExactly(t *testing.T, want int, headers ...string) {
	t.Helper()
	b := h.hold(t, h.newcomer(t), want+12, headers...)
	b.expectHeld(t, want)
	if tally := b.release(t); tally[200] != want {
		t.Fatalf("got answers by status %v, want %d of 200", tally, want)
	}
}

// raw is a connection of a client that Go's own would not be.
type raw struct{ net.Conn }

// dial connects to Envoy, and sends a request with these headers after it.
func (h *holding) dial(t *testing.T, line string, headers ...string) raw {
	t.Helper()
	conn, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(2 * time.Minute)) // passes only when a test fails
	c := raw{conn}
	c.write(t, line+"\r\nhost: raw\r\n"+strings.Join(headers, "\r\n")+"\r\n\r\n")
	return c
}

func (c raw) write(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// expect reads until the text has come.
func (c raw) expect(t *testing.T, text string) {
	t.Helper()
	var got []byte
	buffer := make([]byte, 1000)
	for !strings.Contains(string(got), text) {
		n, err := c.Read(buffer)
		got = append(got, buffer[:n]...)
		if err != nil {
			t.Fatalf("got %q and %v, want %q", got, err, text)
		}
	}
}

// http2 sends requests over one HTTP/2 connection. The answers' bodies are left
// to whoever called.
func (h *holding) http2(t *testing.T) func(ctx context.Context, path string, headers ...string) (*http.Response, error) {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return func(ctx context.Context, path string, headers ...string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.addr+path, nil)
		if err != nil {
			return nil, err
		}
		for _, line := range headers {
			name, value, _ := strings.Cut(line, ": ")
			request.Header.Add(name, value)
		}
		return transport.RoundTrip(request)
	}
}

// reset cancels an HTTP/2 request once the condition holds; its connection goes
// on.
func reset(t *testing.T, send func(context.Context) (*http.Response, error), when func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		response, err := send(ctx)
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		failed <- err
	}()
	envoytest.Eventually(t, "the request is under way", when)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatalf("the request came to %v before it could be reset", err)
	}
}
