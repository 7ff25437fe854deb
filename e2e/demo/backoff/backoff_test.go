package backoff

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// server answers the requests it gets in turn, the last answer over and over,
// and notes when they came and what their bodies were. Time is synctest's, which
// moves only while everybody waits.
type server struct {
	answers []answer
	start   time.Time
	at      []time.Duration // since start
	bodies  []string
	replies []*body
}

// body is the body of an answer, which notes what was done with it.
type body struct {
	strings.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

type answer struct {
	status     int
	retryAfter string // "" is none
	err        error
}

func serve(answers ...answer) *server { return &server{answers: answers, start: time.Now()} }

func (s *server) send(r *http.Request) (*http.Response, error) {
	a := s.answers[min(len(s.at), len(s.answers)-1)]
	s.at = append(s.at, time.Since(s.start))
	if r.Body != nil {
		body, _ := io.ReadAll(r.Body)
		s.bodies = append(s.bodies, string(body))
	}
	if a.err != nil {
		return nil, a.err
	}
	reply := &body{Reader: *strings.NewReader("x")}
	s.replies = append(s.replies, reply)
	response := &http.Response{StatusCode: a.status, Header: http.Header{}, Body: reply}
	if a.retryAfter != "" {
		response.Header.Set("Retry-After", a.retryAfter)
	}
	return response, nil
}

// client is a Client of s with settings that tests have no reason to vary.
func (s *server) client(attempts int) *Client {
	return &Client{Send: s.send, Attempts: attempts, Base: 100 * time.Millisecond, Cap: time.Second}
}

func get(t *testing.T, ctx context.Context) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://upstream/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

func expectStatus(t *testing.T, response *http.Response, err error, status int) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != status {
		t.Fatalf("got status %d, want %d", response.StatusCode, status)
	}
}

func TestARefusedRequestIsSentAgainWhenRetryAfterIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(answer{status: 429, retryAfter: "3"}, answer{status: 503, retryAfter: "2"}, answer{status: 200})
		var waits []time.Duration
		client := s.client(5)
		client.OnWait = func(wait time.Duration) { waits = append(waits, wait) }
		response, err := client.Do(get(t, t.Context()))
		expectStatus(t, response, err, 200)
		if len(s.at) != 3 || s.at[0] != 0 || s.at[1] != 3*time.Second || s.at[2] != 5*time.Second {
			t.Errorf("requests came at %v, want at 0s, 3s and 5s", s.at)
		}
		if len(waits) != 2 || waits[0] != 3*time.Second || waits[1] != 2*time.Second {
			t.Errorf("was told of the waits %v, want 3s and 2s", waits)
		}
	})
}

func TestRetryAfterLongerThanTheCapIsNotCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(answer{status: 429, retryAfter: "3600"}, answer{status: 200})
		response, err := s.client(2).Do(get(t, t.Context()))
		expectStatus(t, response, err, 200)
		if s.at[1] != time.Hour {
			t.Errorf("came back after %v, want 1h", s.at[1])
		}
	})
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		value string
		wait  time.Duration
		ok    bool
	}{
		{"0", 0, true},
		{"120", 2 * time.Minute, true},
		{"Sun, 01 Mar 2026 12:00:30 GMT", 30 * time.Second, true},
		{"Sun, 01 Mar 2026 11:00:00 GMT", 0, true},
		{"18446744073709551615", math.MaxInt64 / time.Second * time.Second, true},
		{"", 0, false},
		{"-1", 0, false},
		{"1.5", 0, false},
		{"soon", 0, false},
	} {
		wait, ok := RetryAfter(http.Header{"Retry-After": {c.value}}, now)
		if wait != c.wait || ok != c.ok {
			t.Errorf("Retry-After: %q: got %v, %v; want %v, %v", c.value, wait, ok, c.wait, c.ok)
		}
	}
}

func TestWithoutRetryAfterWaitsAreSpreadBelowADoublingCeiling(t *testing.T) {
	ceilings := []time.Duration{100, 200, 400, 800, 1000, 1000} // milliseconds
	longest := make([]time.Duration, len(ceilings))
	shortest := make([]time.Duration, len(ceilings))
	synctest.Test(t, func(t *testing.T) {
		for run := range 200 {
			s := serve(answer{status: 429, retryAfter: "soon"})
			response, err := s.client(len(ceilings) + 1).Do(get(t, t.Context()))
			expectStatus(t, response, err, 429)
			for i := range ceilings {
				wait := s.at[i+1] - s.at[i]
				longest[i] = max(longest[i], wait)
				if run == 0 || wait < shortest[i] {
					shortest[i] = wait
				}
			}
		}
	})
	for i, ceiling := range ceilings {
		ceiling *= time.Millisecond
		// That 200 draws all miss a quarter happens once in 10^24 runs.
		if longest[i] > ceiling || longest[i] < ceiling*3/4 || shortest[i] > ceiling/4 {
			t.Errorf("wait %d took from %v to %v, want it anywhere from 0 to %v",
				i+1, shortest[i], longest[i], ceiling)
		}
	}
}

