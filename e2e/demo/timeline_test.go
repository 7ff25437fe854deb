package main

import (
	"bytes"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// example prints one of everything, with the widest values that the demo has.
func example(colours bool) string {
	var out bytes.Buffer
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	t := &timeline{out: &out, colours: colours, start: start}
	at := func(ms, status int, request string, headers ...string) answer {
		a := answer{sent: start.Add(time.Duration(ms) * time.Millisecond), client: "127.0.0.1",
			request: request, status: status, header: http.Header{}}
		for i, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After"} {
			if i < len(headers) {
				a.header.Set(name, headers[i])
			}
		}
		return a
	}
	t.Section("1. A title", "A sentence.")
	t.Answers(
		at(1, 200, "GET /classic", "5", "4", "1"),
		at(12345, 429, "GET /classic", "5", "0", "5", "1"))
	t.Runs([]answer{
		at(13000, 200, "GET /articles", "200", "199", "1"),
		at(13020, 200, "GET /articles", "200", "198", "1"),
		at(13040, 429, "GET /articles", "200", "0", "86400", "86400"),
	})
	t.Note("%d of %d", 3, 5)
	t.QueueSection("2. A queue", "A sentence.")
	first, waits, last := at(14000, 200, "GET /export"), at(14001, 200, "GET /export"), at(14002, 200, "GET /export")
	first.took, waits.took, last.took = 2*time.Millisecond, 501*time.Millisecond, 5003*time.Millisecond
	t.Waits(first, waits, last, at(14003, 429, "GET /export", "10", "0", "6", "1"))
	return out.String()
}

func TestTheTimelineReadsLikeThis(t *testing.T) {
	const want = `
1. A title
A sentence.

    time  client     request           status  RateLimit-Limit  -Remaining  -Reset  Retry-After
  0.00 s  127.0.0.1  GET /classic         200                5           4       1
 12.35 s  127.0.0.1  GET /classic         429                5           0       5            1
 13.00 s  127.0.0.1  GET /articles    2 x 200              200         198       1
 13.04 s  127.0.0.1  GET /articles        429              200           0   86400        86400
3 of 5

2. A queue
A sentence.

    time  client     request           status  waited
 14.00 s  127.0.0.1  GET /export          200  0.00 s  >
 14.00 s  127.0.0.1  GET /export          200  0.50 s  ====>
 14.00 s  127.0.0.1  GET /export          200  5.00 s  ========================================>
 14.00 s  127.0.0.1  GET /export          429          Retry-After: 1
`
	if got := example(false); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestLinesFitInAHundredColumns(t *testing.T) {
	for line := range strings.Lines(example(false)) {
		if len(line) > 100 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
}

func TestColoursChangeNothingButColours(t *testing.T) {
	coloured := example(true)
	if !strings.Contains(coloured, "\x1b[32m      200\x1b[0m") || !strings.Contains(coloured, "\x1b[31m      429\x1b[0m") {
		t.Errorf("want 200 in green and 429 in red, got %q", coloured)
	}
	if plain := regexp.MustCompile(`\x1b\[\d+m`).ReplaceAllString(coloured, ""); plain != example(false) {
		t.Errorf("without its colours it reads\n%s\nwant\n%s", plain, example(false))
	}
}

func TestColoursAreForTerminalsThatWantThem(t *testing.T) {
	// Like a terminal, the null device is no file but a character device.
	terminal, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, c := range []struct {
		name        string
		file        *os.File
		environment map[string]string
		want        bool
	}{
		{"terminal", terminal, nil, true},
		{"terminal with an empty NO_COLOR", terminal, map[string]string{"NO_COLOR": ""}, true},
		{"terminal with NO_COLOR", terminal, map[string]string{"NO_COLOR": "1"}, false},
		{"terminal that knows no colours", terminal, map[string]string{"TERM": "dumb"}, false},
		{"file", file, nil, false},
	} {
		getenv := func(name string) string { return c.environment[name] }
		if got := wantsColours(c.file, getenv); got != c.want {
			t.Errorf("%s: colours %v, want %v", c.name, got, c.want)
		}
	}
}

func TestABarIsNeverWiderThanTheQueueIsLong(t *testing.T) {
	longest := waited(answer{status: 200, took: 5 * time.Second})
	if got := waited(answer{status: 200, took: 9 * time.Second}); len(got) != len(longest) {
		t.Errorf("9 s is %q, want it as wide as %q", got, longest)
	}
}

func TestAMissingAnswerIsShownWithItsReason(t *testing.T) {
	var out bytes.Buffer
	line := &timeline{out: &out}
	line.Answers(answer{request: "GET /classic", body: "connection refused"})
	if !strings.Contains(out.String(), "no answer: connection refused") || line.admitted != 0 {
		t.Errorf("got %q and %d admitted", out.String(), line.admitted)
	}
}
