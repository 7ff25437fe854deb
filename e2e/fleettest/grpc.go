package fleettest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// StatusError is a gRPC call that ended with another status than OK.
type StatusError struct {
	Code    int
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("gRPC status %d: %s", e.Code, e.Message)
}

// frameHeader is the length of what comes before a gRPC message: whether it is
// compressed, and its length in four bytes.
const frameHeader = 5

// Call makes a unary gRPC call, without TLS and on a connection of its own, so
// that it meets whatever process listens at addr now. Method is its path. The
// error is a StatusError if the server answered with a status other than OK, and
// the context's if that ended first.
func Call(ctx context.Context, addr, method string, message []byte) ([]byte, error) {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()

	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+method, bytes.NewReader(append(frame, message...)))
	if err != nil {
		return nil, err
	}
	request.Header.Set("content-type", "application/grpc")
	request.Header.Set("te", "trailers")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if err := status(response); err != nil {
		return nil, err
	}
	if len(body) < frameHeader || body[0] != 0 || int(binary.BigEndian.Uint32(body[1:])) != len(body)-frameHeader {
		return nil, fmt.Errorf("the answer of %d bytes is not one gRPC message", len(body))
	}
	return body[frameHeader:], nil
}

// status returns what a response that has been read says of the call. A call that
// failed at once has its status in the header.
func status(response *http.Response) error {
	from := response.Trailer
	if from.Get("grpc-status") == "" {
		from = response.Header
	}
	code, err := strconv.Atoi(from.Get("grpc-status"))
	if err != nil {
		return fmt.Errorf("the answer %s has no gRPC status", response.Status)
	}
	if code == 0 {
		return nil
	}
	text := from.Get("grpc-message")
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	return &StatusError{Code: code, Message: text}
}
