package fleet

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	ms     = int64(time.Millisecond)
	second = int64(time.Second)
)

// broken returns a circuit that has just opened at now.
func broken(t *testing.T, now int64) *Circuit {
	t.Helper()
	c := new(Circuit)
	for range failuresToOpen {
		if !c.Allows(now) {
			t.Fatal("open before enough failures in a row")
		}
		c.Failed(now)
	}
	if c.Allows(now) {
		t.Fatal("closed after enough failures in a row")
	}
	return c
}

func TestADeadServiceIsAskedOnceAPause(t *testing.T) {
	c := broken(t, 0)
	var asked []int64
	for now := int64(0); now < 20*second; now += ms {
		probes := 0
		for range 3 { // several requests at once
			if c.Allows(now) {
				asked = append(asked, now/ms)
				probes++
			}
		}
		for range probes {
			c.Failed(now)
		}
	}
	want := []int64{100, 300, 700, 1500, 3100, 6300, 11300, 16300}
	if len(asked) != len(want) {
		t.Fatalf("asked at %v, want %v", asked, want)
	}
	for i := range want {
		if asked[i] != want[i] {
			t.Fatalf("asked at %v, want %v", asked, want)
		}
	}
}

func TestOneSuccessClosesAtOnceAndForgets(t *testing.T) {
	c := broken(t, 0)
	if !c.Allows(100 * ms) {
		t.Fatal("no probe after the pause")
	}
	c.Failed(100 * ms)
	if !c.Allows(300 * ms) {
		t.Fatal("no probe after twice the pause")
	}
	c.Succeeded()
	if *c != (Circuit{}) {
		t.Fatalf("%+v after a success", *c)
	}
}

func TestAProbeThatNobodyHearsOfHoldsUpOnePause(t *testing.T) {
	c := broken(t, 0)
	for _, step := range []struct {
		at   int64
		want bool
	}{{100, true}, {199, false}, {200, true}, {201, false}, {300, true}} {
		if got := c.Allows(step.at * ms); got != step.want {
			t.Fatalf("at %d ms: %v, want %v", step.at, got, step.want)
		}
	}
}

// Calls that were under way when the circuit opened fail one after another.
func TestLateFailuresDoNotLengthenThePause(t *testing.T) {
	c := broken(t, 0)
	for range 1000 {
		c.Failed(50 * ms)
	}
	if !c.Allows(100 * ms) {
		t.Fatal("late failures have put off the probe")
	}
}

// Half of the calls fail at random, of a thousand requests a second: the service
// must still be asked again and again, and few requests bear a timeout.
func TestHalfOfTheCallsFailing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var c Circuit
		const requests = 300_000 // five minutes
		failed, answered := 0, 0
		for i := range int64(requests) {
			now := i * ms
			if !c.Allows(now) {
				continue
			}
			if random.IntN(2) == 0 {
				failed++
				c.Failed(now)
				continue
			}
			answered++
			c.Succeeded()
		}
		if failed > requests/5 || answered < requests/100 {
			t.Fatalf("%d failed and %d answered of %d", failed, answered, requests)
		}
		// No probe fails so often that the service is left alone for ever.
		if !c.Allows(requests*ms + int64(maxPause)) {
			t.Fatal("open after the longest pause")
		}
	})
}

func TestACircuitNeverClosesItselfNorStaysShut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Circuit
		now, inARow := int64(0), 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += rapid.Int64Range(0, 7*second).Draw(t, "passed")
			allowed := c.Allows(now)
			if inARow < failuresToOpen && !allowed {
				t.Fatalf("open after %d failures in a row", inARow)
			}
			if inARow >= failuresToOpen && allowed && c.Allows(now) {
				t.Fatal("two probes at once")
			}
			switch {
			case !allowed:
				later := c
				if !later.Allows(now + int64(maxPause)) {
					t.Fatal("no probe within the longest pause")
				}
			case rapid.Bool().Draw(t, "fails"):
				inARow++
				c.Failed(now)
			default:
				inARow = 0
				c.Succeeded()
			}
		}
	})
}
