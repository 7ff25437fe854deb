// Package bridge connects a module built by the stock Go compiler with the
// proxy-wasm SDK, which declares its imports and exports for TinyGo only. Under
// the stock compiler the SDK is in its test mode: its hostcalls go to an
// interface value that a test may register, and its callbacks are unexported
// functions. The bridge registers a value that makes the real hostcalls, and
// exports functions to Envoy that call those callbacks.
//
// The plugin model, that is types.VMContext and types.PluginContext, is the
// SDK's. The callbacks of a stream go to a Streams of ours instead: the SDK's
// bookkeeping for a stream costs a third of what the whole filter may (see
// RATIONALE.md), and the filter does not need it.
//
// Only the stream callbacks that the filter uses are exported, because Envoy
// calls every one that is there, for every request.
package bridge

// Streams receives the callbacks of all streams of a VM. Stream and plugin are
// context ids. Contexts exist that never see request headers, and ids may come
// that Streams has never seen: both must do no harm.
type Streams interface {
	// Create announces a stream of a plugin. It must not panic.
	Create(stream, plugin uint32)
	// RequestHeaders decides about a request. It returns 0 to let it go on and
	// 1 to pause it.
	RequestHeaders(stream uint32) uint32
	// RequestHeadersFailed decides in place of a RequestHeaders that panicked.
	RequestHeadersFailed(stream uint32) uint32
	// ResponseHeaders may change the response's headers. end says that nothing
	// follows them.
	ResponseHeaders(stream uint32, end bool)
	// ResponseTrailers may read the response's trailers.
	ResponseTrailers(stream uint32)
	// Delete forgets a stream about which nothing is left to be done, as most. It
	// must not panic.
	Delete(stream uint32) Deletion
	// End does what is left to be done about a stream that Delete says is NotYet
	// to be deleted, and forgets it.
	End(stream uint32)
	// DeletePlugin forgets a plugin, of which no stream is left.
	DeletePlugin(plugin uint32)
}

// Deletion is what became of a stream that was to be deleted.
type Deletion int

// The outcomes of Streams.Delete.
const (
	NoStream Deletion = iota // the id is not a stream's
	Deleted
	NotYet // End has to be called
)
