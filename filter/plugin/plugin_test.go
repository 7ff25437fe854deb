//go:build !wasip1

package plugin

import (
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/sluice-proxy/sluice/filter/bridge"
	"github.com/sluice-proxy/sluice/filter/host"
)

// emulated is the filter on the SDK's emulator, whose clocks stand still.
type emulated struct {
	*testing.T
	proxytest.HostEmulator
	vm     *VM
	config []byte // what the emulator hands over
	now    time.Duration
	// attributes are what Envoy knows of every request, state is what filters say
	// of the one that was sent last, by path with zero bytes between the steps. The
	// emulator itself does not tell them apart.
	attributes, state map[string]string
}

func emulate(t *testing.T, config, address string) *emulated {
	t.Helper()
	e := &emulated{
		T: t, vm: New(), config: make([]byte, 64<<10), now: time.Hour,
		attributes: map[string]string{"source\x00address": address}, state: map[string]string{},
	}
	e.configure(config)
	host.Clocks = func() (mono, wall int64) { return int64(e.now), int64(e.now) }
	host.Stub.Property = func(path string) ([]byte, host.Status) {
		for _, properties := range []map[string]string{e.state, e.attributes} {
			if value, ok := properties[path]; ok {
				return []byte(value), host.OK
			}
		}
		return nil, host.NotFound
	}
	host.Stub.SetProperty = func(path string, value []byte) host.Status {
		e.state[path] = string(value)
		return host.OK
	}
	emulator, reset := proxytest.NewHostEmulator(proxytest.NewEmulatorOption().
		WithVMContext(e.vm).
		WithPluginConfiguration(e.config).
		WithProperty([]string{"plugin_name"}, []byte("test")))
	e.HostEmulator = emulator
	t.Cleanup(func() {
		reset()
		host.Stub, host.Verbose = host.Stubs{}, false
	})
	return e
}

// configure makes a document the plugin's configuration from its next start on.
// The emulator takes only one, but does not copy it; spaces behind a document mean
// nothing.
func (e *emulated) configure(document string) {
	for i := copy(e.config, document); i < len(e.config); i++ {
		e.config[i] = ' '
	}
}

func started(t *testing.T, config string) *emulated {
	t.Helper()
	e := emulate(t, config, "203.0.113.10:4711")
	if e.StartPlugin() != types.OnPluginStartStatusOK {
		t.Fatalf("the plugin did not start: %q", e.GetErrorLogs())
	}
	return e
}

// request sends a request's headers and returns its stream.
func (e *emulated) request(headers ...[2]string) (stream uint32, action types.Action) {
	e.state = map[string]string{}
	stream = e.InitializeHttpContext()
	return stream, e.CallOnRequestHeaders(stream, withPseudoHeaders(headers), true)
}

// withPseudoHeaders puts those that every request has ahead of others, but for
// those that are among the others.
func withPseudoHeaders(headers [][2]string) [][2]string {
	var all [][2]string
	for _, h := range [][2]string{{":method", "GET"}, {":path", "/"}, {":authority", "example.com"}} {
		if values(headers, h[0]) == nil {
			all = append(all, h)
		}
	}
	return append(all, headers...)
}

// path sends a request for a path, and returns whether it went on.
func (e *emulated) path(path string) bool {
	_, action := e.request([2]string{":path", path})
	return action == types.ActionContinue
}

// counted is what a counter says, 0 where there is none.
func (e *emulated) counted(name string) uint64 {
	n, _ := e.GetCounterMetric(name)
	return n
}

// response sends the upstream's headers and returns what the client gets.
func (e *emulated) response(stream uint32, headers ...[2]string) [][2]string {
	e.CallOnResponseHeaders(stream, append([][2]string{{":status", "200"}}, headers...), true)
	return e.GetCurrentResponseHeaders(stream)
}

func values(headers [][2]string, name string) (found []string) {
	for _, h := range headers {
		if h[0] == name {
			found = append(found, h[1])
		}
	}
	return found
}

func (e *emulated) wantHeader(headers [][2]string, name string, want ...string) {
	e.Helper()
	if got := values(headers, name); strings.Join(got, "|") != strings.Join(want, "|") {
		e.Errorf("%s: got %q, want %q", name, got, want)
	}
}

const oneAMinute = `{
	"limits": {"login": {"algorithm": "token_bucket", "capacity": 2, "refill_rate": "1/m", "key": ["ip"]}},
	"rules": [{"limits": ["login"]}]
}`

func TestAdmittedResponsesSayWhatIsLeftInPlaceOfTheUpstream(t *testing.T) {
	e := started(t, oneAMinute)
	stream, action := e.request()
	if action != types.ActionContinue {
		t.Fatal("the first request was stopped")
	}
	headers := e.response(stream, [2]string{"ratelimit-remaining", "999"}, [2]string{"retry-after", "7"})
	e.wantHeader(headers, "ratelimit-limit", "2")
	e.wantHeader(headers, "ratelimit-remaining", "1")
	e.wantHeader(headers, "ratelimit-reset", "60")
	e.wantHeader(headers, "retry-after", "7")
}

