package algorithms_test

import (
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sluice-proxy/sluice/algorithms"
	"github.com/sluice-proxy/sluice/filter/fleet"
)

// leaseService is a model of what counts for a fleet. hit counts n units at a
// time of the day, and returns whether that was allowed and what it answers.
type leaseService interface {
	hit(wall, n int64) (allowed bool, answer []byte)
}

func field(dst []byte, id protowire.Number, n int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, id, protowire.VarintType), uint64(n))
}

func content(dst []byte, id protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, id, protowire.BytesType), message)
}

// rlsModel is the reference rate limit server: what it refuses is consumed all
// the same, and windows end in whole seconds.
type rlsModel struct {
	limit  int64
	window time.Duration
	counts map[int64]int64
}

func (m *rlsModel) hit(wall, n int64) (bool, []byte) {
	begin := wall - wall%int64(m.window)
	m.counts[begin] += n
	code, remaining := int64(1), m.limit-m.counts[begin]
	if remaining < 0 {
		code, remaining = 2, 0
	}
	unit := map[time.Duration]int64{time.Minute: 2, time.Hour: 3, 24 * time.Hour: 4}[m.window]
	status := field(nil, 1, code)
	status = content(status, 2, field(field(nil, 1, m.limit), 2, unit))
	status = field(status, 3, remaining)
	reset := (begin+int64(m.window))/int64(time.Second) - wall/int64(time.Second)
	status = content(status, 4, field(nil, 1, reset))
	return code == 1, content(field(nil, 1, code), 2, status)
}

// gubernatorAnswer is what Gubernator says.
func gubernatorAnswer(allowed bool, limit, remaining, reset int64) []byte {
	status := int64(1)
	if allowed {
		status = 0
	}
	return content(nil, 1, field(field(field(field(nil, 1, status), 2, limit), 3, remaining), 4, reset))
}

// gubernatorWindow is a calendar window of Gubernator: a refusal consumes
// nothing.
type gubernatorWindow struct {
	limit  int64
	window time.Duration
	counts map[int64]int64
}

func (m *gubernatorWindow) hit(wall, n int64) (bool, []byte) {
	begin := wall - wall%int64(m.window)
	allowed := m.counts[begin]+n <= m.limit
	if allowed {
		m.counts[begin] += n
	}
	end := (begin+int64(m.window))/int64(time.Millisecond) - 1
	return allowed, gubernatorAnswer(allowed, m.limit, m.limit-m.counts[begin], end)
}

// gubernatorBucket refills by whole units, on a clock of whole milliseconds.
type gubernatorBucket struct {
	limit    int64 // as it is sent: so many units in the duration
	capacity int64
	perMs    float64
	left     float64
	at       int64 // ms, 0 of a new one
}

// newGubernatorBucket has the numbers that the service is sent.
func newGubernatorBucket(c *fleet.Counter, capacity int64) *gubernatorBucket {
	_, _, n := protowire.ConsumeTag(c.AppendRequest(nil, nil, 1))
	message, _ := protowire.ConsumeBytes(c.AppendRequest(nil, nil, 1)[n:])
	numbers := map[protowire.Number]uint64{}
	for len(message) > 0 {
		id, kind, n := protowire.ConsumeTag(message)
		if kind == protowire.VarintType {
			numbers[id], _ = protowire.ConsumeVarint(message[n:])
		}
		message = message[n+protowire.ConsumeFieldValue(id, kind, message[n:]):]
	}
	const limit, duration = 4, 5
	return &gubernatorBucket{
		limit:    int64(numbers[limit]),
		capacity: capacity,
		perMs:    float64(numbers[limit]) / float64(numbers[duration]),
	}
}

func (m *gubernatorBucket) hit(wall, n int64) (bool, []byte) {
	now := wall / int64(time.Millisecond)
	if m.at == 0 {
		m.left, m.at = float64(m.capacity), now
		if n > m.capacity {
			m.left = 0
		}
	}
	if back := float64(now-m.at) * m.perMs; back >= 1 {
		m.left, m.at = min(m.left+back, float64(m.capacity)), now
	}
	allowed := n <= int64(m.left)
	if allowed {
		m.left -= float64(n)
	}
	return allowed, gubernatorAnswer(allowed, m.limit, int64(m.left), 0)
}

// counting is a limit as the Envoys of a fleet and their service know it.
type counting struct {
	terms   algorithms.LeaseTerms
	counter *fleet.Counter
	service leaseService
}

// Names of what counts.
const (
	rlsWindow = "rate limit server"
	gubWindow = "Gubernator's window"
	gubBucket = "Gubernator's bucket"
)

// newCounting returns a limit of so many units per minute, or of a bucket that
// refills in one.
func newCounting(t interface{ Fatal(...any) }, kind string, limit, largest int64) counting {
	c := counting{terms: algorithms.LeaseTerms{Limit: limit, Largest: largest, Window: time.Minute, Timeout: 50 * time.Millisecond}}
	var err error
	switch kind {
	case rlsWindow:
		c.terms.Spends = true
		c.service = &rlsModel{limit, time.Minute, map[int64]int64{}}
		c.counter, err = fleet.NewRLS("d", "l", time.Minute, limit)
	case gubWindow:
		c.service = &gubernatorWindow{limit, time.Minute, map[int64]int64{}}
		c.counter, err = fleet.NewGubernatorWindow("d", "l", time.Minute, limit)
	default:
		c.terms.Window = 0
		if c.terms.Rate, err = algorithms.ParseRate(strconv.FormatInt(limit, 10) + "/m"); err != nil {
			t.Fatal(err)
		}
		if c.counter, err = fleet.NewGubernatorBucket("d", "l", limit, c.terms.Rate); err != nil {
			t.Fatal(err)
		}
		c.service = newGubernatorBucket(c.counter, limit)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}
