package bridge

import (
	"os"
	"strings"
	"testing"
)

// The bridge names unexported functions of the SDK and relies on the order of
// an internal interface. No compiler checks that they still fit, so the bridge
// holds for one version, down to its content, and must be read again for any
// other.
func TestTheSDKIsTheOneTheBridgeWasWrittenFor(t *testing.T) {
	const want = "github.com/tetratelabs/proxy-wasm-go-sdk v0.24.0 h1:Xuwzknb4+OHBSYFXif0aBdV0F4MShL8L5YYFda9uUIs="
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(sums)) {
		if strings.HasPrefix(line, "github.com/tetratelabs/proxy-wasm-go-sdk ") && !strings.Contains(line, "/go.mod ") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if len(got) != 1 || got[0] != want {
		t.Errorf("go.sum has %q, the bridge was written for %q: compare hostcalls_wasip1.go and sdk_wasip1.go with the SDK's package internal", got, want)
	}
}
