package wasmtest

import "maps"

// Stream is one request on its way through the filter, and its response.
type Stream struct {
	plugin *Plugin
	object *object

	properties map[string]string // by path, with "/" between the steps
	grpc, head bool              // what kind of request it is

	created bool

	// The headers and trailers as they are now, whether the filter may see them,
	// and whether this is the time of on_log, which sees them all and changes none.
	request, response, trailers             Headers
	seesRequest, seesResponse, seesTrailers bool
	logging                                 bool
	requestBody, responseBody               *string // nil while the filter may not see them

	local  *LocalResponse
	paused bool
	closed bool
}

// NewStream makes a request arrive. properties are its attributes by path, with
// "/" between the steps: "source/address". The module hears of a stream with
// its request headers or, if they never come, at its end.
func (p *Plugin) NewStream(properties map[string]string) *Stream {
	s := &Stream{plugin: p, properties: maps.Clone(properties)}
	if s.properties == nil {
		s.properties = map[string]string{}
	}
	s.object = p.vm.newObject(p, s)
	return s
}

// NewStreamBehind makes the request of another stream come by a further instance
// of the filter in the same chain, in this VM or in another one: it has the same
// attributes, and what one instance sets the others read.
func (p *Plugin) NewStreamBehind(other *Stream) *Stream {
	s := p.NewStream(nil)
	s.properties = other.properties
	return s
}

// Plugin is the plugin by which the request comes.
func (s *Stream) Plugin() *Plugin { return s.plugin }

// ContextID is the stream's context id.
func (s *Stream) ContextID() uint32 { return s.object.id }

// Property returns an attribute, also one that the filter has set.
func (s *Stream) Property(path string) (string, bool) {
	value, found := s.properties[path]
	return value, found
}

// SetProperty makes an attribute what another filter or the upstream have made of
// it by now.
func (s *Stream) SetProperty(path, value string) { s.properties[path] = value }

// Result is what the filter made of request headers.
type Result struct {
	// Action is Pause for a request that waits, and for one that was answered.
	Action Action
	// Local is the filter's own response, nil if it let the request pass or wait.
	Local *LocalResponse
}

// RequestHeaders passes the request's headers through the filter. The request
// has no body. On a dead VM it stops there, as under Envoy's default policy.
func (s *Stream) RequestHeaders(headers Headers) Result {
	s.request = headers.lowered()
	contentType, _ := s.request.Get("content-type")
	method, _ := s.request.Get(":method")
	s.grpc, s.head = isGRPC(contentType), method == "HEAD"
	s.create()
	s.seesRequest = true
	action, _ := s.call("proxy_on_request_headers", uint32(len(headers)), 1)
	if s.plugin.vm.err != nil || action != uint32(Continue) {
		s.paused = true
		return Result{Pause, s.local}
	}
	s.seesRequest = false
	if s.local != nil {
		return Result{Pause, s.local}
	}
	return Result{Continue, nil}
}

// ResponseHeaders passes the headers of a response through the filter that has
// nothing else, and returns what it left of them. A gRPC answer of trailers only
// is such a response.
func (s *Stream) ResponseHeaders(headers Headers) Headers { return s.responseHeaders(headers, 1) }

// BeginResponse is ResponseHeaders for a response of which more is to come.
func (s *Stream) BeginResponse(headers Headers) Headers { return s.responseHeaders(headers, 0) }

func (s *Stream) responseHeaders(headers Headers, end uint32) Headers {
	s.response = headers.lowered()
	s.seesResponse = true
	s.call("proxy_on_response_headers", uint32(len(headers)), end)
	s.seesResponse = false
	return s.response
}

// ResponseTrailers passes the response's trailers through the filter and returns
// what it left of them.
func (s *Stream) ResponseTrailers(trailers Headers) Headers {
	s.trailers = trailers.lowered()
	s.seesTrailers = true
	s.call("proxy_on_response_trailers", uint32(len(trailers)))
	s.seesTrailers = false
	return s.trailers
}

// RequestBody passes a piece of the request's body through the filter, and
// returns what it left of it.
func (s *Stream) RequestBody(body string) string {
	s.requestBody = &body
	s.call("proxy_on_request_body", uint32(len(body)), 1)
	s.requestBody = nil
	return body
}

// ResponseBody is RequestBody for the response.
func (s *Stream) ResponseBody(body string) string {
	s.responseBody = &body
	s.call("proxy_on_response_body", uint32(len(body)), 1)
	s.responseBody = nil
	return body
}

// Paused says whether the request is waiting: it was paused, and neither
// answered nor resumed since.
func (s *Stream) Paused() bool { return s.paused && s.local == nil }

// Closed says whether the filter has reset the stream.
func (s *Stream) Closed() bool { return s.closed }

// Local is the filter's own response, nil while there is none.
func (s *Stream) Local() *LocalResponse { return s.local }

// End is the end of the stream, however far it has come.
func (s *Stream) End() {
	s.create()
	s.logging = true
	s.call("proxy_on_log")
	s.logging = false
	s.call("proxy_on_done")
	s.call("proxy_on_delete")
	delete(s.plugin.vm.objects, s.object.id)
}

func (s *Stream) create() {
	if s.created {
		return
	}
	s.created = true
	s.call("proxy_on_context_create", s.plugin.object.id)
}

func (s *Stream) call(callback string, arguments ...uint32) (uint32, bool) {
	return s.plugin.vm.call(s.object, callback, append([]uint32{s.object.id}, arguments...)...)
}
