package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestEveryFieldOfTheResponseIsRead(t *testing.T) {
	body := "Подождите {retry_after} с"
	c := mustParse(t, `{"limits": {}, "response": {
		"status": 503, "body": "Подождите {retry_after} с", "content_type": "text/plain; charset=utf-8",
		"headers": {"X-Docs": "https://example.com/limits", "a": "é\tb", "x-empty": ""},
		"rate_limit_headers": ["draft", "x-ratelimit"], "retry_after_jitter": "1m30s"}}`)
	want := Response{
		Status: 503, Body: &body, ContentType: "text/plain; charset=utf-8",
		Headers:          [][2]string{{"a", "é\tb"}, {"x-docs", "https://example.com/limits"}, {"x-empty", ""}},
		RateLimitHeaders: Draft | XRateLimit, RetryAfterJitter: 90 * time.Second,
	}
	if !reflect.DeepEqual(c.Response, want) {
		t.Errorf("got  %+v\nwant %+v", c.Response, want)
	}
}

func TestARulesResponseIsLaidOverTheTopOneFieldByField(t *testing.T) {
	c := mustParse(t, `{"limits": {},
		"response": {"status": 503, "content_type": "text/plain", "headers": {"a": "1", "c": "3"}, "rate_limit_headers": ["ratelimit", "draft"], "retry_after_jitter": "1s"},
		"rules": [
			{"limits": [], "response": {"headers": {"C": "4", "b": "2"}}},
			{"limits": [], "response": {"rate_limit_headers": [], "retry_after_jitter": "0s", "status": 429, "content_type": "a/b", "body": "x"}},
			{"limits": [], "response": {"headers": {}}},
			{"limits": []}
		]}`)
	top := Response{Status: 503, ContentType: "text/plain", Headers: [][2]string{{"a", "1"}, {"c", "3"}}, RateLimitHeaders: RateLimit | Draft, RetryAfterJitter: time.Second}
	merged, replaced, body := top, top, "x"
	merged.Headers = [][2]string{{"a", "1"}, {"b", "2"}, {"c", "4"}}
	replaced.RateLimitHeaders, replaced.RetryAfterJitter, replaced.Status, replaced.ContentType, replaced.Body = 0, 0, 429, "a/b", &body
	for i, want := range []Response{merged, replaced, top, top} {
		if got := c.Rules[i].Response; !reflect.DeepEqual(got, want) {
			t.Errorf("rule %d: got %+v, want %+v", i, got, want)
		}
	}
	if !reflect.DeepEqual(c.Response, top) {
		t.Errorf("a rule has changed the one at the top to %+v", c.Response)
	}
}

func TestContentTypesAreMediaTypes(t *testing.T) {
	for _, ok := range []string{"text/plain", "application/problem+json", "text/html;charset=UTF-8", `text/plain ; a="b c"; d=e`, "application/vnd.a-b.v1+json"} {
		if c := mustParse(t, fmt.Sprintf(`{"limits": {}, "response": {"content_type": %q}}`, ok)); c.Response.ContentType != ok {
			t.Errorf("%q becomes %q", ok, c.Response.ContentType)
		}
	}
	for _, bad := range []string{"", "json", "text/", "/plain", "text/pl ain", "text/plain/x", "text/plain; charset", "text/plain;", " text/plain", "text/plain\n", "é/plain", strings.Repeat("a", 300) + "/b"} {
		wantMistakes(t, fmt.Sprintf(`{"limits": {}, "response": {"content_type": %q}}`, bad),
			`response.content_type: `+quote(bad)+`: want a media type such as "application/json" or "text/plain; charset=utf-8"`)
	}
}

