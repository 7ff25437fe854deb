package envoytest

import (
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Arrival is a request as it reached an upstream.
type Arrival struct {
	Path   string    // with its query
	At     time.Time // when its headers were there
	Bytes  int64     // of its body; not read of a gRPC call
	SHA256 [sha256.Size]byte
}

// Arrivals are the requests to the paths of one test.
type Arrivals struct {
	prefix string

	mu  sync.Mutex
	all []*Arrival
}

// Watch notes the requests whose path begins with prefix, from now on.
func (u *Upstream) Watch(prefix string) *Arrivals {
	a := &Arrivals{prefix: prefix}
	u.watches.mu.Lock()
	defer u.watches.mu.Unlock()
	u.watches.all = append(u.watches.all, a)
	return a
}

// All returns the arrivals so far, the first one first.
func (a *Arrivals) All() []Arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := []Arrival{}
	for _, arrival := range a.all {
		all = append(all, *arrival)
	}
	slices.SortStableFunc(all, func(x, y Arrival) int { return x.At.Compare(y.At) })
	return all
}

// Paths returns the paths of the arrivals so far, the first one first.
func (a *Arrivals) Paths() []string {
	paths := []string{}
	for _, arrival := range a.All() {
		paths = append(paths, arrival.Path)
	}
	return paths
}

// watches are an upstream's Arrivals.
type watches struct {
	mu  sync.Mutex
	all []*Arrivals
}

func (w *watches) note(r *http.Request) {
	now := time.Now()
	w.mu.Lock()
	all := w.all
	w.mu.Unlock()
	for _, a := range all {
		if strings.HasPrefix(r.RequestURI, a.prefix) {
			a.note(r, now)
			return
		}
	}
}

func (a *Arrivals) note(r *http.Request, now time.Time) {
	arrival := &Arrival{Path: r.RequestURI, At: now}
	a.mu.Lock()
	a.all = append(a.all, arrival)
	a.mu.Unlock()
	if r.Header.Get("content-type") == "application/grpc" {
		return
	}
	sum := sha256.New()
	n, _ := io.Copy(sum, r.Body) // what is missing shows in the sum
	a.mu.Lock()
	defer a.mu.Unlock()
	arrival.Bytes = n
	sum.Sum(arrival.SHA256[:0])
}

// Pending is a request that has been sent and may have no answer yet.
type Pending struct {
	cancel   context.CancelFunc
	done     chan struct{}
	response Response
	err      error
}

// Begin sends a request without waiting for its answer. Headers are as those of
// Send; body may be nil. What is left of it ends with the test.
func (c *Client) Begin(t testing.TB, method, path string, body io.Reader, headers ...string) *Pending {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.addr+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Add(name, value)
	}
	p := &Pending{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		response, err := c.http.Do(request)
		if err != nil {
			p.err = err
			return
		}
		p.response, p.err = readAll(response)
	}()
	t.Cleanup(p.GiveUp)
	return p
}

// GiveUp ends the request: over HTTP/1.1 by closing its connection, over HTTP/2
// by resetting its stream.
func (p *Pending) GiveUp() {
	p.cancel()
	<-p.done
}

// Await waits for the answer, which the test expects, whatever it says.
func (p *Pending) Await(t testing.TB) Response {
	t.Helper()
	response, err := p.Ended()
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// Ended waits for the end of the request, with an answer or without.
func (p *Pending) Ended() (Response, error) {
	<-p.done
	return p.response, p.err
}
