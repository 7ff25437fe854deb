package plugin

import "time"

// The host's timers may go by a clock of the kernel's that moves in steps: of
// 4 ms where CONFIG_HZ is 250. A tick of 1 ms then comes within the first
// millisecond of a step, and a departure that falls there would have to wait for
// the next step now and then, and now and then not.
const (
	stepLength = int64(4 * time.Millisecond)
	stepEarly  = int64(1500 * time.Microsecond) // a departure before that in a step
	stepMiddle = int64(2 * time.Millisecond)    // is held until then
	// Ticks come every millisecond for so long before a departure: that is longer
	// than the first can be late and two starts are apart, so that the first
	// departure of a worker finds the steps known.
	stepLead = int64(13 * time.Millisecond)
)

// steps is what a plugin has learned of the clock's steps from its ticks. It
// knows of none where ticks are never so far apart.
type steps struct {
	known  bool
	start  int64 // of one of them, by the monotonic clock, ns
	odd    int   // ticks in a row that do not fit
	ticks  [2]int64
	ticked int // how many of ticks count, the newest first
}

// restart says that the timer is set anew by something else than a tick, so that
// the time between two ticks tells nothing.
func (s *steps) restart() { s.ticked = 0 }

// tick learns from a tick. short says that its period was a millisecond: others
// come anywhere in a step.
func (s *steps) tick(now int64, short bool) {
	if !short {
		s.ticked = 0
	}
	switch gap := now - s.ticks[0]; {
	case s.ticked == 2 && now-s.ticks[1] < stepLength-int64(time.Millisecond):
		s.known = false // three ticks in a step
	case s.known && short:
		s.correct(now)
	case s.ticked > 0 && gap > stepLength-int64(time.Millisecond) && gap < stepLength+stepEarly:
		s.known, s.start, s.odd = true, now, 0
	}
	s.ticks = [2]int64{now, s.ticks[0]}
	s.ticked = min(s.ticked+1, 2)
}

// correct takes a tick that comes a little before the start of a step for the
// start, as none comes before that. Each of the others moves the start on a bit,
// in case the steps drift. One that does not fit at all has been held up, unless
// there are several in a row.
func (s *steps) correct(now int64) {
	const slowly, few = 256, 3
	switch late := s.since(now); {
	case late > stepLength-int64(time.Millisecond)/2:
		s.start, s.odd = now, 0
	case late < stepEarly:
		s.start, s.odd = now-late+late/slowly, 0
	default:
		if s.odd++; s.odd == few {
			s.start, s.odd = now, 0
		}
	}
}

// since is the time from the start of the step that a moment is in, ns.
func (s *steps) since(moment int64) int64 {
	since := (moment - s.start) % stepLength
	if since < 0 {
		since += stepLength
	}
	return since
}

// hold is the moment from which on a departure may leave: its own, or up to
// stepMiddle later, and never earlier.
func (s *steps) hold(departs int64) int64 {
	if !s.known {
		return departs
	}
	if since := s.since(departs); since < stepEarly {
		return departs - since + stepMiddle
	}
	return departs
}
