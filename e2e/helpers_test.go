package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// perIP is a config with one limit per address, which refills by one a day. It
// has further fields after that, with a comma before them.
func perIP(capacity int, further string) string {
	return fmt.Sprintf(`{
		"limits": {"per-ip": {"algorithm": "token_bucket", "capacity": %d, "refill_rate": "1/d", "key": ["ip"]}},
		"rules":  [{"limits": ["per-ip"]}]
		%s
	}`, capacity, further)
}

// expectAdmitted checks that a request came through.
func expectAdmitted(t testing.TB, r envoytest.Response) {
	t.Helper()
	if r.Status != http.StatusOK {
		t.Fatalf("got status %d %q, want the request admitted", r.Status, r.Body)
	}
}

// expectRefused checks that a request was refused with the default status.
func expectRefused(t testing.TB, r envoytest.Response) {
	t.Helper()
	if r.Status != http.StatusTooManyRequests {
		t.Fatalf("got status %d, want the request refused with 429", r.Status)
	}
}

// only returns the value of a header that must be there exactly once.
func only(t testing.TB, r envoytest.Response, name string) string {
	t.Helper()
	values := r.Header.Values(name)
	if len(values) != 1 {
		t.Fatalf("the response of status %d has %q as %s, want exactly one value", r.Status, values, name)
	}
	return values[0]
}

// number returns the whole number in a header that must be there exactly once.
func number(t testing.TB, r envoytest.Response, name string) int {
	t.Helper()
	n, err := strconv.Atoi(only(t, r, name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// expectLimit checks what the response says of the reported limit.
func expectLimit(t testing.TB, r envoytest.Response, limit, remaining int) {
	t.Helper()
	gotLimit, gotRemaining := number(t, r, "RateLimit-Limit"), number(t, r, "RateLimit-Remaining")
	if gotLimit != limit || gotRemaining != remaining {
		t.Fatalf("the response of status %d says %d of %d left, want %d of %d",
			r.Status, gotRemaining, gotLimit, remaining, limit)
	}
}

// expectNoLimit checks that the response says nothing of any limit.
func expectNoLimit(t testing.TB, r envoytest.Response) {
	t.Helper()
	for _, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
		if values := r.Header.Values(name); len(values) != 0 {
			t.Fatalf("the response of status %d has %s: %q, want none", r.Status, name, values)
		}
	}
}
