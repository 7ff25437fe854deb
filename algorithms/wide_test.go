package algorithms

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func (w wide) big() *big.Int {
	n := new(big.Int).SetUint64(w.hi)
	return n.Lsh(n, 64).Add(n, new(big.Int).SetUint64(w.lo))
}

// anyWord draws words over all lengths, and those at the edges.
func anyWord() *rapid.Generator[uint64] {
	return rapid.Custom(func(t *rapid.T) uint64 {
		word := rapid.Uint64().Draw(t, "word")
		if rapid.Bool().Draw(t, "at an edge") {
			word = math.MaxUint64
		}
		return word >> rapid.IntRange(0, 63).Draw(t, "shorter by")
	})
}

func TestWideArithmeticIsThatOfWholeNumbers(t *testing.T) {
	word := func(n uint64) *big.Int { return new(big.Int).SetUint64(n) }
	rapid.Check(t, func(t *rapid.T) {
		a, b, n := anyWord().Draw(t, "a"), anyWord().Draw(t, "b"), anyWord().Draw(t, "n")
		d := max(anyWord().Draw(t, "d"), 1)
		product := mul(a, b)
		if want := new(big.Int).Mul(word(a), word(b)); product.big().Cmp(want) != 0 {
			t.Fatalf("%d * %d is %d, want %d", a, b, product.big(), want)
		}
		if got, want := product.add(n), new(big.Int).Add(product.big(), word(n)); got.big().Cmp(want) != 0 {
			t.Fatalf("%d + %d is %d, want %d", product.big(), n, got.big(), want)
		}
		other := mul(n, d)
		if got, want := product.less(other), product.big().Cmp(other.big()) < 0; got != want {
			t.Fatalf("%d < %d is %v", product.big(), other.big(), got)
		}
		more, less := product, other
		if more.less(less) {
			more, less = less, more
		}
		if got, want := more.sub(less), new(big.Int).Sub(more.big(), less.big()); got.big().Cmp(want) != 0 {
			t.Fatalf("%d - %d is %d, want %d", more.big(), less.big(), got.big(), want)
		}

		quotient, remainder := new(big.Int).QuoRem(product.big(), word(d), new(big.Int))
		if !quotient.IsUint64() {
			quotient, remainder = word(math.MaxUint64), word(0)
		}
		if q, r := product.div(d); q != quotient.Uint64() || r != remainder.Uint64() {
			t.Fatalf("%d / %d is %d and %d over, want %d and %d", product.big(), d, q, r, quotient, remainder)
		}
		up := quotient.Uint64()
		if remainder.Sign() > 0 && up < math.MaxUint64 {
			up++
		}
		if got := product.ceilDiv(d); got != up {
			t.Fatalf("%d / %d rounded up is %d, want %d", product.big(), d, got, up)
		}
	})
	// The one quotient that rounding up would carry out of its word.
	if got := (wide{1, math.MaxUint64}).ceilDiv(2); got != math.MaxUint64 {
		t.Errorf("(2^65 - 1) / 2 rounded up is %d, want it saturated", got)
	}
}

func TestMomentsAndDurationsSaturate(t *testing.T) {
	const first, last = math.MinInt64, math.MaxInt64
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"the last moment but one, 1 ns later", later(last-1, 1), last},
		{"the last moment, 1 ns later", later(last, 1), last},
		{"the first moment, for ever later", later(first, Forever), -1},
		{"from 3 to 5", int64(until(5, 3)), 2},
		{"from 5 to 3", int64(until(3, 5)), 0},
		{"from the first moment to the last", int64(until(last, first)), last},
		{"from the first moment to -1", int64(until(-1, first)), last},
		{"for ever and 1 ns", int64(sum(Forever, 1)), last},
		{"for ever twice", int64(sum(Forever, Forever)), last},
		{"1 s and 2 s", int64(sum(time.Second, 2*time.Second)), 3e9},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
}
