package e2e

import (
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// guessConfig is a limit on failed logins. Its window is long enough for no test
// to see its end: what was counted an hour ago still counts nearly whole.
const guessConfig = `{
	"limits": {"guess": {"algorithm": "sliding_window", "limit": 10, "window": "1h", "key": ["header:x-client"], "count_status": ["401", "403"]}},
	"rules":  [
		{"match": {"path": "/look"}, "limits": [{"limit": "guess", "cost": 0}]},
		{"limits": ["guess"]}
	]
}`

const (
	right = "x-reply-status: 200"
	wrong = "x-reply-status: 401"
)

func serveGuesses(t *testing.T) *holding {
	t.Helper()
	return serveHolding(t, envoytest.Options{}, envoytest.Wasm{Config: guessConfig}, endingListener(), endingFilters(t)...)
}

// expectStatus checks that the client got this answer, and not a refusal.
func expectStatus(t *testing.T, r envoytest.Response, status int) {
	t.Helper()
	if r.Status != status {
		t.Fatalf("got status %d %q, want %d", r.Status, r.Body, status)
	}
}

// expectLeft checks how many guesses a client has left.
func (h *holding) expectLeft(t *testing.T, want int, client string) {
	t.Helper()
	if left := number(t, h.newcomer(t).Get(t, "/look", client), "RateLimit-Remaining"); left != want {
		t.Errorf("%d guesses are left, want %d", left, want)
	}
}

func TestTenWrongPasswordsAreAllAndAThousandRightOnesPass(t *testing.T) {
	h := serveGuesses(t)
	client := h.newcomer(t) // meets every worker
	const guesser, user = "x-client: guesser", "x-client: user"

	for used := 1; used <= 10; used++ {
		response := client.Get(t, "/", guesser, wrong)
		expectStatus(t, response, 401)
		expectLimit(t, response, 10, 10-used)
	}
	reached := h.upstream.Requests()
	for range 8 { // right passwords as well: nobody may learn which one it is
		expectRefused(t, client.Get(t, "/", guesser, wrong))
		expectRefused(t, client.Get(t, "/", guesser, right))
	}
	if n := h.upstream.Requests() - reached; n != 0 {
		t.Errorf("%d guesses reached the upstream after the tenth", n)
	}

	for used := range 10 {
		for range 100 {
			response := client.Get(t, "/", user, right)
			expectStatus(t, response, 200)
			expectLimit(t, response, 10, 10-used) // it is given back by then
		}
		expectStatus(t, client.Get(t, "/", user, wrong), 401)
	}
	expectRefused(t, client.Get(t, "/", user, right))
}

func TestOfFiftyGuessesAtOnceNoMoreThanTheLimitReachTheUpstream(t *testing.T) {
	h := serveGuesses(t)
	client := h.newcomer(t)

	guesses := h.hold(t, client, 50, "x-client: guesser", wrong)
	guesses.expectHeld(t, 10)
	if tally := guesses.release(t); tally[401] != 10 || tally[429] != 40 {
		t.Fatalf("guesses got answers by status %v, want 10 of 401 and 40 of 429", tally)
	}
	if n := h.upstream.MostHeld(guesses.name); n != 10 {
		t.Errorf("%d guesses were at the upstream at once, want 10", n)
	}
	expectRefused(t, client.Get(t, "/", "x-client: guesser", right))
	expectEveryWorkerBusy(t, h.envoy, "main")

	// Right ones are charged for as long as they are under way, and not after it.
	for range 3 {
		logins := h.hold(t, client, 50, "x-client: users", right)
		logins.expectHeld(t, 10)
		if tally := logins.release(t); tally[200] != 10 || tally[429] != 40 {
			t.Fatalf("logins got answers by status %v, want 10 of 200 and 40 of 429", tally)
		}
		h.expectLeft(t, 10, "x-client: users")
	}

	// Half of each, all at once.
	half := h.hold(t, client, 5, "x-client: both", wrong)
	other := h.hold(t, client, 50, "x-client: both", right)
	half.expectHeld(t, 5)
	other.expectHeld(t, 5)
	other.release(t)
	h.expectLeft(t, 5, "x-client: both")
	half.release(t)
	h.expectLeft(t, 5, "x-client: both")
}

func TestWhichEndingsOfALoginCount(t *testing.T) {
	h := serveGuesses(t)
	given, stays := []ending{}, []ending{
		answered("a status that counts", 401, "/", "x-reply-status: 401"),
		answered("the other one", 403, "/", "x-reply-status: 403"),
		answered("one by another filter", 403, "/", "x-end: rbac"),
	}
	for _, e := range endings {
		switch e.name {
		case "a refusal by rbac behind the filter":
		case "an HTTP/1 client that goes while it waits", "an HTTP/2 reset while it waits":
			stays = append(stays, e) // there is no response
		case "an HTTP/1 client that goes in the middle of its upload", "an upgraded connection that is closed", "a redirect that Envoy follows":
			// They look at how many are in flight, or are several requests.
		default:
			given = append(given, e)
		}
	}
	check := func(e ending, kind string, taken int) {
		t.Run(kind+": "+e.name, func(t *testing.T) {
			client := "x-client: " + t.Name()
			for n := range 2 {
				e.end(t, h, client)
				// A client that has gone does not know when its stream ends.
				envoytest.Eventually(t, "no stream is left", func() bool {
					return h.envoy.Stat(t, "http.main.downstream_rq_active") == 0
				})
				h.expectLeft(t, 10-taken*(n+1), client)
			}
		})
	}
	for _, e := range given {
		check(e, "given back", 0)
	}
	for _, e := range stays {
		check(e, "stays charged", 1)
	}
	// A refusal of its own is not charged, and so gives nothing back.
	const client = "x-client: spent"
	for range 10 {
		expectStatus(t, h.newcomer(t).Get(t, "/", client, wrong), 401)
	}
	for range 20 {
		expectRefused(t, h.newcomer(t).Get(t, "/", client, right))
	}
	h.expectLeft(t, 0, client)
}
