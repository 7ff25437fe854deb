package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
	"github.com/sluice-proxy/sluice/e2e/fleettest"
)

// failingLimit is what a client may have of a fleet-wide limit in these tests.
const failingLimit = 40

// policies are what on_failure can be.
var policies = []string{"local", "allow", "deny"}

// serveFailing starts an Envoy in which a listener for each mode and policy, named
// "strict-local" and so on, asks the service of a cluster about a limit.
func serveFailing(t *testing.T, protocol, cluster string, clusters ...envoytest.Object) *envoytest.Envoy {
	t.Helper()
	var listeners []envoytest.Listener
	for _, mode := range []string{"strict", "lease"} {
		for _, policy := range policies {
			name := mode + "-" + policy
			listeners = append(listeners, envoytest.Listener{Name: name, Filters: filters{envoytest.Wasm{
				Name:   name,
				Module: envoytest.Module(t, "sluice.wasm"),
				Config: fmt.Sprintf(`{
					"global": {"cluster": %q, "protocol": %q, "mode": %q, "on_failure": %q, "timeout": "300ms"},
					"limits": {%q: {"algorithm": "fixed_window", "limit": %d, "window": "1d", "key": ["client=header:x-client"], "scope": "global"}},
					"rules":  [{"limits": [%q]}]}`, cluster, protocol, mode, policy, name, failingLimit, name),
			}.Filter()}})
		}
	}
	return envoytest.Start(t, envoytest.Options{
		Workers: workers, Upstream: envoytest.NewUpstream(t), Listeners: listeners, Clusters: clusters,
	})
}

// sendAsOne sends requests of one client, many at once, and counts the answers by
// their status.
func sendAsOne(t *testing.T, addr, client string, requests int) envoytest.Tally {
	t.Helper()
	clients := make([]*envoytest.Client, 8)
	for i := range clients {
		clients[i] = envoytest.NewClient(t, addr, envoytest.ClientOptions{})
	}
	tally, err := envoytest.AtOnce(requests, func(i int) (envoytest.Response, error) {
		return clients[i%len(clients)].Send("GET", "/", "x-client: "+client)
	})
	if err != nil {
		t.Fatal(err)
	}
	return tally
}

// expectPolicy checks what becomes of 100 requests while the service is away.
func expectPolicy(t *testing.T, envoy *envoytest.Envoy, listener, policy, client string) {
	t.Helper()
	want := map[string]string{
		"local": fmt.Sprint(envoytest.Tally{http.StatusOK: failingLimit, http.StatusTooManyRequests: 100 - failingLimit}),
		"allow": fmt.Sprint(envoytest.Tally{http.StatusOK: 100}),
		"deny":  fmt.Sprint(envoytest.Tally{http.StatusServiceUnavailable: 100}),
	}[policy]
	if got := fmt.Sprint(sendAsOne(t, envoy.Addr(t, listener), client, 100)); got != want {
		t.Errorf("%s: got answers by status %v while the service is away, want %v", listener, got, want)
	}
}

// expectAllPolicies checks all modes and policies, with clients that are new.
func expectAllPolicies(t *testing.T, envoy *envoytest.Envoy, client string) {
	t.Helper()
	for _, policy := range policies {
		expectPolicy(t, envoy, "strict-"+policy, policy, client)

		// A lease lends a request what it needs until it knows that there is nobody.
		leased := "lease-" + policy
		failed := limitStat(leased, "call_errors")
		before := envoy.Stat(t, failed)
		first := envoytest.NewClient(t, envoy.Addr(t, leased), envoytest.ClientOptions{})
		expectAdmitted(t, first.Get(t, "/", "x-client: "+client))
		envoytest.Eventually(t, leased+" has missed an answer", func() bool { return envoy.Stat(t, failed) > before })
		expectPolicy(t, envoy, leased, policy, client)
	}
}

// expectDecided waits until the service decides again: a client that no process
// knows gets the limit from all of a listener's workers together, and each
// refusal is the service's.
func expectDecided(t *testing.T, envoy *envoytest.Envoy, listener string) {
	t.Helper()
	try := 0
	envoytest.Eventually(t, "the service decides again about "+listener, func() bool {
		try++
		failed := limitStat(listener, "call_errors")
		before, calls := envoy.Stat(t, failed), envoy.Stat(t, limitStat(listener, "calls"))
		sendAsOne(t, envoy.Addr(t, listener), fmt.Sprint("back-", try), 16)
		return envoy.Stat(t, failed) == before && envoy.Stat(t, limitStat(listener, "calls")) > calls
	})
}

func TestOnFailureDecidesWhileTheServiceIsAway(t *testing.T) {
	rateLimit, gubernator, store := rateLimitServer(t), fleettest.StartGubernator(t), fleettest.StartValkey(t)
	for _, service := range []struct {
		name, protocol string
		asked          *fleettest.Server
		server         *fleettest.Server // the one that fails
	}{
		{"rls", "rls", rateLimit, rateLimit},
		{"the store behind rls", "rls", fleettest.StartRateLimit(t, store), store},
		{"gubernator", "gubernator", gubernator, gubernator},
	} {
		t.Run(service.name, func(t *testing.T) {
			envoy := serveFailing(t, service.protocol, "service", envoytest.HTTP2Cluster("service", service.asked.Addr()))
			for _, policy := range policies {
				tally := sendAsOne(t, envoy.Addr(t, "strict-"+policy), "before", 100)
				if tally[http.StatusOK] != failingLimit || tally[http.StatusTooManyRequests] != 100-failingLimit {
					t.Errorf("strict-%s: got answers by status %v, want %d admitted", policy, tally, failingLimit)
				}
			}
			service.server.Kill()
			expectAllPolicies(t, envoy, "killed")
			if err := service.server.Restart(); err != nil {
				t.Fatal(err)
			}
			for _, policy := range policies {
				expectDecided(t, envoy, "strict-"+policy)
				expectDecided(t, envoy, "lease-"+policy)
			}
			if err := service.server.Pause(); err != nil {
				t.Fatal(err)
			}
			expectAllPolicies(t, envoy, "paused")
			if err := service.server.Resume(); err != nil {
				t.Fatal(err)
			}
			for _, policy := range policies {
				expectDecided(t, envoy, "strict-"+policy)
				expectDecided(t, envoy, "lease-"+policy)
			}
		})
	}
}

