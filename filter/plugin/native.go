package plugin

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/sluice-proxy/sluice/filter/bridge"
)

// httpContext lets the SDK drive a stream, as its emulator does in native
// builds.
type httpContext struct {
	types.DefaultHttpContext
	vm *VM
	id uint32
}

func (c *httpContext) OnHttpRequestHeaders(int, bool) types.Action {
	return types.Action(c.vm.RequestHeaders(c.id))
}

func (c *httpContext) OnHttpResponseHeaders(_ int, end bool) types.Action {
	c.vm.ResponseHeaders(c.id, end)
	return types.ActionContinue
}

func (c *httpContext) OnHttpResponseTrailers(int) types.Action {
	c.vm.ResponseTrailers(c.id)
	return types.ActionContinue
}

func (c *httpContext) OnHttpStreamDone() {
	if c.vm.Delete(c.id) == bridge.NotYet {
		c.vm.End(c.id)
	}
}
