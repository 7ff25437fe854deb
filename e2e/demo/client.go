package main

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// client sends requests to Envoy from one address.
type client struct {
	address string
	envoy   string // host:port
	http    http.Client
}

// newClient returns a client that sends from address, such as 127.0.0.2. It fails
// where the system has no such address; on Linux all of 127.0.0.0/8 is there.
func newClient(address, envoy string) (*client, error) {
	probe, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, err
	}
	probe.Close()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	return &client{address: address, envoy: envoy, http: http.Client{Transport: transport}}, nil
}

// answer is a response with what it answers.
type answer struct {
	sent    time.Time
	took    time.Duration // until the answer had come
	client  string        // its address
	request string        // such as "GET /report"
	status  int           // 0 if there was no response
	header  http.Header
	body    string // the error, if there was no response
}

func (a answer) admitted() bool { return a.status == http.StatusOK }

// number returns the whole number in a header, -1 if there is none.
func (a answer) number(header string) int {
	n, err := strconv.Atoi(a.header.Get(header))
	if err != nil {
		return -1
	}
	return n
}

func (c *client) newRequest(ctx context.Context, method, path string) *http.Request {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+c.envoy+path, nil)
	if err != nil {
		panic(err) // methods and paths are constants
	}
	return request
}

// send sends one request.
func (c *client) send(ctx context.Context, method, path string) answer {
	a := answer{sent: time.Now(), client: c.address, request: method + " " + path}
	response, err := c.http.Do(c.newRequest(ctx, method, path))
	if err != nil {
		a.body = err.Error()
		return a
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	a.status, a.header, a.body = response.StatusCode, response.Header, string(body)
	a.took = time.Since(a.sent)
	return a
}

// atOnce sends n requests at once, on as many connections. The answers are
// sorted: admitted ones first, and of those the one that left most.
func (c *client) atOnce(ctx context.Context, n int, method, path string) []answer {
	answers := make([]answer, n)
	var done sync.WaitGroup
	for i := range answers {
		done.Go(func() { answers[i] = c.send(ctx, method, path) })
	}
	done.Wait()
	slices.SortFunc(answers, func(a, b answer) int {
		return cmp.Or(cmp.Compare(a.status, b.status),
			cmp.Compare(b.number("RateLimit-Remaining"), a.number("RateLimit-Remaining")))
	})
	return answers
}

// admitted returns how many of the answers are no refusals.
func admitted(answers []answer) (n int) {
	for _, a := range answers {
		if a.admitted() {
			n++
		}
	}
	return n
}
