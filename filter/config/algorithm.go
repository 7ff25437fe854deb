package config

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
)

// limitDraft is a limit and what its algorithm is built from, in the units of
// package algorithms.
type limitDraft struct {
	Limit
	capacity, limit, burst     int64
	refillRate, leakRate, rate algorithms.Rate
	window                     algorithms.Window // in UTC
	utcOffset                  time.Duration
	mode                       string
	maxWait                    *time.Duration // nil where it follows from the other numbers
	overrides                  *node
}

// algorithm is an algorithm of the format: its name, the fields that a limit
// has because of it, and how they become a Limiter and the Limit's Shape.
type algorithm struct {
	name    string
	numbers []field[limitDraft] // which an override may replace
	others  []field[limitDraft]
	without []refusal // of what other limits may have
	build   func(*limitDraft) (limiter algorithms.Limiter, shape string, err error)
	// counts is what a fleet-wide service counts by it; nil where none does.
	counts func(*limitDraft) GlobalCount
}

func (a *algorithm) fields() []field[limitDraft] { return slices.Concat(a.numbers, a.others) }

var knownAlgorithms = []*algorithm{
	{
		name: "token_bucket",
		numbers: []field[limitDraft]{
			required("capacity", unitsValue, func(d *limitDraft) *int64 { return &d.capacity }).
				explain("The largest burst, in units. A new bucket is full."),
			required("refill_rate", rateValue, func(d *limitDraft) *algorithms.Rate { return &d.refillRate }).
				explain("Units gained over time, continuously, never above the capacity."),
		},
		build: func(d *limitDraft) (algorithms.Limiter, string, error) {
			limiter, err := algorithms.NewTokenBucket(d.capacity, d.refillRate)
			return limiter, d.Algorithm, err
		},
		counts: func(d *limitDraft) GlobalCount { return GlobalCount{Units: d.capacity, Rate: d.refillRate} },
	},
	{
		name: leakyBucket,
		numbers: []field[limitDraft]{
			required("capacity", unitsValue, func(d *limitDraft) *int64 { return &d.capacity }).
				explain("How many units may wait, or in the mode \"meter\" be in the bucket."),
			required("leak_rate", rateValue, func(d *limitDraft) *algorithms.Rate { return &d.leakRate }).
				explain("How fast they leave it."),
			optional("max_wait", maxWaitValue, func(d *limitDraft) **time.Duration { return &d.maxWait }).
				explain("The longest that a request waits, at most 4m; one that would have to wait longer is refused. By default the shorter of capacity/leak_rate and 4m. Only in the mode \"queue\"."),
		},
		others: []field[limitDraft]{
			optional("mode", modeValue, func(d *limitDraft) *string { return &d.mode }).
				explain("\"queue\": requests wait for their turn. \"meter\": what would overflow is refused.").defaultsTo(`"queue"`),
		},
		build:  buildLeakyBucket,
		counts: func(d *limitDraft) GlobalCount { return GlobalCount{Units: d.capacity, Rate: d.leakRate} },
	},
	{
		name:    fixedWindow,
		numbers: []field[limitDraft]{limitPerWindow},
		others:  []field[limitDraft]{windowField(fixedWindowValue), utcOffsetField},
		build:   buildWindow(algorithms.NewFixedWindow),
		counts:  func(d *limitDraft) GlobalCount { return GlobalCount{Units: d.limit, Window: globalWindow(d.window)} },
	},
	{
		name:    "sliding_window",
		numbers: []field[limitDraft]{limitPerWindow},
		others:  []field[limitDraft]{windowField(slidingWindowValue), utcOffsetField},
		build:   buildWindow(algorithms.NewSlidingWindow),
	},
	{
		name: "gcra",
		numbers: []field[limitDraft]{
			required("rate", rateValue, func(d *limitDraft) *algorithms.Rate { return &d.rate }).
				explain("One unit per 1/rate."),
			optional("burst", unitsValue, func(d *limitDraft) *int64 { return &d.burst }).
				explain("How many units may be taken at once.").defaultsTo("1"),
		},
		build: func(d *limitDraft) (algorithms.Limiter, string, error) {
			limiter, err := algorithms.NewGCRA(d.rate, d.burst)
			return limiter, d.Algorithm, err
		},
		counts: func(d *limitDraft) GlobalCount { return GlobalCount{Units: d.burst, Rate: d.rate} },
	},
	{
		name: concurrency,
		numbers: []field[limitDraft]{
			required("limit", unitsValue, func(d *limitDraft) *int64 { return &d.limit }).
				explain("How many requests may be in flight at once."),
		},
		without: []refusal{
			{"scope", `can't be had with "concurrency", which counts within the process only: leave it out`},
			{"charge", `can't be had with "concurrency", which counts requests and not what they cost: want another algorithm, or leave it out`},
			{"count_status", `can't be had with "concurrency", which gives back every request that has ended: want another algorithm, or leave it out`},
		},
		build: func(d *limitDraft) (algorithms.Limiter, string, error) {
			limiter, err := algorithms.NewConcurrency(d.limit)
			if err != nil {
				return nil, "", err // and not a Limiter that holds a nil pointer
			}
			return limiter, d.Algorithm, nil
		},
	},
}

