package host

import (
	"strings"
	"testing"
)

// fill does what the host does: it asks for memory and writes into it.
func fill(a *arena, text string) []byte {
	a.allocate(len(text))
	piece := a.piece(len(text))
	copy(piece, text)
	return piece
}

func TestWhatAStreamCallbackGotIsUsedAgainByTheNext(t *testing.T) {
	a := &arena{chunk: make([]byte, 64)}
	a.begin(true)
	first := fill(a, "abc")
	second := fill(a, "12345678")
	if string(first) != "abc" || string(second) != "12345678" {
		t.Error("two pieces overlap")
	}
	if grown := append(first, 'd'); &grown[0] == &first[0] {
		t.Error("appending to a piece wrote behind it")
	}
	if large := fill(a, strings.Repeat("x", 100)); len(large) != 100 {
		t.Error("what does not fit the chunk was not allocated")
	}
	a.begin(true)
	if again := fill(a, "xyz"); &again[0] != &first[0] {
		t.Error("a callback did not start at the beginning of the chunk")
	}
}

func TestAStreamCallbackDoesNotAllocate(t *testing.T) {
	a := &arena{chunk: make([]byte, 64<<10)}
	if n := testing.AllocsPerRun(100, func() {
		a.begin(true)
		for range 10 {
			a.allocate(4096)
		}
	}); n != 0 {
		t.Errorf("ten pages read in a callback allocate %v times", n)
	}
}

// The SDK keeps strings that point into what it was given.
func TestWhatAPluginCallbackGotIsItsOwn(t *testing.T) {
	a := &arena{chunk: make([]byte, 64)}
	a.begin(false)
	kept := fill(a, "kept")
	a.begin(true)
	fill(a, strings.Repeat("x", 64))
	if string(kept) != "kept" {
		t.Error("a stream callback overwrote it")
	}
}

func TestNothingHasAnAddressToo(t *testing.T) {
	a := &arena{}
	if a.allocate(0) == nil {
		t.Error("the host would get no address")
	}
	if a.piece(0) != nil || a.piece(1) != nil {
		t.Error("there is something in it")
	}
}
