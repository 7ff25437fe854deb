package wasmtest

import "strconv"

// Hostcalls about the plugin: contexts, ticks, its end, calls to others.

// serveSetEffectiveContext makes later calls speak of another context. One
// that is gone is refused, and the one before stays effective.
func serveSetEffectiveContext(in *invocation) Status {
	id := in.word(0)
	in.call.Subject = strconv.Itoa(int(id))
	if _, found := in.vm.objects[id]; !found {
		return BadArgument
	}
	in.vm.effective = id
	return OK
}

// serveSetTickPeriod sets the timer of the plugin that the call speaks of, or
// that its stream belongs to.
func serveSetTickPeriod(in *invocation) Status {
	in.call.Subject = strconv.Itoa(int(in.word(0)))
	if p := in.on.plugin; p != nil {
		p.setTickPeriod(in.word(0))
	}
	return OK
}

// serveDone ends a plugin that has asked for time in on_done.
func serveDone(in *invocation) Status {
	p := in.on.plugin
	if p == nil || !p.stopping {
		return NotFound
	}
	p.stopping = false
	in.vm.afterCallback(p.delete)
	return OK
}

func serveForeignFunction(in *invocation) Status {
	f, found := in.vm.host.Foreign[in.data[0]]
	if !found {
		return NotFound
	}
	status, result := f([]byte(in.data[1]))
	if returned := in.returnData(string(result), 0); returned != OK {
		return returned
	}
	return status
}

// HTTPCall is a request that the module has sent to a cluster.
type HTTPCall struct {
	ID        uint32
	Cluster   string
	Headers   Headers
	Body      string
	Trailers  Headers
	TimeoutMS uint32
}

type httpAnswer struct {
	headers, trailers Headers
	body              string
}

// HTTPCalls are the plugin's calls that are waiting for an answer.
func (p *Plugin) HTTPCalls() []HTTPCall { return p.httpCalls }

// serveHTTPCall takes every cluster for one that exists. Where the call is to
// fail at once, Host.Fail does that.
func serveHTTPCall(in *invocation) Status {
	p := in.on.plugin
	if p == nil {
		return InternalFailure
	}
	headers := parseHeaders([]byte(in.data[1]))
	for _, required := range []string{":path", ":method", ":authority"} {
		if _, found := headers.Get(required); !found {
			return BadArgument
		}
	}
	p.vm.httpCalls++
	call := HTTPCall{p.vm.httpCalls, in.data[0], headers, in.data[2], parseHeaders([]byte(in.data[3])), in.word(0)}
	if status := in.returnWord(call.ID, 1); status != OK {
		return status
	}
	p.httpCalls = append(p.httpCalls, call)
	return OK
}

// AnswerHTTP delivers the answer of a call. No headers at all are how Envoy
// reports that there is none.
func (p *Plugin) AnswerHTTP(id uint32, headers Headers, body string, trailers Headers) {
	for i, call := range p.httpCalls {
		if call.ID == id {
			p.httpCalls = append(p.httpCalls[:i:i], p.httpCalls[i+1:]...)
			break
		}
	}
	p.httpAnswer = &httpAnswer{headers.lowered(), trailers.lowered(), body}
	p.vm.call(p.object, "proxy_on_http_call_response", p.object.id, id,
		uint32(len(headers)), uint32(len(body)), uint32(len(trailers)))
	p.httpAnswer = nil
}

// GRPCCall is a unary gRPC request that the module has sent.
type GRPCCall struct {
	ID        uint32
	Target    string // a serialized envoy.config.core.v3.GrpcService
	Service   string
	Method    string
	Metadata  Headers
	Message   string
	TimeoutMS uint32
}

// GRPCCalls are the plugin's calls that are waiting for an answer.
func (p *Plugin) GRPCCalls() []GRPCCall { return p.grpcCalls }

// serveGRPCCall takes every target for one that exists.
func serveGRPCCall(in *invocation) Status {
	p := in.on.plugin
	if p == nil {
		return InternalFailure
	}
	p.vm.grpcCalls += grpcIDStep
	call := GRPCCall{p.vm.grpcCalls, in.data[0], in.data[1], in.data[2], parseHeaders([]byte(in.data[3])), in.data[4], in.word(0)}
	if status := in.returnWord(call.ID, 1); status != OK {
		return status
	}
	p.grpcCalls = append(p.grpcCalls, call)
	return OK
}

// grpcIDStep leaves out the ids that Envoy gives to gRPC streams.
const grpcIDStep = 2

func serveGRPCCancel(in *invocation) Status {
	if in.on.plugin == nil || !in.on.plugin.endGRPC(in.word(0)) {
		return NotFound
	}
	return OK
}

// AnswerGRPC delivers the message that answers a call. Envoy sends no close
// after it.
func (p *Plugin) AnswerGRPC(id uint32, message string) {
	p.endGRPC(id)
	p.grpcAnswer = &message
	p.vm.call(p.object, "proxy_on_grpc_receive", p.object.id, id, uint32(len(message)))
	p.grpcAnswer = nil
}

// CloseGRPC ends a call without an answer. Envoy also closes, with status 14,
// calls that failed at once and whose id the module has never seen.
func (p *Plugin) CloseGRPC(id, status uint32) {
	p.endGRPC(id)
	p.vm.call(p.object, "proxy_on_grpc_close", p.object.id, id, status)
}

func (p *Plugin) endGRPC(id uint32) bool {
	for i, call := range p.grpcCalls {
		if call.ID == id {
			p.grpcCalls = append(p.grpcCalls[:i:i], p.grpcCalls[i+1:]...)
			return true
		}
	}
	return false
}
