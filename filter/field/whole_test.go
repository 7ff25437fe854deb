package field

import (
	"math"
	"testing"
)

func TestACostIsAWholeNumberAndNothingElse(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "42": 42, "007": 7, "9223372036854775806": math.MaxInt64 - 1, "9223372036854775807": math.MaxInt64,
		"9223372036854775808": math.MaxInt64, "99999999999999999999999": math.MaxInt64,
	} {
		if got, ok := Whole([]byte(text)); got != want || !ok {
			t.Errorf("%q: got %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "1,1", "1_000", "one", "١", "99999999999999999999x"} {
		if got, ok := Whole([]byte(text)); ok {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}
