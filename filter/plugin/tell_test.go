package plugin

import (
	"math"
	"strconv"
	"testing"
)

func TestNumbersAreWrittenInDecimal(t *testing.T) {
	var d decimal
	check := func(n int64) {
		if got, want := string(d.text(n)), strconv.FormatInt(n, 10); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for n := range int64(20_000) {
		check(n)
	}
	for power := int64(10); power < math.MaxInt64/10; power *= 10 {
		check(power - 1)
		check(power)
		check(power + 11)
	}
	check(math.MaxInt64)
}
