package plugin

import (
	"encoding/binary"
	"time"

	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/table"
)

// The host's timers may go by a clock of the kernel's that moves in steps: of
// 4 ms where CONFIG_HZ is 250. A tick of 1 ms then comes within the first
// millisecond of a step, and a departure that falls there would have to wait for
// the next step now and then, and now and then not.
const (
	stepLength = int64(4 * time.Millisecond)
	stepShort  = int64(3 * time.Millisecond) // ticks that far apart have a step between them
	// A departure from so long before a step starts, as nobody knows that to the
	// nanosecond, to so long after it is held until stepUntil.
	stepBefore = int64(250 * time.Microsecond)
	stepAfter  = int64(1500 * time.Microsecond)
	stepUntil  = int64(1750 * time.Microsecond)
	// Ticks come every millisecond for so long before a departure: that is longer
	// than the first can be late and two steps are long, so that the first
	// departure of a worker finds out whether there are steps.
	stepLead = int64(13 * time.Millisecond)
)

// stepsKey is where in shared data the workers keep the start of a step.
const stepsKey = "sluice1:steps"

const stepStartSize = 24 // bytes

// stepStart is when a step of the clock started. All workers share one, for they
// share the clock, and would differ in what they do with a departure beside a
// start that each has found for itself.
type stepStart struct {
	start int64 // of any step, by the monotonic clock, ns; 0 is not known
	early int64 // ticks that have come before the start that was known
	taken int64 // the start that departures go by, see correct
}

// appendTo appends the start as it stands in shared data.
func (s stepStart) appendTo(b []byte) []byte {
	for _, n := range [...]int64{s.start, s.early, s.taken} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// parseStepStart is the reverse of appendTo. What has another length is no start.
func parseStepStart(b []byte) (s stepStart) {
	if len(b) == stepStartSize {
		for i, n := range [...]*int64{&s.start, &s.early, &s.taken} {
			*n = int64(binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
	return s
}

// steps is what a plugin knows of the clock's steps.
type steps struct {
	moves bool // in steps, as its own ticks say
	stepStart
	odd     int // ticks in a row that do not fit
	ticks   [2]int64
	ticked  int // how many of ticks count, the newest first
	scratch [stepStartSize]byte
}

// restart says that the timer is set anew by something else than a tick, so that
// the time between two ticks tells nothing.
func (s *steps) restart() { s.ticked = 0 }

// learn learns from a tick, and has all workers know the start of a step. short
// says that its period was a millisecond: others come anywhere in a step. Where
// shared data fails, what was known stays, and another tick comes soon.
func (s *steps) learn(now int64, short bool) {
	s.tick(now, short)
	if !s.moves || !short {
		return
	}
	shared, version, status := host.SharedData([]byte(stepsKey))
	switch status {
	case host.OK:
		s.stepStart = parseStepStart(shared)
	case host.NotFound:
		s.stepStart, version = stepStart{}, table.Absent
	default:
		return
	}
	s.correct(now)
	// A worker that wrote meanwhile has seen a tick of the same step.
	host.SetSharedData([]byte(stepsKey), s.appendTo(s.scratch[:0]), version)
}

// tick finds out from a tick whether the clock moves in steps.
func (s *steps) tick(now int64, short bool) {
	if !short {
		s.ticked = 0
	}
	switch gap := now - s.ticks[0]; {
	case s.ticked == 2 && now-s.ticks[1] < stepShort:
		s.moves = false // three ticks in a step
	case s.ticked > 0 && gap > stepShort && gap < stepLength+stepAfter:
		s.moves = true
	}
	s.ticks = [2]int64{now, s.ticks[0]}
	s.ticked = min(s.ticked+1, 2)
}

// correct takes a tick that comes a little before the start of a step for the
// start, as none comes before that. Each of the others moves the start on a bit,
// in case the steps drift. One that does not fit at all has been held up, unless
// there are several in a row.
//
// Departures go by a start that follows only when it is well beside, so that those
// beside the edge of being held do not leave a step apart.
func (s *steps) correct(now int64) {
	const (
		slowly = 1024
		little = int64(500 * time.Microsecond)
		few    = 3
		well   = int64(150 * time.Microsecond)
	)
	if s.start == 0 {
		s.start = now
	}
	switch late := sinceStep(now, s.start); {
	case late < stepAfter:
		s.start, s.odd = s.start+late/slowly, 0
	case late >= stepLength-little:
		s.advance(stepLength - late)
		s.odd = 0
	default:
		if s.odd++; s.odd == few {
			s.stepStart, s.odd = stepStart{start: now}, 0
		}
	}
	if off := s.start - s.taken; off > well || off < -well {
		s.taken = s.start
	}
}

// advance takes a step to start so much earlier: the first few times wholly, as
// the start that is known at first is that of an ordinary tick, and then by a part,
// as a tick that was held up for long may look like an early one.
func (s *steps) advance(by int64) {
	const wholly, part = 8, 4
	if s.early++; s.early > wholly {
		by /= part
	}
	s.start -= by
}

// sinceStep is the time from the start of the step that a moment is in, ns.
func sinceStep(moment, start int64) int64 {
	since := (moment - start) % stepLength
	if since < 0 {
		since += stepLength
	}
	return since
}

// hold is the moment from which on a departure may leave: its own, or up to
// stepBefore + stepUntil later, and never earlier.
func (s *steps) hold(departs int64) int64 {
	if !s.moves || s.start == 0 {
		return departs
	}
	if since := sinceStep(departs+stepBefore, s.taken); since < stepBefore+stepAfter {
		return departs - since + stepBefore + stepUntil
	}
	return departs
}
