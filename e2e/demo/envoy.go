package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The files in the folder of a running Envoy.
const (
	bootstrapFile = "envoy.yaml"
	logFile       = "envoy.log"
	adminFile     = "admin-address"
)

// envoy is a running Envoy.
type envoy struct {
	log    string        // the path of its log
	exited chan struct{} // closed when the process has ended
	stop   func()        // ends the process and waits until it has ended
}

// fill returns a bootstrap with its plain values replaced. Ports become 0, which
// has Envoy take a free one; the upstream's is known. It fails if a value isn't
// there exactly once: the demo would then show something else than the file says.
func fill(bootstrap, module string, upstreamPort int) (string, error) {
	for _, value := range []struct{ old, new string }{
		{"port_value: 9901 ", "port_value: 0 "},
		{"port_value: 10000 ", "port_value: 0 "},
		{"port_value: 8080 ", fmt.Sprintf("port_value: %d ", upstreamPort)},
		{"filename: build/sluice.wasm\n", fmt.Sprintf("filename: %q\n", module)},
	} {
		if n := strings.Count(bootstrap, value.old); n != 1 {
			return "", fmt.Errorf("found %q %d times, want it once", strings.TrimSpace(value.old), n)
		}
		bootstrap = strings.Replace(bootstrap, value.old, value.new, 1)
	}
	return bootstrap, nil
}

// start runs the Envoy binary with the demo's configuration, in a folder that it
// empties first. Envoy ends when ctx does.
func start(ctx context.Context, binary, module string, upstreamPort int, dir string) (*envoy, error) {
	bootstrap, err := os.ReadFile(config)
	if err != nil {
		return nil, err
	}
	filled, err := fill(string(bootstrap), module, upstreamPort)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", config, err)
	}
	err = cmp.Or(os.RemoveAll(dir), os.MkdirAll(dir, 0o755),
		os.WriteFile(filepath.Join(dir, bootstrapFile), []byte(filled), 0o644))
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, logFile))
	if err != nil {
		return nil, err
	}
	defer log.Close()

	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, binary,
		"--config-path", filepath.Join(dir, bootstrapFile),
		"--admin-address-path", filepath.Join(dir, adminFile),
		"--concurrency", fmt.Sprint(workers),
		"--disable-hot-restart", // it shares nothing with other Envoys of this machine
		"--log-level", "warning", "--component-log-level", "wasm:info")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second // then it is killed
	// Ctrl-C reaches a terminal's whole process group. In one of its own Envoy
	// ends when the demo has it end, not in the middle of a request.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	e := &envoy{log: log.Name(), exited: make(chan struct{})}
	go func() {
		cmd.Wait()
		close(e.exited)
	}()
	e.stop = func() {
		cancel()
		<-e.exited
	}
	return e, nil
}

// ready waits until all workers run, and returns host:port of the listener.
func (e *envoy) ready(ctx context.Context) (listener string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		workers := e.admin(ctx, "/stats?filter=^listener_manager.workers_started$")
		if strings.HasSuffix(strings.TrimSpace(workers), ": 1") {
			// The one line is "ingress::127.0.0.1:41234".
			_, address, _ := strings.Cut(e.admin(ctx, "/listeners"), "::")
			return strings.TrimSpace(address), nil
		}
		select {
		case <-e.exited:
			return "", errors.New("no Envoy: it did not start")
		case <-ctx.Done():
			return "", errors.New("no Envoy: it did not become ready in a minute")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// admin returns the answer of the admin endpoint, "" for as long as there is none.
func (e *envoy) admin(ctx context.Context, path string) string {
	address, err := os.ReadFile(filepath.Join(filepath.Dir(e.log), adminFile))
	if err != nil {
		return ""
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+string(address)+path, nil)
	if err != nil {
		return "" // the file is still being written
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return string(body)
}

// lastWords says where the log is, and how it ends if Envoy has ended.
func (e *envoy) lastWords() string {
	select {
	case <-e.exited:
	default:
		return "Envoy's log is in " + e.log
	}
	const lines = 15
	log, _ := os.ReadFile(e.log)
	all := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
	return fmt.Sprintf("Envoy has ended. Its log is in %s and ends so:\n%s",
		e.log, bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
