package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
	"github.com/sluice-proxy/sluice/e2e/fleettest"
)

// The limit of these tests: two hits a day.
func perDay(key string) fleettest.Limit {
	return fleettest.Limit{Key: "client", Value: key, Requests: 2, Unit: fleettest.Day}
}

func aDay(key string) fleettest.Bucket {
	return fleettest.Bucket{Name: "client", Key: key, Capacity: 2, Duration: 24 * time.Hour}
}

// onOneDay has a check of a limit a day run on one day: it repeats, with another
// key, what midnight has split.
func onOneDay(check func(key string)) {
	today := func() string { return time.Now().UTC().Format(time.DateOnly) }
	for try := 0; ; try++ {
		before := today()
		check(fmt.Sprint("try-", try))
		if today() == before {
			return
		}
	}
}

// inTime is the context of a call that is expected to be answered.
func inTime(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// admits counts how many of three hits are admitted by ask, which is called once
// for each, with its number.
func admits(t *testing.T, ask func(ctx context.Context, n int) (fleettest.Decision, error)) (admitted []bool) {
	t.Helper()
	for n := range 3 {
		decision, err := ask(inTime(t), n)
		if err != nil {
			t.Fatal(err)
		}
		if decision.Limit != 2 {
			t.Fatalf("the server takes the limit to be %d, want 2", decision.Limit)
		}
		admitted = append(admitted, decision.Admitted)
	}
	return admitted
}

func expectTwoOfThree(t *testing.T, admitted []bool) {
	t.Helper()
	if fmt.Sprint(admitted) != "[true true false]" {
		t.Fatalf("admitted: %v, want the first two of three", admitted)
	}
}

func TestTheRateLimitServerCountsADescriptorAgainstItsOwnLimit(t *testing.T) {
	server := fleettest.StartRateLimit(t, fleettest.StartValkey(t))
	var admitted []bool
	onOneDay(func(key string) {
		admitted = admits(t, func(ctx context.Context, _ int) (fleettest.Decision, error) {
			return fleettest.AskRateLimit(ctx, server.Addr(), perDay(key), 1)
		})
	})
	expectTwoOfThree(t, admitted)
}

// Whichever peer is asked, a key is counted once: there are keys of both.
func TestGubernatorsCountAKeyTogether(t *testing.T) {
	peers := fleettest.StartGubernators(t, 2)
	for i := range 64 {
		expectTwoOfThree(t, admits(t, func(ctx context.Context, n int) (fleettest.Decision, error) {
			return fleettest.AskGubernator(ctx, peers[n%2].Addr(), aDay(fleettest.SpreadKey(i)), 1)
		}))
	}
}

// errorsFor returns the errors with which peers answer for many keys.
func errorsFor(t *testing.T, peer *fleettest.Server) (failed, all int) {
	for i := range 64 {
		if _, err := fleettest.AskGubernator(inTime(t), peer.Addr(), aDay(fleettest.SpreadKey(i)), 0); err != nil {
			failed++
		}
	}
	return failed, 64
}

func TestAGubernatorsKeysFailWhileItIsDown(t *testing.T) {
	peers := fleettest.StartGubernators(t, 2)
	if failed, all := errorsFor(t, peers[0]); failed != 0 {
		t.Fatalf("%d of %d keys fail while both peers are up", failed, all)
	}
	peers[1].Kill()
	if failed, all := errorsFor(t, peers[0]); failed == 0 || failed == all {
		t.Fatalf("%d of %d keys fail, want those of the peer that is down", failed, all)
	}
	if err := peers[1].Restart(); err != nil {
		t.Fatal(err)
	}
	if failed, all := errorsFor(t, peers[0]); failed != 0 {
		t.Fatalf("%d of %d keys fail though the peer is back", failed, all)
	}
}

func TestTheRateLimitServerForgetsWhatARestartedValkeyHeld(t *testing.T) {
	valkey := fleettest.StartValkey(t)
	server := fleettest.StartRateLimit(t, valkey)
	ask := func(ctx context.Context, key string) (fleettest.Decision, error) {
		return fleettest.AskRateLimit(ctx, server.Addr(), perDay(key), 1)
	}
	var before, after []bool
	onOneDay(func(key string) {
		before = admits(t, func(ctx context.Context, _ int) (fleettest.Decision, error) { return ask(ctx, key) })
		valkey.Kill()
		if valkey.Running() {
			t.Fatal("a server that was killed is running")
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if decision, err := ask(ctx, key); err == nil {
			t.Fatalf("without Valkey the answer is %+v, want an error", decision)
		}
		addr := valkey.Addr()
		if err := valkey.Restart(); err != nil {
			t.Fatal(err)
		}
		if valkey.Addr() != addr {
			t.Fatalf("Valkey came back at %s, want %s", valkey.Addr(), addr)
		}
		// Each of the rate limit server's connections fails once before it is made
		// anew. What fails so has been counted nowhere.
		after = admits(t, func(ctx context.Context, _ int) (decision fleettest.Decision, err error) {
			envoytest.Eventually(t, "the rate limit server has Valkey again", func() bool {
				decision, err = ask(ctx, key)
				return err == nil || ctx.Err() != nil
			})
			return decision, err
		})
	})
	expectTwoOfThree(t, before)
	expectTwoOfThree(t, after)
}

func TestARateLimitServerThatDiedComesBack(t *testing.T) {
	valkey := fleettest.StartValkey(t)
	server := fleettest.StartRateLimit(t, valkey)
	ask := func(key string) (fleettest.Decision, error) {
		return fleettest.AskRateLimit(inTime(t), server.Addr(), perDay(key), 1)
	}
	server.Kill()
	if _, err := ask("a"); err == nil {
		t.Fatal("a server that was killed answers")
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if _, err := ask("a"); err != nil {
		t.Fatal(err)
	}
}

// A call hangs while its server is paused, until its own context ends; one that
// has more patience is answered when the server goes on.
func TestCallsHangWhileAServerIsPaused(t *testing.T) {
	valkey := fleettest.StartValkey(t)
	rateLimit := fleettest.StartRateLimit(t, valkey)
	gubernator := fleettest.StartGubernator(t)
	askRateLimit := func(ctx context.Context) error {
		_, err := fleettest.AskRateLimit(ctx, rateLimit.Addr(), perDay("a"), 1)
		return err
	}
	for _, c := range []struct {
		name   string
		paused *fleettest.Server
		ask    func(ctx context.Context) error
	}{
		{"Valkey", valkey, func(ctx context.Context) error { return fleettest.Ping(ctx, valkey.Addr()) }},
		{"the rate limit server", rateLimit, askRateLimit},
		{"Valkey behind the rate limit server", valkey, askRateLimit},
		{"Gubernator", gubernator, func(ctx context.Context) error {
			_, err := fleettest.AskGubernator(ctx, gubernator.Addr(), aDay("a"), 1)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.paused.Pause(); err != nil {
				t.Fatal(err)
			}
			patient := make(chan error, 1)
			ctx := inTime(t)
			go func() { patient <- c.ask(ctx) }()
			short, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			if err := c.ask(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a call of a paused server ends with %v, want the end of its context", err)
			}
			select {
			case err := <-patient:
				t.Errorf("a paused server answered (%v)", err)
				patient <- err
			default:
			}
			if err := c.paused.Resume(); err != nil {
				t.Fatal(err)
			}
			if err := <-patient; err != nil {
				t.Errorf("the call that waited got no answer: %v", err)
			}
		})
	}
}

// A paused server can be killed, and comes back running.
func TestAServerThatIsPausedCanBeRestarted(t *testing.T) {
	valkey := fleettest.StartValkey(t)
	if err := valkey.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := valkey.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := fleettest.Ping(inTime(t), valkey.Addr()); err != nil {
		t.Fatal(err)
	}
}

// Envoy's own filter asks the server through a cluster of the tests, so that one
// can be measured beside the other.
func TestEnvoysOwnFilterAsksTheRateLimitServer(t *testing.T) {
	server := fleettest.StartRateLimit(t, fleettest.StartValkey(t))
	envoy := envoytest.Start(t, envoytest.Options{
		Upstream: envoytest.NewUpstream(t),
		Clusters: []envoytest.Object{envoytest.HTTP2Cluster("ratelimit", server.Addr())},
		Listeners: []envoytest.Listener{{
			Filters: filters{
				envoytest.LimitMetadata(2, "DAY"),
				envoytest.RateLimit("ratelimit", fleettest.Domain, "60s"),
			},
			Routes: []envoytest.Object{envoytest.DescribeLimit(envoytest.ToUpstream("all", "/"), "x-client", "client")},
		}},
	})
	client := envoytest.NewClient(t, envoy.Addr(t, "main"), envoytest.ClientOptions{})
	var got []int
	onOneDay(func(key string) {
		got = nil
		for range 3 {
			got = append(got, client.Get(t, "/", "x-client: "+key).Status)
		}
	})
	if want := []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// Names of clusters that parse as a protobuf message are names like others, and
// one of the upstream's gives way to the test's.
func TestATestNamesItsClusters(t *testing.T) {
	elsewhere := envoytest.NewUpstream(t)
	addr := fmt.Sprintf("127.0.0.1:%d", elsewhere.Port())
	names := []string{"ratelimit", "model", "envoy", "xa"}
	var clusters, routes []envoytest.Object
	for _, name := range names {
		cluster := envoytest.ConnectTimeout(envoytest.HTTP2Cluster(name, addr), "0.5s")
		clusters = append(clusters, envoytest.Thresholds(cluster, envoytest.Object{"max_requests": 7}))
		routes = append(routes, envoytest.To(name, "/"+name))
	}
	clusters = append(clusters, envoytest.HTTP2Cluster("nobody"))
	routes = append(routes, envoytest.To("nobody", "/nobody"))
	upstream := envoytest.NewUpstream(t)
	envoy := envoytest.Start(t, envoytest.Options{
		Upstream:  upstream,
		Clusters:  clusters,
		Listeners: []envoytest.Listener{{Routes: routes}},
	})
	client := envoytest.NewClient(t, envoy.Addr(t, "main"), envoytest.ClientOptions{})
	inForce := envoy.Admin(t, "/clusters")
	for _, name := range names {
		expectAdmitted(t, client.Get(t, "/"+name))
		if want := name + "::default_priority::max_requests::7\n"; !strings.Contains(inForce, want) {
			t.Errorf("Envoy's clusters lack %q:\n%s", want, inForce)
		}
	}
	if got := client.Get(t, "/nobody").Status; got != http.StatusServiceUnavailable {
		t.Errorf("a cluster without endpoints answers %d, want 503", got)
	}
	if got := elsewhere.Requests(); got != int64(len(names)) || upstream.Requests() != 0 {
		t.Errorf("%d requests came to the test's clusters and %d to the upstream's, want %d and 0",
			got, upstream.Requests(), len(names))
	}
}
