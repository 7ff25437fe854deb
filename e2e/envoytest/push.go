package envoytest

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// The counters by which Envoy says what became of its listeners.
const (
	ldsSuccess  = "listener_manager.lds.update_success"
	ldsRejected = "listener_manager.lds.update_rejected"
	// onWorker counts once for each worker that has taken up a listener.
	onWorker = "listener_manager.listener_create_success"
)

// Push gives a Dynamic Envoy a listener beside those that it has, or in place
// of the one of the same name, from which it must differ. It returns when every
// worker has taken it up: connections that are made from then on meet the new
// one. The test fails if Envoy refuses it.
func (e *Envoy) Push(t testing.TB, l Listener) {
	t.Helper()
	before := e.Stats(t, `^listener_manager\.`)
	pushed := e.with(l)
	if err := e.writeListeners(pushed); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "every worker has the pushed listener", func() bool {
		now := e.Stats(t, `^listener_manager\.`)
		if now[ldsRejected] > before[ldsRejected] {
			t.Fatalf("Envoy refused the pushed listener; %s", e.lastWords())
		}
		return now[ldsSuccess] > before[ldsSuccess] && now[onWorker] >= before[onWorker]+int64(e.workers)
	})
	e.listeners = pushed
}

// PushRefused gives a Dynamic Envoy a listener that it is expected to refuse,
// and returns when it has. The test fails if Envoy accepts it.
func (e *Envoy) PushRefused(t testing.TB, l Listener) {
	t.Helper()
	before := e.Stats(t, `^listener_manager\.lds\.`)
	if err := e.writeListeners(e.with(l)); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "Envoy refuses the pushed listener", func() bool {
		now := e.Stats(t, `^listener_manager\.lds\.`)
		if now[ldsSuccess] > before[ldsSuccess] {
			t.Fatal("Envoy accepted the pushed listener")
		}
		return now[ldsRejected] > before[ldsRejected]
	})
}

// with returns Envoy's listeners with l among them.
func (e *Envoy) with(l Listener) []Listener {
	listeners := slices.DeleteFunc(slices.Clone(e.listeners), func(other Listener) bool {
		return other.name() == l.name()
	})
	return append(listeners, l)
}

// writeListeners puts the listeners into the file that Envoy watches. Envoy
// looks when a file is moved into the folder, so it never sees half of one.
func (e *Envoy) writeListeners(listeners []Listener) error {
	e.pushes++
	resources := []Object{}
	for _, l := range listeners {
		number, known := e.numbers[l.name()]
		if !known {
			number = len(e.numbers)
			e.numbers[l.name()] = number
		}
		resources = append(resources, l.envoyListener(e.dir, number))
	}
	file := filepath.Join(e.dir, listenersFile)
	err := writeJSON(file+".new", Object{"version_info": strconv.Itoa(e.pushes), "resources": resources})
	if err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
