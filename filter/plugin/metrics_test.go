//go:build !wasip1

package plugin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/host"
)

func TestEachLimitCountsWhatItAllowedAndRefused(t *testing.T) {
	e := started(t, severalLimits)
	for path, times := range map[string]int{"/one": 3, "/with-shadow": 4, "/key": 2, "/exempt": 5, "/none": 5} {
		for range times {
			e.path(path)
		}
	}
	want := map[string]uint64{
		"a-short.allowed": 1, "a-short.refused": 2,
		"c-large.allowed": 4,
		"day.allowed":     1, "day.shadow_refused": 3,
		"key.refused": 2,
	}
	check := func() {
		t.Helper()
		for _, limit := range []string{"a-short", "b-long", "c-large", "day", "key"} {
			for _, counter := range []string{"allowed", "refused", "shadow_refused", "errors"} {
				name := limit + "." + counter
				if got := e.counted("sluice.limit." + name); got != want[name] {
					t.Errorf("%s is %d, want %d", name, got, want[name])
				}
			}
		}
	}
	check()

	// Of a refused request only those count that refused it.
	e.path("/large")
	e.path("/refused-with-shadow")
	want["a-short.refused"] += 2
	want["day.shadow_refused"]++
	check()

	e.now += 10 * time.Second
	failWrite(2)
	e.path("/both")
	want["a-short.allowed"]++
	want["b-long.errors"]++
	check()
}

func TestALimitThatFailsInShadowIsCountedAsAnError(t *testing.T) {
	e := started(t, `{"on_error": "deny", `+severalLimits[1:])
	e.path("/key")
	failWrite(1)
	if !e.path("/shadow") || e.counted("sluice.limit.day.errors") != 1 {
		t.Errorf("%d errors counted, want 1, and the request to go on", e.counted("sluice.limit.day.errors"))
	}
}

func TestTheTableSaysHowFullItIsAndWhatItCosts(t *testing.T) {
	e := started(t, strings.Replace(oneAMinute, "{", `{"state": {"max_buckets": 1000},`, 1))
	fill := func() uint64 {
		n, _ := e.GetGaugeMetric("sluice.table.fill")
		return n
	}
	from := func(client int) {
		e.attributes["source\x00address"] = fmt.Sprintf("10.0.%d.%d:1", client>>8, client&255)
		e.path("/")
	}
	for client := range 100 {
		from(client)
		from(client)
	}
	if n := fill(); n != 100 {
		t.Errorf("the table is filled by %d, want 100 clients", n)
	}
	for _, name := range []string{"sluice.table.evictions", "sluice.table.cas_retries", "sluice.table.errors"} {
		if n := e.counted(name); n != 0 {
			t.Errorf("%s is %d, want 0", name, n)
		}
	}
	// 42 pages of 56 places.
	for client := range 4000 {
		from(client)
	}
	if n, full := e.counted("sluice.table.evictions"), fill(); full > 42*56 || full < 42*50 || n != 4000-full {
		t.Errorf("the table is filled by %d after 4000 clients, with %d evictions", full, n)
	}
	lost := 0
	host.Stub.SetSharedData = func(key, value []byte, version uint32) host.Status {
		if lost++; lost <= 3 {
			return host.CASMismatch
		}
		return host.OK
	}
	from(5000)
	from(5000)
	if n := e.counted("sluice.table.cas_retries"); n != 3 {
		t.Errorf("%d retries counted, want 3", n)
	}
}

func TestATableThatCannotBeOpenedIsCountedAndTriedAgain(t *testing.T) {
	for onError, goesOn := range map[string]bool{"allow": true, "deny": false} {
		t.Run(onError, func(t *testing.T) {
			e := started(t, strings.Replace(oneAMinute, "{", `{"on_error": "`+onError+`",`, 1))
			host.Stub.SharedData = func([]byte) ([]byte, uint32, host.Status) { return nil, 0, host.InternalFailure }
			for range 3 {
				if e.path("/") != goesOn {
					t.Errorf("a request went on: %v, want %v", !goesOn, goesOn)
				}
			}
			if n := e.counted("sluice.table.errors"); n != 3 {
				t.Errorf("%d errors counted, want 3", n)
			}
			host.Stub.SharedData = nil
			for i, want := range []bool{true, true, false} {
				if got := e.path("/"); got != want {
					t.Errorf("once it can be opened, request %d went on: %v, want %v", i, got, want)
				}
			}
		})
	}
}