func TestOnFailureDecidesWhereThereIsNoService(t *testing.T) {
	answers := envoytest.NewUpstream(t) // no gRPC, so what it says is nonsense
	for name, clusters := range map[string][]envoytest.Object{
		"unknown cluster":       nil,
		"without endpoints":     {envoytest.HTTP2Cluster("service")},
		"no circuit breaker":    {envoytest.Thresholds(envoytest.HTTP2Cluster("service", "127.0.0.1:1"), envoytest.Object{"max_requests": 0, "max_pending_requests": 0})},
		"answers with nonsense": {envoytest.HTTP2Cluster("service", fmt.Sprintf("127.0.0.1:%d", answers.Port()))},
	} {
		t.Run(name, func(t *testing.T) {
			expectAllPolicies(t, serveFailing(t, "rls", "service", clusters...), "nobody")
		})
	}
}

// load is a stream of requests that goes on until it is ended.
type load struct {
	listener string
	stop     chan struct{}
	done     sync.WaitGroup
	answered atomic.Int64

	mu       sync.Mutex
	tally    envoytest.Tally
	failures []error
}

// startLoad has several senders send one request after the other to a listener.
func startLoad(t *testing.T, envoy *envoytest.Envoy, listener string) *load {
	t.Helper()
	l := &load{listener: listener, stop: make(chan struct{}), tally: envoytest.Tally{}}
	for i := range 4 {
		sender := envoytest.NewClient(t, envoy.Addr(t, listener), envoytest.ClientOptions{})
		l.done.Go(func() { l.send(sender, i) })
	}
	return l
}

// send sends as one client after the other, none of which uses up its limit, so
// that there is always somebody about whom the service has to be asked.
func (l *load) send(sender *envoytest.Client, number int) {
	const each = 8
	for i := 0; ; i++ {
		select {
		case <-l.stop:
			return
		default:
		}
		response, err := sender.Send("GET", "/", fmt.Sprintf("x-client: loaded-%d-%d", number, i/each))
		l.mu.Lock()
		if err != nil {
			l.failures = append(l.failures, err)
			l.mu.Unlock()
			return
		}
		l.tally[response.Status]++
		l.mu.Unlock()
		l.answered.Add(1)
	}
}

// goesOn waits until so many more have been answered.
func (l *load) goesOn(t *testing.T, more int64) {
	t.Helper()
	until := l.answered.Load() + more
	envoytest.Eventually(t, "requests of "+l.listener+" are answered", func() bool { return l.answered.Load() >= until })
}

// end ends the load and returns the answers by status.
func (l *load) end(t *testing.T) envoytest.Tally {
	t.Helper()
	close(l.stop)
	l.done.Wait()
	for _, err := range l.failures {
		t.Errorf("%s: a request has no answer: %v", l.listener, err)
	}
	return l.tally
}

// Whatever befalls the service while requests come, each has an answer, of a kind
// that its policy allows.
func TestEachRequestIsAnsweredWhateverBefallsTheServiceMeanwhile(t *testing.T) {
	for _, protocol := range []string{"rls", "gubernator"} {
		t.Run(protocol, func(t *testing.T) {
			server := map[string]func() *fleettest.Server{
				"rls":        func() *fleettest.Server { return rateLimitServer(t) },
				"gubernator": func() *fleettest.Server { return fleettest.StartGubernator(t) },
			}[protocol]()
			envoy := serveFailing(t, protocol, "service", envoytest.HTTP2Cluster("service", server.Addr()))
			loads := map[string]*load{}
			for _, policy := range policies {
				loads["strict-"+policy] = startLoad(t, envoy, "strict-"+policy)
				loads["lease-"+policy] = startLoad(t, envoy, "lease-"+policy)
			}
			allGoOn := func() {
				t.Helper()
				for _, l := range loads {
					l.goesOn(t, 40)
				}
			}
			allGoOn()
			for range 2 {
				server.Kill()
				allGoOn()
				if err := server.Restart(); err != nil {
					t.Fatal(err)
				}
				allGoOn()
				if err := server.Pause(); err != nil {
					t.Fatal(err)
				}
				allGoOn()
				if err := server.Resume(); err != nil {
					t.Fatal(err)
				}
				allGoOn()
			}
			for name, l := range loads {
				tally := l.end(t)
				denied, refused := tally[http.StatusServiceUnavailable], tally[http.StatusTooManyRequests]
				others := tally[http.StatusOK] + denied + refused
				for _, n := range tally {
					others -= n
				}
				// Strictly nobody is beyond a limit. Beside a lease there is only so much credit.
				if others != 0 || (denied > 0) != strings.HasSuffix(name, "-deny") || refused > 0 && strings.HasPrefix(name, "strict-") {
					t.Errorf("%s: answers by status %v", name, tally)
				}
			}
			for _, policy := range policies {
				expectDecided(t, envoy, "strict-"+policy)
				expectDecided(t, envoy, "lease-"+policy)
			}
		})
	}
}
