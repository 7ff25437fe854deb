package algorithms

// span is one window of one bucket. The wall clock gives it its label when it
// begins, and with it the alignment to the calendar; from then on the monotonic
// clock alone says when it ends. So a wall clock that steps back neither opens a
// window a second time nor keeps one from ending.
type span struct {
	label int64 // the window's beginning, wall, in ns
	end   int64 // monotonic, in ns
}

// open returns the window with the given label as it begins for a bucket at
// now, which may be after its beginning on the wall clock. It ends when the
// calendar's does, but where the wall clock has not reached its beginning yet,
// it lasts its own length from now: a window is never longer than that.
func (w Window) open(label int64, now Time) span {
	rest := until(w.end(label), max(now.Wall, label))
	return span{label, later(now.Mono, rest)}
}

// first returns the window of a bucket that nobody has used.
func (w Window) first(now Time) span {
	return w.open(w.start(now.Wall), now)
}

// after returns the window that follows a stored one that is over: the
// calendar's, but never the stored one or an earlier one again.
func (w Window) after(stored span, now Time) span {
	label := w.start(now.Wall)
	if label <= stored.label {
		label = w.end(stored.label)
	}
	return w.open(label, now)
}