const (
	fixedWindow = "fixed_window"
	concurrency = "concurrency"
)

// The fields of limits that count in windows.
var (
	limitPerWindow = required("limit", unitsValue, func(d *limitDraft) *int64 { return &d.limit }).
			explain("How many units a window holds.")
	utcOffsetField = optional("utc_offset", utcOffsetValue, func(d *limitDraft) *time.Duration { return &d.utcOffset }).
			explain("How far windows are moved from UTC's calendar. It is fixed and knows no summer time.").defaultsTo(`"+00:00"`)
)

func windowField(v value[algorithms.Window]) field[limitDraft] {
	return required("window", v, func(d *limitDraft) *algorithms.Window { return &d.window }).
		explain("The window's length. Windows begin with the calendar's.")
}

// buildWindow builds a limiter that counts in windows.
func buildWindow(build func(int64, algorithms.Window) (algorithms.Limiter, error)) func(*limitDraft) (algorithms.Limiter, string, error) {
	return func(d *limitDraft) (algorithms.Limiter, string, error) {
		length := d.window.String()
		moved, err := algorithms.ParseWindow(length, d.utcOffset)
		if err != nil {
			return nil, "", err
		}
		limiter, err := build(d.limit, moved)
		return limiter, d.Algorithm + "/" + length + "/" + algorithms.FormatUTCOffset(d.utcOffset), err
	}
}

var unitsValue = whole[int64](1, algorithms.MaxUnits)

// rateValue is a rate. A number is per second, and goes through a double as in
// a protobuf Struct.
var rateValue = value[algorithms.Rate]{wantRate, rateSchema, func(r *reader, n *node, to *algorithms.Rate) bool {
	spelled := n.text
	switch n.kind {
	case stringKind:
	case numberKind:
		f, _ := strconv.ParseFloat(n.text, 64)
		spelled = strconv.FormatFloat(f, 'f', -1, 64) + "/s"
	default:
		r.wrongType(n, wantRate)
		return false
	}
	rate, err := algorithms.ParseRate(spelled)
	if err != nil {
		r.wrong(n, err.Error())
		return false
	}
	*to = rate
	return true
}}

const wantRate = `a rate such as "5/s", "100/m" or "1/10s"`

var rateSchema = eitherSchema(
	keywords(`"type":"number","exclusiveMinimum":0,"maximum":1000000000`),
	patternSchema(`^[0-9]+(\.[0-9]+)?(/(s|m|h|d|`+durationPattern+`))?$`),
)

// durationPattern is a duration of Go's without a sign, or "1d".
const durationPattern = `1d|0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*`

var fixedWindowValue = stringAs(`a window such as "1m", "1d" or "1mo"`, func(s string) (algorithms.Window, error) {
	return algorithms.ParseWindow(s, 0)
}).as(patternSchema("^(1w|1mo|1y|" + durationPattern + ")$"))

var slidingWindowValue = stringAs(`a window such as "1m" or "1d"`, func(s string) (algorithms.Window, error) {
	window, err := algorithms.ParseWindow(s, 0)
	if err == nil {
		_, err = algorithms.NewSlidingWindow(1, window)
	}
	if err != nil {
		return window, errors.New("want a duration that divides a day, such as 10s, 1m or 1h, or 1d")
	}
	return window, nil
}).as(patternSchema("^(" + durationPattern + ")$"))

var utcOffsetValue = stringAs(`an offset such as "+02:00"`, algorithms.ParseUTCOffset).
	as(patternSchema("^[+-](0[0-9]|1[0-4]):[0-5][0-9]$"))

// algorithmOf is the algorithm that the limit n says it is by, or nil.
func algorithmOf(n *node) *algorithm {
	name := n.member("algorithm")
	if name == nil || name.kind != stringKind {
		return nil
	}
	for _, a := range knownAlgorithms {
		if a.name == name.text {
			return a
		}
	}
	return nil
}

var algorithmValue = stringAs(wantAlgorithm(), func(s string) (string, error) {
	for _, a := range knownAlgorithms {
		if a.name == s {
			return s, nil
		}
	}
	return "", wantError(wantAlgorithm())
}).as(enumSchema(algorithmNames()))

func algorithmNames() []string {
	var names []string
	for _, a := range knownAlgorithms {
		names = append(names, a.name)
	}
	return names
}

func wantAlgorithm() string { return list(algorithmNames(), "or") }
