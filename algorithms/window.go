package algorithms

import (
	"errors"
	"time"
)

// Window divides time into windows that begin with the calendar's: of a fixed
// length that divides a day, of a day, of a week from Monday, of a month or of a
// year. The calendar is that of UTC, moved by a fixed offset. Two equal windows
// are equal Go values. The zero Window is none; ParseWindow makes one.
type Window struct {
	// length is 0 for months and years, which differ in length.
	length time.Duration
	// months is 1 or 12 for a month or a year, else 0.
	months int
	offset time.Duration
}

const (
	week = 7 * day
	// monday is one Monday's beginning, 1970-01-05. Every window that divides a
	// day begins there as well, so all fixed lengths are counted from it.
	monday = 4 * day
	// maxUTCOffset is the largest that any place uses, which is +14:00.
	maxUTCOffset = 14 * time.Hour
)

var (
	errWindow        = errors.New(`want a duration that divides a day, such as 10s, 1m or 1h, or 1d, 1w, 1mo, 1y`)
	errWindowDivides = errors.New("want a window that is a duration that divides a day, or 1d")
	errUTCOffset     = errors.New("want an offset from -14:00 to +14:00, such as +02:00")
)

// ParseWindow reads a window: a duration that divides a day ("1m", "6h"; "24h"
// is "1d"), "1d", "1w", "1mo" or "1y". utcOffset, whole minutes and at most 14
// hours either way, moves its beginning: with +02:00 a day begins at 22:00 UTC. An error says what
// to write instead; the caller puts in front of it where the value stands and
// what it is.
func ParseWindow(s string, utcOffset time.Duration) (Window, error) {
	if utcOffset.Abs() > maxUTCOffset || utcOffset%time.Minute != 0 {
		return Window{}, errUTCOffset
	}
	switch s {
	case "1w":
		return Window{length: week, offset: utcOffset}, nil
	case "1mo":
		return Window{months: 1, offset: utcOffset}, nil
	case "1y":
		return Window{months: 12, offset: utcOffset}, nil
	}
	d, err := parseAnyDuration(s)
	if err != nil || d == 0 || day%d != 0 {
		return Window{}, errWindow
	}
	return Window{length: d, offset: utcOffset}, nil
}

// ParseUTCOffset reads an offset such as "+02:00" or "-03:30", from -14:00 to
// +14:00. An error says what to write instead.
func ParseUTCOffset(s string) (time.Duration, error) {
	if len(s) != len("+hh:mm") || s[0] != '+' && s[0] != '-' || s[3] != ':' ||
		!allDigits(s[1:3]) || !allDigits(s[4:6]) {
		return 0, errUTCOffset
	}
	hours := time.Duration(s[1]-'0')*10 + time.Duration(s[2]-'0')
	minutes := time.Duration(s[4]-'0')*10 + time.Duration(s[5]-'0')
	offset := hours*time.Hour + minutes*time.Minute
	if minutes > 59 || offset > maxUTCOffset {
		return 0, errUTCOffset
	}
	if s[0] == '-' {
		offset = -offset
	}
	return offset, nil
}

// FormatUTCOffset spells an offset in the one way that ParseUTCOffset reads it.
func FormatUTCOffset(offset time.Duration) string {
	sign := byte('+')
	if offset < 0 {
		sign, offset = '-', -offset
	}
	hours, minutes := byte(offset/time.Hour), byte(offset%time.Hour/time.Minute)
	return string([]byte{sign, '0' + hours/10, '0' + hours%10, ':', '0' + minutes/10, '0' + minutes%10})
}

// String returns the one canonical spelling of a window, followed by its offset
// unless that is 0: "1h", "1d+02:00".
func (w Window) String() string {
	name := formatDuration(w.length)
	switch {
	case w.months == 12:
		name = "1y"
	case w.months == 1:
		name = "1mo"
	case w.length == week:
		name = "1w"
	}
	if w.offset == 0 {
		return name
	}
	return name + FormatUTCOffset(w.offset)
}

// dividesDay says whether all windows have one length that divides a day.
func (w Window) dividesDay() bool {
	return w.length > 0 && w.length <= day
}

// longest returns the length of the window, of a month or a year that of the
// longest there is, 31 or 366 days: a client that spreads its requests evenly
// over that stays within the limit in every month and year.
func (w Window) longest() time.Duration {
	switch w.months {
	case 0:
		return w.length
	case 1:
		return 31 * day
	default:
		return 366 * day
	}
}

// check refuses the zero Window.
func (w Window) check() error {
	if w.length == 0 && w.months == 0 {
		return errWindow
	}
	return nil
}

// start returns the beginning of the window in which the wall time lies, in ns
// since 1970-01-01 UTC like wall itself.
func (w Window) start(wall int64) int64 {
	if w.months > 0 {
		return w.monthStart(wall, 0)
	}
	since := (wall + int64(w.offset-monday)) % int64(w.length)
	if since < 0 {
		since += int64(w.length)
	}
	return wall - since
}

// end returns the end of the window that begins at start, which is the next
// one's beginning.
func (w Window) end(start int64) int64 {
	if w.months > 0 {
		return w.monthStart(start, w.months)
	}
	return start + int64(w.length)
}

// monthStart returns the beginning of the month or year of the wall time, or of
// the one that is the given number of months later.
func (w Window) monthStart(wall int64, months int) int64 {
	year, month, _ := time.Unix(0, wall+int64(w.offset)).UTC().Date()
	if w.months == 12 {
		month = time.January
	}
	return time.Date(year, month+time.Month(months), 1, 0, 0, 0, 0, time.UTC).UnixNano() - int64(w.offset)
}
