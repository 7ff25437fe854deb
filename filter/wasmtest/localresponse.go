package wasmtest

import (
	"strconv"
	"strings"
)

// LocalResponse is a response that the filter has sent itself.
type LocalResponse struct {
	Status     uint32
	Details    string
	Body       string
	Headers    Headers // as the filter has given them
	GRPCStatus int32   // -1 leaves the choice to Envoy

	// Sent are the headers that go to the client: what Envoy makes of the
	// above, after the filter's own response headers callback.
	Sent Headers
}

// grpcMaxStatus is the last status of gRPC; others are not sent.
const grpcMaxStatus = 16

// sendLocalResponse is what Envoy does after the callback: it builds the
// response and passes it through the filters, so that this one sees it, too.
func (s *Stream) sendLocalResponse(local *LocalResponse) {
	if s.local != nil {
		return
	}
	s.local = local
	local.Sent = s.ResponseHeaders(s.localHeaders(local))
}

// localHeaders follows Envoy's Http::Utility::prepareLocalReply.
func (s *Stream) localHeaders(local *LocalResponse) Headers {
	headers := Headers{{":status", strconv.Itoa(int(local.Status))}}
	headers = append(headers, local.Headers.lowered()...)
	if s.grpc {
		headers = headers.replace(":status", "200").replace("content-type", "application/grpc")
		if _, set := headers.Get("grpc-status"); !set && local.GRPCStatus >= 0 && local.GRPCStatus <= grpcMaxStatus {
			headers = headers.add("grpc-status", strconv.Itoa(int(local.GRPCStatus)))
		}
		if local.Body != "" && !s.head {
			headers = headers.replace("grpc-message", local.Body)
		}
		return headers.remove("content-length")
	}
	if local.Body == "" {
		return headers.remove("content-length").remove("content-type")
	}
	headers = headers.replace("content-length", strconv.Itoa(len(local.Body)))
	if _, set := headers.Get("content-type"); !set {
		headers = headers.add("content-type", "text/plain")
	}
	return headers
}

// isGRPC says whether Envoy takes a request of this content type for gRPC;
// application/grpc-web is none.
func isGRPC(contentType string) bool {
	rest, found := strings.CutPrefix(contentType, "application/grpc")
	return found && (rest == "" || rest[0] == '+')
}

func serveSendLocalResponse(in *invocation) Status {
	s := in.on.stream
	if s == nil {
		return OK
	}
	local := &LocalResponse{
		Status: in.word(0),
		// Details stand in access logs, between spaces.
		Details:    strings.ReplaceAll(in.data[0], " ", "_"),
		Body:       in.data[1],
		Headers:    parseHeaders([]byte(in.data[2])),
		GRPCStatus: int32(in.word(1)),
	}
	in.vm.afterCallback(func() { s.sendLocalResponse(local) })
	return OK
}
