package e2e

import (
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

func TestEverySupportedEnvoyLoadsTheFilterAndLimits(t *testing.T) {
	for _, version := range envoytest.Versions {
		t.Run(version, func(t *testing.T) {
			upstream := envoytest.NewUpstream(t)
			envoy := envoytest.Start(t, envoytest.Options{
				Version:  version,
				Workers:  2,
				Upstream: upstream,
				Listeners: []envoytest.Listener{{Filters: filters{
					envoytest.Wasm{Module: envoytest.Module(t, "sluice.wasm"), Config: perIP(5, "")}.Filter(),
				}}},
			})
			client := envoytest.NewClient(t, envoy.Addr(t, "main"), envoytest.ClientOptions{})
			for remaining := 4; remaining >= 0; remaining-- {
				response := client.Get(t, "/")
				expectAdmitted(t, response)
				expectLimit(t, response, 5, remaining)
			}
			for range 3 {
				response := client.Get(t, "/")
				expectRefused(t, response)
				expectLimit(t, response, 5, 0)
			}
			if n := upstream.Requests(); n != 5 {
				t.Errorf("%d requests reached the upstream, want 5", n)
			}
			envoytest.Eventually(t, "all requests are in the access log", func() bool {
				return len(envoy.AccessLog(t, "main")) == 8
			})
			for i, entry := range envoy.AccessLog(t, "main") {
				details, state := "via_upstream", "allowed"
				if i >= 5 {
					details, state = "sluice_rate_limited.per-ip", "refused:per-ip"
				}
				if entry.Details != details || entry.State != state {
					t.Errorf("request %d is logged with details %q and state %q, want %q and %q", i, entry.Details, entry.State, details, state)
				}
			}
			for line := range strings.Lines(envoy.Log(t)) {
				if strings.Contains(line, "[error]") || strings.Contains(line, "[critical]") {
					t.Errorf("Envoy logged %s", line)
				}
			}
		})
	}
}
