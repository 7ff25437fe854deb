package envoytest

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// Holding is an Upstream that can keep requests for as long as a test needs them
// in flight, and end them as an upstream should not:
//
//	x-hold: NAME        no answer before Release of that name; none at all if
//	                    the client has gone by then
//	x-end: abort        reset the stream (HTTP/1: the connection) unanswered
//	x-end: cut          reset it in the middle of the body
//	x-end: endless      answer with headers and part of a body, and no more until
//	                    the client has gone
//	x-end: upgrade      switch protocols, and echo until the client has gone
//	x-end: unwell       answer the first try of every request with 503
//	x-reply-trailer: NAME: VALUE    end the answer with this trailer
//	x-reply-only: NAME: VALUE       a gRPC answer of trailers only, with this one
//
// Else it answers as Upstream does.
type Holding struct {
	*Upstream
	mu    sync.Mutex
	holds map[string]*hold
}

type hold struct {
	released  chan struct{}
	now, most int
}

// NewHolding starts an upstream that ends with the test, and lets go of all that
// it holds then.
func NewHolding(t testing.TB) *Holding {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &Holding{Upstream: &Upstream{address: listener.Addr().(*net.TCPAddr)}, holds: map[string]*hold{}}
	h.server = &http.Server{Handler: http.HandlerFunc(h.serve), Protocols: new(http.Protocols)}
	h.server.Protocols.SetHTTP1(true)
	h.server.Protocols.SetUnencryptedHTTP2(true)
	go h.server.Serve(listener)
	t.Cleanup(func() { h.server.Close() })
	return h
}

// Held is how many requests are held under a name now.
func (h *Holding) Held(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hold(name).now
}

// MostHeld is how many requests were held under a name at once at most.
func (h *Holding) MostHeld(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hold(name).most
}

// Release lets go of what is held under a name. What comes after it is held
// again.
func (h *Holding) Release(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	hold := h.hold(name)
	close(hold.released)
	hold.released = make(chan struct{})
}

// hold is called with the lock held.
func (h *Holding) hold(name string) *hold {
	if h.holds[name] == nil {
		h.holds[name] = &hold{released: make(chan struct{})}
	}
	return h.holds[name]
}

// wait holds a request, and returns false if its client has gone.
func (h *Holding) wait(r *http.Request, name string) bool {
	h.mu.Lock()
	hold := h.hold(name)
	hold.now++
	hold.most = max(hold.most, hold.now)
	released := hold.released
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		hold.now--
		h.mu.Unlock()
	}()
	select {
	case <-released:
		return true
	case <-r.Context().Done():
		return false
	}
}

func (h *Holding) serve(w http.ResponseWriter, r *http.Request) {
	if name := r.Header.Get("x-hold"); name != "" && !h.wait(r, name) {
		panic(http.ErrAbortHandler)
	}
	switch r.Header.Get("x-end") {
	case "abort":
		panic(http.ErrAbortHandler)
	case "cut":
		startBody(w)
		panic(http.ErrAbortHandler)
	case "endless":
		startBody(w)
		<-r.Context().Done()
		return
	case "upgrade":
		echoUpgraded(w)
		return
	case "unwell":
		if r.Header.Get("x-envoy-attempt-count") == "1" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
	}
	if only := r.Header.Get("x-reply-only"); only != "" {
		name, value := cutHeader(only)
		w.Header().Set("content-type", "application/grpc")
		w.Header().Set("grpc-status", "0")
		w.Header().Set(name, value)
		return // with END_STREAM on the headers
	}
	for _, trailer := range r.Header["X-Reply-Trailer"] {
		name, value := cutHeader(trailer)
		w.Header().Add(http.TrailerPrefix+name, value)
	}
	h.Upstream.serve(w, r)
}

// startBody sends headers and part of a body.
func startBody(w http.ResponseWriter) {
	w.Header().Set("content-length", "1000")
	io.WriteString(w, "part")
	http.NewResponseController(w).Flush()
}

// echoUpgraded has the client's own bytes come back to it.
func echoUpgraded(w http.ResponseWriter) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
	io.Copy(conn, buffered)
}

// Refusing returns a cluster of an address at which nobody listens.
func Refusing(t testing.TB, name string) Object {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().(*net.TCPAddr)
	if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	return (&Upstream{address: address}).cluster(name, Object{"explicit_http_config": Object{"http_protocol_options": Object{}}})
}

// WithTrailers returns a cluster of the upstream by HTTP/1.1 that passes trailers
// on, as Envoy does only where it is told to.
func (u *Upstream) WithTrailers(name string) Object {
	return u.cluster(name, Object{"explicit_http_config": Object{"http_protocol_options": Object{"enable_trailers": true}}})
}

func cutHeader(line string) (name, value string) {
	name, value, _ = strings.Cut(line, ": ")
	return name, value
}
