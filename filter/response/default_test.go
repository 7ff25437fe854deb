package response

import (
	"slices"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/config"
)

func TestAProblemDocumentIsThatOfItsStatus(t *testing.T) {
	never, missing := refused(0), &Refusal{MissingKey: true}
	never.Never = true
	for _, c := range []struct {
		status  int
		refusal *Refusal
		want    string
	}{
		{429, refused(5 * time.Second), `{"type":"about:blank","title":"Too Many Requests","status":429,"detail":"Too many requests. Try again in 5 seconds.","retryAfter":5}`},
		{503, refused(time.Second), `{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"Too many requests. Try again in 1 second.","retryAfter":1}`},
		{403, never, `{"type":"about:blank","title":"Forbidden","status":403,"detail":"This request costs more than its limit allows.","retryAfter":null}`},
		{401, missing, `{"type":"about:blank","title":"Unauthorized","status":401,"detail":"A required credential is missing.","retryAfter":null}`},
		{599, refused(time.Second), `{"type":"about:blank","status":599,"detail":"Too many requests. Try again in 1 second.","retryAfter":1}`},
	} {
		for _, kind := range []string{"application/problem+json", "Application/Problem+JSON; charset=utf-8"} {
			got := configured(withContentType(kind), func(r *config.Response) { r.Status = c.status }).Refuse(c.refusal, false)
			if string(got.Body) != c.want || !slices.Equal(got.values("content-type"), []string{kind}) {
				t.Errorf("%d as %s: got %s as %q, want %s", c.status, kind, got.Body, got.values("content-type"), c.want)
			}
		}
	}
}

func TestABodyOfTheConfigsReplacesTheProblemDocument(t *testing.T) {
	got := configured(withContentType("application/problem+json"), withBody(`{"title":"{name}"}`)).Refuse(refused(1), false)
	if string(got.Body) != `{"title":"login"}` {
		t.Errorf("got %s", got.Body)
	}
}

func TestAnyOtherContentTypeKeepsTheDefaultBody(t *testing.T) {
	want := string(configured().Refuse(refused(time.Second), false).Body)
	for _, kind := range []string{"application/vnd.api+json", "text/plain", "application/problem+xml"} {
		got := configured(withContentType(kind)).Refuse(refused(time.Second), false)
		if string(got.Body) != want || !slices.Equal(got.values("content-type"), []string{kind}) {
			t.Errorf("%s: got %s as %q", kind, got.Body, got.values("content-type"))
		}
	}
}
