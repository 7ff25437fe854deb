package e2e

import (
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// The workers share a secret, by which they find buckets. Here another module of
// the same vm_id has overwritten it, and no limit can be decided.
func TestWhatCannotBeDecidedFollowsOnError(t *testing.T) {
	for _, c := range []struct {
		onError string
		status  int
		grpc    string
	}{
		{"allow", 200, "0"},
		{"deny", 503, "14"},
	} {
		t.Run(c.onError, func(t *testing.T) {
			vm := newName(t)
			spoiler := serveChain(t, envoytest.Listener{}, envoytest.Wasm{Name: newName(t), VMID: vm, Module: envoytest.Module(t, "probe.wasm")})
			expectProbed(t, spoiler, "/spoil/sluice1:secret", "0")
			site := serveChain(t, envoytest.Listener{}, envoytest.Wasm{
				Name: newName(t), VMID: vm, Config: perIP(2, `, "exempt": [{"path": "/healthz"}], "on_error": "`+c.onError+`"`),
			})
			const errors = "wasmcustom.sluice.table.errors"
			before := site.envoy.Stat(t, errors)
			client := site.client(t)
			for range 5 {
				response := client.Get(t, "/undecided")
				if response.Status != c.status {
					t.Errorf("got status %d, want %d", response.Status, c.status)
				}
				expectNoLimit(t, response)
			}
			response := envoytest.NewClient(t, site.addr, envoytest.ClientOptions{HTTP2: true}).
				Do(t, "POST", "/svc/Method", "content-type: application/grpc", "te: trailers")
			if status := response.Header.Get("grpc-status") + response.Trailer.Get("grpc-status"); status != c.grpc {
				t.Errorf("a gRPC call got grpc-status %q, want %s", status, c.grpc)
			}
			expectAdmitted(t, client.Get(t, "/healthz")) // there is nothing to decide
			envoytest.Eventually(t, "what could not be decided is counted", func() bool {
				return site.envoy.Stat(t, errors)-before == 6
			})
			if entry := site.awaitLogged(t, "/undecided"); c.onError == "deny" && entry.Details != "sluice_undecided" {
				t.Errorf("the access log has details %q", entry.Details)
			}
		})
	}
}
