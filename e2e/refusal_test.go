package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// serveRefusals starts a site whose limit of one request for each x-client
// refuses as the response says, and as the rules ahead of the last one say.
func serveRefusals(t *testing.T, response, rules string) *site {
	t.Helper()
	return serve(t, fmt.Sprintf(`{
		"limits": {
			"once":   {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["header:x-client"]},
			"hourly": {"algorithm": "sliding_window", "limit": 10, "window": "1h", "key": ["header:x-client"]},
			"watched": {"algorithm": "fixed_window", "limit": 1000, "window": "1d", "key": [], "shadow": true},
			"member": {"algorithm": "token_bucket", "capacity": 1, "refill_rate": "1/d", "key": ["header:x-key"], "missing": "deny"}
		},
		"response": %s,
		"rules": [%s {"name": "all", "limits": ["once"]}]
	}`, response, rules), envoytest.Listener{})
}

// refusal sends two requests of one client, of which the second is refused.
func refusal(t *testing.T, client *envoytest.Client, path, header string) envoytest.Response {
	t.Helper()
	expectAdmitted(t, client.Get(t, path, header))
	return client.Get(t, path, header)
}

func TestABodyInCyrillicArrivesAsItWasWritten(t *testing.T) {
	const body = `Слишком много запросов. Попробуйте через {retry_after} с. «{name}» ёЁїЇ €🐢`
	document, err := json.Marshal(envoytest.Object{"body": body, "content_type": "text/plain; charset=utf-8"})
	if err != nil {
		t.Fatal(err)
	}
	site := serveRefusals(t, string(document), "")
	for _, http2 := range []bool{false, true} {
		client := envoytest.NewClient(t, site.addr, envoytest.ClientOptions{HTTP2: http2})
		response := refusal(t, client, "/", fmt.Sprintf("x-client: %v", http2))
		expectRefused(t, response)
		want := strings.NewReplacer("{retry_after}", only(t, response, "Retry-After"), "{name}", "once").Replace(body)
		if response.Body != want {
			t.Errorf("HTTP/2 %v: the body is %q, want %q", http2, response.Body, want)
		}
		if got := number(t, response, "Content-Length"); got != len(want) {
			t.Errorf("HTTP/2 %v: content-length is %d, want %d", http2, got, len(want))
		}
		if got := only(t, response, "Content-Type"); got != "text/plain; charset=utf-8" {
			t.Errorf("HTTP/2 %v: content-type is %q", http2, got)
		}
	}
}

func TestAProblemDocumentIsWhatRFC9457Describes(t *testing.T) {
	site := serveRefusals(t, `{"content_type": "application/problem+json"}`, `{"match": {"path": "/never"}, "limits": ["once"], "cost": 2},`)
	client := site.client(t)
	problem := func(response envoytest.Response) map[string]any {
		t.Helper()
		expectRefused(t, response)
		if got := only(t, response, "Content-Type"); got != "application/problem+json" {
			t.Errorf("content-type is %q", got)
		}
		var document map[string]any
		if err := json.Unmarshal([]byte(response.Body), &document); err != nil {
			t.Fatalf("%v in %s", err, response.Body)
		}
		if document["type"] != "about:blank" || document["title"] != "Too Many Requests" || document["status"] != 429.0 {
			t.Errorf("the problem is %s", response.Body)
		}
		return document
	}
	response := refusal(t, client, "/", "x-client: a")
	document, seconds := problem(response), number(t, response, "Retry-After")
	if document["detail"] != fmt.Sprintf("Too many requests. Try again in %d seconds.", seconds) || document["retryAfter"] != float64(seconds) {
		t.Errorf("the problem is %s, want it to repeat Retry-After, %d", response.Body, seconds)
	}
	response = client.Get(t, "/never")
	document = problem(response)
	if again, there := document["retryAfter"]; !there || again != nil || document["detail"] != "This request costs more than its limit allows." {
		t.Errorf("the problem is %s", response.Body)
	}
}

func TestEveryPlaceholderOfABodyIsFilledInAndNothingElse(t *testing.T) {
	const body = `{\"name\":\"{name}\",\"rule\":\"{rule}\",\"limit\":{limit},\"remaining\":{remaining},\"reset\":{reset},\"again\":{retry_after},\"other\":\"{other} {} {Name} { name }\"}`
	site := serveRefusals(t, `{"body": "`+body+`"}`, `
		{"match": {"path": "/never"}, "limits": ["once"], "cost": 2},
		{"name": "members", "match": {"path": "/member"}, "limits": ["member"]},`)
	client := site.client(t)
	filled := func(name, rule string, limit, remaining, reset, again any) string {
		return fmt.Sprintf(`{"name":"%s","rule":"%s","limit":%v,"remaining":%v,"reset":%v,"again":%v,"other":"{other} {} {Name} { name }"}`,
			name, rule, limit, remaining, reset, again)
	}
	response := refusal(t, client, "/", "x-client: a")
	want := filled("once", "all", 1, 0, number(t, response, "RateLimit-Reset"), number(t, response, "Retry-After"))
	if response.Body != want {
		t.Errorf("the body is\n%s, want\n%s", response.Body, want)
	}
	// A rule without a name, and no time after which to try again.
	response = client.Get(t, "/never")
	if want := filled("once", "null", 1, 1, 0, "null"); response.Body != want {
		t.Errorf("the body is\n%s, want\n%s", response.Body, want)
	}
	response = client.Get(t, "/member")
	if want := filled("member", "members", "null", "null", "null", "null"); response.Body != want {
		t.Errorf("the body is\n%s, want\n%s", response.Body, want)
	}
}

