package algorithms

import (
	"testing"
	"time"
)

// A decision is made for every request, in WebAssembly, where an allocation
// costs more than the decision.

func TestDecidingDoesNotAllocate(t *testing.T) {
	for name, l := range allLimiters(t) {
		var s State
		var d Decision
		now := Time{Mono: 1, Wall: 1}
		allocations := testing.AllocsPerRun(1000, func() {
			now = now.plus(30 * time.Millisecond)
			l.Decide(&s, now, 1, &d)
			s = l.GiveBack(s, now, 1, d.Window)
			l.Decide(&s, now, 1, &d)
		})
		if allocations != 0 {
			t.Errorf("%s allocates %v times", name, allocations)
		}
	}
}

// BenchmarkDecide measures one decision, half of them refusals.
func BenchmarkDecide(b *testing.B) {
	for name, l := range allLimiters(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var s State
			var d Decision
			now := Time{Mono: 1, Wall: 1_700_000_000_000_000_000}
			for b.Loop() {
				now = now.plus(50 * time.Millisecond)
				l.Decide(&s, now, 1, &d)
			}
		})
	}
}

func BenchmarkGiveBack(b *testing.B) {
	for name, l := range allLimiters(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			now := Time{Mono: 1, Wall: 1_700_000_000_000_000_000}
			s, d := Decide(l, State{}, now, 1)
			for b.Loop() {
				l.GiveBack(s, now, 1, d.Window)
			}
		})
	}
}
