package fleet

import (
	"bytes"
	"math/bits"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/sluice-proxy/sluice/algorithms"
)

func message(id protowire.Number, content []byte) []byte { return appendBytes(nil, id, content) }

func number(id protowire.Number, n uint64) []byte { return appendNumber(nil, id, n) }

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// rlsReply is an RLS answer with one status; reset is in seconds, none if below 0.
func rlsReply(code, units, unit, remaining uint64, reset int64) []byte {
	status := join(number(1, code), message(2, join(number(1, units), number(2, unit))), number(3, remaining))
	if reset >= 0 {
		status = append(status, message(4, number(1, uint64(reset)))...)
	}
	return join(number(1, code), message(2, status))
}

func gubReply(status, limit, remaining, reset uint64, err string) []byte {
	return message(1, join(number(1, status), number(2, limit), number(3, remaining), number(4, reset), message(5, []byte(err))))
}

const (
	sent     = 100 * int64(time.Second)
	received = sent + 3*int64(time.Millisecond)
	// wall is 40 s into a minute.
	wall = 1_700_000_020 * int64(time.Second)
)

func TestWhatAnRLSAnswerSays(t *testing.T) {
	c := counter(t)(NewRLS("d", "l", time.Minute, 10))
	oneSecond := counter(t)(NewRLS("d", "l", time.Second, 10))
	for _, x := range []struct {
		name    string
		counter *Counter
		message []byte
		hits    int64
		want    Answer
	}{
		{"allowed", c, rlsReply(1, 10, 2, 7, 42), 3,
			Answer{true, 7, sent + 41*second, received + 42*second, 42 * time.Second, 0}},
		{"refused", c, rlsReply(2, 10, 2, 0, 42), 3,
			Answer{false, 0, sent + 41*second, received + 42*second, 42 * time.Second, 42 * time.Second}},
		{"never", c, rlsReply(2, 10, 2, 0, 42), 11,
			Answer{false, 0, sent + 41*second, received + 42*second, 42 * time.Second, algorithms.Forever}},
		{"never, of which the service only knows that somebody looked", c, rlsReply(1, 10, 2, 7, 42), 11,
			Answer{false, 7, sent + 41*second, received + 42*second, 42 * time.Second, algorithms.Forever}},
		{"a window of a second", oneSecond, rlsReply(2, 10, 1, 0, 1), 1,
			Answer{false, 0, sent, received + second, time.Second, time.Second}},
		{"without reset", c, rlsReply(1, 10, 2, 7, -1), 3,
			Answer{true, 7, sent, received + 60*second, time.Minute, 0}},
		{"status OVER_LIMIT of a service that looks on", c,
			join(number(1, 1), rlsReply(2, 10, 2, 0, 42)[2:]), 3,
			Answer{true, 0, sent + 41*second, received + 42*second, 42 * time.Second, 0}},
		{"with fields of later versions", c, join(message(99, []byte("x")), rlsReply(1, 10, 2, 7, 42), number(98, 1)), 3,
			Answer{true, 7, sent + 41*second, received + 42*second, 42 * time.Second, 0}},
	} {
		if got, ok := x.counter.ReadAnswer(x.message, x.hits, sent, received, wall); !ok || got != x.want {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", x.name, got, ok, x.want)
		}
	}
}

