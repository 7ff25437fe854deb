//go:build !wasip1

package plugin

import (
	"testing"

	"github.com/sluice-proxy/sluice/filter/config"
	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/policy"
)

// stubHost is a host that costs next to nothing. All pages of its shared data
// are one, but for what is asked for first: the secret.
func stubHost(b *testing.B) {
	var page []byte
	secret := make([]byte, 16)
	version, ready := uint32(0), false
	now := int64(1)
	host.Clocks = func() (mono, wall int64) { now += 25_000; return now, now }
	address := []byte("203.0.113.10:4711")
	host.Stub.Property = func(path string) ([]byte, host.Status) {
		if path == "source\x00address" {
			return address, host.OK
		}
		return nil, host.NotFound
	}
	host.Stub.SetProperty = func(string, []byte) host.Status { return host.OK }
	host.Stub.ReplaceResponseHeader = func(string, []byte) host.Status { return host.OK }
	host.Stub.SharedData = func([]byte) ([]byte, uint32, host.Status) {
		if !ready {
			ready = true
			return secret, 1, host.OK
		}
		if page == nil {
			return nil, 0, host.NotFound
		}
		return page, version, host.OK
	}
	host.Stub.SetSharedData = func(_, value []byte, _ uint32) host.Status {
		page, version = append(page[:0], value...), version+1
		return host.OK
	}
	host.Stub.DefineMetric = func(string) uint32 { return 0 }
	host.Stub.AddMetric = func(uint32, int64) host.Status { return host.OK }
	b.Cleanup(func() { host.Stub = host.Stubs{} })
}

// A whole request with one limit by address, without what the host costs. The
// compiler is given a profile of it (make profile).
func BenchmarkRequest(b *testing.B) {
	stubHost(b)
	c, err := config.Parse([]byte(`{
		"limits": {"ip": {"algorithm": "token_bucket", "capacity": 1000000000, "refill_rate": "100000/s", "key": ["ip"]}},
		"rules": [{"limits": ["ip"]}],
		"namespace": "bench"
	}`))
	if err != nil {
		b.Fatal(err)
	}
	vm := New()
	vm.plugins[1] = &Plugin{vm: vm, id: 1, config: c, policy: policy.New(c)}
	b.ReportAllocs()
	for i := range b.N {
		id := uint32(i)
		vm.Create(id, 1)
		if vm.RequestHeaders(id) != uint32(host.Continue) {
			b.Fatal("a request was refused")
		}
		vm.ResponseHeaders(id, true)
		vm.Delete(id)
	}
}
