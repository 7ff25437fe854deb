package e2e

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// workers is how many workers the tests' Envoys have.
const workers = 4

// Envoy takes seconds to compile the module, and no time to add a listener. So
// there is one Envoy for all tests that need none of their own; each of them
// adds its listeners to it.
var shared struct {
	once     sync.Once
	envoy    *envoytest.Envoy
	upstream *envoytest.Upstream
	err      error
	names    int // how many newName has given out
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.envoy != nil {
		shared.envoy.Stop(code != 0)
	}
	os.Exit(code)
}

// site is a listener of the shared Envoy with the filter in its chain.
type site struct {
	envoy    *envoytest.Envoy
	upstream *envoytest.Upstream
	listener envoytest.Listener
	addr     string // host:port
	before   int64  // what had reached the upstream when the site was new
}

// filters is a chain of HTTP filters.
type filters = []envoytest.Object

// serve adds a listener to the shared Envoy, in which the filter with this
// config follows the listener's own filters. The plugin is named like the
// listener, so that no other site shares its buckets.
func serve(t *testing.T, config string, l envoytest.Listener) *site {
	t.Helper()
	l.Name = newName(t)
	return serveChain(t, l, envoytest.Wasm{Name: l.Name, Config: config})
}

// serveChain adds a listener to the shared Envoy, in which these instances, of
// the filter unless they name another module, follow the listener's own filters.
func serveChain(t *testing.T, l envoytest.Listener, instances ...envoytest.Wasm) *site {
	t.Helper()
	if l.Name == "" {
		l.Name = newName(t)
	}
	for _, instance := range instances {
		if instance.Module == "" {
			instance.Module = envoytest.Module(t, "sluice.wasm")
		}
		l.Filters = append(l.Filters, instance.Filter())
	}
	shared.once.Do(func() {
		if shared.upstream, shared.err = envoytest.RunUpstream(); shared.err != nil {
			return
		}
		shared.envoy, shared.err = envoytest.Run("shared", envoytest.Options{
			Workers:  workers,
			Upstream: shared.upstream,
			Dynamic:  true,
		})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	shared.envoy.Push(t, l)
	t.Cleanup(func() { shared.envoy.ShowIfFailed(t) })
	return &site{
		envoy:    shared.envoy,
		upstream: shared.upstream,
		listener: l,
		addr:     shared.envoy.Addr(t, l.Name),
		before:   shared.upstream.Requests(),
	}
}

// newName returns a name for a listener or a plugin that nobody else has.
func newName(t *testing.T) string {
	shared.names++
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), shared.names)
}

// client returns a client of the site that keeps its connections.
func (s *site) client(t *testing.T) *envoytest.Client {
	return envoytest.NewClient(t, s.addr, envoytest.ClientOptions{})
}

// newcomer returns a client that connects anew for every request, and so meets
// any worker, and the listener that was pushed last.
func (s *site) newcomer(t *testing.T, source string) *envoytest.Client {
	return envoytest.NewClient(t, s.addr, envoytest.ClientOptions{Source: source, NewConnections: true})
}

// expectReached checks how many requests have reached the upstream.
func (s *site) expectReached(t *testing.T, want int64) {
	t.Helper()
	if n := s.upstream.Requests() - s.before; n != want {
		t.Errorf("%d requests reached the upstream, want %d", n, want)
	}
}

// awaitLogged waits until a request is in the site's access log, and returns
// its entry.
func (s *site) awaitLogged(t *testing.T, path string) envoytest.AccessLogEntry {
	t.Helper()
	var found envoytest.AccessLogEntry
	envoytest.Eventually(t, "the access log has "+path, func() bool {
		for _, entry := range s.envoy.AccessLog(t, s.listener.Name) {
			if entry.Path == path {
				found = entry
				return true
			}
		}
		return false
	})
	return found
}

// expectEveryWorkerBusy checks that each worker has had connections: a test of
// what several workers do together shows nothing otherwise.
func expectEveryWorkerBusy(t *testing.T, envoy *envoytest.Envoy, listener string) {
	t.Helper()
	for worker := range workers {
		stat := fmt.Sprintf("listener.%s.worker_%d.downstream_cx_total", listener, worker)
		if envoy.Stat(t, stat) == 0 {
			t.Fatalf("worker %d has had no connection", worker)
		}
	}
}
