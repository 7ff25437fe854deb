package plugin

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// stepped is a clock that moves every length, and a worker that learns from the
// ticks by it.
type stepped struct {
	steps
	start, length int64
}

// tickInStep has a tick come in the n-th step, so long after its start.
func (s *stepped) tickInStep(n, late int64) int64 {
	now := s.start + n*s.length + late
	s.tick(now, true)
	return now
}

func drawLate(r *rapid.T) int64 {
	return rapid.Int64Range(0, int64(time.Millisecond)-1).Draw(r, "late")
}

// Whatever a worker's ticks come to in their steps, all workers have to let the
// departures of a phase leave in the same one.
func TestDeparturesOfAPhaseLeaveInTheSameStepInAllWorkers(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		start := rapid.Int64Range(0, int64(time.Hour)).Draw(r, "start")
		// Beside the start of a step it depends on how well a worker knows that.
		const known = int64(300 * time.Microsecond)
		phase := rapid.Int64Range(known, stepLength-1).Draw(r, "phase")
		for range rapid.IntRange(1, 4).Draw(r, "workers") {
			w := stepped{start: start, length: stepLength}
			n := int64(0)
			for range rapid.IntRange(2, 100).Draw(r, "ticks before") {
				w.tickInStep(n, drawLate(r))
				n++
			}
			// A start is mended by half a millisecond at once: more would be taken
			// for a tick that was held up.
			for _, late := range []int64{700_000, 350_000} {
				w.tickInStep(n, late)
				n++
			}
			w.tickInStep(n, rapid.Int64Range(0, known/4).Draw(r, "late, as the first of all"))
			for range 50 {
				n++
				departs := w.start + n*w.length + phase
				moment := w.hold(departs)
				switch held := moment - departs; {
				case held < 0 || held > stepMiddle:
					r.Fatalf("one that departs %d ns after a step is held for %d ns", phase, held)
				case w.tickInStep(n, drawLate(r)) >= moment:
					r.Fatalf("one that departs %d ns after a step leaves in that step", phase)
				case w.start+(n+1)*w.length < moment:
					r.Fatalf("one that departs %d ns after a step does not leave in the next", phase)
				}
			}
		}
	})
}

// Where ticks come in time, so do departures, whatever a single tick that was
// late has looked like.
func TestNobodyIsHeldWhereTheClockIsFine(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := stepped{start: rapid.Int64Range(0, int64(time.Hour)).Draw(r, "start"), length: int64(time.Millisecond)}
		n := rapid.Int64Range(3, 5).Draw(r, "steps that a tick is late")
		w.tickInStep(0, 0)
		w.tickInStep(n, drawLate(r))
		for range rapid.Int64Range(2, 50).Draw(r, "ticks in time") {
			n++
			w.tickInStep(n, drawLate(r))
		}
		departs := w.start + rapid.Int64Range(0, int64(time.Second)).Draw(r, "departs")
		if held := w.hold(departs) - departs; held != 0 {
			r.Fatalf("it is held for %d ns", held)
		}
	})
}

func TestWhenTheTimerIsSetAnewTheTimeSinceTheLastTickTellsNothing(t *testing.T) {
	var s steps
	s.tick(int64(time.Hour), true)
	s.restart()
	s.tick(int64(time.Hour)+stepLength, true)
	if s.known {
		t.Error("it is taken for a step of the clock")
	}
	s.tick(int64(time.Hour)+2*stepLength, false)
	if s.known {
		t.Error("so is a longer period")
	}
	s.tick(int64(time.Hour)+3*stepLength, true)
	if !s.known {
		t.Error("ticks of a millisecond come every 4 ms, and nothing is learned from them")
	}
}

// Steps that drift are followed, both ways.
func TestStepsThatDriftAreFollowed(t *testing.T) {
	for _, drift := range []int64{-int64(time.Microsecond), int64(time.Microsecond)} {
		w := stepped{length: stepLength + drift}
		for n := range int64(20_000) {
			w.tickInStep(n, n*7919%int64(time.Millisecond))
		}
		last := w.start + 19_999*w.length
		if off := (w.steps.start - last + stepLength/2) % stepLength; off < stepLength/2-int64(200*time.Microsecond) || off > stepLength/2+int64(500*time.Microsecond) {
			t.Errorf("with a drift of %d ns a step, a step begins %d ns beside where it does", drift, off-stepLength/2)
		}
	}
}

// Ticks of longer periods come anywhere in a step, and one in a while is held up:
// neither says where steps begin.
func TestTicksThatSayNothingOfStepsMoveThemNowhere(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := stepped{start: rapid.Int64Range(0, int64(time.Hour)).Draw(r, "start"), length: stepLength}
		n := int64(0)
		for range 3 {
			w.tickInStep(n, 0)
			n++
		}
		anywhere := rapid.Int64Range(0, stepLength-int64(time.Millisecond)/2-1)
		for range rapid.IntRange(1, 50).Draw(r, "rounds") {
			w.tick(w.start+n*w.length+anywhere.Draw(r, "of a longer period"), false)
			w.tickInStep(n+1, anywhere.Draw(r, "held up"))
			w.tickInStep(n+2, 0)
			n += 3
		}
		if since := w.since(w.start + n*w.length); !w.known || since > int64(50*time.Microsecond) && since < stepLength-int64(50*time.Microsecond) {
			r.Fatalf("known: %t; a step is taken to begin %d ns before it does", w.known, since)
		}
	})
}

func TestStepsThatTurnOutToBeElsewhereAreLearnedAnew(t *testing.T) {
	var s steps
	at := func(n, late int64) { s.tick(int64(time.Hour)+n*stepLength+late, true) }
	at(0, 0)
	at(1, 0)
	for n := range int64(3) {
		at(n+2, stepLength/2)
	}
	if since := s.since(int64(time.Hour) + 9*stepLength); since != stepLength/2 {
		t.Errorf("a step is taken to begin %d ns before, want %d", since, stepLength/2)
	}
}
