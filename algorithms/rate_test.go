package algorithms

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestARateIsKeptExactly(t *testing.T) {
	for _, c := range []struct {
		in       string
		num, den uint64 // units per nanosecond, in lowest terms
		spelled  string
	}{
		{"5", 1, 200_000_000, "5/s"},
		{"5/s", 1, 200_000_000, "5/s"},
		{"5/1s", 1, 200_000_000, "5/s"},
		{"5/1000ms", 1, 200_000_000, "5/s"},
		{"0.5/s", 1, 2_000_000_000, "30/m"},
		{"0.50/s", 1, 2_000_000_000, "30/m"},
		{"00.5/s", 1, 2_000_000_000, "30/m"},
		{"5/10s", 1, 2_000_000_000, "30/m"},
		{"45/1m30s", 1, 2_000_000_000, "30/m"},
		{"1000/h", 1, 3_600_000_000, "1000/h"},
		{"3/s", 3, 1_000_000_000, "3/s"},
		{"10000/d", 1, 8_640_000_000, "10000/d"},
		{"10000/1d", 1, 8_640_000_000, "10000/d"},
		{"10000/24h", 1, 8_640_000_000, "10000/d"},
		{"1/1900ms", 1, 1_900_000_000, "1/1.9s"},
		{"1/7s", 1, 7_000_000_000, "1/7s"},
		{"7/7s", 1, 1_000_000_000, "1/s"},
		{"2/49h", 1, 88_200_000_000_000, ""}, // below 1/d
		{"49/48h", 49, 172_800_000_000_000, "49/48h"},
		{"1/d", 1, 86_400_000_000_000, "1/d"},
		{"1.000000000000000001/d", 0, 0, ""}, // the denominator is too long
		{"1000000000/s", 1, 1, "1000000000/s"},
		{"1000000000", 1, 1, "1000000000/s"},
		{"0.123456789/s", 123_456_789, 1_000_000_000_000_000_000, "123456789/277777h46m40s"},
		{"5.0000000000000000000000000000/s", 1, 200_000_000, "5/s"},
		{"0.0000000001/1ns", 1, 10_000_000_000, "6/m"},
	} {
		r, err := ParseRate(c.in)
		if c.spelled == "" {
			if err == nil {
				t.Errorf("%q: no error", c.in)
			}
			continue
		}
		if err != nil || r != (Rate{c.num, c.den}) || r.String() != c.spelled {
			t.Errorf("%q is %d/%d, spelled %q, error %v; want %d/%d, %q", c.in, r.num, r.den, r, err, c.num, c.den, c.spelled)
		}
		if again, err := ParseRate(r.String()); err != nil || again != r {
			t.Errorf("%q is spelled %q, which is %v, error %v", c.in, r, again, err)
		}
	}
}

func TestABadRateSaysWhatToWriteInstead(t *testing.T) {
	const form, outOfRange, digits = "want N/unit with unit s, m, h, d or a duration such as 10s",
		"want a rate from 1/d to 1000000000/s",
		"want a rate with fewer digits"
	for in, want := range map[string]string{
		"":                                    form,
		"/s":                                  form,
		"s":                                   form,
		"5/":                                  form,
		"5/fortnight":                         form,
		"5/w":                                 form,
		"5/2d":                                form,
		"5/-1s":                               form,
		"5/+1s":                               form,
		"5/0s":                                form,
		"5/s/s":                               form,
		"5 /s":                                form,
		"5/ s":                                form,
		" 5/s":                                form,
		"5/s\n":                               form,
		"-5/s":                                form,
		"+5/s":                                form,
		"5e3/s":                               form,
		"5,5/s":                               form,
		"5./s":                                form,
		".5/s":                                form,
		"5.5.5/s":                             form,
		"0x5/s":                               form,
		"1_000/s":                             form,
		"٥/s":                                 form,
		"Inf/s":                               form,
		"0/s":                                 outOfRange,
		"0.0/s":                               outOfRange,
		"1/86400001ms":                        outOfRange,
		"0.999999/d":                          outOfRange,
		"1000000001/s":                        outOfRange,
		"1000000000.000001/s":                 outOfRange,
		"2/1ns":                               outOfRange,
		"9223372036854775808":                 outOfRange,
		"99999999999999999999":                outOfRange,
		"0.1234567891/s":                      digits, // in 10^19 ns; 2^63 is less
		"0.1234567890123/s":                   digits,
		"0.3333333333333333333333333333333/s": digits,
		"922337203685477580.75/d":             digits,
		"1.0000000000000000000000000000000000001/s": digits,
	} {
		if r, err := ParseRate(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %v, error %v; want an error with %q", in, r, err, want)
		}
	}
}

func TestEveryRateParsesAsItIsSpelled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spelled, exact := rateSpelling().Draw(t, "rate").unpack()
		r := mustRate(t, spelled)
		if new(big.Rat).SetFrac(new(big.Int).SetUint64(r.num), new(big.Int).SetUint64(r.den)).Cmp(exact) != 0 {
			t.Fatalf("%q is %d/%d per ns, want %v", spelled, r.num, r.den, exact)
		}
		if gcd(r.num, r.den) != 1 {
			t.Fatalf("%q is %d/%d, which is not in lowest terms", spelled, r.num, r.den)
		}
		if again, err := ParseRate(r.String()); err != nil || again != r {
			t.Fatalf("%q is spelled %q, which is %v, error %v", spelled, r, again, err)
		}
	})
}

func TestARateIsAFraction(t *testing.T) {
	if units, in := mustRate(t, "49/48h").Fraction(); units != 49 || in != 48*time.Hour {
		t.Errorf("49/48h is %d in %v", units, in)
	}
	if units, in := (Rate{}).Fraction(); units != 0 || in != 0 {
		t.Errorf("no rate is %d in %v", units, in)
	}
}

