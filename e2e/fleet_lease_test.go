package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
	"github.com/sluice-proxy/sluice/e2e/fleettest"
)

const (
	leasedLimit = 1200
	goldLimit   = 600
	minuteLimit = 5000
	envoys      = 3
)

// largest is the most units of a limit that an Envoy takes at a time under
// leasedConfig, and the most that it admits on credit.
func largest(limit int) int { return limit / 20 }

// leasedConfig has fleet-wide limits by lease, each for the path of its name,
// whose own names begin with the protocol's. While the service is away there is
// no answer but 503.
func leasedConfig(protocol string) string {
	const window = `"algorithm": "fixed_window", "window": "1d"`
	limits := map[string]string{
		"day": window + fmt.Sprintf(`, "limit": %d, "overrides": [
			{"match": {"headers": {"x-plan": "gold"}}, "limit": %d},
			{"match": {"headers": {"x-plan": "free"}}, "unlimited": true}]`, leasedLimit, goldLimit),
		"charged": window + fmt.Sprintf(`, "limit": %d, "charge": {"response_header": "x-used", "max": 1000}`, leasedLimit),
		"minute":  fmt.Sprintf(`"algorithm": "fixed_window", "window": "1m", "limit": %d`, minuteLimit),
	}
	if protocol == "rls" {
		limits["second"] = `"algorithm": "fixed_window", "window": "1s", "limit": 1000`
	} else {
		limits["bucket"] = fmt.Sprintf(`"algorithm": "token_bucket", "capacity": %d, "refill_rate": "1/d"`, leasedLimit)
	}
	var all, rules []string
	for name, fields := range limits {
		all = append(all, fmt.Sprintf(`"%s-%s": {"key": ["client=header:x-client"], "scope": "global", %s}`, protocol, name, fields))
		rules = append(rules, fmt.Sprintf(`{"match": {"path": "/%s"}, "limits": ["%s-%[1]s"]}`, name, protocol))
	}
	return fmt.Sprintf(`{
		"global": {"cluster": %q, "protocol": %[1]q, "mode": "lease", "lease": 0.05, "timeout": "10s", "on_failure": "deny"},
		"limits": {%s}, "rules": [%s]}`, protocol, strings.Join(all, ", "), strings.Join(rules, ", "))
}

// leased are the listeners of several Envoys that lease from one service.
type leased struct {
	protocol string
	service  *fleettest.Server
	sites    []*site
}

// serveLeased starts Envoys with a listener for each protocol.
func serveLeased(t *testing.T) []*leased {
	t.Helper()
	fleets := []*leased{
		{protocol: "rls", service: rateLimitServer(t)},
		{protocol: "gubernator", service: fleettest.StartGubernator(t)},
	}
	o := envoytest.Options{Workers: workers, Upstream: envoytest.NewUpstream(t)}
	for _, f := range fleets {
		o.Clusters = append(o.Clusters, envoytest.HTTP2Cluster(f.protocol, f.service.Addr()))
		o.Listeners = append(o.Listeners, envoytest.Listener{Name: f.protocol, Filters: filters{envoytest.Wasm{
			Module: envoytest.Module(t, "sluice.wasm"),
			Name:   f.protocol,
			Config: leasedConfig(f.protocol),
		}.Filter()}})
	}
	for range envoys {
		envoy := envoytest.Start(t, o)
		for i, f := range fleets {
			f.sites = append(f.sites, &site{
				envoy: envoy, upstream: o.Upstream, listener: o.Listeners[i], addr: envoy.Addr(t, f.protocol),
			})
		}
	}
	return fleets
}

// calls is how often the Envoys have asked the service about a limit.
func (f *leased) calls(t *testing.T, limit string) (n int64) {
	t.Helper()
	for _, s := range f.sites {
		n += s.envoy.Stat(t, limitStat(f.protocol+"-"+limit, "calls"))
	}
	return n
}

// bounds are how many requests of one unit are admitted in a window in which so
// many Envoys go on until the service has nothing left. Each may be in debt by
// then. The rate limit server spends what it refuses: the first refusal takes
// what was left, which was less than a lease.
func (f *leased) bounds(limit, envoys int) (least, most int) {
	most = limit + envoys*largest(limit)
	if f.protocol == "rls" {
		return limit - largest(limit) + 1, most
	}
	return limit, most
}

// expectWithin checks what was admitted of a limit's window.
func expectWithin(t *testing.T, what string, admitted, least, most int) {
	t.Helper()
	t.Logf("%s: %d admitted", what, admitted)
	if admitted < least || admitted > most {
		t.Errorf("%s: %d requests were admitted, want %d to %d", what, admitted, least, most)
	}
}

