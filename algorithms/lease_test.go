package algorithms

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// mustLease is must for those who need more than a Limiter.
func mustLease(t fataler, terms LeaseTerms) *Lease {
	t.Helper()
	l, err := NewLease(terms)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func minuteLease() LeaseTerms {
	return LeaseTerms{Limit: 5000, Largest: 250, Window: time.Minute, Spends: true, Timeout: 50 * time.Millisecond}
}

func bucketLease(t fataler) LeaseTerms {
	rate, err := ParseRate("100/s")
	if err != nil {
		t.Fatal(err)
	}
	return LeaseTerms{Limit: 1000, Largest: 50, Rate: rate, Timeout: 50 * time.Millisecond}
}

func TestLeaseTermsAreChecked(t *testing.T) {
	for name, spoil := range map[string]func(*LeaseTerms){
		"limit":         func(l *LeaseTerms) { l.Limit = 0 },
		"no largest":    func(l *LeaseTerms) { l.Largest = 0 },
		"largest":       func(l *LeaseTerms) { l.Largest = l.Limit + 1 },
		"neither":       func(l *LeaseTerms) { l.Window = 0 },
		"both":          func(l *LeaseTerms) { l.Rate = bucketLease(t).Rate },
		"negative":      func(l *LeaseTerms) { l.Window = -1 },
		"timeout never": func(l *LeaseTerms) { l.Timeout = 0 },
	} {
		terms := minuteLease()
		spoil(&terms)
		if _, err := NewLease(terms); err == nil {
			t.Error(name, "was accepted")
		}
	}
}

func TestAnyStateOfALeaseIsAnswered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := rapid.SampledFrom([]LeaseTerms{
			minuteLease(), bucketLease(t),
			{Limit: MaxUnits, Largest: MaxUnits, Window: day, Timeout: Forever},
			{Limit: 1, Largest: 1, Window: time.Minute, Timeout: 1},
		}).Draw(t, "terms")
		l := mustLease(t, terms)
		word := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, math.MaxInt64, 1 << 63, math.MaxUint64}))
		s := State{word.Draw(t, "0"), word.Draw(t, "1"), word.Draw(t, "2"), word.Draw(t, "3")}
		now := Time{Mono: rapid.Int64().Draw(t, "now")}
		for range 4 {
			before := s
			var d Decision
			cost := rapid.Int64Range(0, MaxUnits).Draw(t, "cost")
			l.Decide(&s, now, cost, &d)
			switch {
			case d.Limit != terms.Limit || d.Remaining < 0 || d.Remaining > d.Limit || d.Reset < 0:
				t.Fatalf("says %+v", d)
			case d.Window < 0 || d.Window > terms.Largest:
				t.Fatal("asks for", d.Window)
			case (d.RetryAfter > 0) == (d.Allowed || d.Never):
				t.Fatalf("when to try again: %+v", d)
			case (cost == 0 || !d.Allowed && d.Window == 0) && s != before:
				t.Fatal("wrote without reason")
			}
			l.Answer(&s, now, LeaseAnswer{
				Asked:     rapid.Int64().Draw(t, "asked"),
				Failed:    rapid.Bool().Draw(t, "failed"),
				Pause:     time.Duration(rapid.Int64().Draw(t, "pause")),
				Allowed:   rapid.Bool().Draw(t, "allowed"),
				Remaining: rapid.Int64().Draw(t, "remaining"),
				EndsAfter: rapid.Int64().Draw(t, "after"), EndsBefore: rapid.Int64().Draw(t, "before"),
			})
			s = l.GiveBack(s, now, cost, d.Window)
			now.Mono = rapid.Int64().Draw(t, "then")
		}
	})
}

func TestLeasingDoesNotAllocate(t *testing.T) {
	for _, terms := range []LeaseTerms{minuteLease(), bucketLease(t)} {
		l := mustLease(t, terms)
		var s State
		var d Decision
		now := Time{Mono: 1}
		allocations := testing.AllocsPerRun(1000, func() {
			now = now.plus(30 * time.Millisecond)
			l.Decide(&s, now, 1, &d)
			l.Away(&s, now)
			l.Answer(&s, now, LeaseAnswer{Asked: 4, Allowed: true, Remaining: 9, EndsAfter: now.Mono + 9, EndsBefore: now.Mono + 99})
			s = l.GiveBack(s, now, 1, d.Window)
		})
		if allocations != 0 {
			t.Error("allocates", allocations, "times")
		}
	}
}

