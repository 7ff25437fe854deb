package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// content returns that many bytes, other ones for every seed.
func content(n int, seed byte) []byte {
	bytes := make([]byte, n)
	rand.NewChaCha8([32]byte{seed}).Read(bytes)
	return bytes
}

// Bodies that are far larger than Envoy buffers of a connection arrive whole when
// their time has come. Until then Envoy leaves most of them with their clients.
func TestALargeUploadWaitsWithItsClientAndArrivesWhole(t *testing.T) {
	const (
		uploads     = 5
		size        = 8 << 20
		bufferLimit = 64 << 10
		// allowance is what a process's memory may move by besides its buffers. The
		// bodies are three times as large.
		allowance = 12 << 20
	)
	for _, kind := range []struct {
		name    string
		limit   string
		options envoytest.ClientOptions
	}{
		{"HTTP/1.1", "waiting-upload-h1", envoytest.ClientOptions{NewConnections: true}},
		{"HTTP/2", "waiting-upload-h2", envoytest.ClientOptions{HTTP2: true}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			site := alone(t, envoytest.Options{Workers: 2}, envoytest.Listener{
				BufferLimit: bufferLimit,
				Manager: envoytest.Object{"http2_protocol_options": envoytest.Object{
					"initial_stream_window_size": 1 << 16, "initial_connection_window_size": 1 << 20,
				}},
			}, envoytest.Wasm{Config: queue(kind.limit, 20, "1/2s", "")})
			client, arrivals := envoytest.NewClient(t, site.addr, kind.options), site.watch()
			expectAdmitted(t, client.Get(t, site.path()))
			before := site.envoy.RSS(t)
			sums := map[string][sha256.Size]byte{}
			var all []*envoytest.Pending
			for i := range uploads {
				body, path := content(size, byte(i)), fmt.Sprintf("%s?%d", site.path(), i)
				sums[path] = sha256.Sum256(body)
				all = append(all, client.Begin(t, "PUT", path, bytes.NewReader(body)))
			}
			// most is the growth, and received how much has come of the bodies while all
			// of them waited.
			var most, received int64
			envoytest.Eventually(t, "all uploads have left", func() bool {
				now := site.envoy.Stats(t, "waiting-upload|cx_rx_bytes_total")
				waiting := now[limitStat(kind.limit, "waiting")]
				if waiting > 0 {
					most = max(most, site.envoy.RSS(t)-before)
				}
				if waiting == uploads {
					received = now["http.main.downstream_cx_rx_bytes_total"]
				}
				return waiting == 0 && now[limitStat(kind.limit, "allowed")] == 1+uploads
			})
			for _, pending := range all {
				expectAdmitted(t, pending.Await(t))
			}
			t.Logf("Envoy took %d KiB of %d bodies of %d MiB while all waited, and grew by %d KiB", received>>10, uploads, size>>20, most>>10)
			if received == 0 || received > uploads*8*bufferLimit {
				t.Errorf("that is not some of each body, but a few times the buffer's %d KiB at most", bufferLimit>>10)
			}
			if most > allowance {
				t.Errorf("that is more growth than %d KiB", allowance>>10)
			}
			for _, arrival := range arrivals.All() {
				want, known := sums[arrival.Path]
				if known && (arrival.Bytes != size || arrival.SHA256 != want) {
					t.Errorf("%s arrived with %d bytes, want the %d that were sent", arrival.Path, arrival.Bytes, size)
				}
				delete(sums, arrival.Path)
			}
			if len(sums) != 0 {
				t.Errorf("%d uploads did not arrive", len(sums))
			}
		})
	}
}

// expectingClient is a client that sends its body when it is told to go on.
type expectingClient struct {
	conn net.Conn
	r    *bufio.Reader
}

func expectContinue(t *testing.T, addr, path string, size int) expectingClient {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(2 * time.Minute))
	fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nhost: waits\r\nexpect: 100-continue\r\ncontent-length: %d\r\n\r\n", path, size)
	return expectingClient{conn, bufio.NewReader(conn)}
}

// answer returns the next status and its header, of an interim answer too.
func (c expectingClient) answer(t *testing.T) (int, http.Header) {
	t.Helper()
	line, err := c.r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var status int
	if _, err := fmt.Sscanf(line, "HTTP/1.1 %d", &status); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	header := http.Header{}
	for {
		line, err := c.r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line = strings.TrimSpace(line); line == "" {
			return status, header
		}
		name, value, _ := strings.Cut(line, ": ")
		header.Add(name, value)
	}
}

// By default Envoy tells the client to go on by itself; with proxy_100_continue
// the upstream does, which has the request only when it has waited.
func TestWhoExpectsToBeToldToContinueIsServedWhenItHasWaited(t *testing.T) {
	for _, who := range []struct {
		name, limit string
		manager     envoytest.Object
		early       bool // told before it has waited
	}{
		{"Envoy says so", "waiting-continue", nil, true},
		{"the upstream says so", "waiting-continue-upstream", envoytest.Object{"proxy_100_continue": true}, false},
	} {
		t.Run(who.name, func(t *testing.T) {
			const size = 100_000
			site := serve(t, queue(who.limit, 1, "1/s", ""), envoytest.Listener{Manager: who.manager})
			arrivals := site.watch()
			sent := time.Now()
			expectAdmitted(t, site.client(t).Get(t, site.path()+"?first"))
			client := expectContinue(t, site.addr, site.path()+"?waits", size)
			site.awaitStat(t, who.limit, "allowed", 2)

			// The queue is full, and says so before a byte of the body is there, or
			// the client has been told to send it.
			over := expectContinue(t, site.addr, site.path()+"?over", size)
			status, header := over.answer(t)
			if status == 100 && who.early {
				status, header = over.answer(t)
			}
			if status != 429 || header.Get("Retry-After") != "1" {
				t.Errorf("over the bound, got status %d and Retry-After %q, want 429 and 1", status, header.Get("Retry-After"))
			}

			status, _ = client.answer(t)
			if status != 100 {
				t.Fatalf("got status %d, want 100 first", status)
			}
			if told := time.Since(sent); !who.early && told < time.Second {
				t.Errorf("the upstream had the request after %v", told)
			}
			body := content(size, 1)
			if _, err := io.Copy(client.conn, bytes.NewReader(body)); err != nil {
				t.Fatal(err)
			}
			if status, _ = client.answer(t); status != 200 {
				t.Errorf("got status %d after the body, want 200", status)
			}
			all := arrivals.All()
			if len(all) != 2 || all[1].Bytes != size || all[1].SHA256 != sha256.Sum256(body) {
				t.Fatalf("got the arrivals %v, want the body whole", arrivals.Paths())
			}
			expectNoneEarly(t, sent, time.Second, all)
		})
	}
}
