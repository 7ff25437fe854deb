package wasmtest_test

import (
	"testing"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

func TestARoutesMistakeIsLoggedByOneWorkerAndCountedByAll(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	workers := startWorkers(t, host, 4, `{"route_metadata":true,`+oneLimit(everyAlgorithm["token_bucket"])[1:])
	// The metadata of a route that picks the rule "none": messages in messages.
	piece := func(field byte, content string) string {
		return string([]byte{field<<3 | 2, byte(len(content))}) + content
	}
	metadata := piece(1, piece(1, "sluice")+piece(2, piece(1, piece(1, "rule")+piece(2, piece(3, "none")))))
	for range 3 {
		for _, worker := range workers {
			stream := worker.NewStream(map[string]string{"source/address": client(1), "xds/route_name": "a", "xds/route_metadata": metadata})
			stream.RequestHeaders(wasmtest.Headers{{":method", "GET"}, {":path", "/"}})
			stream.End()
		}
	}
	lines := 0
	for _, worker := range workers {
		lines += len(worker.VM().Logs())
	}
	if n := host.Metrics["sluice.route.errors"]; n != 12 || lines != 1 {
		t.Errorf("%d requests counted and %d lines logged, want 12 and 1", n, lines)
	}
}
