package e2e

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// A queue that lets one go a minute holds requests for as long as a test looks
// at them: they leave by being given up. One of several a second is for seeing
// them depart.

// queue is a config with one limit, in which requests wait, and which clients
// share that send the same header x-client. It has further fields after that.
func queue(name string, capacity int, rate, further string) string {
	return fmt.Sprintf(`{
		"limits": {%q: {"algorithm": "leaky_bucket", "capacity": %d, "leak_rate": %q, "key": ["header:x-client"]}},
		"rules":  [{"match": {"path_prefix": "/free"}, "limits": []}, {"limits": [%q]}]
		%s
	}`, name, capacity, rate, name, further)
}

// alone starts an Envoy of the test's own with one listener, in which the filter
// with this config follows the listener's filters.
func alone(t *testing.T, o envoytest.Options, l envoytest.Listener, instance envoytest.Wasm) *site {
	t.Helper()
	l.Name, instance.Name = "main", "main"
	if instance.Module == "" {
		instance.Module = envoytest.Module(t, "sluice.wasm")
	}
	l.Filters = append(l.Filters, instance.Filter())
	o.Upstream, o.Listeners = envoytest.NewUpstream(t), []envoytest.Listener{l}
	envoy := envoytest.Start(t, o)
	return &site{envoy: envoy, upstream: o.Upstream, listener: l, addr: envoy.Addr(t, "main")}
}

// path is a path of the test's own, below which the upstream is watched.
func (s *site) path() string { return "/" + s.listener.Name }

// watch notes what reaches the upstream of this test.
func (s *site) watch() *envoytest.Arrivals { return s.upstream.Watch(s.path()) }

// overHTTP2 returns a client of the site with one connection.
func (s *site) overHTTP2(t *testing.T) *envoytest.Client {
	return envoytest.NewClient(t, s.addr, envoytest.ClientOptions{HTTP2: true})
}

// awaitStat waits until a stat of a limit has this value.
func (s *site) awaitStat(t *testing.T, limit, name string, want int64) {
	t.Helper()
	stat := limitStat(limit, name)
	envoytest.Eventually(t, fmt.Sprintf("%s is %d", stat, want), func() bool { return s.envoy.Stat(t, stat) == want })
}

// line has requests join a queue one after the other, so that their order is
// known.
type line struct {
	site    *site
	limit   string
	waiting int64 // how many wait
}

// join sends a request that has to wait, and returns when it does.
func (l *line) join(t *testing.T, client *envoytest.Client, method, path string, body io.Reader, headers ...string) *envoytest.Pending {
	t.Helper()
	pending := client.Begin(t, method, path, body, headers...)
	l.waiting++
	l.site.awaitStat(t, l.limit, "waiting", l.waiting)
	return pending
}

// leave has a client give up, and returns when the filter knows.
func (l *line) leave(t *testing.T, pending *envoytest.Pending) {
	t.Helper()
	pending.GiveUp()
	l.waiting--
	l.site.awaitStat(t, l.limit, "waiting", l.waiting)
}

// delayed returns how long a queue has told a request to wait, as the access
// log has it when the request has ended.
func (s *site) delayed(t *testing.T, limit, path string) time.Duration {
	t.Helper()
	entry := s.awaitLogged(t, path)
	wait, found := waitIn(t, limit, entry.State)
	if !found {
		t.Fatalf("%s has the filter state %q, want it delayed by %s", path, entry.State, limit)
	}
	return wait
}

func waitIn(t *testing.T, limit, state string) (wait time.Duration, found bool) {
	t.Helper()
	for item := range strings.SplitSeq(state, ",") {
		if text, ok := strings.CutPrefix(item, "delayed:"+limit+":"); ok {
			wait, err := time.ParseDuration(text)
			if err != nil {
				t.Fatalf("filter state %q: %v", state, err)
			}
			return wait, true
		}
	}
	return 0, false
}

// expectDelayed checks that the queue has told a request to wait longer than
// some and at most so long. Where one leaves a minute, a place more or less is
// a minute more or less, however slow the machine is.
func (s *site) expectDelayed(t *testing.T, limit, path string, longer, atMost time.Duration) {
	t.Helper()
	if wait := s.delayed(t, limit, path); wait <= longer || wait > atMost {
		t.Errorf("%s was to wait %v, want more than %v and at most %v", path, wait, longer, atMost)
	}
}

// expectNoneEarly checks that of requests, the first of which was sent at the
// given moment or later, none arrived before its turn.
func expectNoneEarly(t *testing.T, sent time.Time, every time.Duration, arrivals []envoytest.Arrival) {
	t.Helper()
	for i, arrival := range arrivals {
		if after := arrival.At.Sub(sent); after < time.Duration(i)*every {
			t.Errorf("departure %d, %s, came %v after the first was sent, want at least %v", i, arrival.Path, after, time.Duration(i)*every)
		}
	}
}
