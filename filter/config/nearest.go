package config

import "strings"

// Names that are compared with a misspelled one: no longer than a limit's name
// may be, and no more than a person could have meant, which bounds the time.
const (
	maxNameLength = 64
	maxCandidates = 1000
)

// nearest returns the name that a person most likely meant by the misspelled
// one: the first of those fewest edits away, if that is about a third of its
// letters at most. Case does not count.
func nearest(misspelled string, names []string) (name string, ok bool) {
	misspelled = strings.ToLower(misspelled)
	if len(misspelled) > maxNameLength {
		return "", false
	}
	best := (len(misspelled)+1)/3 + 1 // first, one more than may be
	for _, candidate := range names[:min(len(names), maxCandidates)] {
		if d := edits(misspelled, strings.ToLower(candidate), best); d < best {
			name, best, ok = candidate, d, true
		}
	}
	return name, ok
}

// edits is how many bytes to insert, delete, replace or swap with their
// neighbour make b of a (the "optimal string alignment" distance), or bound if
// the lengths alone say that it is no less, or that b is no name.
func edits(a, b string, bound int) int {
	if len(b) > maxNameLength || len(a)-len(b) >= bound || len(b)-len(a) >= bound {
		return bound
	}
	// Rows of the usual table: a's first i bytes against b's first j.
	var rows [3][maxNameLength + 1]int
	before, previous, current := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			replace := previous[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			current[j] = min(replace, previous[j]+1, current[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}
