package algorithms

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAWindowHasOneSpelling(t *testing.T) {
	for _, c := range []struct{ window, offset, want string }{
		{"1m", "+00:00", "1m"},
		{"60s", "+00:00", "1m"},
		{"24h", "+00:00", "1d"},
		{"1d", "-00:00", "1d"},
		{"1440m", "+02:00", "1d+02:00"},
		{"1d", "-03:30", "1d-03:30"},
		{"8h", "+14:00", "8h+14:00"},
		{"1w", "-14:00", "1w-14:00"},
		{"1mo", "+05:45", "1mo+05:45"},
		{"1y", "+00:00", "1y"},
		{"500ms", "+00:00", "500ms"},
		{"1ns", "+00:00", "1ns"},
		{"1.5s", "+00:00", "1.5s"},
	} {
		if got := mustWindow(t, c.window, c.offset).String(); got != c.want {
			t.Errorf("%s at %s is spelled %q, want %q", c.window, c.offset, got, c.want)
		}
	}
	if mustWindow(t, "24h", "") != mustWindow(t, "1d", "") {
		t.Error("24h is not 1d")
	}
}

func TestABadWindowSaysWhatToWriteInstead(t *testing.T) {
	for _, in := range []string{"", "0s", "-1m", "+1m", "7s", "25h", "48h", "2d", "7d", "2w", "1M", "1 m", "5", "1h1m", "2mo", "week"} {
		if w, err := ParseWindow(in, 0); !errors.Is(err, errWindow) {
			t.Errorf("%q is %v, error %v; want %v", in, w, err, errWindow)
		}
	}
	for _, in := range []string{"", "Z", "02:00", "+2:00", "+0200", "+02", "+14:01", "-14:30", "+15:00", "+00:60", "+99:99", "+02:00 ", "+0a:00", "*02:00", "+02-00"} {
		if offset, err := ParseUTCOffset(in); !errors.Is(err, errUTCOffset) {
			t.Errorf("%q is %v, error %v; want %v", in, offset, err, errUTCOffset)
		}
	}
	for _, offset := range []time.Duration{maxUTCOffset + time.Minute, -maxUTCOffset - time.Minute, time.Second} {
		if _, err := ParseWindow("1d", offset); !errors.Is(err, errUTCOffset) {
			t.Errorf("an offset of %v: error %v, want %v", offset, err, errUTCOffset)
		}
	}
}

func TestAnOffsetIsSpelledAsItParses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spelled := anyOffset().Draw(t, "offset")
		offset, err := ParseUTCOffset(spelled)
		if got := FormatUTCOffset(offset); err != nil || got != spelled && spelled != "-00:00" {
			t.Fatalf("%s is %v, spelled %s, error %v", spelled, offset, got, err)
		}
	})
}

