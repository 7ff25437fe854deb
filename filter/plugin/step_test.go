package plugin

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// stepped is a clock that moves every length, and what the workers that go by it
// share.
type stepped struct {
	start, length int64
	shared        stepStart
}

// tickInStep has a tick of a worker come in the n-th step, so long after its start.
func (s *stepped) tickInStep(w *steps, n, late int64) int64 {
	now := s.start + n*s.length + late
	s.tick(w, now)
	return now
}

// tick is learn with what is shared in the clock's own place.
func (s *stepped) tick(w *steps, now int64) {
	w.tick(now, true)
	if w.moves {
		w.stepStart = s.shared
		w.correct(now)
		s.shared = w.stepStart
	}
}

func drawLate(r *rapid.T) int64 {
	return rapid.Int64Range(0, int64(time.Millisecond)-1).Draw(r, "late")
}

// Whatever the workers' ticks come to in their steps, all of them have to let the
// departures of a phase leave in the same one.
func TestDeparturesOfAPhaseLeaveInTheSameStepInAllWorkers(t *testing.T) {
	// So well do the ticks below have a start known.
	const known = int64(200 * time.Microsecond)
	rapid.Check(t, func(r *rapid.T) {
		clock := stepped{start: rapid.Int64Range(1, int64(time.Hour)).Draw(r, "start"), length: stepLength}
		workers := make([]steps, rapid.IntRange(1, 4).Draw(r, "workers"))
		n := int64(0)
		for range rapid.IntRange(2, 100).Draw(r, "ticks before") {
			for i := range workers {
				clock.tickInStep(&workers[i], n, drawLate(r))
			}
			n++
		}
		for range 40 {
			for i := range workers {
				clock.tickInStep(&workers[i], n, rapid.Int64Range(0, known/4).Draw(r, "late, among the first"))
			}
			n++
		}

		phase, steps := rapid.Int64Range(0, stepLength-stepBefore-1).Draw(r, "phase"), int64(1)
		if rapid.Bool().Draw(r, "shortly before a step") {
			phase, steps = rapid.Int64Range(stepLength-stepBefore+known, stepLength-1).Draw(r, "phase"), 2
		}
		for range 20 {
			for i := range workers {
				w := &workers[i]
				departs := clock.start + n*clock.length + phase
				moment := w.hold(departs)
				if held := moment - departs; held < 0 || held > stepBefore+stepUntil {
					r.Fatalf("worker %d: one that departs %d ns after a step is held for %d ns", i, phase, held)
				}
				if last := clock.start + (n+steps-1)*clock.length + int64(time.Millisecond) - 1; last >= moment {
					r.Fatalf("worker %d: one that departs %d ns after a step can leave less than %d steps later", i, phase, steps)
				}
				if first := clock.start + (n+steps)*clock.length; first < moment {
					r.Fatalf("worker %d: one that departs %d ns after a step can leave more than %d steps later", i, phase, steps)
				}
				clock.tickInStep(w, n, drawLate(r))
			}
			n++
		}
	})
}

// Where ticks come in time, so do departures, whatever a single tick that was
// late has looked like.
func TestNobodyIsHeldWhereTheClockIsFine(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		clock := stepped{start: rapid.Int64Range(1, int64(time.Hour)).Draw(r, "start"), length: int64(time.Millisecond)}
		var w steps
		n := rapid.Int64Range(3, 5).Draw(r, "steps that a tick is late")
		clock.tickInStep(&w, 0, 0)
		clock.tickInStep(&w, n, drawLate(r))
		for range rapid.Int64Range(2, 50).Draw(r, "ticks in time") {
			n++
			clock.tickInStep(&w, n, drawLate(r))
		}
		departs := clock.start + rapid.Int64Range(0, int64(time.Second)).Draw(r, "departs")
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
	if s.moves {
		t.Error("it is taken for a step of the clock")
	}
	s.tick(int64(time.Hour)+2*stepLength, false)
	if s.moves {
		t.Error("so is a longer period")
	}
	s.tick(int64(time.Hour)+3*stepLength, true)
	if !s.moves {
		t.Error("ticks of a millisecond come every 4 ms, and nothing is learned from them")
	}
}

// Steps that drift are followed, both ways.
func TestStepsThatDriftAreFollowed(t *testing.T) {
	for _, drift := range []int64{-200, 200} {
		clock := stepped{start: int64(time.Hour), length: stepLength + drift}
		var w steps
		for n := range int64(20_000) {
			clock.tickInStep(&w, n, n*7919%int64(time.Millisecond))
		}
		after := sinceStep(clock.start+19_999*clock.length+stepLength/2, w.taken) - stepLength/2
		if after < -int64(200*time.Microsecond) || after > int64(200*time.Microsecond) {
			t.Errorf("with a drift of %d ns a step, a step is taken to begin %d ns before it does", drift, after)
		}
	}
}

// A tick in a while is held up: it does not say where steps begin.
func TestTicksThatSayNothingOfStepsMoveThemNowhere(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		clock := stepped{start: rapid.Int64Range(1, int64(time.Hour)).Draw(r, "start"), length: stepLength}
		var w steps
		n := int64(0)
		for range 3 {
			clock.tickInStep(&w, n, 0)
			n++
		}
		for range rapid.IntRange(1, 50).Draw(r, "rounds") {
			clock.tickInStep(&w, n, rapid.Int64Range(0, stepLength-int64(time.Millisecond)/2-1).Draw(r, "held up"))
			clock.tickInStep(&w, n+1, 0)
			n += 2
		}
		if since := sinceStep(clock.start+n*clock.length, w.taken); !w.moves || since > int64(50*time.Microsecond) && since < stepLength-int64(50*time.Microsecond) {
			r.Fatalf("moves: %t; a step is taken to begin %d ns before it does", w.moves, since)
		}
	})
}

func TestStepsThatTurnOutToBeElsewhereAreLearnedAnew(t *testing.T) {
	clock := stepped{start: int64(time.Hour), length: stepLength}
	var w steps
	clock.tickInStep(&w, 0, 0)
	clock.tickInStep(&w, 1, 0)
	for n := range int64(3) {
		clock.tickInStep(&w, n+2, stepLength/2)
	}
	if since := sinceStep(clock.start+9*stepLength, w.taken); since != stepLength/2 {
		t.Errorf("a step is taken to begin %d ns before, want %d", since, stepLength/2)
	}
}

func TestAStartSurvivesSharedData(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := stepStart{start: rapid.Int64().Draw(r, "start"), early: rapid.Int64().Draw(r, "early"), taken: rapid.Int64().Draw(r, "taken")}
		if got := parseStepStart(s.appendTo(nil)); got != s {
			r.Fatalf("%+v comes back as %+v", s, got)
		}
		other := rapid.SliceOf(rapid.Byte()).Filter(func(b []byte) bool { return len(b) != stepStartSize }).Draw(r, "other bytes")
		if got := parseStepStart(other); got != (stepStart{}) {
			r.Fatalf("%x is taken for %+v", other, got)
		}
	})
}
