package wasmtest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/filter/wasmtest"
)

// guesses is a config of one limit of ten failed logins an hour by client address.
func guesses(limit, further string) string {
	return charging(limit+`,"count_status":["401","403","5xx"]`+further, "")
}

// tenAnHour are the limits of ten an hour. Those that are continuous give some
// back in between.
var tenAnHour = map[string]struct {
	limit      string
	continuous bool
}{
	"token_bucket":   {`"algorithm":"token_bucket","capacity":10,"refill_rate":"10/h"`, true},
	"gcra":           {`"algorithm":"gcra","rate":"10/h","burst":10`, true},
	"leaky_bucket":   {`"algorithm":"leaky_bucket","mode":"meter","capacity":10,"leak_rate":"10/h"`, true},
	"fixed_window":   {`"algorithm":"fixed_window","limit":10,"window":"1h"`, false},
	"sliding_window": {`"algorithm":"sliding_window","limit":10,"window":"1h"`, false},
}

// answerStatus ends a request with a response of this status, and returns what
// the client is told.
func answerStatus(s *wasmtest.Stream, status int) answer {
	sent := s.ResponseHeaders(wasmtest.Headers{{":status", fmt.Sprint(status)}})
	s.End()
	return answerOf(sent)
}

func TestARequestStaysChargedIfItsStatusCountsAndIsGivenBackIfNot(t *testing.T) {
	for name, l := range tenAnHour {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, guesses(l.limit, ""))
		for n, status := range []int{200, 204, 301, 302, 400, 401, 402, 403, 404, 407, 429, 499, 500, 503, 599, 101, 0, 600, 999} {
			want := int64(10)
			if status == 401 || status == 403 || status >= 500 && status <= 599 {
				want = 7
			}
			if got := answerStatus(begin(plugin, costing(n, 3)), status); got.remaining != want || got.limit != 10 || want == 10 && l.continuous && got.reset != 0 {
				t.Errorf("%s, status %d: the response tells %+v, want %d left", name, status, got, want)
			}
			if got := look(plugin, n); got.remaining != want {
				t.Errorf("%s, status %d: %d are left, want %d", name, status, got.remaining, want)
			}
		}
		if n := host.Metrics["sluice.limit.x.errors"]; n != 0 {
			t.Errorf("%s: %d errors", name, n)
		}
	}
}

func TestAStreamWithoutAResponseStaysCharged(t *testing.T) {
	for name, l := range tenAnHour {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, guesses(l.limit, ""))
		begin(plugin, costing(1, 2)).End()
		s := begin(plugin, costing(1, 1))
		s.ResponseTrailers(wasmtest.Headers{{":status", "200"}}) // is no response
		s.End()
		if a := look(plugin, 1); a.remaining != 7 {
			t.Errorf("%s: %d left, want 7", name, a.remaining)
		}
	}
}

func TestAResponseIsGivenBackOnce(t *testing.T) {
	for name, l := range tenAnHour {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, guesses(l.limit, ""))
		begin(plugin, costing(1, 5)).End()
		s := begin(plugin, costing(1, 2))
		for range 3 {
			s.ResponseHeaders(wasmtest.Headers{{":status", "200"}})
		}
		s.End()
		answerStatus(s, 200)
		if a := look(plugin, 1); a.remaining != 5 {
			t.Errorf("%s: %d left, want 5", name, a.remaining)
		}
	}
}

// Whatever races, no more guesses than the limit may ever be with the upstream, and
// in the end just the wrong ones are charged.
func TestOfFiftyGuessesAtOnceNoMoreThanTheLimitGetThrough(t *testing.T) {
	for name, l := range tenAnHour {
		t.Run(name, func(t *testing.T) {
			eachSeed(t, 4, func(random *rand.Rand) error {
				host := wasmtest.New(t, wasmtest.Module(t))
				defer host.Close()
				workers := startWorkers(t, host, 5, guesses(l.limit, ""))
				for _, early := range []bool{false, true} { // whether responses come before all have arrived
					for round := range 5 {
						if err := raceGuesses(host, workers, random, 2*round, early); err != nil {
							return fmt.Errorf("round %d, early %t: %w", round, early, err)
						}
						host.Clock.Advance(3 * time.Hour)
					}
				}
				return nil
			})
		})
	}
}

