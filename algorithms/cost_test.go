package algorithms

import (
	"testing"
	"time"
)

// A decision is made for every request, in WebAssembly, where an allocation
// costs more than the decision.

// measured are limiters of every algorithm, and how many requests are in flight.
func measured(t fataler) map[string]Limiter {
	limiters := allLimiters(t)
	limiters["concurrency"] = must(t)(NewConcurrency(10))
	return limiters
}

func TestDecidingDoesNotAllocate(t *testing.T) {
	for name, l := range measured(t) {
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

func TestWhatFollowsADecisionDoesNotAllocate(t *testing.T) {
	for name, l := range measured(t) {
		var s State
		now := Time{Mono: 1, Wall: 1}
		charger, _ := l.(Charger)
		concurrency, _ := l.(*Concurrency)
		window := int64(1)
		allocations := testing.AllocsPerRun(1000, func() {
			now = now.plus(300 * time.Millisecond)
			if charger != nil {
				charger.Charge(&s, now, 1, 5)
			}
			if concurrency != nil {
				window = concurrency.Renew(&s, now, 1, window)
			}
		})
		if allocations != 0 {
			t.Errorf("%s allocates %v times", name, allocations)
		}
	}
}

// BenchmarkDecide measures one decision, half of them refusals.
func BenchmarkDecide(b *testing.B) {
	for name, l := range measured(b) {
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
	for name, l := range measured(b) {
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
