package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// mixed is one kind of request of many that are sent together.
type mixed struct {
	weight  int
	status  int    // of an admitted one's answer; 0: the client does not wait for one
	request string // the first line and what else makes it this kind
}

var mixture = []mixed{
	{20, 200, "GET / HTTP/1.1\r\nhost: any\r\n"},
	{10, 200, "GET /direct HTTP/1.1\r\nhost: any\r\n"},
	{10, 500, "GET / HTTP/1.1\r\nhost: any\r\nx-reply-status: 500\r\n"},
	{10, 404, "GET /y HTTP/1.1\r\nhost: nowhere.test\r\n"},
	{10, 403, "GET / HTTP/1.1\r\nhost: any\r\nx-end: rbac\r\n"},
	{10, 418, "GET / HTTP/1.1\r\nhost: any\r\nx-end: lua\r\n"},
	{10, 419, "GET / HTTP/1.1\r\nhost: any\r\nx-envoy-fault-abort-request: 419\r\n"},
	{5, 503, "GET /refusing HTTP/1.1\r\nhost: any\r\n"},
	{5, 200, "GET /redirect HTTP/1.1\r\nhost: any\r\nx-reply-status: 302\r\nx-reply-header: location: http://any.test/direct\r\n"},
	{3, 503, "GET / HTTP/1.1\r\nhost: any\r\nx-end: abort\r\n"},
	{3, 200, "GET /retry HTTP/1.1\r\nhost: any\r\nx-end: unwell\r\n"},
	{1, 504, "GET /timeout HTTP/1.1\r\nhost: any\r\nx-hold: for-ever\r\n"},
	{1, 400, "GET / HTTP/1.1\r\nhost: any\r\nnot a header\r\n"}, // by the codec; the filter never sees it
	// The client goes: before its request is whole, while it is on its way, while
	// the upstream holds it, and when the answer has begun.
	{2, 0, "POST / HTTP/1.1\r\nhost: any\r\ncontent-length: 1000\r\n"},
	{2, 0, "GET / HTTP/1.1\r\nhost: any\r\n"},
	{2, 0, "GET / HTTP/1.1\r\nhost: any\r\nx-hold: for-ever\r\n"},
	{2, 200, "GET / HTTP/1.1\r\nhost: any\r\nx-end: endless\r\n"},
	{2, 200, "GET / HTTP/1.1\r\nhost: any\r\nx-end: cut\r\n"},
	{1, 101, "GET /upgrade HTTP/1.1\r\nhost: any\r\nx-end: upgrade\r\nconnection: upgrade\r\nupgrade: websocket\r\n"},
}

// mix sends n requests of the mixture, with this header, over one connection for
// as long as one lasts, and adds up how often each kind has come to its own end.
func (h *holding) mix(n int, seed uint64, header string, ends []int) error {
	chance := rand.New(rand.NewPCG(seed, 0))
	all := 0
	for _, m := range mixture {
		all += m.weight
	}
	var (
		conn net.Conn
		in   *bufio.Reader
	)
	hangUp := func() {
		if conn != nil {
			conn.Close()
			conn = nil
		}
	}
	defer hangUp()
	for range n {
		kind, at := 0, chance.IntN(all)
		for at >= mixture[kind].weight {
			at -= mixture[kind].weight
			kind++
		}
		m := &mixture[kind]
		if conn == nil {
			var err error
			if conn, err = net.Dial("tcp", h.addr); err != nil {
				return err
			}
			in = bufio.NewReader(conn)
			conn.SetDeadline(time.Now().Add(2 * time.Minute))
		}
		// What Envoy has closed after the last answer is dialled anew.
		if _, err := io.WriteString(conn, m.request+header+"\r\n\r\n"); err != nil {
			hangUp()
			continue
		}
		if m.status == 0 {
			ends[kind]++
			hangUp()
			continue
		}
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			hangUp()
			continue
		}
		switch response.StatusCode {
		case http.StatusTooManyRequests:
		case m.status:
			ends[kind]++
		default:
			return fmt.Errorf("%q got status %d, want %d", m.request, response.StatusCode, m.status)
		}
		if response.StatusCode == 101 || response.ContentLength == 1000 || response.Close {
			hangUp() // it is over, or never will be
			continue
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			hangUp()
		}
	}
	return nil
}

// mixResets sends n requests over HTTP/2 and resets each after a time that lies
// anywhere in its life.
func (h *holding) mixResets(n int, seed uint64, send func(context.Context, string, ...string) (*http.Response, error), headers ...string) (reset int) {
	chance := rand.New(rand.NewPCG(seed, 1))
	for range n {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(chance.IntN(3000))*time.Microsecond)
		if response, err := send(ctx, "/", headers...); err != nil {
			reset++
		} else {
			io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		cancel()
	}
	return reset
}

// Some requests are in flight throughout, so that one place given back too many
// shows as much as one too few: a count of none left cannot become less.
func TestAfterEveryKindOfEndingMixedTheCountIsExact(t *testing.T) {
	const (
		limit, kept       = 16, 3
		requests, clients = 50_000, 24
		resets, streams   = 2_000, 8
		client            = "x-client: mixed"
	)
	h := serveHolding(t, envoytest.Options{}, envoytest.Wasm{Config: inFlightConfig(limit, "")}, endingListener(), endingFilters(t)...)
	keeps := h.hold(t, h.newcomer(t), kept, client)
	keeps.expectHeld(t, kept)

	var (
		done  sync.WaitGroup
		ends  [clients][]int
		errs  [clients]error
		reset [streams]int
	)
	for c := range clients {
		ends[c] = make([]int, len(mixture))
		done.Go(func() { errs[c] = h.mix(requests/clients, uint64(c), client, ends[c]) })
	}
	for s := range streams {
		send := h.http2(t)
		done.Go(func() {
			reset[s] = h.mixResets(resets/streams, uint64(s), send, client, "x-hold: resets")
		})
	}
	done.Wait()

	for c := range clients {
		if errs[c] != nil {
			t.Fatal(errs[c])
		}
	}
	for kind, m := range mixture {
		n := 0
		for c := range clients {
			n += ends[c][kind]
		}
		if n == 0 {
			t.Errorf("no request ended as it should: %q", m.request)
		}
	}
	for s := range streams {
		if reset[s] == 0 {
			t.Error("no stream was reset")
		}
	}
	expectEveryWorkerBusy(t, h.envoy, "main")
	h.awaitInFlight(t, kept)
	h.expectExactly(t, limit-kept, client)
	if tally := keeps.release(t); tally[200] != kept {
		t.Fatalf("those in flight throughout got answers by status %v", tally)
	}
	h.awaitInFlight(t, 0)
	h.expectExactly(t, limit, client)
	if n := h.envoy.Stat(t, limitStat("busy", "errors")); n != 0 {
		t.Errorf("%d errors are counted", n)
	}
}
