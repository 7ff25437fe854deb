package algorithms

import (
	"errors"
	"strings"
	"time"
)

// day is the calendar day of UTC, which knows no leap seconds here.
const day = 24 * time.Hour

var errDuration = errors.New("want a duration such as 500ms, 1m30s or 1d")

// ParseDuration reads a duration from shortest to longest, both included:
// Go's spelling (time.ParseDuration) without a sign, or exactly "1d". An error
// says what to write instead; the caller puts in front of it where the value
// stands and what it is.
func ParseDuration(s string, shortest, longest time.Duration) (time.Duration, error) {
	d, err := parseAnyDuration(s)
	if err != nil {
		return 0, err
	}
	if d < shortest || d > longest {
		if longest == Forever {
			return 0, errors.New("want a duration of at least " + formatDuration(shortest))
		}
		return 0, errors.New("want a duration from " + formatDuration(shortest) + " to " + formatDuration(longest))
	}
	return d, nil
}

func parseAnyDuration(s string) (time.Duration, error) {
	if s == "1d" {
		return day, nil
	}
	if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
		return 0, errDuration
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, errDuration
	}
	return d, nil
}

// formatDuration spells d as people do: "1m" for Go's "1m0s", and "1d". What it
// returns parses as d.
func formatDuration(d time.Duration) string {
	if d == day {
		return "1d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
