package host

import (
	"unsafe"

	"github.com/sluice-proxy/sluice/filter/abi"
)

// memory holds the pages of a few limits and the headers of an ordinary request.
// Larger requests work, they only allocate.
var memory = arena{chunk: make([]byte, 64<<10)}

// result is where hostcalls leave what they return: never on the stack, which
// may move during a call (see package abi).
var result struct {
	data, size uint32
	word       uint32
	ns         int64
}

// BeginStreamCallback empties the arena. Every callback of a stream begins with
// it, and every tick.
func BeginStreamCallback() { memory.begin(true) }

// BeginPluginCallback makes returned data permanent. Every callback that is
// neither a stream's nor a tick begins with it.
func BeginPluginCallback() { memory.begin(false) }

// Allocate serves proxy_on_memory_allocate.
func Allocate(size uint32) unsafe.Pointer {
	return memory.allocate(int(size))
}

// returned is the data that the last call returned.
func returned() []byte { return memory.piece(int(result.size)) }

func bytesPointer(b []byte) unsafe.Pointer  { return unsafe.Pointer(unsafe.SliceData(b)) }
func stringPointer(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(s)) }

func resultData() unsafe.Pointer { return unsafe.Pointer(&result.data) }
func resultSize() unsafe.Pointer { return unsafe.Pointer(&result.size) }
func resultWord() unsafe.Pointer { return unsafe.Pointer(&result.word) }

// Monotonic reads the clock that all workers of the process share, in ns. It
// returns false where the host has none.
func Monotonic() (int64, bool) {
	errno := abi.ClockTimeGet(1, 1, unsafe.Pointer(&result.ns))
	return result.ns, errno == 0
}

// Wall reads the time since 1970-01-01 UTC in ns.
func Wall() (int64, bool) {
	errno := abi.ClockTimeGet(0, 1, unsafe.Pointer(&result.ns))
	return result.ns, errno == 0
}

// Random fills b with unpredictable bytes. It returns false where the host has
// none.
func Random(b []byte) bool { return abi.RandomGet(bytesPointer(b), uint32(len(b))) == 0 }

// Property reads an attribute of the stream; path is its name with a zero byte
// between the steps.
func Property(path string) ([]byte, Status) {
	result.size = 0
	status := abi.GetProperty(stringPointer(path), uint32(len(path)), resultData(), resultSize())
	if status != 0 {
		return nil, Status(status)
	}
	return returned(), OK
}

// SetProperty writes an attribute of the stream: into filter state, under
// "wasm." and the path.
func SetProperty(path string, value []byte) Status {
	return Status(abi.SetProperty(stringPointer(path), uint32(len(path)), bytesPointer(value), uint32(len(value))))
}

// RequestHeader reads the first value of a request header.
func RequestHeader(name string) ([]byte, Status) { return headerValue(0, name) }

// RequestHeaders reads all request headers. It costs little more than one.
func RequestHeaders() (Pairs, Status) { return headerPairs(0) }

// ResponseHeader reads the first value of a response header.
func ResponseHeader(name string) ([]byte, Status) { return headerValue(2, name) }

// ResponseHeaders reads all response headers.
func ResponseHeaders() (Pairs, Status) { return headerPairs(2) }

// ResponseTrailers reads all response trailers.
func ResponseTrailers() (Pairs, Status) { return headerPairs(3) }

func headerValue(headerMap uint32, name string) ([]byte, Status) {
	result.size = 0
	status := abi.GetHeaderMapValue(headerMap, stringPointer(name), uint32(len(name)), resultData(), resultSize())
	if status != 0 {
		return nil, Status(status)
	}
	return returned(), OK
}

func headerPairs(headerMap uint32) (Pairs, Status) {
	result.size = 0
	status := abi.GetHeaderMapPairs(headerMap, resultData(), resultSize())
	if status != 0 {
		return Pairs{}, Status(status)
	}
	return ParsePairs(returned()), OK
}

// HasResponseHeader says whether the response has a header. Asking for one that
// is not there costs a fifth of reading one that is.
func HasResponseHeader(name string) bool {
	result.size = 0
	return abi.GetHeaderMapValue(2, stringPointer(name), uint32(len(name)), resultData(), resultSize()) == 0
}