func TestAMistakeInTheResponseSaysWhereAndWhatInstead(t *testing.T) {
	const families = `want an array of "ratelimit", "draft" and "x-ratelimit", or of none of them`
	const name = "want a header's name, of letters, digits and -"
	const own = `want the field "rate_limit_headers" of the response`
	const framing = "it says how the message is sent (RFC 9110, 7.6.1), which is Envoy's to say: leave it out"
	for response, want := range map[string]string{
		`"body": 5`:                                             `body: the number 5: want a string`,
		`"content_type": null`:                                  `content_type: null: want a media type such as "application/json" or "text/plain; charset=utf-8"`,
		`"rate_limit_headers": "draft"`:                         `rate_limit_headers: the string "draft": ` + families,
		`"rate_limit_headers": ["drafts"]`:                      `rate_limit_headers[0]: "drafts": want "ratelimit", "draft" or "x-ratelimit"`,
		`"rate_limit_headers": ["draft", 5]`:                    `rate_limit_headers[1]: the number 5: want "ratelimit", "draft" or "x-ratelimit"`,
		`"rate_limit_headers": ["draft","draft"]`:               `rate_limit_headers[1]: "draft": stands twice in one list: keep one`,
		`"retry_after_jitter": 5`:                               `retry_after_jitter: the number 5: want a duration such as "5s"`,
		`"retry_after_jitter": "5"`:                             `retry_after_jitter: "5": want a duration such as 500ms, 1m30s or 1d`,
		`"retry_after_jitter": "-1s"`:                           `retry_after_jitter: "-1s": want a duration such as 500ms, 1m30s or 1d`,
		`"retry_after_jitter": "25h"`:                           `retry_after_jitter: "25h": want a duration from 0s to 1d`,
		`"headers": []`:                                         `headers: an array: want an object such as {"x-docs": "https://example.com/limits"}`,
		`"headers": {"x": 5}`:                                   `headers.x: a number: want a string`,
		`"headers": {"x": ["a"]}`:                               `headers.x: an array: want a string`,
		`"headers": {"x": "a\r\nb: c"}`:                         `headers.x: a string: want no control characters, such as line breaks, in a header's value`,
		`"headers": {"x": "\u0000"}`:                            `headers.x: a string: want no control characters, such as line breaks, in a header's value`,
		`"headers": {"x": "a "}`:                                `headers.x: a string: want no space around a header's value: it would be cut off on the way`,
		`"headers": {"": "a"}`:                                  `headers[""]: "": ` + name,
		`"headers": {"x:": "a"}`:                                `headers["x:"]: "x:": ` + name,
		`"headers": {"é": "a"}`:                                 `headers["é"]: "é": ` + name,
		`"headers": {":path": "a"}`:                             `headers[":path"]: ":path": ` + name,
		`"headers": {":status": "200"}`:                         `headers[":status"]: ":status": want the field "status" of the response`,
		`"headers": {"Content-Type": "a/b"}`:                    `headers.Content-Type: "Content-Type": want the field "content_type" of the response`,
		`"headers": {"retry-after": "1"}`:                       `headers.retry-after: "retry-after": the filter says when to try again: leave it out`,
		`"headers": {"X-Envoy-RateLimited":""}`:                 `headers.X-Envoy-RateLimited: "X-Envoy-RateLimited": the filter sends it with every refusal: leave it out`,
		`"headers": {"ratelimit-limit": "1"}`:                   `headers.ratelimit-limit: "ratelimit-limit": ` + own,
		`"headers": {"RateLimit-Policy": "1"}`:                  `headers.RateLimit-Policy: "RateLimit-Policy": ` + own,
		`"headers": {"x-ratelimit-reset": ""}`:                  `headers.x-ratelimit-reset: "x-ratelimit-reset": ` + own,
		`"headers": {"grpc-status": "0"}`:                       `headers.grpc-status: "grpc-status": the filter sends it to gRPC clients: leave it out`,
		`"headers": {"content-length": "0"}`:                    `headers.content-length: "content-length": ` + framing,
		`"headers": {"Transfer-Encoding": ""}`:                  `headers.Transfer-Encoding: "Transfer-Encoding": ` + framing,
		`"headers": {"grpc-status-details-bin": "CAg"}`:         `headers.grpc-status-details-bin: "grpc-status-details-bin": the filter says the status to gRPC clients, without details: leave it out`,
		`"headers": {"Server": "a"}`:                            `headers.Server: "Server": it is sent by Envoy with every response: leave it out`,
		`"headers": {"date": "now"}`:                            `headers.date: "date": it is sent by Envoy with every response: leave it out`,
		`"headers": {"connection": "close"}`:                    `headers.connection: "connection": ` + framing,
		`"headers": {"a": "1", "A": "2"}`:                       `headers.a: the same header as response.headers.A: keep one`,
		`"headers": {"a": "` + strings.Repeat("x", 4097) + `"}`: `headers.a: a string: want a header's value of no more than 4096 bytes`,
		`"header": {}`:                                          `header: no such field; did you mean "headers"?`,
	} {
		wantMistakes(t, `{"limits": {}, "response": {`+response+`}}`, "response."+want)
	}
}

func TestARefusalHasNoMoreHeadersThanClientsTake(t *testing.T) {
	headers := func(from, to int) string {
		var all []string
		for i := from; i < to; i++ {
			all = append(all, fmt.Sprintf(`"x-%d": ""`, i))
		}
		return `{"headers": {` + strings.Join(all, ",") + `}}`
	}
	mustParse(t, `{"limits": {}, "response": `+headers(0, 32)+`}`)
	wantMistakes(t, `{"limits": {}, "response": `+headers(0, 33)+`}`, "response.headers: 33 headers: want no more than 32")
	wantMistakes(t, `{"limits": {}, "response": `+headers(0, 20)+`, "rules": [{"limits": [], "response": `+headers(10, 33)+`}]}`,
		"rules[0].response.headers: 33 headers: want no more than 32")
}