func raceGuesses(host *wasmtest.Host, workers []*wasmtest.Plugin, random *rand.Rand, n int, early bool) error {
	open, wrong, most, through := 0, 0, 0, 0
	answer := func(s *wasmtest.Stream) {
		if random.IntN(2) == 0 {
			wrong++
			answerStatus(s, 401)
		} else {
			open-- // surely charged until now
			answerStatus(s, 200)
		}
	}
	var tasks []wasmtest.Task
	for _, worker := range workers {
		tasks = append(tasks, wasmtest.Task{VM: worker.VM(), Run: func() {
			var held []*wasmtest.Stream
			for range 10 {
				if s := begin(worker, costing(n, 1)); wentOn(s) {
					through++
					open++
					most = max(most, open)
					held = append(held, s)
				} else {
					s.End()
				}
				if early && len(held) > 0 && random.IntN(3) == 0 {
					answer(held[0])
					held = held[1:]
				}
			}
			if early {
				for _, s := range held {
					answer(s)
				}
			}
		}})
	}
	host.Race(random, nil, tasks...)
	if most > 10 {
		return fmt.Errorf("%d guesses were on their way or wrong at once, want at most 10", most)
	}
	if !early && through != 10 {
		return fmt.Errorf("of 50 guesses at once %d got through, want 10", through)
	}
	if early {
		if a := look(workers[0], n); a.remaining != int64(10-wrong) {
			return fmt.Errorf("%d guesses were wrong, and %d are left of 10", wrong, a.remaining)
		}
	}
	return nil
}

// logins sends right logins and ten wrong ones over most of an hour, the last of
// all a wrong one. Each is answered when depth-1 more have arrived. It returns how
// many were refused of either kind.
func logins(host *wasmtest.Host, plugin *wasmtest.Plugin, n, count, depth int) (right, wrong int) {
	all := make([]*wasmtest.Stream, count)
	isWrong := func(i int) bool { return i%(count/10) == count/10-1 }
	for i := range count + depth - 1 {
		if i < count {
			all[i] = begin(plugin, costing(n, 1))
		}
		if i := i - (depth - 1); i >= 0 {
			switch s := all[i]; {
			case wentOn(s) && isWrong(i):
				answerStatus(s, 401)
			case wentOn(s):
				answerStatus(s, 200)
			case isWrong(i):
				wrong++
				s.End()
			default:
				right++
				s.End()
			}
		}
		host.Clock.Advance(50 * time.Minute / time.Duration(count))
	}
	return right, wrong
}

// alignHour moves the clocks to the beginning of an hour.
func alignHour(host *wasmtest.Host) {
	host.Clock.Advance(time.Hour - time.Duration(host.Clock.Wall%int64(time.Hour)))
}

func TestAThousandRightLoginsPassBetweenTenWrongOnes(t *testing.T) {
	for name, l := range tenAnHour {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, guesses(l.limit, ""))
		only := start(t, host, charging(l.limit, "")) // another bucket: another client
		alignHour(host)
		began := host.Clock
		right, wrong := logins(host, plugin, 1, 1010, 1)
		if right != 0 || wrong != 0 {
			t.Errorf("%s: %d right and %d wrong ones are refused", name, right, wrong)
		}
		got := look(plugin, 1)
		// The same with the wrong ones alone, on the same clock.
		ended := host.Clock
		host.Clock = began
		for i := range 1010 {
			if i%101 == 100 {
				ask(only, costing(2, 1))
			}
			host.Clock.Advance(50 * time.Minute / 1010)
		}
		host.Clock = ended
		if want := look(only, 2); got != want {
			t.Errorf("%s: after a thousand right ones: %+v, after the wrong ones alone: %+v", name, got, want)
		}
		if s := begin(plugin, costing(1, 1)); !l.continuous && wentOn(s) {
			t.Errorf("%s: the eleventh wrong one passes", name)
		}
	}
}

// Windows count what overlaps exactly. A continuous bucket forfeits what it would
// have regained while a request was on its way if another one came meanwhile: by
// the rate times that time, for each (see GiveBack in package algorithms).
func TestRightLoginsThatOverlapCostWindowsNothingAndBucketsSomeRefill(t *testing.T) {
	for name, l := range tenAnHour {
		for _, depth := range []int{2, 3, 5} {
			host := wasmtest.New(t, wasmtest.Module(t))
			plugin := start(t, host, guesses(l.limit, ""))
			alignHour(host)
			if !l.continuous {
				// The last of ten wrong ones needs a free place beside those on their way.
				right, wrong := logins(host, plugin, 1, 500, depth)
				left := look(plugin, 1).remaining
				if counted := int64(10 - wrong); left != 10-counted {
					t.Errorf("%s, %d at once: %d wrong ones passed, and %d are left", name, depth, counted, left)
				}
				t.Logf("%s, %d at once: refused %d right, %d wrong", name, depth, right, wrong)
				continue
			}
			// Right ones alone, in a bucket that lacks five: what is lost is what the
			// five have not come back by.
			begin(plugin, costing(1, 5)).End()
			const seconds = 500
			var all [seconds]*wasmtest.Stream
			for i := range seconds {
				all[i] = begin(plugin, costing(1, 1))
				if i >= depth-1 {
					answerStatus(all[i-depth+1], 200)
				}
				host.Clock.Advance(time.Second)
			}
			refused := 0
			for i, s := range all {
				if !wentOn(s) {
					refused++
				} else if i > seconds-depth {
					answerStatus(s, 200)
				}
			}
			lost := look(plugin, 1).reset - (5*360 - seconds)
			t.Logf("%s, %d at once: refused %d, lost %d s of refill in %d s", name, depth, refused, lost, seconds)
			if most := int64((depth - 1) * seconds); lost < 0 || lost > most {
				t.Errorf("%s, %d at once: %d s of refill are lost, want at most %d", name, depth, lost, most)
			}
		}
	}
}

