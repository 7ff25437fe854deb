package wasmtest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// outage is one way in which a service fails.
type outage struct {
	name, protocol string
	atOnce         bool // no call can be made
	end            func(host *wasmtest.Host, plugin *wasmtest.Plugin, call uint32)
}

// closes ends a call without an answer, after so long.
func closes(status uint32, after time.Duration) func(*wasmtest.Host, *wasmtest.Plugin, uint32) {
	return func(host *wasmtest.Host, plugin *wasmtest.Plugin, call uint32) {
		host.Clock.Advance(after)
		plugin.CloseGRPC(call, status)
	}
}

func says(answer string) func(*wasmtest.Host, *wasmtest.Plugin, uint32) {
	return func(_ *wasmtest.Host, plugin *wasmtest.Plugin, call uint32) { plugin.AnswerGRPC(call, answer) }
}

// neverHandedOut is the close of a call that failed at once.
func neverHandedOut(_ *wasmtest.Host, plugin *wasmtest.Plugin, _ uint32) { plugin.CloseGRPC(9999, 14) }

var outages = []outage{
	{"timeout", "rls", false, closes(14, 53*time.Millisecond)},
	{"refused connection", "rls", false, closes(14, time.Millisecond)},
	{"another status", "rls", false, closes(2, 0)},
	{"good status without an answer", "rls", false, closes(0, 0)},
	{"garbage", "rls", false, says("\xff\xfe\x07garbage")},
	{"empty answer", "rls", false, says("")},
	{"an answer of another service", "rls", false, says(gubAnswer(gubUnder, 10, 9, 0, ""))},
	{"no verdict", "rls", false, says(rlsAnswer(0, 10, rlsMinute, 9, 42))},
	{"an error in the answer", "gubernator", false, says(gubAnswer(gubUnder, 10, 9, 0, "peer is away"))},
	{"no answer in the answer", "gubernator", false, says("")},
	{"refused at once", "rls", true, func(*wasmtest.Host, *wasmtest.Plugin, uint32) {}},
	{"refused at once and closed later", "rls", true, neverHandedOut},
	{"no time to tell the answer by", "rls", false, func(host *wasmtest.Host, plugin *wasmtest.Plugin, call uint32) {
		// The reading of the call alone fails: deciding needs one too.
		failed := false
		host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) {
			fails := c.Name == "clock_time_get" && !failed
			failed = failed || fails
			return wasmtest.InternalFailure, fails
		}
		plugin.AnswerGRPC(call, rlsAnswer(rlsOK, 10, rlsMinute, 9, 42))
		host.Fail = nil
	}},
}

// failAll ends all calls that wait.
func (o *outage) failAll(host *wasmtest.Host, plugin *wasmtest.Plugin) {
	for _, call := range slices.Clone(plugin.GRPCCalls()) {
		o.end(host, plugin, call.ID)
	}
	if o.atOnce {
		o.end(host, plugin, 0)
	}
}

// refuseCalls has the host make no calls, as where there is no such cluster.
func (o *outage) refuseCalls(host *wasmtest.Host) {
	if o.atOnce {
		host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) {
			return wasmtest.InternalFailure, c.Name == "proxy_grpc_call"
		}
	}
}

// However the service fails, each request is answered by the policy: of fourteen
// ten are admitted by the process alone, or all, or none, and the limit beside it
// applies to all that are admitted.
func TestHoweverTheServiceFailsTheRequestIsAnsweredByThePolicy(t *testing.T) {
	const limit, requests = 10, 14
	module := wasmtest.Module(t)
	for _, mode := range []string{"strict", "lease"} {
		for policy, admitted := range map[string]int{"local": limit, "allow": requests, "deny": 0} {
			for _, o := range outages {
				where := fmt.Sprintf("%s, %s, %s", mode, policy, o.name)
				host := wasmtest.New(t, module)
				plugin := start(t, host, fleetConfig(o.protocol, fmt.Sprintf(`,"mode":%q,"on_failure":%q`, mode, policy),
					minute+`,"p":{"algorithm":"fixed_window","limit":100,"window":"1d","key":["ip"]}`,
					`{"match":{"path":"/left"},"limits":[{"limit":"p","cost":0}]},{"limits":["x","p"]}`))
				o.refuseCalls(host)
				if mode == "lease" {
					// Who finds neither token nor failure is admitted on credit.
					if s := begin(plugin, request{address: client(1)}); !wentOn(s) {
						t.Errorf("%s: the first request is not admitted on credit", where)
					}
					o.failAll(host, plugin)
				}
				before := left(plugin, 1)
				went, denied, refused := 0, 0, 0
				for range requests {
					s := begin(plugin, request{address: client(1), headers: wasmtest.Headers{{"content-type", "application/grpc"}}})
					o.failAll(host, plugin)
					switch local := s.Local(); {
					case s.Paused():
						t.Fatalf("%s: a request still waits", where)
					case local == nil:
						went++
					case local.Status == 503 && local.GRPCStatus == 14:
						denied++
					case local.Status == 429:
						refused++
					}
					s.End()
				}
				host.Fail = nil
				want := [3]int{admitted, 0, requests - admitted}
				if policy == "deny" {
					want = [3]int{0, requests, 0}
				}
				if got := [3]int{went, denied, refused}; got != want {
					t.Errorf("%s: went on, denied, refused: %v, want %v", where, got, want)
				}
				if took := before - left(plugin, 1); took != int64(admitted) {
					t.Errorf("%s: %d taken of the limit beside it, want %d", where, took, admitted)
				}
				expectCalls(t, plugin, 0)
				host.Close()
			}
		}
	}
}