func TestAnRLSAnswerThatCannotBeReliedOn(t *testing.T) {
	c := counter(t)(NewRLS("d", "l", time.Minute, 10))
	good := rlsReply(1, 10, 2, 7, 42)
	status := good[2:]
	for name, m := range map[string][]byte{
		"nothing":               nil,
		"no status":             number(1, 1),
		"two statuses":          join(good, status),
		"no overall code":       status,
		"overall code UNKNOWN":  join(number(1, 0), status),
		"overall code 3":        join(number(1, 3), status),
		"status code UNKNOWN":   join(number(1, 1), rlsReply(0, 10, 2, 7, 42)[2:]),
		"OK without limit":      join(number(1, 1), message(2, number(1, 1))),
		"another limit":         rlsReply(1, 11, 2, 7, 42),
		"another unit":          rlsReply(1, 10, 3, 7, 42),
		"more left than there":  rlsReply(1, 10, 2, 11, 42),
		"a reset of 0":          rlsReply(1, 10, 2, 7, 0),
		"a reset after the end": rlsReply(1, 10, 2, 7, 61),
		"cut short":             good[:len(good)-1],
		"a group":               join([]byte{0x0b, 0x0c}, good),
		"a negative reset": join(number(1, 1), message(2, join(number(1, 1),
			message(2, join(number(1, 10), number(2, 2))), message(4, number(1, ^uint64(0)))))),
	} {
		if got, ok := c.ReadAnswer(m, 3, sent, received, wall); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhatAGubernatorWindowSays(t *testing.T) {
	c := counter(t)(NewGubernatorWindow("d", "l", time.Minute, 10))
	end := uint64(wall/ms) + 20_000 // 1 ms after what Gubernator names
	skew := int64(clockError)
	for _, x := range []struct {
		name  string
		reply []byte
		hits  int64
		want  Answer
	}{
		{"allowed", gubReply(0, 10, 7, end-1, ""), 3,
			Answer{true, 7, received + 20*second - ms - skew, received + 20*second + skew, 20*time.Second + clockError, 0}},
		{"refused with some left", gubReply(1, 10, 2, end-1, ""), 3,
			Answer{false, 2, received + 20*second - ms - skew, received + 20*second + skew, 20*time.Second + clockError, 20*time.Second + clockError}},
		{"never", gubReply(1, 10, 10, end-1, ""), 11,
			Answer{false, 10, received + 20*second - ms - skew, received + 20*second + skew, 20*time.Second + clockError, algorithms.Forever}},
		{"a window that ends just now", gubReply(0, 10, 7, uint64(wall/ms), ""), 3,
			Answer{true, 7, sent, received + ms + skew, time.Duration(ms + skew), 0}},
		{"a clock an hour ahead", gubReply(0, 10, 7, end+3_600_000, ""), 3,
			Answer{true, 7, sent, received + 60*second, time.Minute, 0}},
		{"a clock an hour behind", gubReply(1, 10, 0, end-3_600_000, ""), 3,
			Answer{false, 0, sent, received + 60*second, time.Minute, time.Minute}},
	} {
		if got, ok := c.ReadAnswer(x.reply, x.hits, sent, received, wall); !ok || got != x.want {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", x.name, got, ok, x.want)
		}
	}
}

func TestWhatAGubernatorBucketSays(t *testing.T) {
	c := counter(t)(NewGubernatorBucket("d", "l", 10, rate(t, "5/s")))
	for _, x := range []struct {
		name  string
		reply []byte
		hits  int64
		want  Answer
	}{
		{"full", gubReply(0, c.limit, 10, 1, ""), 0, Answer{Allowed: true, Remaining: 10}},
		{"allowed", gubReply(0, c.limit, 7, 1, ""), 3, Answer{Allowed: true, Remaining: 7, Reset: 601 * time.Millisecond}},
		{"refused", gubReply(1, c.limit, 2, 1, ""), 3,
			Answer{Remaining: 2, Reset: 1601 * time.Millisecond, RetryAfter: 201 * time.Millisecond}},
		{"never", gubReply(1, c.limit, 0, 1, ""), 11,
			Answer{Reset: 2001 * time.Millisecond, RetryAfter: algorithms.Forever}},
	} {
		if got, ok := c.ReadAnswer(x.reply, x.hits, sent, received, wall); !ok || got != x.want {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", x.name, got, ok, x.want)
		}
	}
}

func TestAGubernatorAnswerThatCannotBeReliedOn(t *testing.T) {
	window := counter(t)(NewGubernatorWindow("d", "l", time.Minute, 10))
	good := gubReply(0, 10, 7, uint64(wall/ms)+1, "")
	for name, m := range map[string][]byte{
		"nothing":              nil,
		"a dead peer":          message(1, message(5, []byte("connection refused"))),
		"an error, for all":    gubReply(0, 10, 7, uint64(wall/ms)+1, "x"),
		"two answers":          join(good, good),
		"another limit":        gubReply(0, 11, 7, uint64(wall/ms)+1, ""),
		"more left than there": gubReply(0, 10, 11, uint64(wall/ms)+1, ""),
		"fewer than 0 left":    gubReply(0, 10, ^uint64(0), uint64(wall/ms)+1, ""),
		"status 2":             gubReply(2, 10, 7, uint64(wall/ms)+1, ""),
		"no reset":             gubReply(0, 10, 7, 0, ""),
		"a reset beyond time":  gubReply(0, 10, 7, 1<<62, ""),
		"cut short":            good[:len(good)-1],
	} {
		if got, ok := window.ReadAnswer(m, 3, sent, received, wall); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Gubernator forgets a bucket that nobody asks for the duration, and takes an
// unknown one to be full.
func TestABucketIsRememberedUntilItIsFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 1_000_000).Draw(t, "rate")
		unit := rapid.SampledFrom([]string{"/s", "/m", "/h", "/d", "/7s", "/1ns"}).Draw(t, "unit")
		r, err := algorithms.ParseRate(strconv.FormatUint(n, 10) + unit)
		if err != nil {
			t.Skip(err)
		}
		capacity := rapid.Int64Range(1, algorithms.MaxUnits).Draw(t, "capacity")
		units, ms, ok := perMillisecond(r, uint64(capacity))
		if !ok {
			t.Fatal("a plain rate is refused")
		}
		if units < uint64(capacity) {
			t.Fatalf("%d units in %d ms is forgotten before %d are back", units, ms, capacity)
		}
		// The same rate: units/ms = num/den, crosswise.
		num, den := r.Fraction()
		hi, lo := bits.Mul64(units, uint64(den))
		wantHi, wantLo := bits.Mul64(uint64(num)*uint64(time.Millisecond), ms)
		if hi != wantHi || lo != wantLo {
			t.Fatalf("%d units in %d ms is not %v", units, ms, r)
		}
	})
}

