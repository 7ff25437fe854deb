package fleettest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// Server is a server process. Its methods are for one goroutine at a time, except
// Addr and Running.
type Server struct {
	program string // as it is called under build/fleet
	addr    string
	dir     string
	// What it is started with, each time. The environment is nothing else: a
	// developer's own settings are not the test's.
	arguments, environment []string
	// answers asks the server for something that it can only answer when it is
	// ready.
	answers func(ctx context.Context) error

	mu     sync.Mutex // guards what a Restart changes
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
	paused bool
}

// Addr is host:port for the server's clients, the same after a Restart.
func (s *Server) Addr() string { return s.addr }

// Running reports whether there is a process. A paused one is running.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// Kill ends the process at once, as a crash would, and returns when it is gone.
func (s *Server) Kill() {
	if s.cmd == nil {
		return // it could not be started
	}
	s.cmd.Process.Kill() // that it has already ended is all that can be wrong
	<-s.exited
}

// Pause stops the process and returns when every thread of it stands still. It
// keeps its connections, and new ones are taken by the kernel.
func (s *Server) Pause() error {
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("%s can't be paused: %w", s.program, err)
	}
	s.setPaused(true)
	if !envoytest.Await(func() bool { return !s.Running() || stopped(s.cmd.Process.Pid) }) || !s.Running() {
		return fmt.Errorf("%s did not come to a halt", s.program)
	}
	return nil
}

// Resume lets a paused process go on.
func (s *Server) Resume() error {
	if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("%s can't go on: %w", s.program, err)
	}
	s.setPaused(false)
	return nil
}

// Restart starts the process anew at the same address, and returns when it
// answers. It kills it if it runs. What it held in memory, it has lost.
func (s *Server) Restart() error {
	s.Kill()
	if err := s.start(); err != nil {
		return err
	}
	return s.awaitAnswer()
}

// Stop ends the process, and removes its folder unless it is to be kept.
func (s *Server) Stop(keep bool) {
	s.Kill()
	if !keep {
		envoytest.RemoveFolder(s.dir)
	}
}

func (s *Server) setPaused(paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = paused
}

// active reports whether the server is to be expected to answer.
func (s *Server) active() bool {
	s.mu.Lock()
	paused := s.paused
	s.mu.Unlock()
	return !paused && s.Running()
}

// newServer returns a server that is yet to be started. Its folder is one of the
// test, or of whatever else has the given name.
func newServer(name, program, addr string) (*Server, error) {
	dir, err := envoytest.LogFolder(name, program)
	if err != nil {
		return nil, err
	}
	return &Server{program: program, addr: addr, dir: dir}, nil
}

// start starts the process without waiting for anything.
func (s *Server) start() error {
	binary, err := envoytest.Built("make servers", "fleet", s.program)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(binary, s.arguments...)
	cmd.Dir = s.dir
	cmd.Env = s.environment
	cmd.Stdout, cmd.Stderr = log, log
	envoytest.DieWithParent(cmd, syscall.SIGKILL)
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() {
		cmd.Wait()
		close(exited)
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd, s.exited, s.paused = cmd, exited, false
	return nil
}

// awaitAnswer returns when the server answers. A question that gets no answer is
// asked again, since a server may drop what came while it was starting.
func (s *Server) awaitAnswer() error {
	var last error
	ready := envoytest.Await(func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		last = s.answers(ctx)
		return last == nil || !s.Running()
	})
	if ready && last == nil {
		return nil
	}
	if !s.Running() {
		last = errors.New("it ended")
	}
	return fmt.Errorf("%s does not become ready: %w; %s", s.program, last, s.lastWords())
}

func (s *Server) log() string { return filepath.Join(s.dir, s.program+".log") }

func (s *Server) lastWords() string { return envoytest.LastWords(s.program, s.log()) }

// run starts the servers, each when the one before it answers. If one doesn't,
// none is left running.
func run(servers ...*Server) error {
	for i, s := range servers {
		err := s.start()
		if err == nil {
			err = s.awaitAnswer()
		}
		if err != nil {
			stopAll(servers[:i], true)
			s.Kill()
			return err
		}
	}
	return nil
}

// endWith has the servers end with the test. Their logs are kept if it fails.
func endWith(t testing.TB, servers ...*Server) {
	t.Cleanup(func() {
		for _, s := range servers {
			if t.Failed() {
				t.Log(s.lastWords())
			}
		}
		stopAll(servers, t.Failed())
	})
}

func stopAll(servers []*Server, keep bool) {
	for _, s := range servers {
		s.Stop(keep)
	}
}