// leaseFor returns a stock of the given number of tokens.
func leaseFor(l *Lease, now Time, tokens int64) (s State) {
	l.Answer(&s, now, LeaseAnswer{
		Asked: tokens, Allowed: true, Remaining: 1000,
		EndsAfter: now.Mono + int64(10*time.Second), EndsBefore: now.Mono + int64(11*time.Second),
	})
	return s
}

func TestTokensAreNotSpentOnceTheirWindowMayBeOver(t *testing.T) {
	l := mustLease(t, minuteLease())
	now := Time{Mono: 1}
	s := leaseFor(l, now, 250)
	_, d := Decide(l, s, now.plus(10*time.Second-1), 1)
	if !d.Allowed || d.Window != 0 {
		t.Fatalf("before the edge: %+v", d)
	}
	s, d = Decide(l, s, now.plus(10*time.Second), 1)
	if !d.Allowed || d.Window != 1 {
		t.Fatalf("at the edge it is on credit, and the service is asked for one unit: %+v", d)
	}
	if k := unpackStock(&s); k.tokens != -1 {
		t.Fatal("tokens at the edge:", k.tokens)
	}
}

func TestCreditIsOneLeaseAndIsRepaid(t *testing.T) {
	l := mustLease(t, minuteLease())
	now, admitted, asked := Time{Mono: 1}, int64(0), int64(0)
	var s State
	for range 300 {
		var d Decision
		s, d = Decide(l, s, now, 1)
		asked += d.Window
		if d.Allowed {
			admitted++
		} else if d.RetryAfter != time.Millisecond {
			t.Fatal("told to try again after", d.RetryAfter)
		}
	}
	if admitted != 250 || asked != 1 {
		t.Fatal("admitted", admitted, "on credit, asked for", asked)
	}
	l.Answer(&s, now, LeaseAnswer{
		Asked: 1, Allowed: true, Remaining: 4999,
		EndsAfter: int64(30 * time.Second), EndsBefore: int64(31 * time.Second),
	})
	if _, d := Decide(l, s, now, 1); d.Window != 250 {
		t.Fatal("repays", d.Window)
	}
}

func TestACallThatNobodyAnsweredIsMadeAgain(t *testing.T) {
	l := mustLease(t, minuteLease())
	now := Time{Mono: 1}
	s, d := Decide(l, State{}, now, 1)
	if d.Window != 1 {
		t.Fatal("asks for", d.Window)
	}
	if _, d = Decide(l, s, now.plus(100*time.Millisecond), 1); d.Window != 0 {
		t.Fatal("two calls in flight")
	}
	if _, d = Decide(l, s, now.plus(101*time.Millisecond), 1); d.Window == 0 {
		t.Fatal("still thinks that the call is in flight")
	}
}

func TestAServiceThatFailedIsLeftAlone(t *testing.T) {
	l := mustLease(t, minuteLease())
	now := Time{Mono: 1}
	s, d := Decide(l, State{}, now, 1)
	l.Answer(&s, now, LeaseAnswer{Asked: d.Window, Failed: true, Pause: time.Second})
	if !l.Away(&s, now.plus(time.Second-2)) || l.Away(&s, now.plus(time.Second+2000)) {
		t.Fatal("is not away for a second")
	}
}

func TestARefusalHoldsUntilTheWindowMayBeOver(t *testing.T) {
	l := mustLease(t, minuteLease())
	now := Time{Mono: 1}
	s, _ := Decide(l, State{}, now, 1)
	l.Answer(&s, now, LeaseAnswer{
		Asked:     1,
		EndsAfter: now.Mono + int64(10*time.Second), EndsBefore: now.Mono + int64(11*time.Second),
	})
	refusal, d := Decide(l, s, now.plus(9*time.Second), 1)
	if d.Allowed || d.Window != 0 || refusal != s || d.RetryAfter < 2*time.Second || d.RetryAfter > 2100*time.Millisecond {
		t.Fatalf("exhausted: %+v", d)
	}
	if _, d = Decide(l, s, now.plus(10*time.Second+2*time.Microsecond), 1); !d.Allowed || d.Window != 1 {
		t.Fatalf("at the edge: %+v", d)
	}
}

