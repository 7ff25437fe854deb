package e2e

import (
	"fmt"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/fleettest"
)

func TestAFleetAdmitsExactlyTheLimitWhenItAsksStrictly(t *testing.T) {
	for _, service := range []struct{ protocol, addr string }{
		{"rls", rateLimitServer(t).Addr()},
		{"gubernator", fleettest.StartGubernator(t).Addr()},
	} {
		t.Run(service.protocol, func(t *testing.T) {
			const limit, requests = 300, 1200
			sites := serveFleet(t, 3, windowed(limit, fmt.Sprintf(`"protocol": %q`, service.protocol)), service.addr)
			onOneDay(func(key string) {
				tally := sendSpread(t, sites, requests, key)
				if tally[200] != limit || tally[429] != requests-limit {
					t.Errorf("got answers by status %v, want %d of 200 and %d of 429", tally, limit, requests-limit)
				}
			})
		})
	}
}
