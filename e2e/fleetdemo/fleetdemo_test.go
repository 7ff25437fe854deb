package main

import (
	"bytes"
	"strings"
	"testing"
)

// The command's own checks are what is tested here: with a service's word for each
// request the sum is the limit, with leases it is within the bound, and who is
// killed takes nothing else along.
func TestTheCommandKeepsWhatItPromises(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	t.Logf("%s", &out)
	for text, times := range map[string]int{
		"  limit 3000, promised 3000: as promised\n":         4, // strict, an Envoy killed, and the server
		"  limit 3000, promised 2581 to 3180: as promised\n": 3, // leases, an Envoy killed
		"  limit 3000, promised 6000: as promised\n":         1, // each of two Envoys by itself
		"  limit 3000, promised 0: as promised\n":            1, // who has spent the limit
		"WRONG": 0,
	} {
		if got := strings.Count(out.String(), text); got != times {
			t.Errorf("it says %q %d times, want %d", text, got, times)
		}
	}
}

func TestASumThatIsNotWhatWasPromisedFails(t *testing.T) {
	for _, c := range []struct {
		bound bound
		sum   int
		ok    bool
	}{
		{exactly, limit - 1, false},
		{exactly, limit, true},
		{exactly, limit + 1, false},
		{leased(3), limit - 420, false},
		{leased(3), limit - 419, true},
		{leased(3), limit + 180, true},
		{leased(3), limit + 181, false},
		{bound{}, 1, false},
	} {
		if err := c.bound.check(c.sum); (err == nil) != c.ok {
			t.Errorf("%d against %v: %v", c.sum, c.bound, err)
		}
	}
}

func TestATableReadsLikeThis(t *testing.T) {
	const want = `
            requests  admitted   refused     calls
  Envoy 1       4000      3000      1000        38
  Envoy 2         64         0        64        64
  sum           4064      3000      1064       102  limit 3000, promised 3000: as promised
`
	results := []result{
		{requests: 4000, admitted: 3000, refused: 1000, calls: 38},
		{requests: 64, refused: 64, calls: 64},
	}
	var out bytes.Buffer
	table(&out, results, exactly)
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
	out.Reset()
	if table(&out, results, bound{}); !strings.Contains(out.String(), "promised 0: WRONG") {
		t.Errorf("a sum that is wrong reads\n%s", &out)
	}
}
