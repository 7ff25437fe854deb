package envoytest

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Client is an HTTP client that sends all its requests from one address, to
// one listener. It follows no redirect and retries nothing.
type Client struct {
	addr string
	http http.Client
}

// ClientOptions say how a Client behaves.
type ClientOptions struct {
	Source string // an address of 127.0.0.0/8; "" is 127.0.0.1
	HTTP2  bool   // HTTP/2 with prior knowledge instead of HTTP/1.1
	// NewConnections sends every request on a connection of its own, and so
	// from a port of its own.
	NewConnections bool
}

// NewClient returns a client of the listener at addr, host:port. Its
// connections are closed with the test.
func NewClient(t testing.TB, addr string, o ClientOptions) *Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(or(o.Source, "127.0.0.1"))}}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, addr)
		},
		DisableKeepAlives:  o.NewConnections,
		DisableCompression: true,
		Protocols:          new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(!o.HTTP2)
	transport.Protocols.SetUnencryptedHTTP2(o.HTTP2)
	t.Cleanup(transport.CloseIdleConnections)
	return &Client{addr: addr, http: http.Client{
		Transport:     transport,
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Response is an answer that was read whole.
type Response struct {
	Status  int
	Header  http.Header
	Trailer http.Header
	Body    string
}

// Send sends a request. Headers are lines such as "x-client: a"; "host: a.b"
// replaces the address as :authority. It may be called from many goroutines at
// once.
func (c *Client) Send(method, path string, headers ...string) (Response, error) {
	request, err := http.NewRequest(method, "http://"+c.addr+path, nil)
	if err != nil {
		return Response{}, err
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if strings.EqualFold(name, "host") {
			request.Host = value
			continue
		}
		request.Header.Add(name, value)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return Response{}, err
	}
	return readAll(response)
}

// Do is Send for a test that expects an answer, whatever it says.
func (c *Client) Do(t testing.TB, method, path string, headers ...string) Response {
	t.Helper()
	response, err := c.Send(method, path, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// Get is Do with the method GET.
func (c *Client) Get(t testing.TB, path string, headers ...string) Response {
	t.Helper()
	return c.Do(t, http.MethodGet, path, headers...)
}

// Exchange connects to addr, writes the lines as they are with an empty line
// after them, and returns the answer to the one request that they hold. It is
// for what Go's HTTP client would not send or would tidy up: any spelling of a
// path, or a line for the proxy protocol before the request.
func Exchange(t testing.TB, addr string, lines ...string) Response {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("no answer to %q: %v", lines, err)
	}
	answer, err := readAll(response)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func readAll(response *http.Response) (Response, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return Response{
		Status:  response.StatusCode,
		Header:  response.Header,
		Trailer: response.Trailer,
		Body:    string(body),
	}, err
}