func TestManyAttemptsDoNotOverflowTheCeiling(t *testing.T) {
	for attempt := range 200 {
		if wait := fullJitter(time.Second, math.MaxInt64, attempt+1); wait < 0 {
			t.Fatalf("attempt %d: waits %v", attempt+1, wait)
		}
	}
}

func TestAttemptsAreBounded(t *testing.T) {
	for _, c := range []struct{ attempts, sent int }{{4, 4}, {1, 1}, {0, 1}} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(answer{status: 429, retryAfter: "1"})
			response, err := s.client(c.attempts).Do(get(t, t.Context()))
			expectStatus(t, response, err, 429)
			if len(s.at) != c.sent {
				t.Errorf("with %d attempts sent the request %d times, want %d", c.attempts, len(s.at), c.sent)
			}
			if body, err := io.ReadAll(response.Body); err != nil || string(body) != "x" {
				t.Errorf("the last answer's body reads %q, %v; want it untouched", body, err)
			}
		})
	}
}

func TestARefusalsConnectionCanBeUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(answer{status: 429, retryAfter: "1"}, answer{status: 200})
		response, err := s.client(5).Do(get(t, t.Context()))
		expectStatus(t, response, err, 200)
		if refusal := s.replies[0]; refusal.Len() > 0 || !refusal.closed {
			t.Errorf("left %d bytes of the refusal unread, closed it: %v; want 0, true", refusal.Len(), refusal.closed)
		}
		if s.replies[1].closed {
			t.Error("closed the answer that the caller is to read")
		}
	})
}

func TestOnly429And503AreSentAgain(t *testing.T) {
	for _, status := range []int{200, 301, 400, 401, 403, 404, 408, 500, 502, 504} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(answer{status: status, retryAfter: "1"}, answer{status: 200})
			response, err := s.client(5).Do(get(t, t.Context()))
			expectStatus(t, response, err, status)
			if len(s.at) != 1 {
				t.Errorf("sent a request answered with %d again", status)
			}
		})
	}
}

func TestAConnectionsErrorGoesToTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("connection reset")
		s := serve(answer{err: broken}, answer{status: 200})
		if _, err := s.client(5).Do(get(t, t.Context())); !errors.Is(err, broken) {
			t.Errorf("got the error %v, want %v", err, broken)
		}
		if len(s.at) != 1 {
			t.Error("sent the request again")
		}
	})
}

func TestEveryAttemptSendsTheWholeBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(answer{status: 429, retryAfter: "1"}, answer{status: 429}, answer{status: 200})
		request := get(t, t.Context())
		body := strings.NewReader("name=value")
		request.Body = io.NopCloser(body)
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("name=value")), nil }
		response, err := s.client(5).Do(request)
		expectStatus(t, response, err, 200)
		if got := strings.Join(s.bodies, " "); got != "name=value name=value name=value" {
			t.Errorf("the bodies were %q", s.bodies)
		}
	})
}

func TestABodyThatCannotBeReadTwiceIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(answer{status: 429, retryAfter: "1"}, answer{status: 200})
		request := get(t, t.Context())
		request.Body = io.NopCloser(strings.NewReader("stream"))
		response, err := s.client(5).Do(request)
		expectStatus(t, response, err, 429)
		if len(s.at) != 1 || time.Since(s.start) != 0 {
			t.Errorf("sent %d requests in %v, want one and no wait", len(s.at), time.Since(s.start))
		}
	})
}

func TestACancelledContextEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(answer{status: 429, retryAfter: "60"})
		time.AfterFunc(5*time.Second, cancel)
		_, err := s.client(5).Do(get(t, ctx))
		if !errors.Is(err, context.Canceled) || time.Since(s.start) != 5*time.Second || len(s.at) != 1 {
			t.Errorf("after %v and %d requests got %v, want context canceled after 5s and 1 request",
				time.Since(s.start), len(s.at), err)
		}
	})
}

func TestAWaitPastTheDeadlineIsNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		s := serve(answer{status: 429, retryAfter: "8"})
		response, err := s.client(5).Do(get(t, ctx))
		expectStatus(t, response, err, 429)
		if time.Since(s.start) != 8*time.Second || len(s.at) != 2 {
			t.Errorf("gave up after %v and %d requests, want after 8s and 2", time.Since(s.start), len(s.at))
		}
	})
}
