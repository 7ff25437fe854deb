package wasmtest

import "strings"

// Hostcalls about the stream: attributes, headers, bodies, going on.

// serveGetProperty knows a plugin's name, root id and vm id, a stream's
// attributes, and what was set before.
func serveGetProperty(in *invocation) Status {
	path := strings.ReplaceAll(strings.TrimSuffix(in.data[0], "\x00"), "\x00", "/")
	in.call.Subject = path
	value, found := in.on.property(path)
	if !found {
		return NotFound
	}
	return in.returnData(value, 0)
}

func (o *object) property(path string) (string, bool) {
	if p := o.plugin; p != nil {
		switch path {
		case "plugin_name":
			return p.config.Name, true
		case "plugin_root_id":
			return p.config.RootID, true
		case "plugin_vm_id":
			return p.vm.id, true
		}
	}
	if o.stream == nil {
		return "", false
	}
	return o.stream.Property(path)
}

// serveSetProperty sets an attribute, which Envoy keeps in the filter state.
func serveSetProperty(in *invocation) Status {
	if in.on.stream == nil {
		return NotFound
	}
	in.on.stream.properties[strings.ReplaceAll(in.data[0], "\x00", "/")] = in.data[1]
	return OK
}

// The header maps that there are here; the others are always missing.
const (
	mapRequestHeaders   = 0
	mapResponseHeaders  = 2
	mapResponseTrailers = 3
	mapHTTPCallHeaders  = 6
	mapHTTPCallTrailers = 7
	lastMap             = 7
)

// readable returns a header map as it may be read, nil if it is not there.
func (o *object) readable(kind uint32) *Headers {
	if s := o.stream; s != nil && s.logging {
		switch kind {
		case mapRequestHeaders:
			return &s.request
		case mapResponseHeaders:
			return &s.response
		case mapResponseTrailers:
			return &s.trailers
		}
		return nil
	}
	if p := o.plugin; p != nil && p.httpAnswer != nil {
		switch kind {
		case mapHTTPCallHeaders:
			return &p.httpAnswer.headers
		case mapHTTPCallTrailers:
			return &p.httpAnswer.trailers
		}
	}
	return o.writable(kind)
}

// writable is readable for a map that may be changed.
func (o *object) writable(kind uint32) *Headers {
	s := o.stream
	switch {
	case s == nil || s.logging:
		return nil
	case kind == mapRequestHeaders && s.seesRequest:
		return &s.request
	case kind == mapResponseHeaders && s.seesResponse:
		return &s.response
	case kind == mapResponseTrailers && s.seesTrailers:
		return &s.trailers
	}
	return nil
}

func serveGetHeader(in *invocation) Status {
	if in.word(0) > lastMap {
		return BadArgument
	}
	headers := in.on.readable(in.word(0))
	if headers == nil {
		return BadArgument
	}
	value, found := headers.Get(in.data[0])
	if !found {
		return NotFound
	}
	return in.returnData(value, 1)
}

// serveGetHeaders returns an empty list for a map that is not there.
func serveGetHeaders(in *invocation) Status {
	if in.word(0) > lastMap {
		return BadArgument
	}
	var headers Headers
	if there := in.on.readable(in.word(0)); there != nil {
		headers = *there
	}
	return in.returnData(string(headers.serialize()), 1)
}

func serveGetHeadersSize(in *invocation) Status {
	headers := in.on.readable(in.word(0))
	if headers == nil {
		return BadArgument
	}
	size := 0
	for _, pair := range *headers {
		size += len(pair[0]) + len(pair[1])
	}
	return in.returnWord(uint32(size), 1)
}

func serveAddHeader(in *invocation) Status {
	return in.change(func(h Headers) Headers { return h.add(in.data[0], in.data[1]) })
}

func serveReplaceHeader(in *invocation) Status {
	return in.change(func(h Headers) Headers { return h.replace(in.data[0], in.data[1]) })
}

func serveRemoveHeader(in *invocation) Status {
	return in.change(func(h Headers) Headers { return h.remove(in.data[0]) })
}

func serveSetHeaders(in *invocation) Status {
	return in.change(func(Headers) Headers { return parseHeaders([]byte(in.data[0])).lowered() })
}

func (in *invocation) change(f func(Headers) Headers) Status {
	headers := in.on.writable(in.word(0))
	if headers == nil {
		return BadArgument
	}
	*headers = f(*headers)
	return OK
}

// The kinds of streams that a filter can let go on or close.
const (
	streamRequest  = 0
	streamResponse = 1
)

// serveContinueStream lets a stream go on that was paused.
func serveContinueStream(in *invocation) Status {
	if in.word(0) > streamResponse {
		return BadArgument
	}
	if s := in.on.stream; s != nil {
		s.seesRequest, s.requestBody = false, nil
		in.vm.afterCallback(func() { s.paused = false })
	}
	return OK
}

// serveCloseStream resets a stream.
func serveCloseStream(in *invocation) Status {
	if in.word(0) > streamResponse {
		return BadArgument
	}
	if s := in.on.stream; s != nil {
		in.vm.afterCallback(func() { s.closed = true })
	}
	return OK
}
