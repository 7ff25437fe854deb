package main

import (
	"errors"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
)

// Every limit has the same two numbers, so that the rows differ by algorithm
// alone: 5 at once and 2 a second, which is 5 in each period of 2.5 s. That is
// the windows' length, and the longest wait, as it is by default.
const (
	units  = 5
	perSec = "2/s"
	period = 2500 * time.Millisecond
)

// The burst is more than any limit admits, the trickle after it less than the
// rate of each.
const (
	inBurst   = 20
	inTrickle = 6
	apart     = 50 * time.Millisecond
	trickle   = 1800 * time.Millisecond // its first request
	stretch   = 800 * time.Millisecond  // from one of the trickle to the next
)

// The wall clock is such that a window ends in the middle of the burst.
const (
	firstEdge   = 500 * time.Millisecond
	wallAtStart = period - firstEdge
)

// arrivals returns when requests come, from the first of them on.
func arrivals() []time.Duration {
	var at []time.Duration
	for i := range time.Duration(inBurst) {
		at = append(at, i*apart)
	}
	for i := range time.Duration(inTrickle) {
		at = append(at, trickle+i*stretch)
	}
	return at
}

// row is the burst under one algorithm.
type row struct {
	Name, Note string
	Windows    bool // it counts in windows
	Queue      bool // it makes requests wait
	requests   []request
}

// request is what becomes of one request.
type request struct {
	at       time.Duration
	admitted bool
	wait     time.Duration
}

// decideAll returns a row for each algorithm. A limit on requests in flight has
// none: what it admits depends on how long the requests take.
func decideAll() ([]row, error) {
	rate, err := algorithms.ParseRate(perSec)
	if err != nil {
		return nil, err
	}
	window, err := algorithms.ParseWindow(period.String(), 0)
	if err != nil {
		return nil, err
	}
	tokens, err1 := algorithms.NewTokenBucket(units, rate)
	gcra, err2 := algorithms.NewGCRA(rate, units)
	meter, err3 := algorithms.NewLeakyMeter(units, rate)
	queue, err4 := algorithms.NewLeakyQueue(units, rate, period)
	fixed, err5 := algorithms.NewFixedWindow(units, window)
	sliding, err6 := algorithms.NewSlidingWindow(units, window)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return nil, err
	}
	return []row{
		{Name: "token_bucket", requests: decide(tokens),
			Note: "5 at once, then one for each 0.5 s that has passed"},
		{Name: "gcra", requests: decide(gcra),
			Note: "the same with burst 5; with 1, the default, one every 0.5 s"},
		{Name: "leaky_bucket, meter", requests: decide(meter),
			Note: "the same, thought of as a level"},
		{Name: "leaky_bucket, queue", requests: decide(queue), Queue: true,
			Note: "one goes on every 0.5 s, up to 5 wait"},
		{Name: "fixed_window", requests: decide(fixed), Windows: true,
			Note: "5 before a window’s edge, 5 after it, none until the next"},
		{Name: "sliding_window", requests: decide(sliding), Windows: true,
			Note: "5, then more as the window before fades out"},
	}, nil
}

// decide puts the burst through a bucket that nobody has used.
func decide(l algorithms.Limiter) []request {
	var state algorithms.State
	var requests []request
	for _, at := range arrivals() {
		now := algorithms.Time{Mono: int64(at), Wall: int64(wallAtStart + at)}
		var d algorithms.Decision
		state, d = algorithms.Decide(l, state, now, 1)
		requests = append(requests, request{at, d.Allowed, d.Wait})
	}
	return requests
}
