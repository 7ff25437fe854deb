package envoytest

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// Upstream is the server behind Envoy. It speaks HTTP/1.1 and HTTP/2 with
// prior knowledge. It answers every request with 200 and an Echo, unless the
// request asks for something else:
//
//	x-reply-status: 503            answer with this status
//	x-reply-header: name: value    answer with this header; may be repeated
//
// A gRPC call (content-type application/grpc) gets its own messages back, and
// the status 0 in the trailer.
type Upstream struct {
	server   *http.Server
	address  *net.TCPAddr
	requests atomic.Int64
	watches  watches
}

// Echo is the body of an upstream's answer, as JSON: the request as the
// upstream got it.
type Echo struct {
	Method string
	Path   string
	Host   string
	Header http.Header
}

// NewUpstream starts an upstream that ends with the test.
func NewUpstream(t testing.TB) *Upstream {
	t.Helper()
	u, err := RunUpstream()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.server.Close() })
	return u
}

// RunUpstream starts an upstream that runs until the test program ends, on a
// free port of the loopback address.
func RunUpstream() (*Upstream, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u := &Upstream{address: listener.Addr().(*net.TCPAddr)}
	u.server = &http.Server{Handler: http.HandlerFunc(u.serve), Protocols: new(http.Protocols)}
	u.server.Protocols.SetHTTP1(true)
	u.server.Protocols.SetUnencryptedHTTP2(true)
	go u.server.Serve(listener)
	return u, nil
}

// Requests is how many requests have reached the upstream so far.
func (u *Upstream) Requests() int64 { return u.requests.Load() }

// Port is the upstream's port on 127.0.0.1.
func (u *Upstream) Port() int { return u.address.Port }

func (u *Upstream) serve(w http.ResponseWriter, r *http.Request) {
	u.requests.Add(1)
	u.watches.note(r)
	for _, header := range r.Header["X-Reply-Header"] {
		name, value, _ := strings.Cut(header, ": ")
		w.Header().Add(name, value)
	}
	if r.Header.Get("content-type") == "application/grpc" {
		w.Header().Set("content-type", "application/grpc")
		w.Header().Set("trailer", "grpc-status")
		http.NewResponseController(w).Flush() // what is set from here on is a trailer
		io.Copy(w, r.Body)
		w.Header().Set("grpc-status", "0")
		return
	}
	if status, err := strconv.Atoi(r.Header.Get("x-reply-status")); err == nil {
		w.WriteHeader(status)
	}
	json.NewEncoder(w).Encode(Echo{Method: r.Method, Path: r.RequestURI, Host: r.Host, Header: r.Header})
}

// clusters returns the clusters "upstream" and "model" as Envoy's API has them:
// the first passes a client's protocol on, as gRPC needs; the second, for calls
// that Envoy makes on its own account, speaks HTTP/2. Its name parses as a
// protobuf message, which has killed Envoys that were given a bare name where
// they want a message.
func (u *Upstream) clusters() []Object {
	return []Object{
		u.cluster("upstream", Object{"use_downstream_protocol_config": Object{
			"http_protocol_options":  Object{},
			"http2_protocol_options": Object{},
		}}),
		HTTP2Cluster("model", u.address.String()),
	}
}

func (u *Upstream) cluster(name string, protocols Object) Object {
	return cluster(name, protocols, u.address.String())
}
