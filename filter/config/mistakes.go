package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// maxMistakes is how many mistakes are kept; further ones are only counted. It
// bounds what a document that is wrong all over does to the log.
const maxMistakes = 200

// Mistakes is the error of a bad document: a line for each mistake, in the
// order of the document, that says where it is, what was found and what to
// write instead.
type Mistakes []string

func (m Mistakes) Error() string { return strings.Join(m, "\n") }

// collector gathers mistakes while a document is read.
type collector struct {
	found []mistake
	more  int // mistakes that were not kept
	// compared counts the names that unknown ones were compared with.
	compared int
}

type mistake struct {
	offset int64 // where in the document, for the order
	line   string
}

// mistake notes a mistake about the value n.
func (c *collector) mistake(n *node, what string) {
	if len(c.found) == maxMistakes {
		c.more++
		return
	}
	c.found = append(c.found, mistake{n.offset, n.path() + ": " + what})
}

// missing notes that the object n lacks a member.
func (c *collector) missing(n *node, name, want string) {
	absent := node{parent: n, name: name, offset: n.offset}
	c.mistake(&absent, "missing: want "+want)
}

// instead finds the known name that was probably meant by one that is not known,
// "" if there is none, and ends the line about it: with that name, else with the
// first usable ones of the known.
func (c *collector) instead(name string, known []string, usable int) (meant, remedy string) {
	if len(c.found) == maxMistakes {
		return "", "" // comparing names takes time, and nobody will read the line
	}
	if c.compared += len(known); c.compared <= maxCompared {
		if meant, ok := nearest(name, known); ok {
			return meant, "; did you mean " + quote(meant) + "?"
		}
	}
	if usable == 0 {
		return "", ": there are none"
	}
	return "", ": want " + list(known[:usable], "or")
}

// count is how many mistakes there are so far.
func (c *collector) count() int { return len(c.found) + c.more }

// err is all that was collected, as Mistakes, or nil.
func (c *collector) err() error {
	if len(c.found) == 0 {
		return nil
	}
	// The reader takes fields in an order of its own; people go from top to
	// bottom.
	slices.SortStableFunc(c.found, func(a, b mistake) int { return cmp.Compare(a.offset, b.offset) })
	var lines Mistakes
	seen := map[string]bool{}
	for _, m := range c.found {
		if !seen[m.line] {
			seen[m.line] = true
			lines = append(lines, m.line)
		}
	}
	if c.more > 0 {
		lines = append(lines, "and "+strconv.Itoa(c.more)+" more mistakes")
	}
	return lines
}

// maxCompared is with how many names unknown ones are compared in one document,
// which bounds the time that suggestions take; lines after that have none.
const maxCompared = 20_000

// maxShown is how many characters of a found value a line shows.
const maxShown = 64

// shorten cuts s to what a line shows of it.
func shorten(s string) string {
	shown := 0
	for i := range s {
		if shown == maxShown {
			return s[:i] + "…"
		}
		shown++
	}
	return s
}

// quote puts s into double quotes, shortened, and with everything escaped that
// could break a log line.
func quote(s string) string { return strconv.Quote(shorten(s)) }

// maxListed is how many names a line lists.
const maxListed = 16

// list quotes names and joins them with commas, and with the last word between
// the last two.
func list(names []string, last string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i == 0:
		case i == maxListed:
			return b.String() + ", …"
		case i == len(names)-1:
			b.WriteString(" " + last + " ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(quote(name))
	}
	return b.String()
}
