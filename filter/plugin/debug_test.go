//go:build !wasip1

package plugin

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/host"
)

func TestADebugLineForEachLimitSaysWhatItDecided(t *testing.T) {
	e := started(t, severalLimits)
	host.Verbose = true
	for _, c := range []struct {
		path  string
		lines []string
	}{
		{"/with-shadow", []string{
			"sluice: allowed rate-limit:c-large:ip-203.0.113.10, 8 of 9 left",
			"sluice: allowed rate-limit:day:ip-203.0.113.10, 0 of 1 left",
		}},
		{"/with-shadow", []string{
			"sluice: allowed rate-limit:c-large:ip-203.0.113.10, 7 of 9 left",
			"sluice: shadow rate-limit:day:ip-203.0.113.10, 0 of 1 left, retry after 1h0m0s",
		}},
		{"/one", []string{"sluice: allowed rate-limit:a-short:ip-203.0.113.10, 0 of 1 left"}},
		{"/large", []string{
			"sluice: refused rate-limit:a-short:ip-203.0.113.10, 0 of 1 left, retry after 1s",
			"sluice: uncharged rate-limit:c-large:ip-203.0.113.10",
		}},
		{"/key", []string{"sluice: refused rate-limit:key:bearer-missing"}},
		{"/exempt", nil},
	} {
		before := len(e.GetDebugLogs())
		e.path(c.path)
		if got := e.GetDebugLogs()[before:]; !slices.Equal(got, c.lines) {
			t.Errorf("%s: got %q, want %q", c.path, got, c.lines)
		}
	}
	failWrite(1)
	before := len(e.GetDebugLogs())
	e.now += time.Minute
	e.path("/one")
	if got, want := e.GetDebugLogs()[before:], []string{"sluice: error rate-limit:a-short:ip-203.0.113.10"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDebugLinesComeAndGoWithTheLogsLevel(t *testing.T) {
	e := started(t, severalLimits)
	lines := func() int {
		before := len(e.GetDebugLogs())
		e.path("/one")
		return len(e.GetDebugLogs()) - before
	}
	if n := lines(); n != 0 {
		t.Errorf("%d lines though nobody asked for them", n)
	}
	for _, verbose := range []bool{true, false, true} {
		host.Verbose = verbose
		at := map[bool]int{true: 1}
		if n := lines(); n != at[!verbose] {
			t.Errorf("%d lines at once: the host is asked for every request", n)
		}
		e.now += 2 * time.Duration(verboseFor)
		if n := lines(); n != at[verbose] {
			t.Errorf("%d lines with debug lines on: %v", n, verbose)
		}
	}
}

func TestNoSecretIsEverLogged(t *testing.T) {
	const secret = "s3cr3t-value"
	e := started(t, `{
		"limits": {
			"plain":    {"algorithm": "gcra", "rate": "1/h", "key": ["header:x-api-key", "query:token"]},
			"declared": {"algorithm": "gcra", "rate": "1/h", "key": ["user=header:x-user", "plan=query:plan"]},
			"always":   {"algorithm": "gcra", "rate": "1/h", "key": ["bearer", "cookie:session", "a=header:authorization", "b=header:cookie", "p=property:request/id", "t=bearer", "s=cookie:session"]}
		},
		"rules": [{"limits": ["plain", "declared", "always"]}]
	}`)
	host.Verbose = true
	e.attributes["request\x00id"] = secret + "5"
	for range 2 { // admitted and refused
		e.request([2]string{":path", "/?token=" + secret + "1&plan=gold"}, [2]string{"x-api-key", secret + "2"}, [2]string{"x-user", "alice"},
			[2]string{"authorization", "Bearer " + secret + "3"}, [2]string{"cookie", "session=" + secret + "4"})
	}
	all := strings.Join(slices.Concat(e.GetTraceLogs(), e.GetDebugLogs(), e.GetInfoLogs(), e.GetWarnLogs(), e.GetErrorLogs(), e.GetCriticalLogs()), "\n")
	if strings.Contains(all, secret) || strings.Contains(all, "s3cr3t") {
		t.Errorf("a secret is logged:\n%s", all)
	}
	if n := strings.Count(all, "rate-limit:declared:user-alice:plan-gold"); n != 2 {
		t.Errorf("what is declared to be no secret is shown %d times, want 2:\n%s", n, all)
	}
	for _, part := range []string{"x-api-key-#", "token-#", "bearer-#", "session-#", ":a-#", ":b-#", ":p-#", ":t-#", ":s-#"} {
		if n := strings.Count(all, part); n != 2 {
			t.Errorf("%s is shown %d times, want 2:\n%s", part, n, all)
		}
	}
}

func TestALoggedDurationIsInWholeMillisecondsAndNeverTooShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                             "0s",
		1:                             "1ms",
		time.Millisecond:              "1ms",
		time.Millisecond + 1:          "2ms",
		9_401_737_392:                 "9.402s",
		algorithms.Forever:            "2562047h47m16.854s",
		algorithms.Forever - 1000_000: "2562047h47m16.854s",
	} {
		if got := milliseconds(d); got != want {
			t.Errorf("%d ns: got %s, want %s", d, got, want)
		}
	}
}
