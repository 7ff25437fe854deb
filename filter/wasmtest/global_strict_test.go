package wasmtest_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

func TestARequestWaitsForTheServiceWhichDecides(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, fleetConfig("rls", `,"domain":"shop","timeout":"70ms"`, minute, anyCost))
	for _, c := range []struct {
		name   string
		answer string
		want   answer
	}{
		{"admitted", rlsAnswer(rlsOK, 10, rlsMinute, 7, 42), answer{200, 10, 7, 42, absent}},
		{"the last one", rlsAnswer(rlsOK, 10, rlsMinute, 0, 1), answer{200, 10, 0, 1, absent}},
		{"refused", rlsAnswer(rlsOver, 10, rlsMinute, 0, 42), answer{429, 10, 0, 42, 42}},
		{"refused until the next second", rlsAnswer(rlsOver, 10, rlsMinute, 0, 1), answer{429, 10, 0, 1, 1}},
	} {
		s := waits(t, plugin, costing(1, 3))
		call := only(t, plugin)
		if call.Target != target("service") || call.TimeoutMS != 70 || len(call.Metadata) != 0 {
			t.Errorf("%s: the call is %+v", c.name, call)
		}
		got := readRLS(t, call)
		readable, hash, _ := strings.Cut(got.client, ":ip-10.0.0.1:")
		if digits, err := hex.DecodeString(hash); readable != "rate-limit:x" || err != nil || len(digits) != 16 {
			t.Errorf("%s: the client is %q", c.name, got.client)
		}
		got.client = ""
		if want := (rlsRequest{"shop", "limit=x unit=minute", "", 10, rlsMinute, 3}); got != want {
			t.Errorf("%s: asked %+v, want %+v", c.name, got, want)
		}
		host.Clock.Advance(3 * time.Millisecond)
		plugin.AnswerGRPC(call.ID, c.answer)
		if got := finish(t, s); got != c.want {
			t.Errorf("%s: the client is told %+v, want %+v", c.name, got, c.want)
		}
		expectCalls(t, plugin, 0)
	}
	expectCounts(t, host, map[string]uint64{"x.allowed": 2, "x.refused": 2, "x.calls": 4, "x.call_errors": 0, "x.errors": 0})
	if n := host.Shared.Entries(); n > 1 {
		t.Errorf("%d entries in shared data: the process counts too", n)
	}
}

func TestOnGubernatorABucketIsALeakyBucketAndAWindowIsACalendars(t *testing.T) {
	const limits = `
		"bucket":{"algorithm":"token_bucket","capacity":10,"refill_rate":"5/s","key":["ip"],"scope":"global"},
		"gcra":{"algorithm":"gcra","burst":3,"rate":"5/s","key":["ip"],"scope":"global"},
		"meter":{"algorithm":"leaky_bucket","mode":"meter","capacity":10,"leak_rate":"3/s","key":["ip"],"scope":"global"},
		"m":{"algorithm":"fixed_window","limit":10,"window":"1m","key":["ip"],"scope":"global"},
		"h":{"algorithm":"fixed_window","limit":10,"window":"1h","key":["ip"],"scope":"global"},
		"d":{"algorithm":"fixed_window","limit":10,"window":"1d","key":["ip"],"scope":"global"}`
	var rules []string
	for _, name := range []string{"bucket", "gcra", "meter", "m", "h", "d"} {
		rules = append(rules, `{"match":{"path":"/`+name+`"},"limits":["`+name+`"],"cost":2}`)
	}
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, fleetConfig("gubernator", "", limits, strings.Join(rules, ",")))
	nowMS := uint64(host.Clock.Wall / int64(time.Millisecond))
	for _, c := range []struct {
		limit   string
		asked   gubRequest
		refused string
		want    answer
	}{
		{"bucket", gubRequest{"sluice:bucket:bucket", "", 2, 10, 2000, 1, 0, 10}, gubAnswer(gubOver, 10, 1, nowMS, ""), answer{429, 10, 1, 2, 1}},
		{"gcra", gubRequest{"sluice:gcra:bucket", "", 2, 3, 600, 1, 0, 3}, gubAnswer(gubUnder, 3, 1, nowMS, ""), answer{200, 3, 1, 1, absent}},
		{"meter", gubRequest{"sluice:meter:bucket", "", 2, 12, 4000, 1, 0, 10}, gubAnswer(gubOver, 12, 0, nowMS, ""), answer{429, 10, 0, 4, 1}},
		{"m", gubRequest{"sluice:m:minute", "", 2, 10, 0, 0, gubGregorian, 0}, gubAnswer(gubUnder, 10, 8, nowMS+30_000, ""), answer{200, 10, 8, 31, absent}},
		{"h", gubRequest{"sluice:h:hour", "", 2, 10, 1, 0, gubGregorian, 0}, gubAnswer(gubOver, 10, 1, nowMS+1_000_000, ""), answer{429, 10, 1, 1001, 1001}},
		{"d", gubRequest{"sluice:d:day", "", 2, 10, 2, 0, gubGregorian, 0}, gubAnswer(gubOver, 10, 0, nowMS+9_000_000, ""), answer{429, 10, 0, 9001, 9001}},
	} {
		s := waits(t, plugin, request{address: client(1), path: "/" + c.limit})
		call := only(t, plugin)
		got := readGubernator(t, call)
		if !strings.HasPrefix(got.key, "rate-limit:"+c.limit+":ip-10.0.0.1:") {
			t.Errorf("%s: the key is %q", c.limit, got.key)
		}
		if got.key = ""; got != c.asked {
			t.Errorf("%s: asked %+v, want %+v", c.limit, got, c.asked)
		}
		plugin.AnswerGRPC(call.ID, c.refused)
		if got := finish(t, s); got != c.want {
			t.Errorf("%s: the client is told %+v, want %+v", c.limit, got, c.want)
		}
	}
}