func TestTokensGivenBackAreSpentAgain(t *testing.T) {
	l := mustLease(t, minuteLease())
	now := Time{Mono: 1}
	s := leaseFor(l, now, 250)
	taken, d := Decide(l, s, now, 7)
	k := unpackStock(&taken)
	if k.tokens != 243 {
		t.Fatal("tokens", k.tokens)
	}
	back := l.GiveBack(taken, now, 7, d.Window)
	if k = unpackStock(&back); k.tokens != 250 {
		t.Fatal("tokens after giving back", k.tokens)
	}
	if l.GiveBack(back, now, 7, d.Window) != back {
		t.Fatal("gave back what nobody took")
	}
}

func TestCreditSurvivesAnAnswerWhoseWindowMayBeOver(t *testing.T) {
	l := mustLease(t, minuteLease())
	now, sent := Time{Mono: int64(time.Hour)}, int64(time.Hour)
	var s State
	for range 100 {
		s, _ = Decide(l, s, now, 1)
	}
	now = now.plus(time.Millisecond)
	l.Answer(&s, now, LeaseAnswer{
		Asked: 1, Allowed: true, Remaining: 4999,
		EndsAfter: sent, EndsBefore: now.Mono + int64(time.Second),
	})
	// The requests may have come in the next window, which then has to repay them.
	s, d := Decide(l, s, now.plus(2*time.Second), 1)
	if k := unpackStock(&s); k.tokens != -101 || d.Window == 0 {
		t.Fatalf("owes %d: %+v", -k.tokens, d)
	}
}

// Where each lease is spent on a debt before anybody asks again, the next one is
// larger all the same, or a busy process would call for a few units at a time.
func TestLeasesThatOnlyRepayDebtsGrow(t *testing.T) {
	const (
		step  = time.Millisecond // from one request to the next
		delay = 4                // steps that an answer takes
	)
	l := mustLease(t, minuteLease())
	now, end := Time{Mono: 1}, int64(30*time.Second)
	var s State
	remaining, calls, pending, due := int64(5000), 0, int64(0), 0
	for n := range 2000 {
		if pending > 0 && n == due {
			remaining -= pending
			l.Answer(&s, now, LeaseAnswer{Asked: pending, Allowed: true, Remaining: remaining, EndsAfter: end, EndsBefore: end + 1})
			pending = 0
		}
		var d Decision
		if s, d = Decide(l, s, now, 1); !d.Allowed {
			t.Fatal("refused, with", remaining, "left")
		}
		if d.Window > 0 {
			calls, pending, due = calls+1, d.Window, n+delay
		}
		now = now.plus(step)
	}
	if calls > 40 {
		t.Errorf("%d calls for 2000 requests, want about one for each half of a lease", calls)
	}
}

// What an answer that comes late grants is of a window that is over: it is not
// spent in the next one, whose end and remaining units stay as they were told.
func TestAnAnswerOfAnOlderWindowChangesNothing(t *testing.T) {
	l := mustLease(t, minuteLease())
	now := Time{Mono: 1}
	var s State
	s, _ = Decide(l, s, now, 1)
	told := func(at, end time.Duration, asked, remaining int64) LeaseAnswer {
		now.Mono = int64(at)
		return LeaseAnswer{Asked: asked, Allowed: true, Remaining: remaining, EndsAfter: int64(end), EndsBefore: int64(end + time.Second)}
	}
	l.Answer(&s, now, told(time.Second, 30*time.Second, 1, 4999))
	now.Mono = int64(40 * time.Second)
	s, _ = Decide(l, s, now, 1)
	l.Answer(&s, now, told(41*time.Second, 90*time.Second, 10, 4000))
	_, before := Decide(l, s, now, 0)
	l.Answer(&s, now, told(42*time.Second, 30*time.Second, 200, 100))
	if _, after := Decide(l, s, now, 0); after.Remaining != before.Remaining {
		t.Errorf("%d are left after the late answer, want the %d of before", after.Remaining, before.Remaining)
	}
}
