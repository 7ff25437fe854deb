//go:build !wasip1

package plugin

import "testing"

// What a request costs outside the policy: its stream's slot and its address.
func BenchmarkStreamAndAddress(b *testing.B) {
	vm := New()
	vm.plugins[1] = &Plugin{vm: vm, id: 1}
	text := []byte("203.0.113.10:4711")
	b.ReportAllocs()
	for i := range b.N {
		id := uint32(i)
		vm.Create(id, 1)
		vm.RequestHeaders(id)
		parseAddress(text)
		vm.ResponseHeaders(id)
		vm.Delete(id)
	}
}
