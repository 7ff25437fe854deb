package host

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// GRPCStatusUnavailable is what a call ends with that reached nobody.
const GRPCStatusUnavailable = 14

// calls are the gRPC calls in flight, by their ids.
var calls = map[uint32]call{}

type call struct {
	plugin uint32
	done   func(status int, message []byte)
}

// GRPCCall sends one unary gRPC request to an Envoy cluster. The answer comes
// in a callback of the plugin, which must be effective now, even where the stream
// that asked is gone: done gets status 0 and the message, or another gRPC status
// and no message; it must call SetEffectiveContext, and check it, before it
// touches a stream. A call that is not OK has no answer.
func GRPCCall(plugin uint32, cluster, service, method string, message []byte, timeout time.Duration, done func(status int, message []byte)) Status {
	// Envoy reads a timeout of 0 as none at all.
	ms := max(1, timeout.Milliseconds())
	id, status := grpcCall(grpcService(cluster), service, method, nil, message, uint32(ms))
	if status == OK {
		calls[id] = call{plugin, done}
	}
	return status
}

// ForgetGRPCCalls forgets the calls of a plugin that is gone: Envoy ends them with
// it, and tells nobody.
func ForgetGRPCCalls(plugin uint32) {
	for id, c := range calls {
		if c.plugin == plugin {
			delete(calls, id)
		}
	}
}

// grpcService is a serialized envoy.config.core.v3.GrpcService whose
// envoy_grpc.cluster_name is cluster. The bare name must never be sent: Envoy
// tries to parse it as this message, and a name that happens to parse ("model",
// "envoy") aborts the process.
func grpcService(cluster string) string {
	const envoyGRPC, clusterName = 1, 1 // the fields' numbers
	name := protowire.AppendString(protowire.AppendTag(nil, clusterName, protowire.BytesType), cluster)
	return string(protowire.AppendBytes(protowire.AppendTag(nil, envoyGRPC, protowire.BytesType), name))
}

// GRPCReceived serves proxy_on_grpc_receive: the answer of a call.
func GRPCReceived(id, size uint32) {
	c, known := calls[id]
	if !known {
		return
	}
	delete(calls, id)
	message, status := grpcMessage(size)
	if status != OK {
		c.done(GRPCStatusUnavailable, nil)
		return
	}
	c.done(0, message)
}

// GRPCClosed serves proxy_on_grpc_close: a call that ended without an answer.
// Envoy also closes calls that it never handed out; those are ignored.
func GRPCClosed(id, status uint32) {
	c, known := calls[id]
	if !known {
		return
	}
	delete(calls, id)
	if status == 0 {
		// Closed well but without a message: not an answer.
		status = GRPCStatusUnavailable
	}
	c.done(int(status), nil)
}
