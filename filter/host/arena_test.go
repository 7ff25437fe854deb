package host

import "testing"

func TestWhatAStreamCallbackGotIsUsedAgainByTheNext(t *testing.T) {
	a := &arena{chunk: make([]byte, 64)}
	a.begin(true)
	first, second := a.allocate(3), a.allocate(8)
	copy(first, "abc")
	copy(second, "12345678")
	if string(first) != "abc" || cap(first) > 8 {
		t.Error("two pieces overlap")
	}
	if large := a.allocate(100); len(large) != 100 {
		t.Error("what does not fit the chunk was not allocated")
	}
	a.begin(true)
	if again := a.allocate(3); &again[0] != &first[0] {
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
	kept := a.allocate(4)
	copy(kept, "kept")
	a.begin(true)
	copy(a.allocate(64), make([]byte, 64))
	if string(kept) != "kept" {
		t.Error("a stream callback overwrote it")
	}
}

func TestNothingHasAnAddressToo(t *testing.T) {
	a := &arena{}
	if p := a.allocate(0); p == nil || cap(p) == 0 {
		t.Error("the host would get no address")
	}
}
