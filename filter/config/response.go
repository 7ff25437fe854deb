package config

import (
	"strings"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
)

// responseValue is laid over what it is read into, field by field.
var responseValue = objectOf(`an object such as {"status": 429}`, responseMembers).defined("response")

var responseMembers = members[Response]{
	fields: []field[Response]{
		optional("status", whole(400, 599), func(to *Response) *int { return &to.Status }).
			explain("The status of a refusal.").defaultsTo("429"),
		optional("body", bodyValue, func(to *Response) **string { return &to.Body }).
			explain("The text of a refusal, in UTF-8, in which {name}, {rule}, {limit}, {remaining}, {reset} and {retry_after} are filled in. By default a JSON object, or one of RFC 9457 where the type is application/problem+json."),
		optional("content_type", contentTypeValue, func(to *Response) *string { return &to.ContentType }).
			explain("The type of the body. Where it is JSON, what is filled in is escaped.").defaultsTo(`"application/json"`),
		optional("headers", extraHeadersValue, func(to *Response) *[][2]string { return &to.Headers }).
			explain("Extra headers of a refusal.").defaultsTo("{}"),
		optional("rate_limit_headers", familiesValue, func(to *Response) *HeaderFamilies { return &to.RateLimitHeaders }).
			explain("Which headers tell clients what is left: RateLimit-Limit, -Remaining and -Reset; the current IETF draft's RateLimit-Policy and RateLimit; X-RateLimit-Limit, -Remaining and -Reset.").defaultsTo(`["ratelimit"]`),
		optional("retry_after_jitter", jitterValue, func(to *Response) *time.Duration { return &to.RetryAfterJitter }).
			explain("The most that is added at random to the time after which a refused client may try again.").defaultsTo(`"0s"`),
	},
}

var bodyValue = stringAs("a string", func(s string) (*string, error) { return &s, nil })

const wantContentType = `a media type such as "application/json" or "text/plain; charset=utf-8"`

// contentTypeValue is a media type (RFC 9110, 8.3.1): two tokens with a slash
// between them, and parameters.
var contentTypeValue = stringAs(wantContentType, func(s string) (string, error) {
	if len(s) > maxContentType || checkHeaderValue(s) != nil {
		return "", wantError(wantContentType)
	}
	mediaType, parameters, _ := strings.Cut(s, ";")
	kind, subtype, _ := strings.Cut(strings.TrimRight(mediaType, " \t"), "/")
	if !isToken(kind) || !isToken(subtype) || strings.Contains(s, ";") && !strings.Contains(parameters, "=") {
		return "", wantError(wantContentType)
	}
	return s, nil
}).as(patternSchema(`^[^\s/;]+/[^\s/;]+[ \t]*(;.*=.*)?$`))

// maxContentType is the most bytes that a content type has.
const maxContentType = 256

// maxJitter bounds the jitter: nobody waits longer than a day for fairness.
const maxJitter = 24 * time.Hour

var jitterValue = stringAs(`a duration such as "5s"`, func(s string) (time.Duration, error) {
	return algorithms.ParseDuration(s, 0, maxJitter)
}).as(patternSchema("^(" + durationPattern + ")$"))

const wantFamilies = `an array of "ratelimit", "draft" and "x-ratelimit", or of none of them`

var familyValue = oneOf(choice[HeaderFamilies]{"ratelimit", RateLimit}, choice[HeaderFamilies]{"draft", Draft}, choice[HeaderFamilies]{"x-ratelimit", XRateLimit})

var familiesValue = value[HeaderFamilies]{wantFamilies, arraySchema(familyValue.schema, `,"uniqueItems":true`), func(r *reader, n *node, to *HeaderFamilies) bool {
	var families []HeaderFamilies
	if !listOf(wantFamilies, familyValue).read(r, n, &families) {
		return false
	}
	*to = 0
	for i, family := range families {
		if *to&family != 0 {
			r.wrong(n.children[i], "stands twice in one list: keep one")
			return false
		}
		*to |= family
	}
	return true
}}