func TestARulesResponseIsLaidOverThePluginsFieldByField(t *testing.T) {
	site := serveRefusals(t, `{"status": 503, "body": "plugin", "content_type": "text/plain", "headers": {"x-docs": "plugin", "x-plugin": "yes"}}`, `
		{"match": {"path": "/rule"}, "limits": ["once"], "response": {"body": "rule", "headers": {"X-Docs": "rule"}}},
		{"match": {"path": "/status"}, "limits": ["once"], "response": {"status": 420}},`)
	client := site.client(t)
	for path, want := range map[string]struct {
		status     int
		body, docs string
	}{
		"/": {503, "plugin", "plugin"}, "/rule": {503, "rule", "rule"}, "/status": {420, "plugin", "plugin"},
	} {
		expectNoExtra := client.Get(t, path, "x-client: "+path)
		expectAdmitted(t, expectNoExtra)
		if expectNoExtra.Header.Get("X-Docs") != "" {
			t.Error("an admitted response has a header that is for refusals")
		}
		response := client.Get(t, path, "x-client: "+path)
		if response.Status != want.status || response.Body != want.body || only(t, response, "X-Docs") != want.docs || only(t, response, "X-Plugin") != "yes" ||
			only(t, response, "Content-Type") != "text/plain" {
			t.Errorf("%s: got %d %q with %v, want %+v", path, response.Status, response.Body, response.Header, want)
		}
	}
}

func TestJitterPutsRefusedClientsOffByDifferentTimes(t *testing.T) {
	const jitter, refusals = 3600, 20
	site := serveRefusals(t, `{"retry_after_jitter": "1h"}`, "")
	client := site.client(t)
	expectAdmitted(t, client.Get(t, "/", "x-client: a"))
	seen := map[int]bool{}
	for range refusals {
		response := client.Get(t, "/", "x-client: a")
		seconds := number(t, response, "Retry-After")
		if seconds < day-600 || seconds > day+jitter {
			t.Errorf("a token comes within a day; with an hour of jitter Retry-After is %d seconds", seconds)
		}
		if want := fmt.Sprintf(`Try again in %d seconds.","retryAfter":%d}`, seconds, seconds); !strings.HasSuffix(response.Body, want) {
			t.Errorf("Retry-After is %d, the body %s", seconds, response.Body)
		}
		if reset := number(t, response, "RateLimit-Reset"); reset > day {
			t.Errorf("RateLimit-Reset is %d seconds: jitter does not belong there", reset)
		}
		seen[seconds] = true
	}
	if len(seen) < refusals/2 { // of 3,600 values
		t.Errorf("%d refusals were put off by only %d different times", refusals, len(seen))
	}
}

func TestACredentialThatIsMissingIsDeniedWithTheConfiguredStatus(t *testing.T) {
	site := serveRefusals(t, `{"retry_after_jitter": "1h", "rate_limit_headers": ["ratelimit", "draft", "x-ratelimit"]}`,
		`{"match": {"path": "/member"}, "limits": ["hourly", "member"], "response": {"status": 401, "headers": {"www-authenticate": "Bearer"}}},`)
	response := site.client(t).Get(t, "/member", "x-client: a")
	want := `{"error":"rate_limit_exceeded","message":"A required credential is missing.","retryAfter":null}`
	if response.Status != 401 || response.Body != want || only(t, response, "WWW-Authenticate") != "Bearer" {
		t.Errorf("got %d %q, want 401 %q", response.Status, response.Body, want)
	}
	for name := range response.Header {
		if strings.Contains(strings.ToLower(name), "ratelimit") && name != "X-Envoy-Ratelimited" || name == "Retry-After" {
			t.Errorf("the refusal has %s: %q", name, response.Header[name])
		}
	}
	site.expectReached(t, 0)
	// Nor was the limit beside it charged.
	admitted := site.client(t).Get(t, "/member", "x-client: a", "x-key: k")
	expectAdmitted(t, admitted)
	if got := only(t, admitted, "RateLimit-Policy"); !strings.Contains(got, `"hourly";q=10;w=3600`) {
		t.Errorf("RateLimit-Policy is %s", got)
	}
	if got := only(t, admitted, "RateLimit"); !strings.Contains(got, `"hourly";r=9;`) {
		t.Errorf("RateLimit is %s, want 9 left of the hourly limit", got)
	}
}
