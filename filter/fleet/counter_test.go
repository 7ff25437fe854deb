package fleet

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sluice-proxy/sluice/algorithms"
)

const day = 24 * time.Hour

func rate(t testing.TB, s string) algorithms.Rate {
	t.Helper()
	r, err := algorithms.ParseRate(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// counter passes on what a constructor returns, which must be no error.
func counter(t testing.TB) func(c *Counter, err error) *Counter {
	t.Helper()
	return func(c *Counter, err error) *Counter {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// The bytes as they are on the wire, field by field. That they mean what they
// should is checked with the services' own types, in e2e/protocols.
func TestRequestsAreTheseBytes(t *testing.T) {
	rls := counter(t)(NewRLS("d", "l", time.Minute, 300))
	window := counter(t)(NewGubernatorWindow("d", "l", time.Hour, 300))
	bucket := counter(t)(NewGubernatorBucket("d", "l", 2, rate(t, "5/s")))
	const (
		entries  = "0a0a" + "0a056c696d697412016c" + "0a0e" + "0a04756e697412066d696e757465" + "0a08" + "0a036b657912016b"
		override = "1205" + "08ac02" + "1002"
		hour     = "0a08" + "643a6c3a686f7572" + "12016b"
		leaky    = "0a0a" + "643a6c3a6275636b6574" + "12016b"
	)
	request, charge := (*Counter).AppendRequest, (*Counter).AppendCharge
	for _, c := range []struct {
		name    string
		counter *Counter
		units   int64
		append  func(c *Counter, dst, key []byte, units int64) []byte
		want    string
	}{
		{"RLS, 5 hits", rls, 5, request, "0a0164" + "1231" + entries + override + "1a02" + "0805"},
		{"RLS, a look", rls, 0, request, "0a0164" + "122f" + entries + override + "1a00"},
		{"RLS, more than there are", rls, 301, request, "0a0164" + "122f" + entries + override + "1a00"},
		{"window, more than there are", window, 301, request, "0a14" + hour + "20ac02" + "2801" + "3804"},
		{"bucket, more than there are", bucket, 3, request, "0a18" + leaky + "2002" + "289003" + "3001" + "4002"},
		{"RLS, below 0", rls, -1, request, "0a0164" + "122f" + entries + override + "1a00"},
		{"window, 5 hits", window, 5, request, "0a16" + hour + "1805" + "20ac02" + "2801" + "3804"},
		{"window, a look", window, 0, request, "0a14" + hour + "20ac02" + "2801" + "3804"},
		{"bucket, 2 hits", bucket, 2, request, "0a1a" + leaky + "1802" + "2002" + "289003" + "3001" + "4002"},
		// What is charged is spent already: it is taken as far as it can be.
		{"RLS, charged", rls, 5, charge, "0a0164" + "1231" + entries + override + "1a02" + "0805"},
		{"RLS, more than there are, charged", rls, 301, charge, "0a0164" + "1232" + entries + override + "1a03" + "08ad02"},
		{"window, charged", window, 5, charge, "0a16" + hour + "1805" + "20ac02" + "2801" + "3824"},
		{"window, more than there are, charged", window, 301, charge, "0a17" + hour + "18ac02" + "20ac02" + "2801" + "3824"},
		{"bucket, charged", bucket, 1, charge, "0a1c" + leaky + "1801" + "2002" + "289003" + "3001" + "4002" + "3820"},
		{"bucket, more than there are, charged", bucket, 5, charge, "0a1c" + leaky + "1802" + "2002" + "289003" + "3001" + "4002" + "3820"},
	} {
		if got := hex.EncodeToString(c.append(c.counter, nil, []byte("k"), c.units)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestWhatAServiceCannotCountIsRefused(t *testing.T) {
	five := rate(t, "5/s")
	for _, c := range []struct {
		name string
		make func() (*Counter, error)
	}{
		{"RLS of 2s", func() (*Counter, error) { return NewRLS("d", "l", 2*time.Second, 1) }},
		{"RLS of 0s", func() (*Counter, error) { return NewRLS("d", "l", 0, 1) }},
		{"RLS of 7 days", func() (*Counter, error) { return NewRLS("d", "l", 7*day, 1) }},
		{"RLS of 0 units", func() (*Counter, error) { return NewRLS("d", "l", time.Second, 0) }},
		{"RLS of 2^32 units", func() (*Counter, error) { return NewRLS("d", "l", time.Second, math.MaxUint32+1) }},
		{"RLS without domain", func() (*Counter, error) { return NewRLS("", "l", time.Second, 1) }},
		{"RLS without limit", func() (*Counter, error) { return NewRLS("d", "", time.Second, 1) }},
		{"RLS of no text", func() (*Counter, error) { return NewRLS("d", "\xff", time.Second, 1) }},
		{"window of 1s", func() (*Counter, error) { return NewGubernatorWindow("d", "l", time.Second, 1) }},
		{"window of 0 units", func() (*Counter, error) { return NewGubernatorWindow("d", "l", time.Minute, 0) }},
		{"window of no text", func() (*Counter, error) { return NewGubernatorWindow("\xff", "l", time.Minute, 1) }},
		{"bucket of 0 units", func() (*Counter, error) { return NewGubernatorBucket("d", "l", 0, five) }},
		{"bucket too large", func() (*Counter, error) { return NewGubernatorBucket("d", "l", algorithms.MaxUnits+1, five) }},
		{"bucket without rate", func() (*Counter, error) { return NewGubernatorBucket("d", "l", 1, algorithms.Rate{}) }},
		{"bucket without name", func() (*Counter, error) { return NewGubernatorBucket("d", "", 1, five) }},
	} {
		if made, err := c.make(); made != nil || err == nil || !strings.HasPrefix(err.Error(), "want ") {
			t.Errorf("%s: %v, %v", c.name, made, err)
		}
	}
}

func TestProtocolsHaveNames(t *testing.T) {
	for p, want := range map[Protocol]string{
		RLS:        "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
		Gubernator: "pb.gubernator.V1/GetRateLimits",
	} {
		if got := p.Service() + "/" + p.Method(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestRequestsAndAnswersAllocateNothing(t *testing.T) {
	rls := counter(t)(NewRLS("d", "l", time.Minute, 300))
	bucket := counter(t)(NewGubernatorBucket("d", "l", 5, rate(t, "5/s")))
	key, buffer := []byte("rate-limit:l:k"), make([]byte, 0, 512)
	rlsAnswer := rlsReply(rlsOverLimit, 300, 2, 0, 42)
	bucketAnswer := gubReply(gubOverLimit, bucket.limit, 1, 1, "")
	if n := testing.AllocsPerRun(100, func() {
		_ = rls.AppendRequest(buffer, key, 1)
		_ = bucket.AppendRequest(buffer, key, 1)
		_ = bucket.AppendCharge(buffer, key, 1)
		_ = AppendKey(buffer, key, key)
		if _, ok := rls.ReadAnswer(rlsAnswer, 1, 0, 0, 0); !ok {
			t.Fatal("RLS answer is refused")
		}
		if _, ok := bucket.ReadAnswer(bucketAnswer, 2, 0, 0, 0); !ok {
			t.Fatal("bucket answer is refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestWhetherAnAnswerTellsTheWindowsEnd(t *testing.T) {
	window := counter(t)(NewGubernatorWindow("d", "l", time.Minute, 10))
	bucket := counter(t)(NewGubernatorBucket("d", "l", 2, rate(t, "5/s")))
	const second = int64(time.Second)
	for _, c := range []struct {
		name    string
		counter *Counter
		answer  Answer
		want    bool
	}{
		{"within a second", window, Answer{EndsAfter: 4 * second, EndsBefore: 5 * second}, true},
		{"some time in the window", window, Answer{EndsAfter: 4 * second, EndsBefore: 64 * second}, false},
		{"half of a window", window, Answer{EndsAfter: 4 * second, EndsBefore: 34 * second}, true},
		{"a bucket has no window", bucket, Answer{}, true},
	} {
		if got := c.counter.KnowsEnd(&c.answer); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
