package plugin

import "github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

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

func (c *httpContext) OnHttpResponseHeaders(int, bool) types.Action {
	c.vm.ResponseHeaders(c.id)
	return types.ActionContinue
}

func (c *httpContext) OnHttpStreamDone() { c.vm.Delete(c.id) }
