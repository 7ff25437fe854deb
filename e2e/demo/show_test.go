package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// listenerOf starts a server that stands for Envoy and returns its host:port.
func listenerOf(t *testing.T, serve http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func admit(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }

func refuse(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "0")
	http.Error(w, `{"error":"rate_limit_exceeded","retryAfter":0}`, http.StatusTooManyRequests)
}

// admitOnly admits the first n requests.
func admitOnly(n int64) http.HandlerFunc {
	var requests atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) <= n {
			admit(w, r)
		} else {
			refuse(w, r)
		}
	}
}

func TestADemoThatShowsSomethingElseThanItPromisesFails(t *testing.T) {
	for _, c := range []struct {
		name    string
		section func(*testing.T, *client, *timeline) error
		envoy   http.HandlerFunc
		want    string
	}{
		{"classic, everything admitted", runClassic, admit, "of 8 requests at once 8 were admitted, want 5"},
		{"classic, one too few", runClassic, admitOnly(4), "of 8 requests at once 4 were admitted, want 5"},
		{"classic, never one more", runClassic, admitOnly(5), "of 2 requests after Retry-After 0 were admitted, want 1"},
		{"login, everything admitted", runLogin, admit, "of 20 logins at once 20 were admitted, want 3"},
		{"read, everything refused", runLogin, refuse, "of 100 reads at once 0 were admitted, want 100"},
		{"daily, one too many", runDaily, admitOnly(11), "of 2 more reports 1 were admitted, want 0"},
		{"daily, one too few", runDaily, admitOnly(9), "of the first 10 reports 9 were admitted, want 10"},
		{"daily, until some other time", runDaily, admitOnly(10), "does not end at midnight UTC"},
		{"queue, everything at once", runWaiting, admit, "of 13 exports at once 13 were admitted, want 11"},
		{"queue, nobody waits", runWaiting, admitOnly(11), "export 2 left after"},
		{"backing off, everything refused", runBackingOff, refuse, "got 429 Too Many Requests in the end"},
		{"backing off, everything admitted", runBackingOff, admit, "none of 8 requests at once had to wait"},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, err := newClient("127.0.0.1", listenerOf(t, c.envoy))
			if err != nil {
				t.Fatal(err)
			}
			err = c.section(t, one, &timeline{out: io.Discard})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got the error %v, want %q", err, c.want)
			}
		})
	}
}

func runClassic(t *testing.T, one *client, out *timeline) error {
	return classic(t.Context(), one, nil, out)
}

func runLogin(t *testing.T, one *client, out *timeline) error {
	return strictAndGenerous(t.Context(), one, out)
}

func runDaily(t *testing.T, one *client, out *timeline) error {
	return daily(t.Context(), one, out)
}

func runWaiting(t *testing.T, one *client, out *timeline) error {
	return waiting(t.Context(), one, out)
}

func TestAnExportLeavesInItsTurnAndSoonAfterIt(t *testing.T) {
	for _, c := range []struct {
		i    int
		left time.Duration
		ok   bool
	}{
		{0, 0, true},
		{0, 3 * time.Second, false},
		{4, 1999 * time.Millisecond, false},
		{4, 2 * time.Second, true},
		{4, 2100 * time.Millisecond, true},
		{4, 4001 * time.Millisecond, false},
	} {
		if err := checkDeparture(c.i, c.left); (err == nil) != c.ok {
			t.Errorf("export %d after %v: %v", c.i+1, c.left, err)
		}
	}
}

func runBackingOff(t *testing.T, one *client, out *timeline) error {
	return backingOff(t.Context(), one, out)
}

func TestABodyThatContradictsRetryAfterFails(t *testing.T) {
	refusal := answer{header: http.Header{"Retry-After": {"5"}},
		body: `{"error":"rate_limit_exceeded","message":"Try again in 6 seconds.","retryAfter":6}`}
	if showBody(refusal, &timeline{out: io.Discard}) == nil {
		t.Error("Retry-After: 5 and retryAfter 6 passed")
	}
}

func TestTheDayEndsAtMidnightUTC(t *testing.T) {
	paris := time.FixedZone("", 3600)
	want := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{
		time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 3, 1, 23, 59, 59, 999, time.UTC),
		time.Date(2026, 3, 2, 0, 30, 0, 0, paris),
	} {
		if got := midnight(at); !got.Equal(want) {
			t.Errorf("the day of %v ends at %v, want %v", at, got, want)
		}
	}
}