// ReplaceResponseHeader sets a response header to one value.
func ReplaceResponseHeader(name string, value []byte) Status {
	return Status(abi.ReplaceHeaderMapValue(2, stringPointer(name), uint32(len(name)), bytesPointer(value), uint32(len(value))))
}

// RemoveResponseHeader removes all values of a response header.
func RemoveResponseHeader(name string) Status {
	return Status(abi.RemoveHeaderMapValue(2, stringPointer(name), uint32(len(name))))
}

// SharedData reads a value of the map that the workers share, and its version
// for SetSharedData.
func SharedData(key []byte) (value []byte, cas uint32, status Status) {
	result.size, result.word = 0, 0
	s := abi.GetSharedData(bytesPointer(key), uint32(len(key)), resultData(), resultSize(), resultWord())
	if s != 0 {
		return nil, 0, Status(s)
	}
	return returned(), result.word, OK
}

// SetSharedData writes a value if the key is absent or its version is still
// cas, else it returns CASMismatch. A cas of 0 overwrites whatever is there.
func SetSharedData(key, value []byte, cas uint32) Status {
	return Status(abi.SetSharedData(bytesPointer(key), uint32(len(key)), bytesPointer(value), uint32(len(value)), cas))
}

// SendLocalResponse ends the stream with a response of the filter's own.
// headers is a serialized list (AppendPairs). For a gRPC request Envoy makes
// the body the grpc-message.
func SendLocalResponse(code int, details string, body, headers []byte, grpcStatus int32) Status {
	return Status(abi.SendLocalResponse(uint32(code), stringPointer(details), uint32(len(details)),
		bytesPointer(body), uint32(len(body)), bytesPointer(headers), uint32(len(headers)), grpcStatus))
}

// ResumeRequest lets a request go on that RequestHeaders paused. The stream
// must be the effective context.
func ResumeRequest() Status { return Status(abi.ContinueStream(0)) }

// SetEffectiveContext makes the following calls speak of another stream or
// plugin. On a stream that is gone it fails and leaves the previous one
// effective: whoever ignores its status hits a stranger's stream.
func SetEffectiveContext(id uint32) Status { return Status(abi.SetEffectiveContext(id)) }

// SetTickPeriod makes the host call the plugin's OnTick this often; 0 stops it.
func SetTickPeriod(ms uint32) Status { return Status(abi.SetTickPeriod(ms)) }

// DefineMetric returns the id of a metric, which it makes if it is not there.
func DefineMetric(kind MetricKind, name string) (uint32, Status) {
	result.word = 0
	s := abi.DefineMetric(uint32(kind), stringPointer(name), uint32(len(name)), resultWord())
	return result.word, Status(s)
}

// AddMetric adds to a counter or gauge.
func AddMetric(id uint32, delta int64) Status { return Status(abi.IncrementMetric(id, delta)) }

// RecordMetric sets a gauge or adds a value to a histogram.
func RecordMetric(id uint32, value uint64) Status { return Status(abi.RecordMetric(id, value)) }

// Log writes a line to Envoy's log.
func Log(level Level, message string) {
	abi.Log(uint32(level), stringPointer(message), uint32(len(message)))
}

// Logs says whether lines of a level go to the log.
func Logs(level Level) bool {
	result.word = uint32(Error)
	abi.GetLogLevel(resultWord())
	return level >= Level(result.word)
}

func grpcCall(service, name, method string, metadata, message []byte, timeoutMS uint32) (uint32, Status) {
	result.word = 0
	s := abi.GRPCCall(stringPointer(service), uint32(len(service)), stringPointer(name), uint32(len(name)),
		stringPointer(method), uint32(len(method)), bytesPointer(metadata), uint32(len(metadata)),
		bytesPointer(message), uint32(len(message)), timeoutMS, resultWord())
	return result.word, Status(s)
}

func grpcMessage(size uint32) ([]byte, Status) {
	result.size = 0
	s := abi.GetBufferBytes(5, 0, size, resultData(), resultSize())
	if s != 0 {
		return nil, Status(s)
	}
	return returned(), OK
}
