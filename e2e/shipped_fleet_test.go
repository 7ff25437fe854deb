package e2e

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// A client that goes from one Envoy to the other sees one limit, and so do two
// addresses that have one key.
func TestTheFleetFileHasItsEnvoysShareALimit(t *testing.T) {
	_, port, _ := net.SplitHostPort(rateLimitServer(t).Addr())
	var addrs []string
	for range 2 {
		_, _, addr := shipped(t, "fleet.yaml",
			"port_value: 8081 ", "port_value: "+port+" ",
			`"limit": 1000, "window": "1h"`, `"limit": 10, "window": "1d"`,
			`"timeout": "50ms"`, `"timeout": "5s"`)
		addrs = append(addrs, addr)
	}
	onOneDay(func(key string) {
		sent := 0
		expectSpent(t, 10, func() envoytest.Response {
			sent++
			return from(t, fmt.Sprintf("127.0.0.%d", 2+sent/2), addrs[sent%2]).Get(t, "/", "x-api-key: "+key)
		})
		expectLimit(t, from(t, "127.0.0.2", addrs[0]).Get(t, "/", "x-api-key: other-"+key), 10, 9)
	})
}

// The compose file names what the tests have run on.
func TestTheFleetsImagesAreOfTheVersionsThatMakeFetches(t *testing.T) {
	makefile := envoytest.Ship(t, "Makefile")
	fetched := func(name string) string {
		found := regexp.MustCompile(`(?m)^` + name + ` +:= (\S+)$`).FindStringSubmatch(makefile)
		if found == nil {
			t.Fatalf("the Makefile has no %s", name)
		}
		return found[1]
	}
	valkey, _, _ := strings.Cut(fetched("VALKEY"), ".post") // of the wheel
	rateLimit := fetched("RATELIMIT")                       // its image is called by a commit's first 8 digits
	rateLimit = rateLimit[strings.LastIndexByte(rateLimit, '-')+1:][:8]
	compose := envoytest.Ship(t, "envoy/docker/fleet/compose.yaml")
	for image, times := range map[string]int{
		"envoyproxy/ratelimit:" + rateLimit: 1,
		"valkey/valkey:" + valkey:           1,
		envoytest.Image(envoytest.Current):  2,
	} {
		if got := strings.Count(compose, " image: "+image+"\n"); got != times {
			t.Errorf("the compose file has the image %s %d times, want %d", image, got, times)
		}
	}
}
