package wasmtest

// Status is what a hostcall returns.
type Status uint32

// The statuses of proxy-wasm, as proxy-wasm-cpp-host numbers them.
const (
	OK Status = iota
	NotFound
	BadArgument
	SerializationFailure
	ParseFailure
	BadExpression
	InvalidMemoryAccess
	Empty
	CASMismatch
	ResultMismatch
	InternalFailure
	BrokenConnection
	Unimplemented
)

// Action is what a callback answers: whether the stream goes on.
type Action uint32

// The actions. Envoy takes every other answer for a pause, too.
const (
	Continue Action = iota
	Pause
)
