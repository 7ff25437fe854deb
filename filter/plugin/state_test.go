//go:build !wasip1

package plugin

import (
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"

	"github.com/sluice-proxy/sluice/filter/host"
)

// severalLimits has a path for each way in which limits can come together.
const severalLimits = `{
	"limits": {
		"a-short": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/s", "key": ["ip"]},
		"b-long":  {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/h", "key": ["ip"]},
		"c-large": {"algorithm": "token_bucket", "capacity": 9, "refill_rate": "1/h", "key": ["ip"]},
		"day":     {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/h", "key": ["ip"], "shadow": true},
		"key":     {"algorithm": "token_bucket", "capacity": 9, "refill_rate": "1/h", "key": ["bearer"], "missing": "deny"}
	},
	"exempt": [{"path": "/exempt"}],
	"rules": [
		{"match": {"path": "/one"}, "limits": ["a-short"]},
		{"match": {"path": "/both"}, "limits": ["a-short", "b-long"]},
		{"match": {"path": "/large"}, "limits": ["a-short", "c-large"]},
		{"match": {"path": "/with-shadow"}, "limits": ["day", "c-large"]},
		{"match": {"path": "/refused-with-shadow"}, "limits": ["day", "a-short"]},
		{"match": {"path": "/shadow"}, "limits": ["day"]},
		{"match": {"path": "/key"}, "limits": ["key", "day"]}
	]
}`

func TestFilterStateSaysWhatWasDecided(t *testing.T) {
	for _, c := range []struct{ path, first, second string }{
		{"/one", "allowed", "refused:a-short"},
		{"/both", "allowed", "refused:b-long,refused:a-short"}, // the reported one is the one that lasts longest
		{"/large", "allowed", "refused:a-short"},
		{"/with-shadow", "allowed", "allowed,shadow:day"},
		{"/refused-with-shadow", "allowed", "refused:a-short,shadow:day"},
		{"/shadow", "allowed", "shadow:day"},
		{"/key", "refused:key", "refused:key"},
		{"/exempt", "", ""},
		{"/none", "", ""},
	} {
		t.Run(c.path, func(t *testing.T) {
			e := started(t, severalLimits)
			for i, want := range []string{c.first, c.second} {
				e.path(c.path)
				if got := e.state["sluice"]; got != want {
					t.Errorf("request %d: got %q, want %q", i+1, got, want)
				}
			}
		})
	}
}

// failWrite makes the nth write to shared data from now on fail, from 1.
func failWrite(n int) {
	writes := 0
	host.Stub.SetSharedData = func(key, value []byte, version uint32) host.Status {
		if writes++; writes == n {
			return host.InternalFailure
		}
		if proxywasm.SetSharedData(string(key), append([]byte(nil), value...), version) != nil {
			return host.CASMismatch
		}
		return host.OK
	}
}

func TestFilterStateSaysWhichLimitsCouldNotBeDecided(t *testing.T) {
	for _, c := range []struct {
		path string
		nth  int
		want string
	}{
		{"/one", 1, "error:a-short"},
		{"/both", 1, "allowed,error:a-short"},
		{"/both", 2, "allowed,error:b-long"},
		{"/shadow", 1, "error:day"},
		{"/with-shadow", 2, "allowed,error:day"},
	} {
		t.Run(c.path, func(t *testing.T) {
			e := started(t, severalLimits)
			e.path("/key") // writes the table's secret
			failWrite(c.nth)
			e.path(c.path)
			if got := e.state["sluice"]; got != c.want {
				t.Errorf("write %d fails: got %q, want %q", c.nth, got, c.want)
			}
		})
	}
	e := started(t, `{"on_error": "deny", `+severalLimits[1:])
	e.path("/key")
	failWrite(1)
	if e.path("/one") || e.state["sluice"] != "error:a-short" {
		t.Errorf("denied: got %q, want the error alone", e.state["sluice"])
	}
}

func TestWhatAnotherInstanceSaidStaysInFront(t *testing.T) {
	for _, before := range []string{"allowed", "refused:x", "allowed,shadow:y,allowed"} {
		t.Run(before, func(t *testing.T) {
			e := started(t, severalLimits)
			for i, want := range []string{"allowed", "refused:b-long,refused:a-short"} {
				e.state = map[string]string{"sluice": before}
				stream := e.InitializeHttpContext()
				e.CallOnRequestHeaders(stream, withPseudoHeaders([][2]string{{":path", "/both"}}), true)
				if got := e.state["sluice"]; got != before+","+want {
					t.Errorf("after %q, request %d: got %q, want %q behind it", before, i+1, got, want)
				}
			}
		})
	}
}