// All Envoys must agree on who a client is, and no two clients may be one.
func TestAClientIsTheSameToTheServiceOnAllWorkersAndNobodyElse(t *testing.T) {
	config := fleetConfig("rls", "", `"x":{"algorithm":"fixed_window","limit":10,"window":"1m","key":["user=header:x-user","header:authorization"],"scope":"global"}`, `{"limits":["x"]}`)
	seen := map[string][2]string{}
	for range 2 { // Envoys
		host := wasmtest.New(t, wasmtest.Module(t))
		for _, plugin := range startWorkers(t, host, 2, config) {
			for _, c := range [][2]string{{"a", "secret"}, {"a", "secret-"}, {"a:secret", ""}, {"", "a"}, {"a", ""}, {"", ""}, {"\xff", ""}, {"\xfe", ""}} {
				s := waits(t, plugin, request{address: client(1), headers: wasmtest.Headers{{"x-user", c[0]}, {"authorization", c[1]}}})
				call := only(t, plugin)
				id := readRLS(t, call).client
				if who, known := seen[id]; known && who != c {
					t.Errorf("%q and %q are both %q", who, c, id)
				}
				if strings.Contains(id, "secret") && c[0] != "a:secret" {
					t.Errorf("the service learns a secret: %q", id)
				}
				seen[id] = c
				plugin.AnswerGRPC(call.ID, rlsAnswer(rlsOK, 10, rlsMinute, 7, 42))
				s.End()
			}
		}
	}
	if len(seen) != 8 {
		t.Errorf("8 clients are %d to the service", len(seen))
	}
}

func TestACostOfNothingLooksAndIsAdmittedWhateverTheServiceSays(t *testing.T) {
	for _, protocol := range []string{"rls", "gubernator"} {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, fleetConfig(protocol, "", minute, anyCost))
		s := waits(t, plugin, costing(1, 0))
		call := only(t, plugin)
		// What either says when it has refused another request before.
		if protocol == "rls" {
			if asked := readRLS(t, call); asked.hits != 0 {
				t.Errorf("asked for %d", asked.hits)
			}
			plugin.AnswerGRPC(call.ID, rlsAnswer(rlsOver, 10, rlsMinute, 0, 30))
		} else {
			if asked := readGubernator(t, call); asked.hits != 0 {
				t.Errorf("asked for %d", asked.hits)
			}
			plugin.AnswerGRPC(call.ID, gubAnswer(gubOver, 10, 0, uint64(host.Clock.Wall)/1e6+29_000, ""))
		}
		expectAnswer(t, s, answer{200, 10, 0, 30, absent})
	}
}

func TestACostAboveTheLimitIsNeverAdmittedAndTakesNothing(t *testing.T) {
	for _, protocol := range []string{"rls", "gubernator"} {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, fleetConfig(protocol, "", minute, anyCost))
		s := waits(t, plugin, costing(1, 11))
		call := only(t, plugin)
		if protocol == "rls" {
			if asked := readRLS(t, call); asked.hits != 0 {
				t.Errorf("asked for %d", asked.hits)
			}
			plugin.AnswerGRPC(call.ID, rlsAnswer(rlsOK, 10, rlsMinute, 4, 30))
		} else {
			if asked := readGubernator(t, call); asked.hits != 0 {
				t.Errorf("asked for %d", asked.hits)
			}
			plugin.AnswerGRPC(call.ID, gubAnswer(gubUnder, 10, 4, uint64(host.Clock.Wall)/1e6+29_000, ""))
		}
		expectAnswer(t, s, answer{429, 10, 4, 30, absent})
		// As many as there are, are asked for.
		s = waits(t, plugin, costing(1, 10))
		call = only(t, plugin)
		if protocol == "rls" && readRLS(t, call).hits != 10 || protocol == "gubernator" && readGubernator(t, call).hits != 10 {
			t.Errorf("%s: a cost of the whole limit does not ask for it", protocol)
		}
		s.End()
	}
}

func TestAWindowOfASecondIsAskedStrictlyUnderLeases(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, fleetConfig("rls", `,"mode":"lease"`, `"x":{"algorithm":"fixed_window","limit":10,"window":"1s","key":["ip"],"scope":"global"}`, anyCost))
	s := waits(t, plugin, costing(1, 2))
	call := only(t, plugin)
	if got := readRLS(t, call); got.entries != "limit=x unit=second" || got.unit != rlsSecond || got.hits != 2 {
		t.Errorf("asked %+v", got)
	}
	plugin.AnswerGRPC(call.ID, rlsAnswer(rlsOver, 10, rlsSecond, 0, 1))
	expectAnswer(t, s, answer{429, 10, 0, 1, 1})
}

func TestWhatIsExemptAsksNobody(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	config := strings.Replace(fleetConfig("rls", "", minute, anyCost), "{", `{"exempt":[{"path":"/healthz"}],`, 1)
	plugin := start(t, host, config)
	if s := begin(plugin, request{address: client(1), path: "/healthz"}); !wentOn(s) {
		t.Error("what is exempt does not go on")
	}
	expectCalls(t, plugin, 0)
	waits(t, plugin, costing(1, 1)).End()
}
