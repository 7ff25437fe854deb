package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// The headers of each family.
var families = map[string][]string{
	"ratelimit":   {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"},
	"x-ratelimit": {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"},
	"draft":       {"RateLimit-Policy", "RateLimit"},
}

func TestTheHeadersAreThoseThatTheConfigAsksFor(t *testing.T) {
	site := serveRefusals(t, `{}`, `
		{"match": {"path": "/none"}, "limits": ["once"], "response": {"rate_limit_headers": []}},
		{"match": {"path": "/x-ratelimit"}, "limits": ["once"], "response": {"rate_limit_headers": ["x-ratelimit"]}},
		{"match": {"path": "/draft"}, "limits": ["once"], "response": {"rate_limit_headers": ["draft"]}},
		{"match": {"path": "/all"}, "limits": ["once"], "response": {"rate_limit_headers": ["ratelimit", "x-ratelimit", "draft"]}},`)
	for _, http2 := range []bool{false, true} {
		client := envoytest.NewClient(t, site.addr, envoytest.ClientOptions{HTTP2: http2})
		for path, asked := range map[string][]string{
			"/": {"ratelimit"}, "/none": {}, "/x-ratelimit": {"x-ratelimit"}, "/draft": {"draft"}, "/all": {"ratelimit", "x-ratelimit", "draft"},
		} {
			header := fmt.Sprintf("x-client: %s %v", path, http2)
			for _, status := range []int{200, 429} {
				// The upstream says something under every name.
				lines := []string{header}
				for _, names := range families {
					for _, name := range names {
						lines = append(lines, "x-reply-header: "+name+": 999", "x-reply-header: "+strings.ToLower(name)+": 998")
					}
				}
				response := client.Get(t, path, lines...)
				if response.Status != status {
					t.Fatalf("%s: got status %d, want %d", path, response.Status, status)
				}
				for family, names := range families {
					for _, name := range names {
						got := response.Header.Values(name)
						switch {
						case slices.Contains(asked, family):
							if len(got) != 1 || strings.HasPrefix(got[0], "99") {
								t.Errorf("%s, status %d: %s is %q, want one value of the filter's", path, status, name, got)
							}
						case status == 200 && (len(got) != 2 || got[0] != "999"):
							t.Errorf("%s: %s is %q, want what the upstream said", path, name, got)
						case status == 429 && len(got) != 0:
							t.Errorf("%s: a refusal has %s: %q", path, name, got)
						}
					}
				}
				if again := response.Header.Values("Retry-After"); (len(again) == 1) != (status == 429) {
					t.Errorf("%s, status %d: Retry-After is %q", path, status, again)
				}
			}
		}
	}
}

func TestTheDraftsHeadersListEveryEnforcedLimitTheReportedOneFirst(t *testing.T) {
	site := serveRefusals(t, `{"rate_limit_headers": ["draft"]}`, `{"match": {"path": "/all"}, "limits": ["hourly", "once", "watched"]},`)
	client := site.client(t)
	for _, remaining := range []string{
		`"once";r=0;t=86[34]\d\d, "hourly";r=9;t=\d+`,
		`"once";r=0;t=86[34]\d\d, "hourly";r=9;t=\d+`, // refused, and so not charged
	} {
		response := client.Get(t, "/all", "x-client: a")
		if got, want := only(t, response, "RateLimit-Policy"), `"once";q=1;w=86400, "hourly";q=10;w=3600`; got != want {
			t.Errorf("RateLimit-Policy of status %d is %s, want %s", response.Status, got, want)
		}
		if got := only(t, response, "RateLimit"); !regexp.MustCompile("^" + remaining + "$").MatchString(got) {
			t.Errorf("RateLimit of status %d is %s, want %s", response.Status, got, remaining)
		}
	}
}

func TestGRPCClientsGetThePlainSentenceWhateverTheConfigSays(t *testing.T) {
	site := serveRefusals(t, `{"body": "Слишком много", "content_type": "text/plain", "status": 503, "headers": {"x-docs": "yes"}}`, `
		{"match": {"path": "/svc/Never"}, "limits": ["once"], "cost": 2},
		{"match": {"path": "/svc/Member"}, "limits": ["member"]},`)
	client := envoytest.NewClient(t, site.addr, envoytest.ClientOptions{HTTP2: true})
	call := func(path string) envoytest.Response {
		t.Helper()
		return client.Do(t, "POST", path, "content-type: application/grpc", "te: trailers", "x-client: a")
	}
	if response := call("/svc/Method"); response.Trailer.Get("grpc-status") != "0" {
		t.Fatalf("the first call got grpc-status %q, want it admitted", response.Trailer.Get("grpc-status"))
	}
	for path, message := range map[string]string{
		"/svc/Method": `Too many requests\. Try again in \d+ seconds\.`,
		"/svc/Never":  `This request costs more than its limit allows\.`,
		"/svc/Member": `A required credential is missing\.`,
	} {
		response := call(path)
		if response.Status != 200 || only(t, response, "Grpc-Status") != "8" || response.Body != "" {
			t.Errorf("%s: got status %d, grpc-status %q and body %q, want 200, 8 and none", path, response.Status, response.Header.Values("Grpc-Status"), response.Body)
		}
		if got := only(t, response, "Grpc-Message"); !regexp.MustCompile("^" + message + "$").MatchString(got) {
			t.Errorf("%s: grpc-message is %q, want %s", path, got, message)
		}
		if again := len(response.Header.Values("Retry-After")); again != strings.Count(path, "Method") {
			t.Errorf("%s: there are %d Retry-After", path, again)
		}
		if only(t, response, "X-Docs") != "yes" || only(t, response, "X-Envoy-Ratelimited") != "true" {
			t.Errorf("%s: the extra headers are missing in %v", path, response.Header)
		}
	}
}
