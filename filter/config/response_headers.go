package config

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// How many extra headers a refusal has, and how long each is, at most: proxies
// and clients take no more than some tens of kilobytes, and each rule has a copy.
const (
	maxExtraHeaders = 32
	maxHeaderValue  = 4_096 // bytes
)

const wantExtraHeaders = `an object such as {"x-docs": "https://example.com/limits"}`

// extraHeadersValue is an object of headers by their names, laid over those that
// are there, name by name.
var extraHeadersValue = value[[][2]string]{wantExtraHeaders, extraHeadersSchema, func(r *reader, n *node, to *[][2]string) bool {
	if n.kind != objectKind {
		r.wrongType(n, wantExtraHeaders)
		return false
	}
	if len(n.children) > maxExtraHeaders {
		r.mistake(n, tooManyHeaders(len(n.children)))
		return false
	}
	before := r.count()
	names, all := headerNames{}, slices.Clone(*to)
	for _, child := range n.sorted() {
		header := [2]string{names.read(r, child, parseExtraName)}
		if !extraValue.read(r, child, &header[1]) {
			continue
		}
		i, known := slices.BinarySearchFunc(all, header, func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) })
		if known {
			all[i] = header
		} else {
			all = slices.Insert(all, i, header)
		}
	}
	if len(all) > maxExtraHeaders {
		r.mistake(n, tooManyHeaders(len(all)))
	}
	*to = all
	return r.count() == before
}}

func tooManyHeaders(n int) string {
	return strconv.Itoa(n) + " headers: want no more than " + strconv.Itoa(maxExtraHeaders)
}

var extraHeadersSchema = mapSchema(patternSchema(tokenPattern), extraValue.schema, `,"maxProperties":`+strconv.Itoa(maxExtraHeaders))

var extraValue = stringAs("a string", func(s string) (string, error) {
	if len(s) > maxHeaderValue {
		return "", errors.New("want a header's value of no more than " + strconv.Itoa(maxHeaderValue) + " bytes")
	}
	return s, checkHeaderValue(s)
})

// parseExtraName reads the name of a header that a refusal can have besides those
// which the filter, Envoy or the protocol give it.
func parseExtraName(s string) (string, error) {
	name := strings.ToLower(s)
	switch name {
	case ":status":
		return "", errors.New(`want the field "status" of the response`)
	case "content-type":
		return "", errors.New(`want the field "content_type" of the response`)
	case "retry-after":
		return "", errors.New("the filter says when to try again: leave it out")
	case "x-envoy-ratelimited":
		return "", errors.New("the filter sends it with every refusal: leave it out")
	case "ratelimit", "ratelimit-policy", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset",
		"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset":
		return "", errors.New(`want the field "rate_limit_headers" of the response`)
	case "grpc-status", "grpc-message":
		return "", errors.New("the filter sends it to gRPC clients: leave it out")
	case "grpc-status-details-bin":
		return "", errors.New("the filter says the status to gRPC clients, without details: leave it out")
	case "server", "date":
		return "", errors.New("it is sent by Envoy with every response: leave it out")
	case "connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade":
		return "", errors.New("it says how the message is sent (RFC 9110, 7.6.1), which is Envoy's to say: leave it out")
	}
	return parseToken(name)
}