// A response may come windows after its request.
func TestAWindowIsGivenBackWhatWasTakenInIt(t *testing.T) {
	for _, c := range []struct {
		name, limit string
		after       time.Duration
		left        int64 // of ten, six of which were taken
	}{
		{"fixed_window", tenAnHour["fixed_window"].limit, 59 * time.Minute, 10},
		{"fixed_window", tenAnHour["fixed_window"].limit, 61 * time.Minute, 10}, // forgotten anyway
		{"sliding_window", tenAnHour["sliding_window"].limit, 59 * time.Minute, 10},
		{"sliding_window", tenAnHour["sliding_window"].limit, 61 * time.Minute, 10},
		{"sliding_window", tenAnHour["sliding_window"].limit, 121 * time.Minute, 10},
	} {
		for _, taken := range []bool{false, true} { // whether somebody has taken in the meantime
			host := wasmtest.New(t, wasmtest.Module(t))
			plugin := start(t, host, guesses(c.limit, ""))
			alignHour(host)
			s := begin(plugin, costing(1, 6))
			host.Clock.Advance(c.after)
			want := c.left
			if taken {
				begin(plugin, costing(1, 2)).End()
				want -= 2
			}
			answerStatus(s, 200)
			if a := look(plugin, 1); a.remaining != want {
				t.Errorf("%s after %v, taken meanwhile %t: %d left, want %d", c.name, c.after, taken, a.remaining, want)
			}
		}
	}
}

func TestACostOfNothingGivesNothingBack(t *testing.T) {
	for name, l := range tenAnHour {
		host := wasmtest.New(t, wasmtest.Module(t))
		plugin := start(t, host, guesses(l.limit, ""))
		begin(plugin, costing(1, 4)).End()
		for range 5 {
			answerStatus(begin(plugin, costing(1, 0)), 200)
		}
		for range 5 { // refused ones
			s := begin(plugin, costing(1, 9))
			if wentOn(s) {
				t.Fatalf("%s: a cost of 9 went on", name)
			}
			answerStatus(s, 200)
		}
		if a := look(plugin, 1); a.remaining != 6 {
			t.Errorf("%s: %d left, want 6", name, a.remaining)
		}
	}
}

func TestAShadowLimitIsGivenBackToo(t *testing.T) {
	host := wasmtest.New(t, wasmtest.Module(t))
	plugin := start(t, host, guesses(tenAnHour["fixed_window"].limit, `,"shadow":true`))
	for range 30 {
		answerStatus(begin(plugin, costing(1, 1)), 200)
	}
	for range 12 { // two of them are refused in shadow, and give nothing back
		answerStatus(begin(plugin, costing(1, 1)), 403)
	}
	answerStatus(begin(plugin, costing(1, 1)), 200)
	if allowed, refused := host.Metrics["sluice.limit.x.allowed"], host.Metrics["sluice.limit.x.shadow_refused"]; allowed != 40 || refused != 3 {
		t.Errorf("allowed %d, refused in shadow %d, want 40 and 3", allowed, refused)
	}
}

// What is given back comes before what is charged: a debt that is forgiven does not
// come back.
func TestOneLimitGivesBackAndCharges(t *testing.T) {
	for _, c := range []struct {
		status, tokens int
		left           int64
	}{{200, 3, 7}, {401, 3, 5}, {200, 0, 10}, {401, 0, 8}, {200, 10, 0}, {401, 100, 0}, {200, 100, 0}} {
		for name, l := range tenAnHour {
			host := wasmtest.New(t, wasmtest.Module(t))
			plugin := start(t, host, strings.Replace(guesses(l.limit, ""), `"key"`, `"charge":{"response_header":"x-tokens","max":5},"key"`, 1))
			s := begin(plugin, costing(1, 2))
			sent := answerOf(s.ResponseHeaders(wasmtest.Headers{{":status", fmt.Sprint(c.status)}, {"x-tokens", fmt.Sprint(c.tokens)}}))
			s.End()
			want := max(c.left, map[int]int64{200: 10 - 5, 401: 8 - 5}[c.status])
			if c.tokens <= 5 {
				want = c.left
			}
			if sent.remaining != want {
				t.Errorf("%s, status %d, %d tokens: the response tells of %d left, want %d", name, c.status, c.tokens, sent.remaining, want)
			}
			looker, _ := plugin.VM().StartPlugin(wasmtest.PluginConfig{Name: "sluice", Config: charging(l.limit, "")})
			if a := look(looker, 1); a.remaining != want {
				t.Errorf("%s, status %d, %d tokens: %d left, want %d", name, c.status, c.tokens, a.remaining, want)
			}
		}
	}
}
