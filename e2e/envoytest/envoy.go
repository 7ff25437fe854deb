package envoytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Versions are the Envoy versions that the project supports, oldest first.
var Versions = []string{"1.36.4", "1.37.0", "1.38.2", "1.39.3", Current}

// Current is the Envoy version that tests run on unless they say otherwise.
const Current = "1.40.0"

// The files in the folder of a running Envoy.
const (
	envoyLog      = "envoy.log"
	listenersFile = "listeners.json"
	adminFile     = "admin-address"
)

// Envoy is a running Envoy.
type Envoy struct {
	process
	dir     string
	exited  chan struct{} // closed when the process has ended
	admin   string        // host:port of the admin endpoint
	workers int
	// What it was given last, if it is Dynamic, the version of that, and each
	// listener's number, by its name.
	listeners []Listener
	pushes    int
	numbers   map[string]int
}

// Start starts an Envoy for a test and returns when it is ready for requests.
// It ends with the test.
func Start(t testing.TB, o Options) *Envoy {
	t.Helper()
	e, err := Run(t.Name(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.ShowIfFailed(t)
		e.Stop(t.Failed())
	})
	return e
}

// StartRefused starts an Envoy that is expected to refuse its configuration,
// waits until it has ended, and returns its log.
func StartRefused(t testing.TB, o Options) string {
	t.Helper()
	e, err := launch(t.Name(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.ShowIfFailed(t)
		e.Stop(t.Failed())
	})
	Eventually(t, "Envoy refuses its configuration and ends", e.hasExited)
	if e.cmd.ProcessState.Success() {
		t.Error("Envoy ended with exit code 0")
	}
	return e.Log(t)
}

// Run starts an Envoy that outlives a test, and returns when it is ready for
// requests. Its folder has the given name. Whoever calls it calls Stop.
func Run(name string, o Options) (*Envoy, error) {
	e, err := launch(name, o)
	if err != nil {
		return nil, err
	}
	if !Await(func() bool { return e.hasExited() || e.ready() }) {
		err = errors.New("Envoy does not become ready")
	} else if e.hasExited() {
		err = errors.New("Envoy ended while it was starting")
	}
	if err != nil {
		e.Stop(true)
		return nil, fmt.Errorf("%w; %s", err, e.lastWords())
	}
	return e, nil
}

// launch starts the process without waiting for anything.
func launch(name string, o Options) (*Envoy, error) {
	dir, err := LogFolder(name, "envoy")
	if err != nil {
		return nil, err
	}
	e := &Envoy{dir: dir, exited: make(chan struct{}), workers: max(o.Workers, 1), numbers: map[string]int{}}
	bootstrap, err := o.writeBootstrap(dir)
	if err != nil {
		return nil, err
	}
	if o.Dynamic {
		e.listeners = o.Listeners
		if err := e.writeListeners(e.listeners); err != nil {
			return nil, err
		}
	}
	log, err := os.Create(filepath.Join(dir, envoyLog))
	if err != nil {
		return nil, err
	}
	defer log.Close()

	drainTime := o.DrainTime
	if drainTime == 0 {
		drainTime = 600
	}
	e.process, err = envoyCommand(or(o.Version, Current),
		"--config-path", bootstrap,
		"--admin-address-path", filepath.Join(dir, adminFile),
		"--concurrency", strconv.Itoa(e.workers),
		// Several Envoys share a machine's shared memory only under ids of their own.
		"--use-dynamic-base-id",
		// Access log lines are wanted soon; Envoy gathers them for 10 s otherwise.
		"--file-flush-interval-msec", "20",
		"--log-level", "warning", "--component-log-level", "wasm:"+or(o.WasmLog, "info"),
		"--drain-time-s", strconv.Itoa(drainTime))
	if err != nil {
		return nil, err
	}
	e.cmd.Stdout, e.cmd.Stderr = log, log
	if err := e.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		e.cmd.Wait()
		close(e.exited)
	}()
	return e, nil
}

// Stop ends the process, and removes its folder unless it is to be kept.
func (e *Envoy) Stop(keep bool) {
	e.kill()
	<-e.exited
	if !keep {
		RemoveFolder(e.dir)
	}
}

// ShowIfFailed puts the end of Envoy's log into the test's, if that has failed.
func (e *Envoy) ShowIfFailed(t testing.TB) {
	if t.Failed() {
		t.Log(e.lastWords())
	}
}

// lastWords says where the log is and how it ends.
func (e *Envoy) lastWords() string {
	return LastWords("Envoy", filepath.Join(e.dir, envoyLog))
}

// ready reports whether Envoy serves: its admin endpoint says so, and all
// workers run.
func (e *Envoy) ready() bool {
	if e.admin == "" {
		address, err := os.ReadFile(filepath.Join(e.dir, adminFile))
		if err != nil || len(address) == 0 {
			return false
		}
		e.admin = string(address)
	}
	if _, err := e.get("/ready"); err != nil {
		return false
	}
	stats, err := e.CurrentStats("listener_manager.workers_started")
	return err == nil && stats["listener_manager.workers_started"] == 1
}

func (e *Envoy) hasExited() bool {
	select {
	case <-e.exited:
		return true
	default:
		return false
	}
}

// RSS returns the memory of the process that is in use, in bytes.
func (e *Envoy) RSS(t testing.TB) int64 {
	t.Helper()
	pid, err := e.pid()
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	t.Fatal("the process's status has no VmRSS")
	return 0
}

// CPU returns the CPU time that the process has spent so far, of all its threads,
// as the scheduler counts it.
func (e *Envoy) CPU(t testing.TB) time.Duration {
	t.Helper()
	pid, err := e.pid()
	if err != nil {
		t.Fatal(err)
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("the process has no threads to count (error: %v)", err)
	}
	var spent time.Duration
	for _, thread := range threads {
		var ns int64
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended meanwhile
		}
		if _, err := fmt.Sscan(string(text), &ns); err != nil {
			t.Fatal(err)
		}
		spent += time.Duration(ns)
	}
	return spent
}

func writeJSON(file string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
