//go:build !wasip1

package host

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// Clocks are what Monotonic and Wall return in a native build, in ns.
var Clocks func() (mono, wall int64)

// Stub answers instead of the SDK's emulator where its functions are set. The
// emulator costs more than the filter does, so a benchmark of a whole request
// brings a host that costs nothing.
var Stub Stubs

// Stubs are the hostcalls of a request.
type Stubs struct {
	Property              func(path string) ([]byte, Status)
	SetProperty           func(path string, value []byte) Status
	ReplaceResponseHeader func(name string, value []byte) Status
	SharedData            func(key []byte) (value []byte, cas uint32, s Status)
	SetSharedData         func(key, value []byte, cas uint32) Status
	DefineMetric          func(name string) uint32
	AddMetric             func(id uint32, delta int64) Status
}

func status(err error) Status {
	switch {
	case err == nil:
		return OK
	case errors.Is(err, types.ErrorStatusNotFound):
		return NotFound
	case errors.Is(err, types.ErrorStatusCasMismatch):
		return CASMismatch
	case errors.Is(err, types.ErrorStatusBadArgument):
		return BadArgument
	default:
		return InternalFailure
	}
}

// Monotonic is as in calls_wasip1.go.
func Monotonic() (int64, bool) {
	mono, _ := Clocks()
	return mono, true
}

// Wall is as in calls_wasip1.go.
func Wall() (int64, bool) {
	_, wall := Clocks()
	return wall, true
}

// Random is as in calls_wasip1.go.
func Random(b []byte) bool {
	_, err := rand.Read(b)
	return err == nil
}

// Property is as in calls_wasip1.go.
func Property(path string) ([]byte, Status) {
	if Stub.Property != nil {
		return Stub.Property(path)
	}
	value, err := proxywasm.GetProperty(strings.Split(path, "\x00"))
	return value, status(err)
}

// SetProperty is as in calls_wasip1.go.
func SetProperty(path string, value []byte) Status {
	if Stub.SetProperty != nil {
		return Stub.SetProperty(path, value)
	}
	return status(proxywasm.SetProperty(strings.Split(path, "\x00"), value))
}

// RequestHeader is as in calls_wasip1.go.
func RequestHeader(name string) ([]byte, Status) {
	value, err := proxywasm.GetHttpRequestHeader(name)
	return []byte(value), status(err)
}

// RequestHeaders is as in calls_wasip1.go.
func RequestHeaders() (Pairs, Status) {
	headers, err := proxywasm.GetHttpRequestHeaders()
	return ParsePairs(AppendPairs(nil, headers)), status(err)
}

// ResponseHeader is as in calls_wasip1.go.
func ResponseHeader(name string) ([]byte, Status) {
	value, err := proxywasm.GetHttpResponseHeader(name)
	return []byte(value), status(err)
}

// ResponseHeaders is as in calls_wasip1.go.
func ResponseHeaders() (Pairs, Status) {
	headers, err := proxywasm.GetHttpResponseHeaders()
	return ParsePairs(AppendPairs(nil, headers)), status(err)
}

// ResponseTrailers is as in calls_wasip1.go.
func ResponseTrailers() (Pairs, Status) {
	trailers, err := proxywasm.GetHttpResponseTrailers()
	return ParsePairs(AppendPairs(nil, trailers)), status(err)
}

// HasResponseHeader is as in calls_wasip1.go.
func HasResponseHeader(name string) bool {
	_, err := proxywasm.GetHttpResponseHeader(name)
	return err == nil
}

// ReplaceResponseHeader is as in calls_wasip1.go.
func ReplaceResponseHeader(name string, value []byte) Status {
	if Stub.ReplaceResponseHeader != nil {
		return Stub.ReplaceResponseHeader(name, value)
	}
	return status(proxywasm.ReplaceHttpResponseHeader(name, string(value)))
}

// RemoveResponseHeader is as in calls_wasip1.go.
func RemoveResponseHeader(name string) Status {
	return status(proxywasm.RemoveHttpResponseHeader(name))
}

// SharedData is as in calls_wasip1.go.
func SharedData(key []byte) (value []byte, cas uint32, s Status) {
	if Stub.SharedData != nil {
		return Stub.SharedData(key)
	}
	value, cas, err := proxywasm.GetSharedData(string(key))
	// The emulator hands out its own value, which the caller may change.
	return slices.Clone(value), cas, status(err)
}

// SetSharedData is as in calls_wasip1.go.
func SetSharedData(key, value []byte, cas uint32) Status {
	if Stub.SetSharedData != nil {
		return Stub.SetSharedData(key, value, cas)
	}
	return status(proxywasm.SetSharedData(string(key), append([]byte(nil), value...), cas))
}

// SendLocalResponse is as in calls_wasip1.go.
func SendLocalResponse(code int, _ string, body, headers []byte, grpcStatus int32) Status {
	var list [][2]string
	for p := ParsePairs(headers); ; {
		name, value, rest, ok := p.Next()
		if !ok {
			break
		}
		list, p = append(list, [2]string{string(name), string(value)}), rest
	}
	return status(proxywasm.SendHttpResponse(uint32(code), list, body, grpcStatus))
}

// ResumeRequest is as in calls_wasip1.go.
func ResumeRequest() Status { return status(proxywasm.ResumeHttpRequest()) }

// SetEffectiveContext is as in calls_wasip1.go.
func SetEffectiveContext(id uint32) Status { return status(proxywasm.SetEffectiveContext(id)) }

// SetTickPeriod is as in calls_wasip1.go.
func SetTickPeriod(ms uint32) Status { return status(proxywasm.SetTickPeriodMilliSeconds(ms)) }

// DefineMetric is as in calls_wasip1.go.
func DefineMetric(kind MetricKind, name string) (uint32, Status) {
	if Stub.DefineMetric != nil {
		return Stub.DefineMetric(name), OK
	}
	switch kind {
	case Counter:
		return uint32(proxywasm.DefineCounterMetric(name)), OK
	case Gauge:
		return uint32(proxywasm.DefineGaugeMetric(name)), OK
	default:
		return uint32(proxywasm.DefineHistogramMetric(name)), OK
	}
}

// AddMetric is as in calls_wasip1.go.
func AddMetric(id uint32, delta int64) Status {
	if Stub.AddMetric != nil {
		return Stub.AddMetric(id, delta)
	}
	proxywasm.MetricCounter(id).Increment(uint64(delta))
	return OK
}

// RecordMetric is as in calls_wasip1.go.
func RecordMetric(id uint32, value uint64) Status {
	proxywasm.MetricHistogram(id).Record(value)
	return OK
}

// Log is as in calls_wasip1.go.
func Log(level Level, message string) {
	switch level {
	case Debug:
		proxywasm.LogDebug(message)
	case Info:
		proxywasm.LogInfo(message)
	case Warn:
		proxywasm.LogWarn(message)
	default:
		proxywasm.LogError(message)
	}
}

// Verbose is what Logs returns for debug lines in a native build.
var Verbose bool

// Logs is as in calls_wasip1.go.
func Logs(level Level) bool { return level > Debug || Verbose }

// The emulator has no gRPC callouts.
func grpcCall(string, string, string, []byte, []byte, uint32) (uint32, Status) {
	return 0, Unimplemented
}

func grpcMessage(uint32) ([]byte, Status) { return nil, Unimplemented }