func TestEveryWindowOfAnAnswerHoldsWhenItEnds(t *testing.T) {
	c := counter(t)(NewRLS("d", "l", time.Minute, 10))
	g := counter(t)(NewGubernatorWindow("d", "l", time.Minute, 10))
	rapid.Check(t, func(t *rapid.T) {
		// The window ends at end; the service counted between sent and received.
		sent := rapid.Int64Range(0, 1<<50).Draw(t, "sent")
		there := rapid.Int64Range(0, second).Draw(t, "there")
		back := rapid.Int64Range(0, second).Draw(t, "back")
		left := rapid.Int64Range(1, 60*second).Draw(t, "left")
		skew := rapid.Int64Range(-int64(clockError), int64(clockError)).Draw(t, "skew")
		counted, received := sent+there, sent+there+back
		end := counted + left

		check := func(name string, a Answer, ok bool) {
			if !ok || end <= a.EndsAfter-ms || end > a.EndsBefore || a.EndsAfter >= a.EndsBefore {
				t.Fatalf("%s: the end %d is not in (%d, %d], %v", name, end, a.EndsAfter, a.EndsBefore, ok)
			}
			if a.Reset != time.Duration(a.EndsBefore-received) {
				t.Fatalf("%s: reset %v", name, a.Reset)
			}
		}
		a, ok := c.ReadAnswer(rlsReply(1, 10, 2, 7, (left+second-1)/second), 3, sent, received, 0)
		check("RLS", a, ok)

		// Gubernator's clock shows our time of day + skew, a minute's end at end.
		const minutes = 28_000_000
		theirEnd := int64(minutes) * 60 * second
		wall := theirEnd - skew - (end - received)
		a, ok = g.ReadAnswer(gubReply(0, 10, 7, uint64(theirEnd/ms)-1, ""), 3, sent, received, wall)
		check("Gubernator", a, ok)
	})
}

func FuzzReadAnswer(f *testing.F) {
	counters := []*Counter{
		counter(f)(NewRLS("d", "l", time.Minute, 10)),
		counter(f)(NewRLS("d", "l", time.Second, 10)),
		counter(f)(NewGubernatorWindow("d", "l", time.Minute, 10)),
		counter(f)(NewGubernatorBucket("d", "l", 10, rate(f, "5/s"))),
	}
	f.Add(rlsReply(1, 10, 2, 7, 42), int64(3))
	f.Add(rlsReply(2, 10, 1, 0, 1), int64(11))
	f.Add(gubReply(1, 10, 2, uint64(wall/ms)+20_000, ""), int64(3))
	f.Add(gubReply(0, 10, 2, 1, "x"), int64(0))
	f.Add(bytes.Repeat([]byte{0x0b}, 1000), int64(1))
	f.Fuzz(func(t *testing.T, m []byte, hits int64) {
		for _, c := range counters {
			a, ok := c.ReadAnswer(m, hits, sent, received, wall)
			switch {
			case !ok && a != Answer{}:
				t.Fatalf("an answer that cannot be relied on says %+v", a)
			case !ok:
				continue
			case a.Remaining < 0 || a.Remaining > c.units || a.Reset < 0 || a.Allowed != (a.RetryAfter == 0):
				t.Fatalf("%+v", a)
			case c.window == 0 && (a.EndsAfter != 0 || a.EndsBefore != 0):
				t.Fatalf("a bucket ends: %+v", a)
			case c.window > 0 && (a.EndsAfter < sent || a.EndsAfter >= a.EndsBefore || a.EndsBefore > received+int64(c.window)):
				t.Fatalf("%+v", a)
			}
		}
		if n := testing.AllocsPerRun(1, func() {
			for _, c := range counters {
				c.ReadAnswer(m, hits, sent, received, wall)
			}
		}); n > 0 {
			t.Fatalf("%v allocations", n)
		}
	})
}
