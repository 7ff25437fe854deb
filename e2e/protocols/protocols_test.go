// Package protocols checks what filter/fleet writes and reads against the
// services' own types. It is a Go module of its own, for the sake of these types.
package protocols

import (
	"strings"
	"testing"
	"time"

	extension "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	gubernator "github.com/gubernator-io/gubernator/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/fleet"
)

const (
	day    = 24 * time.Hour
	second = int64(time.Second)
	// Moments of a call, in ns.
	sent     = 100 * second
	received = sent + int64(3*time.Millisecond)
	wall     = 1_700_000_020 * second // 20 s before a minute's end
)

var (
	names = rapid.StringN(1, -1, -1)
	// Keys are text, as fleet.AppendKey makes them.
	keys = rapid.String()
	hits = rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, algorithms.MaxUnits))
)

// asks has a counter make a request and decodes it into got, which must then
// equal want: no field more, none less.
func asks(t *rapid.T, c *fleet.Counter, err error, key string, hits int64, got, want proto.Message) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	message := c.AppendRequest([]byte("kept"), []byte(key), hits)
	if !strings.HasPrefix(string(message), "kept") {
		t.Fatal("what was in front of the request is gone")
	}
	if err := proto.Unmarshal(message[len("kept"):], got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, want) {
		t.Fatalf("got %v\nwant %v", got, want)
	}
}

// taken is what a request for hits takes: more than there ever are only look.
func taken(hits, units int64) int64 {
	if hits > units {
		return 0
	}
	return hits
}

// orNever is an answer to a request for hits, which is never admitted if that is
// more than there ever are.
func orNever(a fleet.Answer, hits, units int64) fleet.Answer {
	if hits > units {
		a.Allowed, a.RetryAfter = false, algorithms.Forever
	}
	return a
}

// answers has a counter read an answer.
func answers(t *rapid.T, c *fleet.Counter, answer proto.Message, hits int64) (fleet.Answer, bool) {
	t.Helper()
	message, err := proto.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return c.ReadAnswer(message, hits, sent, received, wall)
}

// charges is asks for a charge.
func charges(t *rapid.T, c *fleet.Counter, key string, units int64, got, want proto.Message) {
	t.Helper()
	if err := proto.Unmarshal(c.AppendCharge(nil, []byte(key), units), got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, want) {
		t.Fatalf("got %v\nwant %v", got, want)
	}
}

// is compares what was read of an answer that can be relied on.
func is(t *rapid.T, got fleet.Answer, ok bool, want fleet.Answer) {
	t.Helper()
	if !ok || got != want {
		t.Fatalf("got %+v, %v\nwant %+v", got, ok, want)
	}
}

var rlsUnits = []struct {
	window time.Duration
	unit   envoytype.RateLimitUnit
	answer rls.RateLimitResponse_RateLimit_Unit
	name   string
}{
	{time.Second, envoytype.RateLimitUnit_SECOND, rls.RateLimitResponse_RateLimit_SECOND, "second"},
	{time.Minute, envoytype.RateLimitUnit_MINUTE, rls.RateLimitResponse_RateLimit_MINUTE, "minute"},
	{time.Hour, envoytype.RateLimitUnit_HOUR, rls.RateLimitResponse_RateLimit_HOUR, "hour"},
	{day, envoytype.RateLimitUnit_DAY, rls.RateLimitResponse_RateLimit_DAY, "day"},
}

func TestARequestInEnvoysTypes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom(rlsUnits).Draw(t, "unit")
		domain, limit, key := names.Draw(t, "domain"), names.Draw(t, "limit"), keys.Draw(t, "key")
		units, hits := rapid.Uint32Min(1).Draw(t, "units"), hits.Draw(t, "hits")
		c, err := fleet.NewRLS(domain, limit, unit.window, int64(units))
		want := &rls.RateLimitRequest{
			Domain: domain,
			Descriptors: []*extension.RateLimitDescriptor{{
				Entries: []*extension.RateLimitDescriptor_Entry{
					{Key: "limit", Value: limit}, {Key: "unit", Value: unit.name}, {Key: "key", Value: key},
				},
				Limit:      &extension.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: units, Unit: unit.unit},
				HitsAddend: wrapperspb.UInt64(uint64(taken(hits, int64(units)))),
			}},
		}
		asks(t, c, err, key, hits, new(rls.RateLimitRequest), want)
		want.Descriptors[0].HitsAddend.Value = uint64(hits)
		charges(t, c, key, hits, new(rls.RateLimitRequest), want)
	})
}

