package wasmtest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// raceToCount has 8 VMs add to one number in shared data, 5 times each, as the
// filter does: read, add, write if nobody else has written. It returns the
// number and who made which call.
func raceToCount(t *testing.T, seed uint64, ignoreCAS bool) (sum int, order []int) {
	t.Helper()
	host := newPuppetHost(t)
	host.Shared.IgnoreCAS = ignoreCAS
	host.Recording = true
	var tasks []Task
	for range 8 {
		p := newPuppet(t, host)
		tasks = append(tasks, Task{p.vm, func() {
			for range 5 {
				p.count()
			}
		}})
	}
	host.Race(rand.New(rand.NewPCG(seed, 0)), nil, tasks...)
	for _, c := range host.Calls {
		order = append(order, c.VM)
	}
	value, _, _ := host.Shared.get(sharedKey{DefaultVMID, "sum"})
	sum, err := strconv.Atoi(value)
	if err != nil {
		t.Fatal(err)
	}
	host.Close()
	return sum, order
}

func (p *puppet) count() {
	for {
		var value string
		cas := ^uint32(0)
		p.call("proxy_get_shared_data", "sum", &value, &cas)
		n, _ := strconv.Atoi(value)
		if p.call("proxy_set_shared_data", "sum", strconv.Itoa(n+1), int(cas)) == OK {
			return
		}
	}
}

func TestCompareAndSwapLosesNothingInARace(t *testing.T) {
	for seed := range uint64(100) {
		if sum, _ := raceToCount(t, seed, false); sum != 40 {
			t.Fatalf("seed %d: got %d, want 40", seed, sum)
		}
	}
}

func TestARaceShowsWhatIsLostWithoutCompareAndSwap(t *testing.T) {
	lost := 0
	for seed := range uint64(20) {
		if sum, _ := raceToCount(t, seed, true); sum < 40 {
			lost++
		}
	}
	if lost < 15 {
		t.Errorf("only %d of 20 races lost anything", lost)
	}
}

func TestASeedGivesTheSameInterleavingAgain(t *testing.T) {
	_, first := raceToCount(t, 1, false)
	_, again := raceToCount(t, 1, false)
	_, other := raceToCount(t, 2, false)
	if !slices.Equal(first, again) {
		t.Error("the same seed gave another interleaving")
	}
	if slices.Equal(first, other) {
		t.Error("another seed gave the same interleaving")
	}
}