func TestASlidingWindowMustDivideADay(t *testing.T) {
	for _, in := range []string{"1w", "1mo", "1y"} {
		if _, err := NewSlidingWindow(1, mustWindow(t, in, "")); !errors.Is(err, errWindowDivides) {
			t.Errorf("%s: error %v, want %v", in, err, errWindowDivides)
		}
	}
	for _, in := range []string{"1s", "24h", "1d"} {
		if _, err := NewSlidingWindow(1, mustWindow(t, in, "")); err != nil {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func TestWindowsBeginWithTheCalendars(t *testing.T) {
	for _, c := range []struct{ window, offset, wall, start, end string }{
		{"1m", "", "2024-02-29T23:59:59.999999999Z", "2024-02-29T23:59:00Z", "2024-03-01T00:00:00Z"},
		{"1m", "", "2024-03-01T00:00:00Z", "2024-03-01T00:00:00Z", "2024-03-01T00:01:00Z"},
		{"8h", "+02:00", "2024-03-01T00:00:00Z", "2024-02-29T22:00:00Z", "2024-03-01T06:00:00Z"},
		{"1d", "+02:00", "2024-03-01T21:59:59Z", "2024-02-29T22:00:00Z", "2024-03-01T22:00:00Z"},
		{"1d", "-03:30", "2024-03-01T03:29:59Z", "2024-02-29T03:30:00Z", "2024-03-01T03:30:00Z"},
		{"1w", "", "1970-01-01T00:00:00Z", "1969-12-29T00:00:00Z", "1970-01-05T00:00:00Z"},
		{"1w", "", "2024-03-03T23:59:59Z", "2024-02-26T00:00:00Z", "2024-03-04T00:00:00Z"},
		{"1w", "+02:00", "2024-03-03T22:00:00Z", "2024-03-03T22:00:00Z", "2024-03-10T22:00:00Z"},
		{"1mo", "", "2024-02-29T12:00:00Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		{"1mo", "", "2023-12-31T23:59:59Z", "2023-12-01T00:00:00Z", "2024-01-01T00:00:00Z"},
		{"1mo", "+02:00", "2023-12-31T22:00:00Z", "2023-12-31T22:00:00Z", "2024-01-31T22:00:00Z"},
		{"1mo", "-05:00", "2024-03-01T04:59:59Z", "2024-02-01T05:00:00Z", "2024-03-01T05:00:00Z"},
		{"1y", "", "2024-12-31T23:59:59Z", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"},
		{"1y", "-01:00", "2024-01-01T00:59:59Z", "2023-01-01T01:00:00Z", "2024-01-01T01:00:00Z"},
		{"1d", "", "1969-12-31T23:59:59.999999999Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"1y", "", "1969-12-31T23:59:59.999999999Z", "1969-01-01T00:00:00Z", "1970-01-01T00:00:00Z"},
	} {
		w := mustWindow(t, c.window, c.offset)
		start := w.start(wallOf(t, c.wall))
		if start != wallOf(t, c.start) || w.end(start) != wallOf(t, c.end) {
			t.Errorf("%v at %s is from %v to %v, want %s to %s", w, c.wall,
				time.Unix(0, start).UTC(), time.Unix(0, w.end(start)).UTC(), c.start, c.end)
		}
	}
}

func TestWindowsTileTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := mustWindow(t, anyWindow().Draw(t, "window"), anyOffset().Draw(t, "offset"))
		wall := anyWall().Draw(t, "wall")
		start := w.start(wall)
		end := w.end(start)
		if wall < start || end <= wall {
			t.Fatalf("%d is not between %d and %d", wall, start, end)
		}
		for _, inside := range []int64{start, end - 1} {
			if got := w.start(inside); got != start {
				t.Fatalf("the window of %d begins at %d, want %d", inside, got, start)
			}
		}
		if got := w.start(end); got != end {
			t.Fatalf("the next window begins at %d, want %d", got, end)
		}
	})
}

func wallOf(t *testing.T, s string) int64 {
	t.Helper()
	wall, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return wall.UnixNano()
}

// anyWindow spells windows of every kind, from 1 ns to a year.
func anyWindow() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"1ns", "1ms", "1s", "7.5s", "1m", "90m", "8h", "24h", "1d", "1w", "1mo", "1y"})
}

// anyDayDividingWindow spells windows that divide a day.
func anyDayDividingWindow() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"1ns", "10ns", "1ms", "1s", "7.5s", "1m", "90m", "8h", "24h", "1d"})
}

func anyOffset() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		minutes := rapid.IntRange(0, 14*60).Draw(t, "minutes")
		return fmt.Sprintf("%s%02d:%02d", rapid.SampledFrom([]string{"+", "-"}).Draw(t, "sign"), minutes/60, minutes%60)
	})
}

// anyWall draws wall times from 1900 to 2200, often at the edge of a day.
func anyWall() *rapid.Generator[int64] {
	const year = int64(365 * day)
	return rapid.Custom(func(t *rapid.T) int64 {
		wall := rapid.Int64Range(-70*year, 230*year).Draw(t, "ns")
		if rapid.Bool().Draw(t, "near a day's edge") {
			wall += -wall%int64(day) + rapid.Int64Range(-2, 2).Draw(t, "off by")
		}
		return wall
	})
}
