package e2e

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// The probe makes the hostcalls and gets the callbacks that the host layer
// offers, each once, on a real Envoy: those that the filter does not use yet
// too.

// probe is a site with the probe in place of the filter.
func probe(t *testing.T) *site {
	t.Helper()
	name := newName(t)
	return serveChain(t, envoytest.Listener{Name: name},
		envoytest.Wasm{Name: name, VMID: "probe", Module: envoytest.Module(t, "probe.wasm")})
}

// expectProbed checks what the probe says came of a path.
func expectProbed(t *testing.T, s *site, path, want string) {
	t.Helper()
	r := s.client(t).Get(t, path)
	if got := r.Header.Get("X-Probe"); !regexp.MustCompile("^(?:" + want + ")$").MatchString(got) {
		t.Errorf("%s: got status %d and %q, want %q", path, r.Status, got, want)
	}
}

func TestHostcallsDoWhatTheHostLayerSays(t *testing.T) {
	s := probe(t)
	expectProbed(t, s, "/property", `0 127\.0\.0\.1:\d+`)
	expectProbed(t, s, "/headers", `0 .*:path=/headers; :method=GET; .*`)
	// A monotonic clock that is no wall clock, and a wall clock of this century.
	expectProbed(t, s, "/clock", `true true \d{1,17} \d{19}`)
	// Created, not again, read, won with its version, lost with the old one, absent.
	expectProbed(t, s, "/shared/a", `0 8 0 one 0 8 three 1`)
	expectProbed(t, s, "/metric", `0 0 0 0 0 0`)
	envoytest.Eventually(t, "the metrics are in the stats", func() bool {
		return s.envoy.Stat(t, "wasmcustom.probe.counter") == 3 && s.envoy.Stat(t, "wasmcustom.probe.gauge") == 7
	})
	r := s.client(t).Get(t, "/local")
	if r.Status != http.StatusTeapot || r.Body != "short and stout" || r.Header.Get("X-Probe") != "local" {
		t.Errorf("a local response came as %d %q with %q", r.Status, r.Body, r.Header.Get("X-Probe"))
	}
	if details := s.awaitLogged(t, "/local").Details; details != "probe_details" {
		t.Errorf("its details are %q", details)
	}
}

// A property that the filter sets is filter state, which other filters, routes
// and access logs can read.
func TestAPropertyThatIsSetIsFilterState(t *testing.T) {
	route := envoytest.ToUpstream("all", "/")
	route["response_headers_to_add"] = []envoytest.Object{{
		"header": envoytest.Object{"key": "x-state", "value": "%FILTER_STATE(wasm.probe:PLAIN)%"},
	}}
	name := newName(t)
	s := serveChain(t, envoytest.Listener{Name: name, Routes: []envoytest.Object{route}},
		envoytest.Wasm{Name: name, VMID: "probe", Module: envoytest.Module(t, "probe.wasm")})
	if got := only(t, s.client(t).Get(t, "/property"), "X-State"); got != "written" {
		t.Errorf("the filter state is %q", got)
	}
}

func TestAPausedRequestIsResumedByATick(t *testing.T) {
	expectProbed(t, probe(t), "/tick", "ticked")
}

func TestATickFindsThatAClientHasGone(t *testing.T) {
	s := probe(t)
	// The client goes as soon as its request has been paused; another one that
	// waits for the same tick, or a later one, is not mixed up with it.
	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+"/hold", nil)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if r, err := http.DefaultClient.Do(request); err == nil {
			r.Body.Close()
		}
	}()
	envoytest.Eventually(t, "the request is held", func() bool {
		return s.envoy.Stat(t, "wasmcustom.probe.held") > 0
	})
	cancel()
	<-gone
	envoytest.Eventually(t, "Envoy has noticed", func() bool {
		return strings.Contains(s.envoy.Log(t), "probe: stream is gone: status 2")
	})
	expectProbed(t, s, "/tick", "ticked")
}

func TestCalloutsAreAnswered(t *testing.T) {
	s := probe(t)
	expectProbed(t, s, "/http/upstream", `.*"Path":"/answer".* <nil>`)
	expectProbed(t, s, "/http/unknown", `error status returned by host: bad argument`)
	expectProbed(t, s, "/grpc/model", "0 question")
	// An unknown cluster: the call itself fails, and a close comes for no call.
	expectProbed(t, s, "/grpc/unknown", "call 10")
	expectProbed(t, s, "/grpc/xa", "call 10")
	// A server that is no gRPC server answers 200 without a grpc-status.
	expectProbed(t, s, "/grpc/upstream", `[1-9]\d*`)
}

func TestAPanicIsRecoveredAtTheBoundary(t *testing.T) {
	s := probe(t)
	expectProbed(t, s, "/panic", "recovered")
	expectProbed(t, s, "/property", `0 127\.0\.0\.1:\d+`)
	if !strings.Contains(s.envoy.Log(t), "sluice: panic in proxy_on_request_headers: asked for") {
		t.Error("the log does not say so")
	}
}
