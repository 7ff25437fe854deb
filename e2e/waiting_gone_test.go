package e2e

import (
	"io"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// gone is a way in which a request ends while it waits.
type gone struct {
	name    string
	limit   string
	http2   bool
	details string // what Envoy's access log says of it
}

var waysToGo = []gone{
	{"its HTTP/1.1 client disconnects", "waiting-gone-h1", false, "downstream_remote_disconnect"},
	{"its HTTP/2 client resets the stream", "waiting-gone-h2", true, "http2.remote_reset"},
}

func (g gone) client(t *testing.T, site *site) *envoytest.Client {
	return envoytest.NewClient(t, site.addr, envoytest.ClientOptions{HTTP2: g.http2, NewConnections: !g.http2})
}

func TestWhoGivesUpAsTheLastInLineFreesItsPlace(t *testing.T) {
	for _, way := range waysToGo {
		t.Run(way.name, func(t *testing.T) {
			site := serve(t, queue(way.limit, 10, "1/m", ""), envoytest.Listener{})
			arrivals, client := site.watch(), way.client(t, site)
			waiting := &line{site: site, limit: way.limit}
			expectAdmitted(t, client.Get(t, site.path()))
			first := waiting.join(t, client, "GET", site.path()+"?first", nil)
			last := waiting.join(t, client, "GET", site.path()+"?last", nil)

			waiting.leave(t, last)
			site.expectDelayed(t, way.limit, site.path()+"?last", time.Minute, 2*time.Minute)
			if entry := site.awaitLogged(t, site.path()+"?last"); entry.Status != 0 || entry.Details != way.details {
				t.Errorf("the access log has %+v, want no status and the details %s", entry, way.details)
			}
			site.awaitStat(t, way.limit, "given_up", 1)

			// The next one has the place that is free.
			next := waiting.join(t, client, "GET", site.path()+"?next", nil)
			waiting.leave(t, next)
			site.expectDelayed(t, way.limit, site.path()+"?next", time.Minute, 2*time.Minute)

			// They leave from the back, and in the end nothing is reserved.
			waiting.leave(t, first)
			again := waiting.join(t, client, "GET", site.path()+"?again", nil)
			waiting.leave(t, again)
			site.expectDelayed(t, way.limit, site.path()+"?again", 0, time.Minute)
			site.awaitStat(t, way.limit, "given_up", 4)
			if n := len(arrivals.All()); n != 1 {
				t.Errorf("%d requests reached the upstream, want the one that did not wait", n)
			}
			expectNoLimit(t, client.Get(t, "/free")) // the connection is still good
		})
	}
}

func TestThePlaceOfWhoGivesUpAheadOfOthersPassesUnused(t *testing.T) {
	const limit = "waiting-gone-ahead"
	site := serve(t, queue(limit, 10, "1/m", ""), envoytest.Listener{})
	client, waiting := site.newcomer(t, "127.0.0.2"), &line{site: site, limit: limit}
	expectAdmitted(t, client.Get(t, site.path()))
	ahead := waiting.join(t, client, "GET", site.path()+"?ahead", nil)
	behind := waiting.join(t, client, "GET", site.path()+"?behind", nil)
	waiting.leave(t, ahead)

	next := waiting.join(t, client, "GET", site.path()+"?next", nil)
	waiting.leave(t, next)
	site.expectDelayed(t, limit, site.path()+"?next", 2*time.Minute, 3*time.Minute)
	waiting.leave(t, behind)
	site.expectDelayed(t, limit, site.path()+"?behind", time.Minute, 2*time.Minute)
	site.awaitStat(t, limit, "given_up", 3)
}

func TestWhoIsTimedOutByEnvoyFreesItsPlace(t *testing.T) {
	for _, timeout := range []struct {
		field, limit string
		uploads      bool // and has more to send
		status       int
		details      string
	}{
		{"stream_idle_timeout", "waiting-idle", false, 504, "stream_idle_timeout"},
		{"stream_idle_timeout", "waiting-idle-upload", true, 408, "stream_idle_timeout"},
		{"request_timeout", "waiting-slow-upload", true, 408, "request_overall_timeout"},
	} {
		t.Run(timeout.limit, func(t *testing.T) {
			site := serve(t, queue(timeout.limit, 10, "1/m", ""), envoytest.Listener{
				Manager: envoytest.Object{timeout.field: "1s"},
			})
			client := site.newcomer(t, "127.0.0.2")
			expectAdmitted(t, client.Get(t, site.path()))
			for i, path := range []string{site.path() + "?first", site.path() + "?next"} {
				var body io.Reader
				if timeout.uploads {
					body, _ = io.Pipe()
				}
				if ended := client.Begin(t, "PUT", path, body).Await(t); ended.Status != timeout.status {
					t.Errorf("got status %d, want %d", ended.Status, timeout.status)
				}
				if entry := site.awaitLogged(t, path); entry.Details != timeout.details {
					t.Errorf("the access log has the details %s, want %s", entry.Details, timeout.details)
				}
				// Each finds the place of the one before it free.
				site.expectDelayed(t, timeout.limit, path, 0, time.Minute)
				site.awaitStat(t, timeout.limit, "given_up", int64(1+i))
				site.awaitStat(t, timeout.limit, "waiting", 0)
			}
		})
	}
}
