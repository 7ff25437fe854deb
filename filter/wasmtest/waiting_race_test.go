package wasmtest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// Workers that give out places of one queue at once must give out each once, and
// in a row. Those who leave meanwhile may leave gaps, but free no place that
// somebody else has.
func TestWorkersRacingInOneQueueGiveOutEachPlaceOnce(t *testing.T) {
	for _, leaving := range []bool{false, true} {
		t.Run(fmt.Sprintf("leaving=%t", leaving), func(t *testing.T) {
			eachSeed(t, 4, func(random *rand.Rand) error {
				host := wasmtest.New(t, wasmtest.Module(t))
				defer host.Close()
				workers := startWorkers(t, host, 4, `{"limits":{"q":{"algorithm":"leaky_bucket","capacity":9,"leak_rate":"10/s","key":["ip"]}},
					"rules":[{"limits":["q"]}],"state":{"max_buckets":1000}}`)
				for round := range 40 {
					if err := raceInQueue(host, workers, random, client(round), leaving); err != nil {
						return fmt.Errorf("round %d: %w", round, err)
					}
				}
				return nil
			})
		})
	}
}

// raceInQueue has four workers send three requests of one client each, two more
// than the queue takes, and follows when they leave.
func raceInQueue(host *wasmtest.Host, workers []*wasmtest.Plugin, random *rand.Rand, address string, leaving bool) error {
	const capacity, place = 9, 100 * time.Millisecond
	var stay []*wasmtest.Stream
	left := 0
	send := func(worker *wasmtest.Plugin) {
		s := worker.NewStream(map[string]string{"source/address": address})
		s.RequestHeaders(wasmtest.Headers{{":method", "GET"}, {":path", "/"}, {":authority", "example.com"}})
		if leaving && s.Paused() && random.IntN(3) == 0 {
			left++
			s.End()
			return
		}
		stay = append(stay, s)
	}
	var tasks []wasmtest.Task
	for _, worker := range workers {
		tasks = append(tasks, wasmtest.Task{VM: worker.VM(), Run: func() {
			for range 3 {
				send(worker)
			}
		}})
	}
	host.Race(random, nil, tasks...)

	var places []int // of those who were admitted, as they leave
	refused := 0
	for _, s := range stay {
		defer s.End()
		if s.Local() != nil {
			refused++
		}
	}
	for n := 0; n <= capacity+left; n++ {
		for _, s := range stay {
			if s.Local() == nil && !s.Paused() {
				places = append(places, n)
			}
		}
		stay = slices.DeleteFunc(stay, func(s *wasmtest.Stream) bool { return s.Local() == nil && !s.Paused() })
		host.Advance(place)
	}
	switch {
	case len(stay) > refused:
		return fmt.Errorf("%d requests never leave; the others left at %v", len(stay)-refused, places)
	case len(slices.Compact(slices.Clone(places))) < len(places):
		return fmt.Errorf("a place was given out twice: %v", places)
	case places[0] != 0:
		return fmt.Errorf("nobody went on at once: %v", places)
	case !leaving && (len(places) != capacity+1 || places[capacity] != capacity):
		return fmt.Errorf("%d requests left at %v, want %d in a row", len(places), places, capacity+1)
	case len(places)+left+refused != 12:
		return fmt.Errorf("%d left, %d gave up, %d were refused", len(places), left, refused)
	}
	return nil
}
