package e2e

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-proxy/sluice/e2e/envoytest"
)

// needDocker leaves a test out of `make test`, which needs no Docker. Under
// `make e2e-docker` it fails where there is none.
func needDocker(t *testing.T) {
	t.Helper()
	if !envoytest.InDocker() {
		t.Skip("`make e2e-docker` runs this test")
	}
	if err := envoytest.NeedDocker(); err != nil {
		t.Fatal(err)
	}
}

// run runs a command to its end and returns its standard output.
func run(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	var failure bytes.Buffer
	cmd.Stderr = &failure
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, output, failure.Bytes())
	}
	return output
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// composed brings a compose file up, with these environment variables, and down
// when the test ends. The file's path is from the folder envoy/docker.
func composed(t *testing.T, file string, environment ...string) {
	t.Helper()
	needDocker(t)
	// Compose is a plugin of Docker, or as Debian has it, a program of its own.
	compose := []string{"docker", "compose"}
	if exec.Command("docker", "compose", "version").Run() != nil {
		compose = []string{"docker-compose"}
	}
	project := fmt.Sprintf("sluice-e2e-%d", os.Getpid())
	command := func(arguments ...string) *exec.Cmd {
		file := filepath.Join("..", "envoy", "docker", file)
		cmd := exec.Command(compose[0], append(append(compose[1:len(compose):len(compose)],
			"--file", file, "--project-name", project), arguments...)...)
		cmd.Env = append(os.Environ(), environment...)
		return cmd
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", run(t, command("logs", "--no-color", "--tail", "30")))
		}
		run(t, command("down", "--volumes", "--timeout", "1"))
		if left := run(t, command("ps", "--quiet")); len(left) != 0 {
			t.Errorf("these containers are left: %s", left)
		}
	})
	run(t, command("up", "--detach"))
}

// expectUpstream waits until the upstream of a compose file answers through Envoy.
func expectUpstream(t *testing.T, client *envoytest.Client) {
	t.Helper()
	var first envoytest.Response
	envoytest.Eventually(t, "the upstream answers through Envoy", func() bool {
		var err error
		// 503 comes while the upstream starts; it costs the client a request.
		first, err = client.Send("GET", "/")
		return err == nil && first.Status != 503
	})
	if !strings.Contains(first.Body, "hello from the upstream") && first.Status != 429 {
		t.Errorf("got %d %q, want the upstream's answer", first.Status, first.Body)
	}
}

func TestTheComposeFileComesUpLimitsAndGoesDown(t *testing.T) {
	port, admin := freePort(t), freePort(t)
	composed(t, "compose.yaml", fmt.Sprintf("SLUICE_PORT=%d", port), fmt.Sprintf("SLUICE_ADMIN_PORT=%d", admin))

	client := envoytest.NewClient(t, fmt.Sprintf("127.0.0.1:%d", port), envoytest.ClientOptions{NewConnections: true})
	expectUpstream(t, client)
	envoytest.Eventually(t, "a client that sends on and on is refused", func() bool {
		response := client.Get(t, "/")
		return response.Status == 429 && response.Header.Get("Ratelimit-Limit") == "5" &&
			response.Header.Get("Retry-After") != ""
	})
	stats := envoytest.NewClient(t, fmt.Sprintf("127.0.0.1:%d", admin), envoytest.ClientOptions{})
	metrics := stats.Get(t, "/stats/prometheus?filter=sluice").Body
	if !strings.Contains(metrics, `sluice_refused{sluice_limit="client"}`) {
		t.Errorf("the admin endpoint has no sluice_refused; it has\n%s", metrics)
	}
}

// Each by itself the Envoys would admit all that is sent here.
func TestTheComposeFileOfAFleetSharesOneLimit(t *testing.T) {
	environment := []string{fmt.Sprintf("SLUICE_ADMIN_PORT=%d", freePort(t))}
	var clients []*envoytest.Client
	for i := range 3 {
		port := freePort(t)
		environment = append(environment, fmt.Sprintf("SLUICE_PORT_%d=%d", i+1, port))
		clients = append(clients, envoytest.NewClient(t, fmt.Sprintf("127.0.0.1:%d", port), envoytest.ClientOptions{NewConnections: true}))
	}
	composed(t, filepath.Join("fleet", "compose.yaml"), environment...)
	for _, client := range clients {
		expectUpstream(t, client)
	}
	admitted := func(key string) (n int) {
		for i := range 12 {
			if clients[i%len(clients)].Get(t, "/", "x-api-key: "+key).Status == 200 {
				n++
			}
		}
		return n
	}
	// Until all workers have found the service some count for themselves.
	tries := 0
	envoytest.Eventually(t, "the Envoys admit 10 of 12 requests together", func() bool {
		tries++
		return admitted(fmt.Sprint("try-", tries)) == 10
	})
	onOneDay(func(key string) {
		if n := admitted("after-" + key); n != 10 {
			t.Errorf("the Envoys admit %d of 12 requests together, want 10", n)
		}
	})
}

// Istio and Envoy Gateway take the last layer of an image and look for
// plugin.wasm in it (https://github.com/solo-io/wasm/blob/master/spec/spec-compat.md).
func TestTheImageHasOneLayerWithTheModule(t *testing.T) {
	needDocker(t)
	image := fmt.Sprintf("sluice-e2e:%d", os.Getpid())
	run(t, exec.Command("make", "--directory", "..", "image", "IMAGE="+image))
	t.Cleanup(func() { run(t, exec.Command("docker", "image", "rm", "--force", image)) })

	files := untar(t, run(t, exec.Command("docker", "save", image)))
	var manifest []struct{ Layers []string }
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest) != 1 || len(manifest[0].Layers) != 1 {
		t.Fatalf("the image's manifest is %+v, want one layer", manifest)
	}
	layer := untar(t, files[manifest[0].Layers[0]])
	module, err := os.ReadFile(envoytest.Module(t, "sluice.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if len(layer) != 1 || !bytes.Equal(layer["plugin.wasm"], module) {
		t.Errorf("the layer has %d files, plugin.wasm of %d bytes; want that alone, with the %d bytes of the built module",
			len(layer), len(layer["plugin.wasm"]), len(module))
	}
}

// untar returns the regular files of a tar archive, by name.
func untar(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if files[header.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}
