package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// timeline prints what happens, for people to read. It may be used by many
// goroutines at once.
type timeline struct {
	mu       sync.Mutex
	out      io.Writer
	colours  bool
	start    time.Time // of the demo, from which times are told
	admitted int       // how many of the answers shown are no refusals
}

// wantsColours reports whether a file is a terminal that wants colours
// (https://no-color.org).
func wantsColours(file *os.File, getenv func(string) string) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 &&
		getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

const (
	bold  = "1"
	red   = "31"
	green = "32"
)

func (t *timeline) coloured(colour, text string) string {
	if !t.colours {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Note prints lines of text.
func (t *timeline) Note(format string, values ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, format+"\n", values...)
}

// Section begins a section: a title, a sentence on what is to be seen, and the
// heads of the columns.
func (t *timeline) Section(title, sentence string) {
	t.section(title, sentence, "%15s  %10s  %6s  %11s", "RateLimit-Limit", "-Remaining", "-Reset", "Retry-After")
}

// QueueSection begins a section for Waits.
func (t *timeline) QueueSection(title, sentence string) {
	t.section(title, sentence, "waited")
}

func (t *timeline) section(title, sentence, format string, columns ...any) {
	t.Note("\n%s\n%s\n\n%8s  %-9s  %-13s  %9s  %s", t.coloured(bold, title), sentence,
		"time", "client", "request", "status", fmt.Sprintf(format, columns...))
}

// Answers prints one row for each answer.
func (t *timeline) Answers(answers ...answer) {
	for _, a := range answers {
		t.row(a, 1)
	}
}

// Runs prints one row for each run of answers with the same status: how many they
// are, when the first request was sent, and the headers of the last answer.
func (t *timeline) Runs(answers []answer) {
	first := 0
	for i, a := range answers {
		if i+1 == len(answers) || answers[i+1].status != a.status {
			a.sent = answers[first].sent
			t.row(a, i+1-first)
			first = i + 1
		}
	}
}

// Waits prints one row for each answer, with how long it took as a bar.
func (t *timeline) Waits(answers ...answer) {
	for _, a := range answers {
		t.print(a, 1, waited(a))
	}
}

// waited says how long a request waited: 8 columns are a second. A refused one
// did not.
func waited(a answer) string {
	if !a.admitted() {
		return "        Retry-After: " + a.header.Get("Retry-After")
	}
	const widest = 40 // 5 seconds
	columns := min(int(a.took.Seconds()*8), widest)
	return fmt.Sprintf("%4.2f s  %s>", a.took.Seconds(), strings.Repeat("=", columns))
}

func (t *timeline) row(a answer, times int) {
	t.print(a, times, fmt.Sprintf("%15s  %10s  %6s  %11s",
		a.header.Get("RateLimit-Limit"), a.header.Get("RateLimit-Remaining"), a.header.Get("RateLimit-Reset"),
		a.header.Get("Retry-After")))
}

// print prints a row and counts its requests.
func (t *timeline) print(a answer, times int, columns string) {
	status, colour := fmt.Sprint(a.status), red
	if times > 1 {
		status = fmt.Sprintf("%d x %d", times, a.status)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.admitted() {
		t.admitted += times
		colour = green
	}
	row := fmt.Sprintf("%6.2f s  %-9s  %-13s  %s  %s",
		a.sent.Sub(t.start).Seconds(), a.client, a.request, t.coloured(colour, fmt.Sprintf("%9s", status)), columns)
	fmt.Fprintln(t.out, strings.TrimRight(row, " "))
	if a.status == 0 {
		fmt.Fprintln(t.out, "no answer:", a.body)
	}
}
