package bridge

import (
	_ "unsafe" // for go:linkname

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// The SDK's callbacks and its registration of a host, by their unexported names.

//go:linkname sdkRegisterHost github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.RegisterMockWasmHost
func sdkRegisterHost(h sdkHost) (release func())

//go:linkname sdkOnVMStart github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnVMStart
func sdkOnVMStart(context uint32, configurationSize int) types.OnVMStartStatus

//go:linkname sdkOnConfigure github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnConfigure
func sdkOnConfigure(plugin uint32, configurationSize int) types.OnPluginStartStatus

//go:linkname sdkOnContextCreate github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnContextCreate
func sdkOnContextCreate(context, plugin uint32)

//go:linkname sdkOnDelete github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnDelete
func sdkOnDelete(context uint32)

//go:linkname sdkOnTick github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnTick
func sdkOnTick(plugin uint32)

//go:linkname sdkOnHTTPCallResponse github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnHttpCallResponse
func sdkOnHTTPCallResponse(plugin, call uint32, numHeaders, bodySize, numTrailers int)

//go:linkname sdkSetActiveContext github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.VMStateSetActiveContextID
func sdkSetActiveContext(context uint32)
