//go:build wasip1

// Command wasm is the module that Envoy loads. Build it with GOOS=wasip1
// GOARCH=wasm and -buildmode=c-shared.
package main

import (
	"github.com/sluice-proxy/sluice/filter/bridge"
	"github.com/sluice-proxy/sluice/filter/plugin"
)

// A c-shared module's main never runs.
func init() {
	vm := plugin.New()
	bridge.Run(vm, vm)
}

func main() {}
