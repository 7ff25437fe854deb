// Package host is what the filter sees of Envoy on the path of a request:
// hostcalls that do not allocate. In the WebAssembly build they go straight to
// the proxy-wasm ABI; in a native build they go to the SDK, and so to its
// emulator. What is not on that path uses the SDK itself (package proxywasm).
//
// Data that a hostcall returns lies in an arena that is emptied when the next
// stream callback begins: it must be copied to be kept.
package host

// Status is what a hostcall returns.
type Status uint32

// The statuses of proxy-wasm that Envoy uses.
const (
	OK              Status = 0
	NotFound        Status = 1
	BadArgument     Status = 2
	Serialization   Status = 3
	Parse           Status = 4
	InvalidMemory   Status = 6
	Empty           Status = 7
	CASMismatch     Status = 8
	InternalFailure Status = 10
	Unimplemented   Status = 12
)

// Action is what a stream callback answers.
type Action uint32

// The actions.
const (
	Continue Action = 0
	Pause    Action = 1
)

// Level is a log level.
type Level uint32

// The log levels in use.
const (
	Debug Level = 1
	Info  Level = 2
	Warn  Level = 3
	Error Level = 4
)

// MetricKind is what a metric does with its values.
type MetricKind uint32

// The kinds of metrics.
const (
	Counter   MetricKind = 0
	Gauge     MetricKind = 1
	Histogram MetricKind = 2
)

// NoGRPCStatus leaves it to Envoy which grpc-status a local response carries.
const NoGRPCStatus int32 = -1
