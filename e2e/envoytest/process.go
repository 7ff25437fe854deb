package envoytest

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// InDocker reports whether Envoys run in containers of the official image: the
// environment variable SLUICE_ENVOY says "docker". Else they are processes of
// the binaries under build/envoy.
func InDocker() bool { return os.Getenv("SLUICE_ENVOY") == "docker" }

// Image returns the official image of an Envoy version.
func Image(version string) string { return "envoyproxy/envoy:v" + version }

// Label marks the containers of the tests, for whoever has to clean up after a
// test program that was killed.
const Label = "sluice-e2e"

// process is an Envoy that runs, or the client of the container it runs in.
type process struct {
	cmd       *exec.Cmd
	container string // "" if there is none
}

// containers counts the containers of this test program, to name them.
var containers atomic.Int64

// envoyCommand returns an Envoy with these arguments that has yet to be started.
// It runs in the root of the repository, and in a container has that at the same
// path and the machine's own network, so that every file and address means the
// same to it as it does to the test.
func envoyCommand(version string, arguments ...string) (process, error) {
	root, err := root()
	if err != nil {
		return process{}, err
	}
	if !InDocker() {
		binary, err := Built("make envoy", "envoy", version, "envoy")
		if err != nil {
			return process{}, err
		}
		cmd := exec.Command(binary, arguments...)
		cmd.Dir = root
		DieWithParent(cmd, syscall.SIGKILL)
		return process{cmd: cmd}, nil
	}
	if err := NeedDocker(); err != nil {
		return process{}, err
	}
	name := fmt.Sprintf("%s-%d-%d", Label, os.Getpid(), containers.Add(1))
	cmd := exec.Command("docker", append([]string{"run",
		"--rm", "--name", name, "--label", Label, "--pull", "never",
		"--network", "host", "--volume", root + ":" + root, "--workdir", root,
		// What it writes belongs to whoever runs the tests. The image's start
		// script takes another user unless it is told not to.
		"--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()), "--env", "ENVOY_UID=0",
		Image(version)}, arguments...)...)
	// The client passes the signal on to the container, unless it gets several at
	// once; what is then left `make e2e-docker` removes.
	DieWithParent(cmd, syscall.SIGTERM)
	return process{cmd: cmd, container: name}, nil
}

// NeedDocker returns an error that says what is missing if there is no Docker.
func NeedDocker() error {
	output, err := exec.Command("docker", "version", "--format", "{{.Server.Version}}").CombinedOutput()
	if err != nil {
		return fmt.Errorf("this test needs Docker, which does not answer (%w): install it and start its daemon, then run `make e2e-docker`\n%s",
			err, output)
	}
	return nil
}

// kill ends Envoy at once.
func (p process) kill() {
	if p.container != "" {
		// That it has already ended is all that can be wrong.
		exec.Command("docker", "kill", p.container).Run()
		return
	}
	p.cmd.Process.Kill()
}

// pid returns Envoy's process id as the machine knows it.
func (p process) pid() (int, error) {
	if p.container == "" {
		return p.cmd.Process.Pid, nil
	}
	output, err := exec.Command("docker", "inspect", "--format", "{{.State.Pid}}", p.container).Output()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(output)))
}
