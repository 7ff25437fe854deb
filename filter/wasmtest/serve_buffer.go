package wasmtest

// The buffers that a filter can read.
const (
	bufferRequestBody  = 0
	bufferResponseBody = 1
	bufferHTTPCallBody = 4
	bufferGRPCMessage  = 5
	bufferVMConfig     = 6
	bufferPluginConfig = 7
	lastBuffer         = 8
)

// buffer returns a buffer's content, nil if it is not there. The plugin's
// configuration is there while it is being configured.
func (in *invocation) buffer(kind uint32) *string {
	if kind == bufferVMConfig {
		return &in.vm.config
	}
	if s := in.on.stream; s != nil {
		switch kind {
		case bufferRequestBody:
			return s.requestBody
		case bufferResponseBody:
			return s.responseBody
		}
	}
	if p := in.on.plugin; p != nil {
		switch {
		case kind == bufferPluginConfig && p.configuring:
			return &p.config.Config
		case kind == bufferHTTPCallBody && p.httpAnswer != nil:
			return &p.httpAnswer.body
		case kind == bufferGRPCMessage:
			return p.grpcAnswer
		}
	}
	return nil
}

// serveGetBuffer returns a part of a buffer. Of an empty part it returns
// nothing at all: the results stay as they were.
func serveGetBuffer(in *invocation) Status {
	kind, start, length := in.word(0), uint64(in.word(1)), uint64(in.word(2))
	if kind > lastBuffer {
		return BadArgument
	}
	buffer := in.buffer(kind)
	if buffer == nil {
		return NotFound
	}
	end := min(start+length, uint64(len(*buffer)))
	if start >= end {
		return OK
	}
	return in.returnData((*buffer)[start:end], 3)
}

func serveGetBufferStatus(in *invocation) Status {
	kind := in.word(0)
	if kind > lastBuffer {
		return BadArgument
	}
	buffer := in.buffer(kind)
	if buffer == nil {
		return NotFound
	}
	if status := in.returnWord(uint32(len(*buffer)), 1); status != OK {
		return status
	}
	return in.returnWord(0, 2)
}

// serveSetBuffer puts data before a body, in its place, or behind it; Envoy
// can do nothing else.
func serveSetBuffer(in *invocation) Status {
	kind, start, length := in.word(0), uint64(in.word(1)), uint64(in.word(2))
	if kind > lastBuffer {
		return BadArgument
	}
	buffer := in.buffer(kind)
	if buffer == nil {
		return NotFound
	}
	if kind != bufferRequestBody && kind != bufferResponseBody {
		return BadArgument
	}
	size := uint64(len(*buffer))
	switch {
	case start == 0 && length == 0:
		*buffer = in.data[0] + *buffer
	case start == 0 && length >= size:
		*buffer = in.data[0]
	case start >= size:
		*buffer += in.data[0]
	default:
		return BadArgument
	}
	return OK
}