// An answer that comes after its call has failed is nobody's, and a close that
// comes twice neither.
func TestWhatComesAfterACallHasFailedIsIgnored(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, besides(`,"on_failure":"deny"`, dayOfTen, `"p"`))
	first := waits(t, plugin, request{address: client(1)})
	call := only(t, plugin).ID
	plugin.CloseGRPC(call, 14)
	other := waits(t, plugin, request{address: client(1)})
	plugin.AnswerGRPC(call, rlsAnswer(rlsOK, 10, rlsMinute, 9, 42))
	plugin.CloseGRPC(call, 14)
	if first.Local() == nil || first.Local().Status != 503 {
		t.Errorf("the first request is answered by %+v, want 503", first.Local())
	}
	if !other.Paused() || other.Local() != nil {
		t.Error("the other does not wait for its own answer")
	}
	expectCounts(t, host, map[string]uint64{"x.calls": 2, "x.call_errors": 1})
}

// Where the table fails as well, nothing can be decided: on_error says what then.
func TestWhereTheTableFailsTooOnErrorDecides(t *testing.T) {
	for policy, undecided := range undecidedStatus {
		for _, name := range tableAndClocks {
			host := wasmtest.New(t, wasmtest.Module(t))
			plugin := start(t, host, `{"on_error":"`+policy+`",`+fleetConfig("rls", "", minute, anyCost)[1:])
			ask(plugin, request{address: client(2)}) // opens the table
			s := waits(t, plugin, request{address: client(1)})
			host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) { return wasmtest.InternalFailure, c.Name == name }
			for _, call := range slices.Clone(plugin.GRPCCalls()) {
				plugin.CloseGRPC(call.ID, 14)
			}
			host.Fail = nil
			if got := status(s); got != undecided {
				t.Errorf("on_error %s, %s fails: got %d, want %d (0: it still waits)", policy, name, got, undecided)
			}
		}
	}
}

// In a VM that cannot tell the time nobody can be asked either.
func TestWhereThereIsNoTimeNobodyWaitsForTheService(t *testing.T) {
	for _, mode := range []string{"strict", "lease"} {
		for policy, undecided := range undecidedStatus {
			host := wasmtest.New(t, wasmtest.Module(t))
			plugin := start(t, host, `{"on_error":"`+policy+`",`+fleetConfig("rls", fmt.Sprintf(`,"mode":%q`, mode), minute, anyCost)[1:])
			host.Fail = func(c *wasmtest.Call) (wasmtest.Status, bool) {
				return wasmtest.InternalFailure, c.Name == "clock_time_get"
			}
			if got := status(begin(plugin, request{address: client(1)})); got != undecided {
				t.Errorf("%s, on_error %s: got %d, want %d (0: it waits)", mode, policy, got, undecided)
			}
			expectCalls(t, plugin, 0)
		}
	}
}