func TestAnAnswerInEnvoysTypes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom(rlsUnits).Draw(t, "unit")
		units := rapid.Uint32Min(1).Draw(t, "units")
		c, err := fleet.NewRLS("d", "l", unit.window, int64(units))
		if err != nil {
			t.Fatal(err)
		}
		code := rapid.SampledFrom([]rls.RateLimitResponse_Code{
			rls.RateLimitResponse_OK, rls.RateLimitResponse_OVER_LIMIT,
		}).Draw(t, "code")
		remaining := rapid.Uint32Range(0, units).Draw(t, "remaining")
		reset := time.Duration(rapid.Int64Range(1, int64(unit.window/time.Second)).Draw(t, "reset")) * time.Second
		hits := rapid.Int64Range(0, 2*int64(units)).Draw(t, "hits")
		answer := &rls.RateLimitResponse{
			OverallCode: code,
			Statuses: []*rls.RateLimitResponse_DescriptorStatus{{
				Code:               code,
				CurrentLimit:       &rls.RateLimitResponse_RateLimit{Name: "x", RequestsPerUnit: units, Unit: unit.answer},
				LimitRemaining:     remaining,
				DurationUntilReset: durationpb.New(reset),
			}},
			RawBody: []byte("x"),
		}
		want := fleet.Answer{
			Allowed:    code == rls.RateLimitResponse_OK,
			Remaining:  int64(remaining),
			EndsAfter:  sent + int64(reset) - second,
			EndsBefore: received + int64(reset),
			Reset:      reset,
		}
		if !want.Allowed {
			want.RetryAfter = reset
		}
		want = orNever(want, hits, int64(units))
		got, ok := answers(t, c, answer, hits)
		is(t, got, ok, want)

		// The service limits nothing of an unknown domain.
		answer.Statuses[0].CurrentLimit = nil
		if got, ok := answers(t, c, answer, hits); ok {
			t.Fatalf("%+v of an answer without limit", got)
		}
	})
}

func TestAWindowInGubernatorsTypes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]struct {
			window   time.Duration
			duration int64
			name     string
		}{
			{time.Minute, gubernator.GregorianMinutes, "minute"},
			{time.Hour, gubernator.GregorianHours, "hour"},
			{day, gubernator.GregorianDays, "day"},
		}).Draw(t, "unit")
		domain, limit, key := names.Draw(t, "domain"), names.Draw(t, "limit"), keys.Draw(t, "key")
		units, hits := rapid.Int64Range(1, algorithms.MaxUnits).Draw(t, "units"), hits.Draw(t, "hits")
		c, err := fleet.NewGubernatorWindow(domain, limit, unit.window, units)
		request := &gubernator.GetRateLimitsReq{
			Requests: []*gubernator.RateLimitReq{{
				Name:      domain + ":" + limit + ":" + unit.name,
				UniqueKey: key,
				Hits:      taken(hits, units),
				Limit:     units,
				Duration:  unit.duration,
				Algorithm: gubernator.Algorithm_TOKEN_BUCKET,
				Behavior:  gubernator.Behavior_DURATION_IS_GREGORIAN,
			}},
		}
		asks(t, c, err, key, hits, new(gubernator.GetRateLimitsReq), request)
		request.Requests[0].Hits = min(hits, units)
		request.Requests[0].Behavior |= gubernator.Behavior_DRAIN_OVER_LIMIT
		charges(t, c, key, hits, new(gubernator.GetRateLimitsReq), request)

		// Gubernator's own calendar, at the moment of the answer. The clocks may be
		// 100 ms apart, and the window ends with the millisecond that it names.
		end, err := gubernator.GregorianExpiration(time.Unix(0, wall).UTC(), unit.duration)
		if err != nil {
			t.Fatal(err)
		}
		answer := gubAnswer(t, units, units)
		answer.ResetTime = end
		left := end*int64(time.Millisecond) - wall
		before := min(left+int64(101*time.Millisecond), int64(unit.window))
		want := fleet.Answer{
			Allowed:    answer.Status == gubernator.Status_UNDER_LIMIT,
			Remaining:  answer.Remaining,
			EndsAfter:  received + left - int64(100*time.Millisecond),
			EndsBefore: received + before,
			Reset:      time.Duration(before),
		}
		if !want.Allowed {
			want.RetryAfter = want.Reset
		}
		want = orNever(want, hits, units)
		reads(t, c, answer, hits, want)
	})
}

