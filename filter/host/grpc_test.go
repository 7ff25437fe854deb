package host

import (
	"strings"
	"testing"
)

// A bare cluster name that parses as a message aborts Envoy, so what is sent
// must be the message, byte for byte.
func TestTheGRPCServiceIsAMessageAndNotAName(t *testing.T) {
	long := strings.Repeat("x", 200)
	for cluster, want := range map[string]string{
		"model": "\x0a\x07\x0a\x05model",
		"xa":    "\x0a\x04\x0a\x02xa",
		"":      "\x0a\x02\x0a\x00",
		long:    "\x0a\xcb\x01\x0a\xc8\x01" + long,
	} {
		if got := grpcService(cluster); got != want {
			t.Errorf("%q: got %q, want %q", cluster, got, want)
		}
	}
}

func TestACallEndsOnceAndUnknownOnesAreIgnored(t *testing.T) {
	var got []int
	note := func(status int, _ []byte) { got = append(got, status) }
	calls[5] = call{1, note}
	GRPCClosed(0, 14)
	GRPCReceived(77, 3)
	GRPCClosed(5, 4)
	GRPCClosed(5, 4)
	calls[6] = call{1, note}
	GRPCClosed(6, 0)
	if len(got) != 2 || got[0] != 4 || got[1] != GRPCStatusUnavailable {
		t.Errorf("got %v, want status 4, then unavailable for a call that closed well but empty", got)
	}
	if len(calls) != 0 {
		t.Errorf("%d calls are still waiting", len(calls))
	}
}

func TestTheCallsOfAPluginThatIsGoneAreForgotten(t *testing.T) {
	var got []uint32
	for id, plugin := range []uint32{1, 2, 1} {
		calls[uint32(id)] = call{plugin, func(int, []byte) { got = append(got, plugin) }}
	}
	ForgetGRPCCalls(1)
	for id := range uint32(3) {
		GRPCClosed(id, 14)
	}
	if len(got) != 1 || got[0] != 2 || len(calls) != 0 {
		t.Errorf("calls of the plugins %v ended and %d wait; want one of plugin 2, and none", got, len(calls))
	}
}
