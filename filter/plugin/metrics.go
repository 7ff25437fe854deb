package plugin

import (
	"github.com/sluice-proxy/sluice/filter/host"
	"github.com/sluice-proxy/sluice/filter/policy"
	"github.com/sluice-proxy/sluice/filter/table"
)

// metrics are the filter's stats. Each is defined when it is first needed, so
// that what does not happen costs nothing.
type metrics struct {
	ids                     map[string]uint32
	evicted, retries, added uint64 // how much of the table's counts has been reported
}

// What is counted of a limit: the names of the counters, and their places in
// policy.Limit's Counters.
const (
	countAllowed = iota
	countRefused
	countShadowRefused
	countErrors
)

var counterNames = [...]string{
	countAllowed:       ".allowed",
	countRefused:       ".refused",
	countShadowRefused: ".shadow_refused",
	countErrors:        ".errors",
}

// count counts a decision for each limit that had a part in it. ordinary says
// that all admitted the request, and at least one could have refused.
func (m *metrics) count(o *policy.Outcome) (ordinary bool) {
	admitted := o.Verdict == policy.Admitted || o.Verdict == policy.Unlimited
	ordinary = o.Verdict == policy.Admitted
	for i := range o.Rulings {
		switch g := &o.Rulings[i]; {
		case g.Failed:
			m.limit(g.Limit, countErrors)
			ordinary = false
		case g.Refuses() && g.Shadow:
			m.limit(g.Limit, countShadowRefused)
			ordinary = false
		case g.Refuses():
			m.limit(g.Limit, countRefused)
		case admitted:
			m.limit(g.Limit, countAllowed)
		}
	}
	return ordinary
}

// limit adds one to a counter of a limit.
func (m *metrics) limit(l *policy.Limit, counter int) {
	id := l.Counters[counter]
	if id == 0 {
		defined, status := host.DefineMetric(host.Counter, "sluice.limit."+l.Name+counterNames[counter])
		if status != host.OK {
			return // a metric that can't be had is no reason to fail a request
		}
		id = defined + 1
		l.Counters[counter] = id
	}
	host.AddMetric(id-1, 1)
}

// table reports what the table has counted.
func (m *metrics) table(t *table.Table) {
	if t.Evicted != m.evicted {
		m.add("sluice.table.evictions", t.Evicted-m.evicted)
		m.evicted = t.Evicted
	}
	if t.Retries != m.retries {
		m.add("sluice.table.cas_retries", t.Retries-m.retries)
		m.retries = t.Retries
	}
	if t.Added != m.added {
		m.addTo(host.Gauge, "sluice.table.fill", t.Added-m.added)
		m.added = t.Added
	}
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
