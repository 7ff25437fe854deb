package response

import (
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
)

// share is what a limiter says after it has admitted a request.
func share(t *testing.T, name string, l algorithms.Limiter, err error) Share {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	_, d := algorithms.Decide(l, algorithms.State{}, algorithms.Time{Mono: 1}, 1)
	_, window := l.Quota()
	return NewShare(name, &d, window)
}

func bucket(t *testing.T, name string, capacity int64, spelled string) Share {
	t.Helper()
	rate, err := algorithms.ParseRate(spelled)
	if err != nil {
		t.Fatal(err)
	}
	l, err := algorithms.NewTokenBucket(capacity, rate)
	return share(t, name, l, err)
}

func window(t *testing.T, name string, limit int64, spelled string) Share {
	t.Helper()
	w, err := algorithms.ParseWindow(spelled, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := algorithms.NewFixedWindow(limit, w)
	return share(t, name, l, err)
}

func TestTheDraftsHeadersListEveryLimitInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		shares         []Share
		policy, header string
	}{
		"one": {
			[]Share{bucket(t, "login", 5, "1/s")},
			`"login";q=5;w=5`, `"login";r=4;t=1`,
		},
		"several": {
			[]Share{window(t, "day", 1000, "1d"), bucket(t, "per_ip-2", 200, "100/s")},
			`"day";q=1000;w=86400, "per_ip-2";q=200;w=2`, `"day";r=999;t=86400, "per_ip-2";r=199;t=1`,
		},
		"parts of a second": {
			[]Share{bucket(t, "fast", 1, "1000000/s"), bucket(t, "odd", 2, "3/2s")},
			`"fast";q=1;w=1, "odd";q=2;w=2`, `"fast";r=0;t=1, "odd";r=1;t=1`,
		},
		"a month": {
			[]Share{window(t, "plan", 10, "1mo")},
			`"plan";q=10;w=2678400`, `"plan";r=9;t=2678400`,
		},
		"longer than time": {
			[]Share{bucket(t, "slow", algorithms.MaxUnits, "1/d")},
			`"slow";q=1000000000;w=9223372037`, `"slow";r=999999999;t=86400`,
		},
		"no window and no reset": {
			[]Share{{Name: "jobs", Limit: 5, Remaining: 2, Reset: NoReset}, {Name: "b", Limit: 1, Window: 1}},
			`"jobs";q=5, "b";q=1;w=1`, `"jobs";r=2, "b";r=0;t=0`,
		},
	} {
		if got := string(AppendDraftPolicy([]byte("-"), c.shares)); got != "-"+c.policy {
			t.Errorf("%s: RateLimit-Policy is %s, want %s", name, got, c.policy)
		}
		if got := string(AppendDraft([]byte("-"), c.shares)); got != "-"+c.header {
			t.Errorf("%s: RateLimit is %s, want %s", name, got, c.header)
		}
	}
}

func TestAShareIsInWholeSecondsRoundedUp(t *testing.T) {
	for reset, want := range map[time.Duration]int64{0: 0, 1: 1, time.Second: 1, time.Second + 1: 2, -1: NoReset} {
		d := algorithms.Decision{Limit: 5, Remaining: 2, Reset: reset}
		if got, want := NewShare("a", &d, 1), (Share{Name: "a", Limit: 5, Window: 1, Remaining: 2, Reset: want}); got != want {
			t.Errorf("%v: got %+v, want %+v", reset, got, want)
		}
	}
}

// Admitted responses carry these headers too.
func TestTheDraftsHeadersDoNotAllocate(t *testing.T) {
	shares := []Share{{"login", 5, 60, 4, 12}, {"day", 1000, 86400, 999, 3600}}
	d := algorithms.Decision{Limit: 5, Remaining: 4, Reset: 12 * time.Second}
	dst := make([]byte, 0, 100)
	if n := testing.AllocsPerRun(100, func() {
		shares[0] = NewShare("login", &d, time.Minute)
		AppendDraftPolicy(dst, shares)
		AppendDraft(dst, shares)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
