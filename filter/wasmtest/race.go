package wasmtest

import (
	"iter"
	"math/rand/v2"
)

// Task is what one VM does in a race.
type Task struct {
	VM  *VM
	Run func()
}

// Race runs tasks on different VMs at the same time. Exactly one of them runs
// at any moment: before every hostcall that sees or changes what VMs have in
// common (shared data and clocks), random decides who goes on. The same random
// source and the same tasks on VMs in the same state give the same
// interleaving.
//
// between, if not nil, is called before each of these steps; it is where a test
// moves the clocks.
//
// How often one VM goes on several times in a row differs from race to race:
// some faults need a VM that stands still while another does a whole request,
// others need them to take turns. (Musuvathi and others, "Finding and
// Reproducing Heisenbugs in Concurrent Programs", OSDI 2008, found that few
// switches in the right places show most faults.)
func (h *Host) Race(random *rand.Rand, between func(), tasks ...Task) {
	stay := []float64{0, 0.5, 0.9}[random.IntN(3)]
	running := make([]func() (struct{}, bool), len(tasks))
	for i, task := range tasks {
		next, stop := iter.Pull(task.steps)
		defer stop()
		running[i] = next
	}
	for i := -1; len(running) > 0; {
		if i < 0 || random.Float64() >= stay {
			i = random.IntN(len(running))
		}
		if between != nil {
			between()
		}
		if _, more := running[i](); !more {
			running = append(running[:i], running[i+1:]...)
			i = -1
		}
	}
}

// steps runs the task as a coroutine that hands over wherever its VM yields.
func (task Task) steps(yield func(struct{}) bool) {
	task.VM.yield = func() { yield(struct{}{}) }
	defer func() { task.VM.yield = nil }()
	task.Run()
}