func TestARefusalIsACompleteAnswer(t *testing.T) {
	e := started(t, oneAMinute)
	e.request()
	e.request()
	stream, action := e.request()
	if action != types.ActionPause {
		t.Fatal("the third request went on")
	}
	reply := e.GetSentLocalResponse(stream)
	if reply == nil || reply.StatusCode != 429 || reply.GRPCStatus != 8 {
		t.Fatalf("got %+v", reply)
	}
	if got, want := string(reply.Data), `{"error":"rate_limit_exceeded","message":"Too many requests. Try again in 60 seconds.","retryAfter":60}`; got != want {
		t.Errorf("body %s, want %s", got, want)
	}
	for name, want := range map[string]string{
		"content-type": "application/json", "retry-after": "60", "x-envoy-ratelimited": "true",
		"ratelimit-limit": "2", "ratelimit-remaining": "0", "ratelimit-reset": "120",
	} {
		e.wantHeader(reply.Headers, name, want)
	}
	// The reply comes by the filter again, after the route has had its say.
	headers := e.response(stream, [2]string{"ratelimit-limit", "999"}, [2]string{"retry-after", "7"})
	e.wantHeader(headers, "ratelimit-limit", "2")
	e.wantHeader(headers, "retry-after", "60")
}

func TestGRPCClientsGetTheSentenceAlone(t *testing.T) {
	e := started(t, oneAMinute)
	e.request()
	e.request()
	for contentType, sentence := range map[string]bool{
		"application/grpc": true, "application/grpc+proto": true, "application/grpc-web": false, "text/plain": false,
	} {
		stream, _ := e.request([2]string{"content-type", contentType})
		body := string(e.GetSentLocalResponse(stream).Data)
		if got := body == "Too many requests. Try again in 60 seconds."; got != sentence {
			t.Errorf("%s got %s", contentType, body)
		}
	}
}

func TestARuleHasAResponseOfItsOwn(t *testing.T) {
	e := started(t, `{
		"limits": {"none": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/m", "key": []},
		           "key":  {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/m", "key": ["header:x-api-key"], "missing": "deny"}},
		"response": {"status": 503, "body": "busy"},
		"rules": [{"match": {"method": "GET"}, "limits": [{"limit": "none", "cost": 2}], "response": {"body": "No. Нет."}},
		          {"match": {"method": "PUT"}, "limits": ["key"]},
		          {"limits": [{"limit": "none", "cost": 2}]}]
	}`)
	for method, want := range map[string]string{"GET": "No. Нет.", "POST": "busy", "PUT": "busy"} {
		stream := e.InitializeHttpContext()
		e.CallOnRequestHeaders(stream, [][2]string{{":method", method}, {":path", "/"}}, true)
		reply := e.GetSentLocalResponse(stream)
		if reply.StatusCode != 503 || string(reply.Data) != want {
			t.Errorf("%s: got %d %q, want 503 %q", method, reply.StatusCode, reply.Data, want)
		}
		e.wantHeader(reply.Headers, "retry-after")
		if method == "PUT" {
			e.wantHeader(reply.Headers, "ratelimit-limit")
		}
	}
}

func TestABadConfigIsRefusedWithALineForEachMistake(t *testing.T) {
	e := emulate(t, `{"limits": {"a": {"algorithm": "token_bucket", "capacity": 0, "refill_rate": "1/fortnight", "key": ["ip"]}}}`, "")
	if e.StartPlugin() != types.OnPluginStartStatusFailed {
		t.Fatal("a bad config was taken")
	}
	logs := strings.Join(e.GetErrorLogs(), "\n")
	for _, path := range []string{"limits.a.capacity: ", "limits.a.refill_rate: "} {
		if strings.Count(logs, "sluice: config: "+path) != 1 {
			t.Errorf("no line about %q in:\n%s", path, logs)
		}
	}
}

// Envoy makes contexts that never see request headers, and ends them all the same.
func TestStreamsOutOfOrderDoNoHarm(t *testing.T) {
	e := started(t, oneAMinute)
	for range 3 * streamSlots {
		e.CompleteHttpContext(e.InitializeHttpContext())
	}
	e.vm.ResponseHeaders(e.InitializeHttpContext(), true)
	for _, unknown := range []uint32{0, 4711, 1 << 31} {
		if e.vm.RequestHeaders(unknown) != uint32(host.Continue) || e.vm.RequestHeadersFailed(unknown) != uint32(host.Continue) {
			t.Error("a stream that does not exist was stopped")
		}
		e.vm.ResponseHeaders(unknown, true)
		if e.vm.Delete(unknown) != bridge.NoStream {
			t.Error("a stream that does not exist was forgotten")
		}
	}
	if _, action := e.request(); action != types.ActionContinue {
		t.Error("a request was stopped that nobody had come before")
	}
}

func TestARequestGoesOnAfterAPanicUnlessDenied(t *testing.T) {
	for onError, want := range map[string]types.Action{"allow": types.ActionContinue, "deny": types.ActionPause} {
		t.Run(onError, func(t *testing.T) {
			e := started(t, strings.Replace(oneAMinute, "{", `{"on_error": "`+onError+`",`, 1))
			stream := e.InitializeHttpContext()
			e.CallOnRequestHeaders(stream, nil, true)
			if got := types.Action(e.vm.RequestHeadersFailed(stream)); got != want {
				t.Errorf("got action %v, want %v", got, want)
			}
			reply := e.GetSentLocalResponse(stream)
			if denied := onError == "deny"; denied != (reply != nil) || denied && (reply.StatusCode != 503 || reply.GRPCStatus != 14) {
				t.Errorf("got the reply %+v, want 503 and the gRPC status 14 if denied, else none", reply)
			}
			if n, err := e.GetCounterMetric("sluice.panics"); err != nil || n != 1 {
				t.Errorf("counted %d panics (%v)", n, err)
			}
		})
	}
}
