package envoytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for something that should come at once. It
// is long, since it only ever passes when a test fails.
const patience = 2 * time.Minute

// Eventually waits until the condition holds, asking over and over. The test
// fails if it does not hold in time; what says what was waited for.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	if !Await(condition) {
		t.Fatalf("waited %v in vain until %s", patience, what)
	}
}

// Await is Eventually for what runs outside a test: it reports whether the
// condition came to hold in time.
func Await(condition func() bool) bool {
	for end := time.Now().Add(patience); !condition(); {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
	return true
}

// Addr returns host:port of a listener.
func (e *Envoy) Addr(t testing.TB, listener string) string {
	t.Helper()
	addr, err := e.ListenerAddr(listener)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// ListenerAddr is Addr for what runs outside a test.
func (e *Envoy) ListenerAddr(listener string) (string, error) {
	var list struct {
		Statuses []struct {
			Name  string `json:"name"`
			Local struct {
				Socket struct {
					Address string `json:"address"`
					Port    int    `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	body, err := e.get("/listeners?format=json")
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		return "", err
	}
	for _, s := range list.Statuses {
		if s.Name == listener {
			return net.JoinHostPort(s.Local.Socket.Address, strconv.Itoa(s.Local.Socket.Port)), nil
		}
	}
	return "", fmt.Errorf("Envoy has no listener %q", listener)
}

// Admin returns the answer of the admin endpoint to a GET of path.
func (e *Envoy) Admin(t testing.TB, path string) string {
	t.Helper()
	body, err := e.get(path)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// ConfigDump returns the configuration that is in force, and for a listener
// whose last update was refused, why, as JSON.
func (e *Envoy) ConfigDump(t testing.TB) string {
	t.Helper()
	return e.Admin(t, "/config_dump")
}

// SetLogLevel sets the level of one of Envoy's loggers, such as "wasm".
func (e *Envoy) SetLogLevel(t testing.TB, logger, level string) {
	t.Helper()
	if _, err := e.do(http.MethodPost, "/logging?"+logger+"="+level); err != nil {
		t.Fatal(err)
	}
}

// Stats returns the counters and gauges whose name matches the regular
// expression, by name.
func (e *Envoy) Stats(t testing.TB, pattern string) map[string]int64 {
	t.Helper()
	stats, err := e.CurrentStats(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

// Stat returns one counter or gauge, 0 if there is none of this name.
func (e *Envoy) Stat(t testing.TB, name string) int64 {
	t.Helper()
	return e.Stats(t, "^"+regexp.QuoteMeta(name)+"$")[name]
}

// CurrentStats is Stats for what runs outside a test.
func (e *Envoy) CurrentStats(pattern string) (map[string]int64, error) {
	body, err := e.get("/stats?filter=" + url.QueryEscape(pattern))
	if err != nil {
		return nil, err
	}
	stats := map[string]int64{}
	for line := range strings.Lines(body) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			stats[name] = n
		}
	}
	return stats, nil
}

func (e *Envoy) get(path string) (string, error) { return e.do(http.MethodGet, path) }

func (e *Envoy) do(method, path string) (string, error) {
	request, err := http.NewRequest(method, "http://"+e.admin+path, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("admin endpoint, %s %s: %s: %s", method, path, response.Status, body)
	}
	return string(body), nil
}

// Log returns what Envoy has logged so far.
func (e *Envoy) Log(t testing.TB) string {
	t.Helper()
	return e.read(t, envoyLog)
}

// AccessLogEntry is one line of the access log.
type AccessLogEntry struct {
	Path    string // with its query, as the request had it
	Status  int    // of the response; 0 if there was none
	Details string // Envoy's response code details
	State   string // what the filter has decided; "" if it has decided nothing
}

// AccessLog returns what is in the access log of a listener so far. Envoy
// writes a request's line shortly after its response.
func (e *Envoy) AccessLog(t testing.TB, listener string) []AccessLogEntry {
	t.Helper()
	var entries []AccessLogEntry
	for line := range strings.Lines(e.read(t, accessLog(listener))) {
		if !strings.HasSuffix(line, "\n") {
			break // still being written
		}
		var entry AccessLogEntry
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("access log: %v in %q", err, line)
		}
		entries = append(entries, entry)
	}
	return entries
}

func (e *Envoy) read(t testing.TB, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(e.dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(content)
}
