package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// Who is refused is told when the same request would be admitted. It takes no
// place, so that asking again and again changes nothing.
func TestOverEitherBoundRetryAfterIsWhenAPlaceIsFree(t *testing.T) {
	for _, bound := range []struct {
		name, limit, config string
		cost                int
		ahead               int64 // how many wait before one is refused
		longest             time.Duration
	}{
		// Six places are taken, and the last of them must have begun before three
		// more may wait.
		{"capacity", "waiting-full", `{"algorithm": "leaky_bucket", "capacity": 3, "leak_rate": "1/s", "key": []}`, 3, 1, 5 * time.Second},
		// The second request would leave four seconds after the first.
		{"max_wait", "waiting-long", `{"algorithm": "leaky_bucket", "capacity": 100, "leak_rate": "1/4s", "max_wait": "1s", "key": []}`, 1, 0, 3 * time.Second},
	} {
		t.Run(bound.name, func(t *testing.T) {
			site := serve(t, fmt.Sprintf(`{"limits": {%q: %s}, "rules": [{"limits": [%q], "cost": %d}]}`,
				bound.limit, bound.config, bound.limit, bound.cost), envoytest.Listener{})
			client := site.newcomer(t, "127.0.0.2")
			expectAdmitted(t, client.Get(t, site.path()))
			waiting := &line{site: site, limit: bound.limit}
			for range bound.ahead {
				waiting.join(t, client, "GET", site.path(), nil)
			}

			sent := time.Now()
			refused := client.Get(t, site.path()+"?refused")
			got := time.Now()
			expectRefused(t, refused)
			retry := time.Duration(number(t, refused, "Retry-After")) * time.Second
			if retry < time.Second || retry > bound.longest {
				t.Errorf("Retry-After is %v, want at most %v", retry, bound.longest)
			}
			entry := site.awaitLogged(t, site.path()+"?refused")
			if want := "sluice_rate_limited." + bound.limit; entry.Details != want || entry.State != "refused:"+bound.limit {
				t.Errorf("the access log has %+v, want the details %s", entry, want)
			}

			attempts := 0
			envoytest.Eventually(t, "the request is admitted", func() bool {
				attempts++
				path := fmt.Sprintf("%s?attempt=%d", site.path(), attempts)
				asked := time.Now()
				if client.Get(t, path).Status == 429 {
					if asked.Sub(got) > retry {
						t.Fatalf("Retry-After was %v, and a request is refused %v later", retry, asked.Sub(got))
					}
					return false
				}
				left := time.Now()
				wait, _ := waitIn(t, bound.limit, site.awaitLogged(t, path).State)
				if admitted := left.Sub(sent) - wait + time.Millisecond; admitted < retry-time.Second {
					t.Errorf("Retry-After was %v, and a request was admitted %v later", retry, admitted)
				}
				return true
			})
		})
	}
}

func TestACallOverTheBoundIsToldResourceExhausted(t *testing.T) {
	const limit = "waiting-grpc-full"
	site := serve(t, queue(limit, 1, "1/m", ""), envoytest.Listener{})
	client, headers := site.overHTTP2(t), []string{"te: trailers", "content-type: application/grpc"}
	expectAdmitted(t, client.Do(t, "POST", "/pkg.Service/Method", headers...))
	(&line{site: site, limit: limit}).join(t, client, "POST", "/pkg.Service/Method", strings.NewReader("held"), headers...)

	refused := client.Do(t, "POST", "/pkg.Service/Method", headers...)
	if got := only(t, refused, "Grpc-Status"); refused.Status != 200 || got != "8" {
		t.Errorf("got status %d and grpc-status %s, want 200 and 8 (RESOURCE_EXHAUSTED)", refused.Status, got)
	}
	if retry := number(t, refused, "Retry-After"); retry < 1 || retry > 60 {
		t.Errorf("Retry-After is %d, want at most the minute in which the one that waits leaves", retry)
	}
	expectLimit(t, refused, 1, 0)
}