func TestTimeForUnitsIsRoundedUpAndSaturates(t *testing.T) {
	for _, c := range []struct {
		rate  string
		units int64
		want  time.Duration
	}{
		{"3/s", 0, 0},
		{"3/s", 1, 333_333_334},
		{"3/s", 3, time.Second},
		{"1/d", 106_751, 106_751 * day},
		{"1/d", 106_752, Forever},
		{"1/d", MaxUnits, Forever},
		{"1000000000/s", MaxUnits, time.Second},
		{"0.123456789/s", MaxUnits, 8_100_000_073_710_000_671},
	} {
		if got := mustRate(t, c.rate).TimeFor(c.units); got != c.want {
			t.Errorf("%d units at %s take %d ns, want %d", c.units, c.rate, got, c.want)
		}
	}
}

func TestDurationsAreGosOrOneDay(t *testing.T) {
	for _, c := range []struct {
		in                string
		shortest, longest time.Duration
		want              time.Duration
		err               string
	}{
		{"500ms", 1, Forever, 500 * time.Millisecond, ""},
		{"1m30s", 1, Forever, 90 * time.Second, ""},
		{"1d", 1, Forever, 24 * time.Hour, ""},
		{"0s", 0, Forever, 0, ""},
		{"0", 0, Forever, 0, ""},
		{"4m", 0, 4 * time.Minute, 4 * time.Minute, ""},
		{"0s", 1, Forever, 0, "want a duration of at least 1ns"},
		{"4m1ns", 0, 4 * time.Minute, 0, "want a duration from 0s to 4m"},
		{"999us", time.Millisecond, 10 * time.Second, 0, "want a duration from 1ms to 10s"},
		{"2d", 1, Forever, 0, "want a duration such as 500ms, 1m30s or 1d"},
		{"1d1h", 1, Forever, 0, "want a duration such as 500ms, 1m30s or 1d"},
		{"+1s", 1, Forever, 0, "want a duration such as 500ms, 1m30s or 1d"},
		{"-1s", 0, Forever, 0, "want a duration such as 500ms, 1m30s or 1d"},
		{"5", 0, Forever, 0, "want a duration such as 500ms, 1m30s or 1d"},
		{"", 0, Forever, 0, "want a duration such as 500ms, 1m30s or 1d"},
		{"3000000h", 0, Forever, 0, "want a duration such as 500ms, 1m30s or 1d"},
	} {
		got, err := ParseDuration(c.in, c.shortest, c.longest)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%q is %v, error %v; want %v, %q", c.in, got, err, c.want, c.err)
		}
	}
}

func TestDurationsAreSpelledAsTheyParse(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1: "1ns", time.Second: "1s", 10 * time.Second: "10s", time.Minute: "1m",
		90 * time.Second: "1m30s", 10 * time.Minute: "10m", time.Hour: "1h", 20 * time.Hour: "20h",
		time.Hour + time.Second: "1h0m1s", 90 * time.Minute: "1h30m", 24 * time.Hour: "1d", 48 * time.Hour: "48h",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("%d ns is spelled %q, want %q", d, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "ns"))
		if got, err := ParseDuration(formatDuration(d), 0, Forever); err != nil || got != d {
			t.Fatalf("%d ns is spelled %q, which is %d, error %v", d, formatDuration(d), got, err)
		}
	})
}

func TestAnUnsetRateIsRefused(t *testing.T) {
	for name, build := range map[string]func() (Limiter, error){
		"token bucket": func() (Limiter, error) { return NewTokenBucket(1, Rate{}) },
		"gcra":         func() (Limiter, error) { return NewGCRA(Rate{}, 1) },
		"meter":        func() (Limiter, error) { return NewLeakyMeter(1, Rate{}) },
		"queue":        func() (Limiter, error) { return NewLeakyQueue(1, Rate{}, 0) },
	} {
		if _, err := build(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCapacitiesOutOfRangeAreRefused(t *testing.T) {
	rate, minute := mustRate(t, "1/s"), mustWindow(t, "1m", "")
	for name, build := range map[string]func(n int64) (Limiter, error){
		"capacity": func(n int64) (Limiter, error) { return NewTokenBucket(n, rate) },
		"burst":    func(n int64) (Limiter, error) { return NewGCRA(rate, n) },
		"limit":    func(n int64) (Limiter, error) { return NewFixedWindow(n, minute) },
	} {
		want := "want a " + name + " from 1 to 1000000000"
		for _, n := range []int64{math.MinInt64, -1, 0, MaxUnits + 1, math.MaxInt64} {
			if _, err := build(n); err == nil || err.Error() != want {
				t.Errorf("%s %d: error %v, want %q", name, n, err, want)
			}
		}
		for _, n := range []int64{1, MaxUnits} {
			if _, err := build(n); err != nil {
				t.Errorf("%s %d: %v", name, n, err)
			}
		}
	}
	for _, build := range []func() (Limiter, error){
		func() (Limiter, error) { return NewLeakyMeter(0, rate) },
		func() (Limiter, error) { return NewLeakyQueue(0, rate, 0) },
		func() (Limiter, error) { return NewLeakyQueue(1, rate, -1) },
		func() (Limiter, error) { return NewSlidingWindow(0, minute) },
		func() (Limiter, error) { return NewFixedWindow(1, Window{}) },
		func() (Limiter, error) { return NewSlidingWindow(1, Window{}) },
	} {
		if _, err := build(); err == nil {
			t.Error("no error")
		}
	}
}
