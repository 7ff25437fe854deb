package plugin

import (
	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/policy"
	"github.com/sluice-proxy/sluice/filter/table"
)

// metrics are the filter's stats. Each is defined when it is first needed, so
// that what does not happen costs nothing.
type metrics struct {
	ids      map[string]uint32
	reported table.Counts // of the table's
}

// What is counted of a limit: the metrics' places in policy.Limit's Metrics.
const (
	countAllowed = iota
	countRefused
	countShadowRefused
	countErrors
	countWaiting
	recordWaited
	countGivenUp
	countInFlight
	countCalls
	countCallErrors
)

var limitMetrics = [...]struct {
	name string
	kind host.MetricKind
}{
	countAllowed:       {".allowed", host.Counter},
	countRefused:       {".refused", host.Counter},
	countShadowRefused: {".shadow_refused", host.Counter},
	countErrors:        {".errors", host.Counter},
	countWaiting:       {".waiting", host.Gauge},
	recordWaited:       {".waited_ms", host.Histogram},
	countGivenUp:       {".given_up", host.Counter},
	countInFlight:      {".in_flight", host.Gauge},
	countCalls:         {".calls", host.Counter},
	countCallErrors:    {".call_errors", host.Counter},
}

// count counts a decision for each limit that had a part in it. ordinary says
// that all admitted the request, and at least one could have refused.
func (m *metrics) count(o *policy.Outcome) (ordinary bool) {
	admitted := o.Verdict == policy.Admitted || o.Verdict == policy.Unlimited
	ordinary = o.Verdict == policy.Admitted
	for i := range o.Rulings {
		switch g := &o.Rulings[i]; {
		case g.IsPending(): // in shadow: counted when the service has answered
			ordinary = false
		case g.Failed:
			m.limit(g.Limit, countErrors, 1)
			ordinary = false
		case g.Refuses() && g.Shadow:
			m.limit(g.Limit, countShadowRefused, 1)
			ordinary = false
		case g.Refuses():
			m.limit(g.Limit, countRefused, 1)
		case admitted:
			m.limit(g.Limit, countAllowed, 1)
		}
	}
	return ordinary
}

// limit adds to a counter or gauge of a limit, or a value to a histogram.
func (m *metrics) limit(l *policy.Limit, metric int, n int64) {
	id := l.Metrics[metric]
	if id == 0 {
		defined, status := host.DefineMetric(limitMetrics[metric].kind, "sluice.limit."+l.Name+limitMetrics[metric].name)
		if status != host.OK {
			return // a metric that can't be had is no reason to fail a request
		}
		id = defined + 1
		l.Metrics[metric] = id
	}
	if limitMetrics[metric].kind == host.Histogram {
		host.RecordMetric(id-1, uint64(n))
		return
	}
	host.AddMetric(id-1, n)
}

// table reports what the table has counted since.
func (m *metrics) table(t *table.Table) {
	if n := t.Evicted - m.reported.Evicted; n > 0 {
		m.add("sluice.table.evictions", n)
	}
	if n := t.Retries - m.reported.Retries; n > 0 {
		m.add("sluice.table.cas_retries", n)
	}
	if n := t.Added - m.reported.Added; n > 0 {
		m.addTo(host.Gauge, "sluice.table.fill", n)
	}
	m.reported = t.Counts
}

func (m *metrics) add(name string, n uint64) { m.addTo(host.Counter, name, n) }

func (m *metrics) addTo(kind host.MetricKind, name string, n uint64) {
	id, defined := m.ids[name]
	if !defined {
		var status host.Status
		if id, status = host.DefineMetric(kind, name); status != host.OK {
			return
		}
		if m.ids == nil {
			m.ids = map[string]uint32{}
		}
		m.ids[name] = id
	}
	host.AddMetric(id, int64(n))
}