func TestABucketInGubernatorsTypes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// The duration is at least what the bucket takes to fill: see package fleet.
		x := rapid.SampledFrom([]struct {
			capacity        int64
			rate            string
			limit, duration int64
		}{
			{10, "5/s", 10, 2000},
			{3, "5/s", 3, 600},
			{1, "5/s", 1, 200},
			{10, "3/s", 12, 4000},
			{100, "1000000000/s", 1_000_000, 1},
			{100, "1/d", 100, 8_640_000_000},
			{algorithms.MaxUnits, "1/d", algorithms.MaxUnits, algorithms.MaxUnits * 86_400_000},
		}).Draw(t, "bucket")
		rate, err := algorithms.ParseRate(x.rate)
		if err != nil {
			t.Fatal(err)
		}
		domain, limit, key := names.Draw(t, "domain"), names.Draw(t, "limit"), keys.Draw(t, "key")
		hits := hits.Draw(t, "hits")
		c, err := fleet.NewGubernatorBucket(domain, limit, x.capacity, rate)
		request := &gubernator.GetRateLimitsReq{
			Requests: []*gubernator.RateLimitReq{{
				Name:      domain + ":" + limit + ":bucket",
				UniqueKey: key,
				Hits:      taken(hits, x.capacity),
				Limit:     x.limit,
				Duration:  x.duration,
				Algorithm: gubernator.Algorithm_LEAKY_BUCKET,
				Burst:     x.capacity,
			}},
		}
		asks(t, c, err, key, hits, new(gubernator.GetRateLimitsReq), request)
		request.Requests[0].Hits = min(hits, x.capacity)
		request.Requests[0].Behavior |= gubernator.Behavior_DRAIN_OVER_LIMIT
		charges(t, c, key, hits, new(gubernator.GetRateLimitsReq), request)

		answer := gubAnswer(t, x.limit, x.capacity)
		want := fleet.Answer{
			Allowed:   answer.Status == gubernator.Status_UNDER_LIMIT,
			Remaining: answer.Remaining,
		}
		if missing := x.capacity - answer.Remaining; missing > 0 {
			want.Reset = late(rate.TimeFor(missing))
		}
		if !want.Allowed {
			want.RetryAfter = late(rate.TimeFor(max(1, hits-answer.Remaining)))
		}
		want = orNever(want, hits, x.capacity)
		reads(t, c, answer, hits, want)
	})
}

// late allows for the whole milliseconds of Gubernator's clock.
func late(d time.Duration) time.Duration {
	if d > algorithms.Forever-time.Millisecond {
		return d
	}
	return d + time.Millisecond
}

func gubAnswer(t *rapid.T, limit, most int64) *gubernator.RateLimitResp {
	return &gubernator.RateLimitResp{
		Status: rapid.SampledFrom([]gubernator.Status{
			gubernator.Status_UNDER_LIMIT, gubernator.Status_OVER_LIMIT,
		}).Draw(t, "status"),
		Limit:     limit,
		Remaining: rapid.Int64Range(0, most).Draw(t, "remaining"),
		ResetTime: wall / int64(time.Millisecond),
		Metadata:  map[string]string{"owner": "x"},
	}
}

// reads checks what is read of an answer, and that nothing is once it has an
// error.
func reads(t *rapid.T, c *fleet.Counter, answer *gubernator.RateLimitResp, hits int64, want fleet.Answer) {
	t.Helper()
	response := &gubernator.GetRateLimitsResp{Responses: []*gubernator.RateLimitResp{answer}}
	got, ok := answers(t, c, response, hits)
	is(t, got, ok, want)
	answer.Error = "no peer"
	if got, ok := answers(t, c, response, hits); ok {
		t.Fatalf("%+v of an error", got)
	}
}

func TestTheMethodsAreTheServices(t *testing.T) {
	for p, want := range map[fleet.Protocol]string{
		fleet.RLS:        rls.RateLimitService_ShouldRateLimit_FullMethodName,
		fleet.Gubernator: gubernator.V1_GetRateLimits_FullMethodName,
	} {
		if got := "/" + p.Service() + "/" + p.Method(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