// Whichever hostcall fails once as the service is asked or answers, the request is
// let through or answered, and leaves nothing in flight.
func TestAHostcallThatFailsAroundACallLeavesNobodyWaiting(t *testing.T) {
	answers := map[string]func(*wasmtest.Host, *wasmtest.Plugin, uint32){
		"admitted": says(rlsAnswer(rlsOK, 10, rlsMinute, 9, 42)),
		"refused":  says(rlsAnswer(rlsOver, 10, rlsMinute, 0, 42)),
		"failed":   closes(14, time.Millisecond),
	}
	host := wasmtest.New(t, wasmtest.Module(t))
	vm := host.NewVM()
	told := map[string]bool{}
	for name, answer := range answers {
		for _, policy := range []string{"local", "deny"} {
			for _, failure := range everyFailure {
				for n := 0; ; n++ {
					plugin := startAfresh(t, vm, host, besides(fmt.Sprintf(`,"on_failure":%q`, policy), dayOfTen+`,"f":{"algorithm":"concurrency","limit":3,"key":["ip"]}`, `"p","f"`))
					clear(host.Metrics)
					call := failAt(host, n, failure)
					s := begin(plugin, request{address: client(1)})
					for _, c := range slices.Clone(plugin.GRPCCalls()) {
						answer(host, plugin, c.ID)
					}
					host.Fail = nil
					where := fmt.Sprintf("%s, %s, call %d %s returns %d", name, policy, n, call, failure)
					if vm.Err() != nil {
						t.Fatalf("%s: the VM is dead", where)
					}
					if what := name + policy + call.Name; s.Paused() && !told[what] {
						told[what] = true
						t.Errorf("%s: the request waits for ever", where)
					}
					s.End()
					host.Advance(10 * time.Second) // what could not be released is then
					if in := gauge(host, "f"); in != 0 && call.Name == "" {
						t.Errorf("%s: %d are in flight in the end", where, in)
					}
					plugin.Stop()
					if call.Name == "" {
						break
					}
				}
			}
		}
	}
}

// A panic as an answer is heard is the end of what the request has taken, but not
// of the request.
func TestAPanicAtTheAnswerLeavesNobodyWaiting(t *testing.T) {
	for policy, undecided := range undecidedStatus {
		host := wasmtest.New(t, wasmtest.TrapModule(t))
		plugin := start(t, host, `{"on_error":"`+policy+`",`+besides("", dayOfTen, `"p"`)[1:])
		s := waits(t, plugin, request{address: client(1), headers: wasmtest.Headers{{"x-sluice-trap", "answer"}}})
		plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOK, 10, rlsMinute, 9, 42))
		if got := status(s); got != undecided {
			t.Errorf("on_error %s: got %d, want %d (0: it still waits)", policy, got, undecided)
		}
		s.End()
		if n := left(plugin, 1); n != 10 {
			t.Errorf("on_error %s: %d are left of the process' limit, want 10", policy, n)
		}
		if n := panicsLogged(plugin.VM(), "proxy_on_grpc_receive"); n != 1 || host.Metrics["sluice.panics"] != 1 {
			t.Errorf("on_error %s: %d panics logged and %d counted, want 1", policy, n, host.Metrics["sluice.panics"])
		}
		next := waits(t, plugin, request{address: client(1)})
		plugin.AnswerGRPC(only(t, plugin).ID, rlsAnswer(rlsOK, 10, rlsMinute, 9, 42))
		if !wentOn(next) {
			t.Error("the next request does not go on")
		}
	}
}

// Envoy answers a request itself that waits for longer than it lets streams be
// idle. What the service says then comes too late for it.
func TestARequestThatEnvoyHasAnsweredMeanwhileIsNotDecided(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, besides("", dayOfTen, `"p"`))
	s := waits(t, plugin, request{address: client(1)})
	call := only(t, plugin).ID
	s.ResponseHeaders(wasmtest.Headers{{":status", "504"}})
	plugin.AnswerGRPC(call, rlsAnswer(rlsOver, 10, rlsMinute, 0, 42))
	if s.Local() != nil {
		t.Errorf("a second response is sent: %+v", s.Local())
	}
	s.End()
	if n := left(plugin, 1); n != 10 {
		t.Errorf("%d are left of the process' limit, want 10", n)
	}
}

// Envoy ends the calls of a plugin with it. Whoever kept them would keep the whole
// plugin after each config push.
func TestThePluginThatIsGoneHearsNothing(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, fleetConfig("rls", `,"mode":"lease"`, minute, anyCost))
	ask(plugin, request{address: client(1)})
	call := only(t, plugin).ID
	plugin.Stop()
	plugin.VM().Callback("proxy_on_grpc_close", plugin.ContextID(), call, 14)
	expectCounts(t, host, map[string]uint64{"x.calls": 1, "x.call_errors": 0})
}