// drain sends requests of one client to the sites over many connections, each
// until it is refused for longer than it takes to ask the service, and returns
// how many were admitted.
func drain(t *testing.T, sites []*site, path string, headers ...string) (admitted int) {
	t.Helper()
	const connections = 8 // to each Envoy
	var (
		mu   sync.Mutex
		done sync.WaitGroup
	)
	for i := range len(sites) * connections {
		client := sites[i%len(sites)].client(t)
		done.Go(func() {
			n, err := sendUntilRefused(client, path, headers...)
			mu.Lock()
			defer mu.Unlock()
			if admitted += n; err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	return admitted
}

// sendUntilRefused sends requests until there is nothing left for about a day.
func sendUntilRefused(client *envoytest.Client, path string, headers ...string) (admitted int, err error) {
	for {
		response, err := client.Send("GET", path, headers...)
		switch {
		case err != nil:
			return admitted, err
		case response.Status == http.StatusOK:
			admitted++
		case response.Status != http.StatusTooManyRequests:
			return admitted, fmt.Errorf("got status %d %q, want 200 or 429", response.Status, response.Body)
		case len(response.Header.Get("Retry-After")) > 2: // 100 s or more
			return admitted, nil
		}
	}
}

func TestAFleetThatLeases(t *testing.T) {
	for _, f := range serveLeased(t) {
		t.Run(f.protocol, func(t *testing.T) {
			t.Run("admits the limit of each key but for a lease of each Envoy", f.testBounds)
			t.Run("has idle Envoys hold little", f.testIdle)
			t.Run("lends as much to all workers of an Envoy together, and has none wait", f.testCredit)
			t.Run("lets all workers have the tokens that one has asked for", f.testTokensAreShared)
			t.Run("asks for few requests", f.testCalls)
			t.Run("admits by an override of a limit that refuses", f.testOverrides)
			t.Run("charges what a response says", f.testCharge)
			if f.protocol == "rls" {
				t.Run("asks about each request where the window is a second", f.testSeconds)
			} else {
				t.Run("admits a bucket's capacity but for a lease of each Envoy", f.testBucket)
			}
		})
	}
}

func (f *leased) testBounds(t *testing.T) {
	onOneDay(func(key string) {
		var all sync.WaitGroup
		admitted := make([]int, 3)
		reached := f.sites[0].upstream.Requests()
		for i := range admitted {
			all.Go(func() { admitted[i] = drain(t, f.sites, "/day", fmt.Sprint("x-client: bounds-", i, key)) })
		}
		all.Wait()
		sum := 0
		least, most := f.bounds(leasedLimit, envoys)
		for i, n := range admitted {
			expectWithin(t, fmt.Sprint("key ", i), n, least, most)
			sum += n
		}
		if n := f.sites[0].upstream.Requests() - reached; n != int64(sum) {
			t.Errorf("%d requests reached the upstream, want the %d that were admitted", n, sum)
		}
	})
}

// Each idle Envoy holds at most one lease and a half, and a lease is at most twice
// what it has used.
func (f *leased) testIdle(t *testing.T) {
	const used = 10 // by each idle Envoy
	onOneDay(func(key string) {
		client := "x-client: idle-" + key
		idle, busy := f.sites[:2], f.sites[2:]
		for _, s := range idle {
			c := s.client(t)
			for range used {
				expectAdmitted(t, c.Get(t, "/day", client))
			}
		}
		least, _ := f.bounds(leasedLimit, envoys)
		admitted := len(idle)*used + drain(t, busy, "/day", client)
		// An idle Envoy may still owe what it has used, which only its next lease repays.
		expectWithin(t, "while two are idle", admitted, least-len(idle)*3*used, leasedLimit+largest(leasedLimit)+len(idle)*used)

		// What they have held is not lost.
		_, most := f.bounds(leasedLimit, envoys)
		expectWithin(t, "with what they held", admitted+drain(t, idle, "/day", client), least, most)
	})
}

// sendWhilePaused sends requests of a client, each on a connection of its own,
// until one is refused, while the service stands still, and returns how many were
// admitted. A request that waited for the service would be without an answer, or
// get 503.
func (f *leased) sendWhilePaused(t *testing.T, header string) (admitted int) {
	t.Helper()
	if err := f.service.Pause(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.service.Resume(); err != nil {
			t.Fatal(err)
		}
	}()
	client := f.sites[0].newcomer(t, "")
	for {
		response := client.Get(t, "/day", header)
		if response.Status == http.StatusOK {
			admitted++
			continue
		}
		expectRefused(t, response)
		return admitted
	}
}

func (f *leased) testCredit(t *testing.T) {
	onOneDay(func(key string) {
		client := "x-client: credit-" + key
		admitted := f.sendWhilePaused(t, client)
		expectEveryWorkerBusy(t, f.sites[0].envoy, f.protocol)
		if admitted != largest(leasedLimit) {
			t.Errorf("%d requests were admitted on credit, want %d", admitted, largest(leasedLimit))
		}
		least, most := f.bounds(leasedLimit, 1)
		expectWithin(t, "with what was on credit", admitted+drain(t, f.sites[:1], "/day", client), least, most)
	})
}

func (f *leased) testTokensAreShared(t *testing.T) {
	onOneDay(func(key string) {
		client := "x-client: shared-" + key
		one := f.sites[0].client(t)
		for range 4 * largest(leasedLimit) {
			expectAdmitted(t, one.Get(t, "/day", client))
		}
		// What one connection, and so one worker, has used has grown the lease to the
		// largest, of which more than a third is left: the rest is the credit.
		n := f.sendWhilePaused(t, client)
		expectWithin(t, "by tokens and on credit", n, largest(leasedLimit)+largest(leasedLimit)/3, 3*largest(leasedLimit))
	})
}

func (f *leased) testCalls(t *testing.T) {
	const requests = minuteLimit * 9 / 10
	before := f.calls(t, "minute")
	var clients []*envoytest.Client
	for i := range 8 * envoys {
		clients = append(clients, f.sites[i%envoys].client(t))
	}
	var all sync.WaitGroup
	for _, client := range clients {
		all.Go(func() {
			for range requests / len(clients) {
				response, err := client.Send("GET", "/minute", "x-client: calls")
				if err != nil || response.Status != http.StatusOK && response.Status != http.StatusTooManyRequests {
					t.Errorf("got status %d and error %v", response.Status, err)
				}
			}
		})
	}
	all.Wait()
	calls := f.calls(t, "minute") - before
	t.Logf("%d calls for %d requests", calls, requests)
	if calls == 0 || calls*20 >= requests {
		t.Errorf("the Envoys made %d calls for %d requests, want less than one in twenty", calls, requests)
	}
}

func (f *leased) testOverrides(t *testing.T) {
	onOneDay(func(key string) {
		client := "x-client: overrides-" + key
		drain(t, f.sites, "/day", client)
		least, most := f.bounds(goldLimit, envoys)
		expectWithin(t, "gold", drain(t, f.sites, "/day", client, "x-plan: gold"), least, most)
		calls := f.calls(t, "day")
		for _, s := range f.sites {
			c := s.newcomer(t, "")
			expectRefused(t, c.Get(t, "/day", client))
			for range 10 {
				expectAdmitted(t, c.Get(t, "/day", client, "x-plan: free"))
			}
		}
		if n := f.calls(t, "day") - calls; n != 0 {
			t.Errorf("the Envoys made %d calls for a client without limit and for one whose refusal they know, want none", n)
		}
	})
}

func (f *leased) testCharge(t *testing.T) {
	const used = 500
	onOneDay(func(key string) {
		client := "x-client: charge-" + key
		first := f.sites[0].client(t)
		before := f.calls(t, "charged")
		expectAdmitted(t, first.Get(t, "/charged", client, fmt.Sprint("x-reply-header: x-used: ", used)))
		if calls := f.calls(t, "charged") - before; calls != 2 {
			t.Errorf("the Envoy made %d calls, want one for a lease and one for the charge", calls)
		}
		least, most := f.bounds(leasedLimit, envoys)
		admitted := 1 + drain(t, f.sites, "/charged", client)
		expectWithin(t, "beside the charge", admitted, least-used, most-used)
	})
}

func (f *leased) testSeconds(t *testing.T) {
	const requests = 20
	before := f.calls(t, "second")
	for i := range requests {
		expectAdmitted(t, f.sites[i%envoys].client(t).Get(t, "/second", "x-client: seconds"))
	}
	if calls := f.calls(t, "second") - before; calls != requests {
		t.Errorf("the Envoys made %d calls, want one for each of %d requests", calls, requests)
	}
}

func (f *leased) testBucket(t *testing.T) {
	_, most := f.bounds(leasedLimit, envoys)
	// Who has got all that it asked for, and hears that less than that is left, rests.
	least := leasedLimit - largest(leasedLimit) + 1
	expectWithin(t, "bucket", drain(t, f.sites, "/bucket", "x-client: bucket"), least, most)
}
