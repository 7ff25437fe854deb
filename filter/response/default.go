package response

import (
	"strconv"
	"strings"
)

// defaultBody is what a refusal says where the config gives no body: a problem
// document if the media type is that of RFC 9457, else JSON of the filter's own,
// whatever the type.
func defaultBody(mediaType string, status int) body {
	if mediaType == "application/problem+json" {
		return problem(status)
	}
	return body{
		{`{"error":"rate_limit_exceeded","message":"`, sentence},
		{`","retryAfter":`, retrySeconds},
		{`}`, nowhere},
	}
}

// problem is the problem document of RFC 9457 for a status. Its type is
// about:blank, which says that the problem is what the status says; the types that
// draft-ietf-httpapi-ratelimit-headers-10 defines in section 5 are not registered
// yet. retryAfter is an extension member, as in the filter's own JSON.
func problem(status int) body {
	document := `{"type":"about:blank",`
	if title := reasonPhrase(status); title != "" {
		document += `"title":"` + title + `",`
	}
	document += `"status":` + strconv.Itoa(status) + `,"detail":"`
	return body{
		{document, sentence},
		{`","retryAfter":`, retrySeconds},
		{`}`, nowhere},
	}
}

// reasonPhrase is what a problem of the type about:blank should have for its
// title (RFC 9457, section 4.2.1), or "" for the statuses that hardly anybody
// refuses with: a title may be left out. Package net/http, which knows all
// phrases, would make the module half as large again.
func reasonPhrase(status int) string {
	switch status {
	case 400:
		return "Bad Request"
	case 401:
		return "Unauthorized"
	case 402:
		return "Payment Required"
	case 403:
		return "Forbidden"
	case 404:
		return "Not Found"
	case 409:
		return "Conflict"
	case 429:
		return "Too Many Requests"
	case 500:
		return "Internal Server Error"
	case 503:
		return "Service Unavailable"
	default:
		return ""
	}
}

// parseMediaType returns the type and subtype of a Content-Type, in lower case,
// without its parameters (RFC 9110, section 8.3.1).
func parseMediaType(contentType string) string {
	bare, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.Trim(bare, " \t"))
}

// holdsJSON says whether documents of a media type are JSON: application/json
// (RFC 8259), or any with the suffix +json (RFC 6839, section 3.1).
func holdsJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}
